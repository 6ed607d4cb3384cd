//! Listening sockets: TCP on loopback addresses, and Unix sockets with libpq's names.

use super::Socket;
use super::socket_lock::{SocketLock, SocketLockError};
use mio::net;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Why the server can't listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Connections are not authenticated, so only loopback addresses are allowed.
    #[error(
        "refusing to listen on {0}: connections are not authenticated yet, so only loopback \
         addresses (127.0.0.1, [::1]) and Unix sockets (--socket-dir) are allowed"
    )]
    NotLoopback(SocketAddr),
    /// The address can't be bound.
    #[error("could not listen on {address}: {source}{}", hint(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The socket's file can't be created.
    #[error("could not create Unix socket {}: {source}", path.display())]
    Unix {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The socket's lock file can't be taken.
    #[error(transparent)]
    Lock(#[from] SocketLockError),
    /// Another server listens there.
    #[error(
        "another server is listening on Unix socket {}; stop it, or choose another port (--listen) \
         or directory (--socket-dir)", .0.display()
    )]
    UnixInUse(PathBuf),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            " (is another server running on that port? choose another with --listen)"
        }
        _ => "",
    }
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(net::TcpListener, SocketAddr),
    /// A Unix socket.
    Unix(net::UnixListener, Arc<UnixPath>),
}

/// The file of a Unix socket, and its lock. Both are removed by the drop, or before it by
/// [`UnixPath::remove`].
#[derive(Debug)]
pub struct UnixPath {
    path: PathBuf,
    lock: Mutex<Option<SocketLock>>,
}

impl Drop for UnixPath {
    fn drop(&mut self) {
        self.remove();
    }
}

impl UnixPath {
    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes both files, once: later, a file of the same name belongs to another server.
    pub fn remove(&self) {
        let Some(lock) = self.lock.lock().take() else { return };
        // No other server touches the socket while the lock file exists.
        let _ = fs::remove_file(&self.path);
        drop(lock);
    }
}

impl Listener {
    /// Listens on a loopback address. Port 0 picks a free port.
    pub fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        let failed = |source| ListenError::Tcp { address, source };
        let listener = net::TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok(Listener::Tcp(listener, bound))
    }

    /// Listens on `dir/.s.PGSQL.PORT`, and replaces a socket that a dead server left behind. Every
    /// user with access to the directory may connect.
    pub fn unix(dir: &Path, port: u16) -> Result<Self, ListenError> {
        Self::unix_with(dir, port, 0o777)
    }

    /// Like [`Self::unix`], with permission bits (`unix_socket_permissions`). A user needs write
    /// permission on the socket to connect.
    pub fn unix_with(dir: &Path, port: u16, permissions: u32) -> Result<Self, ListenError> {
        let path = dir.join(format!(".s.PGSQL.{port}"));
        let failed = |source| ListenError::Unix { path: path.clone(), source };
        let lock = SocketLock::take(&path)?;
        if let Ok(found) = fs::symlink_metadata(&path) {
            if !found.file_type().is_socket() {
                return Err(failed(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the file exists and is not a socket; remove it or choose another --socket-dir",
                )));
            }
            // A program that doesn't take our lock file may still serve the socket.
            if unix::UnixStream::connect(&path).is_ok() {
                return Err(ListenError::UnixInUse(path));
            }
            fs::remove_file(&path).map_err(failed)?;
        }
        let listener = unix::UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = net::UnixListener::from_std(listener);
        let lock = Mutex::new(Some(lock));
        Ok(Listener::Unix(listener, Arc::new(UnixPath { path, lock })))
    }

    /// Accepts one connection.
    pub fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener, _) => Ok(Socket::Tcp(listener.accept()?.0)),
            Listener::Unix(listener, _) => Ok(Socket::Unix(listener.accept()?.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_loopback_addresses_are_refused() {
        let refused = Listener::tcp("0.0.0.0:0".parse().expect("address")).expect_err("refused");
        assert!(matches!(refused, ListenError::NotLoopback(_)), "{refused}");
        let Listener::Tcp(_, bound) =
            Listener::tcp("127.0.0.1:0".parse().expect("address")).expect("listens")
        else {
            panic!("TCP")
        };
        assert_ne!(bound.port(), 0);
    }

    #[test]
    fn stale_sockets_are_replaced_and_live_ones_are_not() {
        let dir = tempfile::tempdir().expect("directory");
        let first = Listener::unix(dir.path(), 5433).expect("listens");
        // This process holds the lock file, so the connection attempt finds the live server.
        let second = Listener::unix(dir.path(), 5433).expect_err("in use");
        assert!(matches!(second, ListenError::UnixInUse(_)), "{second}");
        drop(first);
        let path = dir.path().join(".s.PGSQL.5433");
        assert!(!path.exists());
        // A killed server leaves the file, but nothing listens on it.
        drop(unix::UnixListener::bind(&path).expect("binds"));
        assert!(path.exists());
        // Another test may have just forked, and its child has the descriptors until it executes.
        let replaced = loop {
            match Listener::unix(dir.path(), 5433) {
                Err(ListenError::UnixInUse(_)) => std::thread::yield_now(),
                replaced => break replaced,
            }
        };
        drop(replaced.expect("replaced"));
        // A live server of another kind holds no lock of ours.
        let other = unix::UnixListener::bind(&path).expect("binds");
        assert!(Listener::unix(dir.path(), 5433).is_err());
        drop(other);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "precious").expect("written");
        assert!(Listener::unix(dir.path(), 5433).is_err());
        assert_eq!(fs::read(&path).expect("kept"), b"precious");
    }
}
