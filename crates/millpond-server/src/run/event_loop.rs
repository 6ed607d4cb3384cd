//! An event loop: one thread, one epoll, the connections that were given to it.
//!
//! # How it works
//! A connection lives in a slot of its loop for its whole life. It leaves the slot only by ownership,
//! to the lane that may block, and comes back through the loop's mailbox. Sockets are registered at
//! the start, edge-triggered, and stay registered while their connection is away: an event for an empty slot is
//! dropped, and a connection that comes back tries its socket before it waits for events again.
//!
//! # Invariants
//! * Nothing on the loop waits: sessions run with `Wait::Never`, sockets are non-blocking.
//! * A turn serves what one read brought; a connection whose socket has more goes to the end of
//!   the `ready` queue, so that one busy client can't starve the others.
//! * Replies leave at the end of a batch of turns, together. A client that is woken by the first of them finds
//!   a processor while the others are being sent, and clients that share a thread find several replies at once;
//!   sent one by one, each reply would interrupt the loop and wake its client for itself alone.
//! * The memory of connections is asked for some turns ahead ([`Coming`]).
//! * A mailbox wake costs a system call only when the loop has not been told yet (`notified`).
//!
//! # Memory ordering
//! `notified` is set (AcqRel) after a letter is in the box and cleared (AcqRel) before the box is emptied, so a
//! letter that an emptying loop missed finds the flag clear and wakes the loop again.

use super::conn::{Conn, Turn};
use super::sender::Sender;
use super::{Job, Shared};
use crate::backend::Backend;
use crate::net::Socket;
use crate::wire::buffer::Spare;
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
/// How many events one poll may bring.
const EVENTS: usize = 256;
/// How many connections' replies are held back for each other at most: what one of them waits for.
const BATCH: usize = 32;
/// How often a loop with clients in their start-up looks for those who dawdle.
const START_UP_TICK: Duration = Duration::from_secs(1);

/// A letter to a loop.
pub enum Mail<B: Backend> {
    /// A new client.
    Accepted(Socket),
    /// A connection comes back from the lane.
    Returned(Box<Conn<B>>),
    /// The log of a commit is durable, or the session has been idle for too long; slot and number of the connection.
    Woken(usize, u64),
}

/// What others know of a loop.
pub struct Mailbox<B: Backend> {
    letters: Mutex<Vec<Mail<B>>>,
    notified: AtomicBool,
    waker: Waker,
    /// Connections on this loop.
    pub load: AtomicUsize,
}

impl<B: Backend> Mailbox<B> {
    /// Leaves a letter and sees to it that the loop looks.
    pub fn post(&self, mail: Mail<B>) {
        self.letters.lock().push(mail);
        self.wake();
    }

    /// Makes the loop look at its letters and at whether it should stop.
    pub fn wake(&self) {
        if !self.notified.swap(true, Ordering::AcqRel)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "could not wake an event loop");
        }
    }
}

/// Tells a connection's loop that it has something to do, without a word from its client.
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

/// The place of a connection.
pub(super) enum Slot<B: Backend> {
    /// Nobody's.
    Free,
    /// The connection is on the lane.
    Away,
    /// The connection is here.
    Here(Box<Conn<B>>),
}

/// The connections whose events come next. The memory of each is asked for while those before it have their turns: with
/// hundreds of connections it has left the processor's near caches since its last turn, and would be fetched line by line.
struct Coming<'a> {
    conns: event::Iter<'a>,
    sessions: event::Iter<'a>,
}

impl<'a> Coming<'a> {
    /// So many turns ahead a connection is asked for, and half as many ahead what it points to.
    const TURNS: usize = 4;

    /// Begins with the connections whose turns come soon after the first.
    fn new<B: Backend>(events: &'a Events, slots: &[Slot<B>]) -> Self {
        // The first is about to have its turn.
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

    /// A connection is about to have its turn.
    fn step<B: Backend>(&mut self, slots: &[Slot<B>]) {
        ask(self.conns.next(), slots, Conn::prefetch);
        ask(self.sessions.next(), slots, Conn::prefetch_session);
    }
}

/// Asks for memory of the connection that an event is about, if it is here.
fn ask<B: Backend>(event: Option<&Event>, slots: &[Slot<B>], prefetch: fn(&Conn<B>)) {
    if let Some(Slot::Here(conn)) = event.and_then(|event| slots.get(event.token().0)) {
        prefetch(conn);
    }
}

/// The loop itself, owned by its thread.
pub struct EventLoop<B: Backend> {
    poll: Poll,
    mailbox: Arc<Mailbox<B>>,
    slots: Vec<Slot<B>>,
    free: Vec<usize>,
    open: usize,
    ready: Vec<usize>,
    // Who has replies to send.
    unsent: Vec<usize>,
    // Its own thread makes it.
    sender: Option<Sender>,
    letters: Vec<Mail<B>>,
    spare: Spare,
    // Only while a client may be in its start-up: a poll without timeout is cheaper.
    next_tick: Option<Instant>,
}

impl<B: Backend> EventLoop<B> {
    /// A loop, not yet running.
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
            spare: Spare::default(),
            next_tick: None,
        })
    }

    /// Its mailbox.
    pub fn mailbox(&self) -> Arc<Mailbox<B>> {
        Arc::clone(&self.mailbox)
    }

    /// Serves until the server stops and the last connection has gone.
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

    /// Gives a connection its turn, and sends replies when there are many.
    fn turn(&mut self, shared: &Arc<Shared<B>>, slot: usize) {
        self.one_turn(shared, slot, false);
        if self.unsent.len() >= BATCH {
            self.send_all(shared);
        }
    }

    /// Sends the replies that were held back.
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
        // Who had more to read has replies again: those go with the next batch.
        slots.append(&mut self.unsent);
        self.unsent = slots;
    }

    /// Gives a connection its turn, and does what it asks for.
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
                    if let Err(job) = shared.lanes.submit(job) {
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
            // Closing the descriptor takes it off the epoll.
            conn.end(shared);
        }
        self.free.push(slot);
        self.open -= 1;
        self.mailbox.load.fetch_sub(1, Ordering::Relaxed);
    }

    /// Looks for clients that never finish their start-up.
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

    /// Ends every session that is here; those on the lane come back first. True when all are gone.
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
