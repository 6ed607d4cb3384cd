//! The acceptor: one thread for all listeners. A new client goes to the loop with the fewest.

use super::event_loop::{Mail, Mailbox};
use crate::backend::Backend;
use crate::net::{Listener, Socket};
use crate::proto::sink::too_many;
use crate::wire::reply;
use mio::event::Source;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const STOP: Token = Token(usize::MAX);
/// How long the acceptor pauses after an error, such as no file descriptors left.
const REST: Duration = Duration::from_millis(100);

/// The running acceptor.
pub(super) struct Acceptor {
    waker: Arc<Waker>,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Acceptor {
    /// Starts to accept clients: at most `max_sockets` at a time, with or without a session.
    pub fn start<B: Backend>(
        mut listeners: Vec<Listener>,
        mailboxes: Arc<[Arc<Mailbox<B>>]>,
        max_sockets: usize,
    ) -> io::Result<Self> {
        let mut poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), STOP)?);
        for (i, listener) in listeners.iter_mut().enumerate() {
            let source: &mut dyn Source = match listener {
                Listener::Tcp(listener, _) => listener,
                Listener::Unix(listener, _) => listener,
            };
            poll.registry().register(source, Token(i), Interest::READABLE)?;
        }
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = thread::Builder::new().name("acceptor".to_owned()).spawn(move || {
            let mut events = Events::with_capacity(16);
            let mut rest = None;
            while !stop.load(Ordering::Relaxed) {
                if let Err(error) = poll.poll(&mut events, rest.take())
                    && error.kind() != io::ErrorKind::Interrupted
                {
                    tracing::error!(%error, "epoll of the acceptor");
                }
                // Events are edge-triggered, and no event ends a pause: try all listeners.
                for listener in &listeners {
                    while let Some(socket) = accept(listener, &mut rest) {
                        distribute(socket, &mailboxes, max_sockets);
                    }
                }
            }
        })?;
        Ok(Self { waker, stopping, thread })
    }

    /// Stops accepting and closes the listeners.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "could not wake the acceptor");
            return;
        }
        if self.thread.join().is_err() {
            tracing::error!("the acceptor has panicked");
        }
    }
}

fn accept(listener: &Listener, rest: &mut Option<Duration>) -> Option<Socket> {
    loop {
        match listener.accept() {
            Ok(socket) => return Some(socket),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return None,
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                _ => {
                    tracing::warn!(%error, "could not accept a connection");
                    *rest = Some(REST);
                    return None;
                }
            },
        }
    }
}

fn distribute<B: Backend>(mut socket: Socket, mailboxes: &[Arc<Mailbox<B>>], max_sockets: usize) {
    let load = |mailbox: &Arc<Mailbox<B>>| mailbox.load.load(Ordering::Relaxed);
    if mailboxes.iter().map(load).sum::<usize>() >= max_sockets {
        let mut bytes = Vec::new();
        reply::error(&mut bytes, &too_many());
        // Best effort: if the socket has no room, the client only sees the end.
        let _ = socket.write(&bytes);
        return;
    }
    let Some(mailbox) = mailboxes.iter().min_by_key(|m| load(m)) else { return };
    mailbox.load.fetch_add(1, Ordering::Relaxed);
    mailbox.post(Mail::Accepted(socket));
}
