//! An event loop: one thread, one epoll instance, and the connections it was given.
//!
//! # How it works
//! A connection has one slot of its loop for its whole life. Its box leaves the slot only to go to
//! the blocking pool, and comes back through the loop's mailbox. A socket is registered once,
//! edge-triggered, and stays registered while its connection is away. An event for an empty slot is
//! dropped, so a connection that comes back tries its socket before it waits for events again.
//!
//! # Invariants
//! * Nothing on the loop waits: sessions run with `Wait::Never`, and sockets are non-blocking. One
//!   exception: the only connection of a loop may wait for the log ([`Conn::turn_on_loop`]).
//! * A turn handles what one read returned. A connection whose socket has more goes to the end of
//!   the `ready` queue, so that a busy client can't starve the others.
//! * Replies are sent together at the end of a batch of turns. The first client to wake up finds a
//!   processor while the loop sends the other replies. Clients that share a thread receive several
//!   replies at once. Sent one by one, each reply would interrupt the loop and wake its client
//!   alone.
//! * The memory of connections is prefetched some turns ahead ([`Coming`]).
//! * Posting to a mailbox costs a system call only if its loop is not notified yet (`notified`).
//!
//! # Memory ordering
//! `notified` is set (AcqRel) after a letter is in the box, and cleared (AcqRel) before the loop
//! empties the box. If the loop misses a letter, its sender finds the flag clear and wakes the loop
//! again.

use super::conn::{Conn, Turn};
use super::sender::Sender;
use super::{Job, Shared};
use crate::backend::Backend;
use crate::net::Socket;
use crate::wire::buffer::SpareBuffers;
use mio::event::{self, Event};
use mio::{Events, Interest, Poll, Token, Waker};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::time::{Duration, Instant};

/// The token of the mailbox.
const MAIL: Token = Token(usize::MAX);
/// The most events of one poll.
const EVENTS: usize = 256;
/// The most connections whose replies wait for each other.
const BATCH: usize = 32;
/// How often a loop with clients in their start-up checks their time limit.
const START_UP_TICK: Duration = Duration::from_secs(1);

/// A letter to a loop.
pub enum Mail<B: Backend> {
    /// A new client.
    Accepted(Socket),
    /// A connection that comes back from the blocking pool.
    Returned(Box<Conn<B>>),
    /// Slot and number of a connection: its commit is durable, or its session was idle for too
    /// long.
    Woken(usize, u64),
}

/// The part of a loop that other threads use.
pub struct Mailbox<B: Backend> {
    letters: Mutex<Vec<Mail<B>>>,
    notified: AtomicBool,
    waker: Waker,
    /// The number of connections on this loop.
    pub load: AtomicUsize,
}

impl<B: Backend> Mailbox<B> {
    /// Puts a letter into the mailbox and notifies the loop.
    pub fn post(&self, mail: Mail<B>) {
        self.letters.lock().push(mail);
        self.wake();
    }

    /// Makes the loop check its letters and the stop flag.
    pub fn wake(&self) {
        if !self.notified.swap(true, Ordering::AcqRel)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "could not wake an event loop");
        }
    }
}

/// Wakes a connection on its loop without input from its client.
pub struct ConnWaker<B: Backend> {
    mailbox: Arc<Mailbox<B>>,
    slot: usize,
    number: u64,
}

impl<B: Backend> Wake for ConnWaker<B> {
    fn wake(self: Arc<Self>) {
        self.mailbox.post(Mail::Woken(self.slot, self.number));
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.post(Mail::Woken(self.slot, self.number));
    }
}

/// The state of a slot.
pub(super) enum Slot<B: Backend> {
    /// No connection has it.
    Free,
    /// The connection is on the blocking pool.
    Away,
    /// The connection is here.
    Here(Box<Conn<B>>),
}

/// Prefetches the connections whose events come next, while those before them have their turns.
/// With hundreds of connections, a connection's memory has left the near caches since its last
/// turn. Without this, each cache line would be fetched on demand.
struct Coming<'a> {
    conns: event::Iter<'a>,
    sessions: event::Iter<'a>,
}

impl<'a> Coming<'a> {
    /// A connection is prefetched this many turns ahead; what it points to, half as many.
    const TURNS: usize = 4;

    /// Prefetches the connections whose turns come soon after the first.
    fn new<B: Backend>(events: &'a Events, slots: &[Slot<B>]) -> Self {
        // The first one's turn comes at once.
        let mut later = events.iter();
        later.next();
        let mut coming = Self { conns: later.clone(), sessions: later };
        for _ in 1..Self::TURNS {
            ask(coming.conns.next(), slots, Conn::prefetch);
        }
        for _ in 1..Self::TURNS / 2 {
            ask(coming.sessions.next(), slots, Conn::prefetch_session);
        }
        coming
    }

    /// Must be called before each turn.
    fn step<B: Backend>(&mut self, slots: &[Slot<B>]) {
        ask(self.conns.next(), slots, Conn::prefetch);
        ask(self.sessions.next(), slots, Conn::prefetch_session);
    }
}

/// Prefetches memory of an event's connection, if the connection is here.
fn ask<B: Backend>(event: Option<&Event>, slots: &[Slot<B>], prefetch: fn(&Conn<B>)) {
    if let Some(Slot::Here(conn)) = event.and_then(|event| slots.get(event.token().0)) {
        prefetch(conn);
    }
}

/// An event loop, owned by its thread.
pub struct EventLoop<B: Backend> {
    poll: Poll,
    mailbox: Arc<Mailbox<B>>,
    slots: Vec<Slot<B>>,
    free: Vec<usize>,
    open: usize,
    ready: Vec<usize>,
    // Slots of the connections with unsent replies.
    unsent: Vec<usize>,
    // Made by the loop's own thread.
    sender: Option<Sender>,
    letters: Vec<Mail<B>>,
    spare: SpareBuffers,
    // Set only while a client may be in its start-up: a poll without a timeout is cheaper.
    next_tick: Option<Instant>,
}

impl<B: Backend> EventLoop<B> {
    /// Creates a loop that is not running yet.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), MAIL)?;
        let mailbox = Arc::new(Mailbox {
            letters: Mutex::new(Vec::new()),
            notified: AtomicBool::new(false),
            waker,
            load: AtomicUsize::new(0),
        });
        Ok(Self {
            poll,
            mailbox,
            slots: Vec::new(),
            free: Vec::new(),
            open: 0,
            ready: Vec::new(),
            unsent: Vec::new(),
            sender: None,
            letters: Vec::new(),
            spare: SpareBuffers::default(),
            next_tick: None,
        })
    }

    /// Its mailbox.
    pub fn mailbox(&self) -> Arc<Mailbox<B>> {
        Arc::clone(&self.mailbox)
    }

    /// Runs until the server stops and the last connection has ended.
    pub fn run(mut self, shared: &Arc<Shared<B>>) {
        let mut events = Events::with_capacity(EVENTS);
        self.sender = Some(Sender::new(BATCH));
        loop {
            let timeout = self.timeout();
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "epoll");
            }
            let mut mail = false;
            let mut coming = Coming::new(&events, &self.slots);
            for event in &events {
                coming.step(&self.slots);
                if event.token() == MAIL {
                    mail = true;
                    continue;
                }
                let slot = event.token().0;
                if let Some(Slot::Here(conn)) = self.slots.get_mut(slot) {
                    conn.note_event(
                        event.is_readable(),
                        event.is_read_closed() || event.is_error(),
                    );
                    self.turn(shared, slot);
                }
            }
            if mail {
                self.read_mail(shared);
            }
            for slot in std::mem::take(&mut self.ready) {
                self.turn(shared, slot);
            }
            self.send_all(shared);
            if self.next_tick.is_some_and(|tick| Instant::now() >= tick) {
                self.tick(shared);
            }
            if shared.stopping() && self.stop(shared) {
                return;
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() || !self.unsent.is_empty() {
            return Some(Duration::ZERO);
        }
        self.next_tick.map(|tick| tick.saturating_duration_since(Instant::now()))
    }

    /// Gives a connection a turn. Sends the held replies when there are many.
    fn turn(&mut self, shared: &Arc<Shared<B>>, slot: usize) {
        self.one_turn(shared, slot, false);
        if self.unsent.len() >= BATCH {
            self.send_all(shared);
        }
    }

    /// Sends the held replies.
    fn send_all(&mut self, shared: &Arc<Shared<B>>) {
        let mut slots = std::mem::take(&mut self.unsent);
        if slots.len() > 1
            && let Some(sender) = &mut self.sender
        {
            sender.send(&mut self.slots, &mut slots, &mut self.spare);
        }
        for slot in slots.drain(..) {
            self.one_turn(shared, slot, true);
        }
        // A connection that had more to read has replies again. They go with the next batch.
        slots.append(&mut self.unsent);
        self.unsent = slots;
    }

    /// Gives a connection a turn, and does what the turn's result asks for.
    fn one_turn(&mut self, shared: &Arc<Shared<B>>, slot: usize, send: bool) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        let Slot::Here(conn) = place else { return };
        match conn.turn_on_loop(shared, send, self.open == 1, &mut self.spare) {
            Turn::Wait => {
                if let Err(error) = conn.watch(self.poll.registry()) {
                    tracing::error!(%error, "could not watch a connection");
                    self.close(shared, slot, false);
                }
            }
            Turn::Again => self.ready.push(slot),
            Turn::Send => self.unsent.push(slot),
            Turn::Block => {
                if let Slot::Here(conn) = std::mem::replace(place, Slot::Away) {
                    let job = Job { conn, home: Arc::clone(&self.mailbox) };
                    if let Err(job) = shared.blocking_pool.submit(job) {
                        *place = Slot::Here(job.conn);
                        self.close(shared, slot, true);
                    }
                }
            }
            Turn::Close => self.close(shared, slot, false),
        }
    }

    fn read_mail(&mut self, shared: &Arc<Shared<B>>) {
        self.mailbox.notified.swap(false, Ordering::AcqRel);
        let mut letters = std::mem::take(&mut self.letters);
        std::mem::swap(&mut letters, &mut *self.mailbox.letters.lock());
        for letter in letters.drain(..) {
            match letter {
                Mail::Accepted(socket) => self.accept(shared, socket),
                Mail::Returned(mut conn) => {
                    conn.note_return();
                    let slot = conn.slot;
                    if let Some(place) = self.slots.get_mut(slot) {
                        *place = Slot::Here(conn);
                        self.turn(shared, slot);
                    }
                }
                Mail::Woken(slot, number) => {
                    if let Some(Slot::Here(conn)) = self.slots.get_mut(slot)
                        && conn.number == number
                    {
                        conn.note_wake();
                        self.turn(shared, slot);
                    }
                }
            }
        }
        self.letters = letters;
    }

    fn accept(&mut self, shared: &Arc<Shared<B>>, mut socket: Socket) {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut socket, Token(slot), Interest::READABLE) {
            tracing::error!(%error, "could not watch a new connection");
            self.mailbox.load.fetch_sub(1, Ordering::Relaxed);
            if slot < self.slots.len() {
                self.free.push(slot);
            }
            return;
        }
        socket.prepare();
        let number = shared.next_number();
        let waker = Arc::new(ConnWaker { mailbox: self.mailbox(), slot, number });
        let conn = Slot::Here(Box::new(Conn::new(socket, slot, number, waker.into())));
        match self.slots.get_mut(slot) {
            Some(place) => *place = conn,
            None => self.slots.push(conn),
        }
        self.open += 1;
        self.next_tick.get_or_insert_with(|| Instant::now() + START_UP_TICK);
        self.turn(shared, slot);
    }

    fn close(&mut self, shared: &Arc<Shared<B>>, slot: usize, no_thread: bool) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        if let Slot::Here(mut conn) = std::mem::replace(place, Slot::Free) {
            if no_thread {
                conn.refuse_thread();
            }
            // Closing the descriptor also removes it from the epoll instance.
            conn.end(shared);
        }
        self.free.push(slot);
        self.open -= 1;
        self.mailbox.load.fetch_sub(1, Ordering::Relaxed);
    }

    /// Closes clients that take too long for their start-up.
    fn tick(&mut self, shared: &Arc<Shared<B>>) {
        let now = Instant::now();
        let mut starting = false;
        for slot in 0..self.slots.len() {
            let Some(Slot::Here(conn)) = self.slots.get(slot) else { continue };
            if conn.dawdles(now) {
                self.close(shared, slot, false);
            } else {
                starting |= conn.starting();
            }
        }
        self.next_tick = starting.then(|| now + START_UP_TICK);
    }

    /// Ends every session that is here. Those on the blocking pool return first. True when all have
    /// ended.
    fn stop(&mut self, shared: &Arc<Shared<B>>) -> bool {
        for slot in 0..self.slots.len() {
            if let Some(Slot::Here(conn)) = self.slots.get_mut(slot) {
                conn.say_goodbye();
                self.close(shared, slot, false);
            }
        }
        self.open == 0
    }
}
