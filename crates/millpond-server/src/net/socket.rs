//! A client's non-blocking socket, TCP or Unix. A thread that may block can wait for it.

use mio::event::Source;
use mio::{Interest, Registry, Token, net};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A client that has gone is an error, not a signal.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// macOS has no such flag; Rust's runtime ignores the signal.
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: SendFlags = SendFlags::empty();

/// A client's socket.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(net::TcpStream),
    /// Over a Unix socket.
    Unix(net::UnixStream),
}

impl Socket {
    /// Sets TCP_NODELAY, so that the kernel sends small replies at once.
    pub fn prepare(&self) {
        if let Socket::Tcp(socket) = self
            && let Err(error) = socket.set_nodelay(true)
        {
            tracing::debug!(%error, "TCP_NODELAY");
        }
    }

    /// The client's address with its port; empty for a Unix socket.
    pub fn peer(&self) -> String {
        match self {
            Socket::Tcp(socket) => socket.peer_addr().map(|a| a.to_string()).unwrap_or_default(),
            Socket::Unix(_) => String::new(),
        }
    }

    /// The server's port, to which the client has connected; `None` for a Unix socket.
    pub fn own_port(&self) -> Option<u16> {
        match self {
            Socket::Tcp(socket) => socket.local_addr().ok().map(|address| address.port()),
            Socket::Unix(_) => None,
        }
    }

    /// Blocks this thread until the socket is readable (or writable if `write`), at most for
    /// `limit`.
    pub fn wait(&self, write: bool, limit: Duration) -> io::Result<()> {
        let flags = if write { PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::new(self, flags)];
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

// These are direct system calls. libc's wrappers are cancellation points, which cost a little on
// each call in a program with threads.
impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (count, _) = rustix::net::recv(&*self, bytes, RecvFlags::empty())?;
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&*self, bytes, NO_SIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Socket {
    fn register(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.register(to, token, interest),
            Socket::Unix(socket) => socket.register(to, token, interest),
        }
    }

    fn reregister(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.reregister(to, token, interest),
            Socket::Unix(socket) => socket.reregister(to, token, interest),
        }
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.deregister(from),
            Socket::Unix(socket) => socket.deregister(from),
        }
    }
}
