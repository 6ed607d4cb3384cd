//! The state of a simulated run ([`World`]): its threads, its virtual time, and whose turn it is.
//!
//! One thread runs at a time. The run's seed chooses the next one of those that can go on. A thread
//! that spins is chosen only if no other can go on, and is ready again once something has changed.
//! If all threads wait, time jumps to the earliest deadline. Without any deadline, the run has a
//! deadlock.

use std::fmt::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Limits;

/// The number of choices among threads that all spin, before time jumps.
const FUTILE_SPINS: u32 = 32;
/// The longest moment that a point takes, in nanoseconds.
const LONGEST_MOMENT: u64 = 4000;
/// A run uses one number n of these: at one point in n, on average, another thread may go on.
const EAGERNESS: [u64; 4] = [4, 16, 64, 256];
/// Each thread has one of these weights. Its chance to be chosen is proportional to the weight.
const WEIGHTS: [u64; 4] = [1, 4, 4, 16];

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It can go on.
    Ready,
    /// It can go on, but finds no change unless another thread goes on first.
    Spinning,
    /// It waits for an event or for the deadline.
    Blocked {
        on: &'static str,
        deadline: Option<u64>,
    },
    Done,
}

pub(super) struct Thread {
    pub name: String,
    pub status: Status,
    wake: Arc<Condvar>,
    weight: u64,
}

/// A thread that is parked.
pub(super) struct Waiter {
    pub key: usize,
    pub ticket: u64,
    pub thread: usize,
    pub token: usize,
    pub woken: Option<usize>,
}

/// The whole state, under one lock.
pub(super) struct State {
    random: u64,
    limits: Limits,
    eagerness: u64,
    pub threads: Vec<Thread>,
    current: Option<usize>,
    futile: u32,
    /// Nanoseconds since the run began.
    pub clock: u64,
    pub steps: u64,
    pub switches: u64,
    pub hash: u64,
    pub waiters: Vec<Waiter>,
    pub next_ticket: u64,
    panicked: Vec<String>,
    failure: Option<String>,
}

pub(super) struct World {
    state: Mutex<State>,
    ended: Condvar,
    pub start: Instant,
}

type Guard<'a> = MutexGuard<'a, State>;

impl World {
    pub fn new(seed: u64, limits: Limits) -> Arc<Self> {
        let mut state = State {
            random: seed,
            limits,
            eagerness: 0,
            threads: Vec::new(),
            current: Some(0),
            futile: 0,
            clock: 0,
            steps: 0,
            switches: 0,
            hash: 0,
            waiters: Vec::new(),
            next_ticket: 0,
            panicked: Vec::new(),
            failure: None,
        };
        state.eagerness = EAGERNESS[state.below(EAGERNESS.len() as u64) as usize];
        Arc::new(Self { state: Mutex::new(state), ended: Condvar::new(), start: Instant::now() })
    }

    pub fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until it is this thread's turn.
    pub fn wait_for_turn<'a>(&self, mut state: Guard<'a>, me: usize) -> Guard<'a> {
        let wake = Arc::clone(&state.threads[me].wake);
        while state.current != Some(me) || state.failure.is_some() {
            state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Lets another thread go on. Returns when it is this thread's turn again.
    pub fn give<'a>(&self, mut state: Guard<'a>, me: usize) -> Guard<'a> {
        self.choose(&mut state);
        self.wait_for_turn(state, me)
    }

    /// Chooses the thread that goes on, and wakes it.
    pub fn choose(&self, state: &mut State) {
        let before = state.current;
        state.current = state.next();
        match state.current {
            Some(next) => {
                state.hash = (state.hash ^ next as u64).wrapping_mul(0x100_0000_01b3);
                if before != Some(next) {
                    state.switches += 1;
                }
                state.threads[next].wake.notify_all();
            }
            None => self.ended.notify_all(),
        }
    }

    pub fn fail(&self, state: &mut State, what: &str) {
        let described = state.described(what);
        state.failure.get_or_insert(described);
        self.ended.notify_all();
    }

    /// Waits until the last thread has ended. The caller is outside of the run.
    pub fn wait_for_end(&self) -> Result<(), String> {
        let mut state = self.lock();
        let mut steps = state.steps;
        let mut waited = Instant::now();
        loop {
            if let Some(failure) = state.failure.take() {
                state.failure = Some(String::new());
                return Err(failure);
            }
            if state.threads.iter().all(|thread| thread.status == Status::Done) {
                break;
            }
            if state.current.is_none() {
                return Err(state.described("deadlock: every thread is blocked"));
            }
            let stall = state.limits.stall;
            let waiting = self.ended.wait_timeout(state, stall / 4);
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
            if state.steps != steps {
                (steps, waited) = (state.steps, Instant::now());
            } else if waited.elapsed() > stall {
                state.failure = Some(String::new());
                return Err(
                    state.described("a thread blocks outside of the scheduler, or never ends")
                );
            }
        }
        match state.panicked.as_slice() {
            [] => Ok(()),
            names => Err(format!("panicked: {}", names.join(", "))),
        }
    }

    /// Records that a thread has ended.
    pub fn leave(&self, me: usize, has_panicked: bool) {
        let mut state = self.lock();
        state.threads[me].status = Status::Done;
        if has_panicked {
            let name = state.threads[me].name.clone();
            state.panicked.push(name);
        }
        state.progress();
        for thread in &mut state.threads {
            if matches!(thread.status, Status::Blocked { on: "join", .. }) {
                thread.status = Status::Ready;
            }
        }
        self.choose(&mut state);
    }
}

impl State {
    /// The next random number (splitmix64).
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random() % end
    }

    pub fn add_thread(&mut self, name: String) -> usize {
        let weight = WEIGHTS[self.below(WEIGHTS.len() as u64) as usize];
        let wake = Arc::new(Condvar::new());
        self.threads.push(Thread { name, status: Status::Ready, wake, weight });
        self.threads.len() - 1
    }

    /// Lets a moment pass. `false`: the run takes too many steps.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.clock += 1 + self.below(LONGEST_MOMENT);
        self.steps < self.limits.steps
    }

    /// Whether another thread may go on at this point.
    pub fn switches_now(&mut self) -> bool {
        self.below(self.eagerness) == 0
    }

    /// Records that something has changed: threads that spin may find it.
    pub fn progress(&mut self) {
        self.futile = 0;
        for thread in &mut self.threads {
            if thread.status == Status::Spinning {
                thread.status = Status::Ready;
            }
        }
    }

    fn next(&mut self) -> Option<usize> {
        loop {
            self.end_waits();
            if let Some(ready) = self.any(Status::Ready) {
                return Some(ready);
            }
            self.futile += 1;
            if self.futile <= FUTILE_SPINS
                && let Some(spinning) = self.any(Status::Spinning)
            {
                return Some(spinning);
            }
            let deadlines = self.threads.iter().filter_map(|thread| match thread.status {
                Status::Blocked { deadline, .. } => deadline,
                _ => None,
            });
            match deadlines.min() {
                Some(deadline) => {
                    self.clock = self.clock.max(deadline);
                    self.futile = 0;
                }
                // If a thread spins for ever, the bound of steps ends the run.
                None => return self.any(Status::Spinning),
            }
        }
    }

    /// Ends the waits whose deadlines have come.
    fn end_waits(&mut self) {
        for thread in &mut self.threads {
            if let Status::Blocked { deadline: Some(deadline), .. } = thread.status
                && deadline <= self.clock
            {
                thread.status = Status::Ready;
            }
        }
    }

    fn any(&mut self, status: Status) -> Option<usize> {
        let of_status = |thread: &Thread| if thread.status == status { thread.weight } else { 0 };
        let total: u64 = self.threads.iter().map(of_status).sum();
        if total == 0 {
            return None;
        }
        let mut chosen = self.below(total);
        self.threads.iter().position(|thread| {
            let weight = of_status(thread);
            let is_it = chosen < weight;
            chosen = chosen.saturating_sub(weight);
            is_it
        })
    }

    fn described(&self, what: &str) -> String {
        let mut text = format!("{what}, after {} steps", self.steps);
        for (number, thread) in self.threads.iter().enumerate() {
            let runs = if self.current == Some(number) { ", its turn" } else { "" };
            if thread.status != Status::Done {
                let _ = write!(text, "\n  {}: {:?}{runs}", thread.name, thread.status);
            }
        }
        if !self.panicked.is_empty() {
            let _ = write!(text, "\n  panicked: {}", self.panicked.join(", "));
        }
        text
    }
}
