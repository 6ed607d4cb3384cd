//! Which run of the scheduler a thread belongs to, and its number in that run ([`Place`]).
//!
//! Each *simulated* thread ([`super`]) has its place in a thread-local variable. Other threads have
//! none. Through its place, a thread lets the scheduler choose another one, sleeps, and reads
//! virtual time. Inside [`held`], [`Place::point`] does nothing, so no other thread runs meanwhile.
//!
//! This file also starts and joins simulated threads. A new thread waits until the scheduler
//! chooses it.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::world::{Status, World};

#[derive(Clone)]
pub(super) struct Place {
    pub world: Arc<World>,
    pub me: usize,
}

thread_local! {
    static CURRENT: RefCell<Option<Place>> = const { RefCell::new(None) };
    /// Whether the thread is in a section in which it must not be switched.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread's place, if it is simulated.
pub(super) fn current() -> Option<Place> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Runs `f` without a switch.
pub(super) fn held<R>(f: impl FnOnce() -> R) -> R {
    let before = HELD.replace(true);
    let result = f();
    HELD.set(before);
    result
}

impl Place {
    /// A place at which the scheduler may run another thread.
    pub fn point(&self) {
        if HELD.get() {
            return;
        }
        let mut state = self.world.lock();
        if !state.step() {
            self.world.fail(&mut state, "the run takes too many steps");
            drop(self.world.wait_for_turn(state, self.me));
            return;
        }
        state.progress();
        if state.switches_now() {
            drop(self.world.give(state, self.me));
        }
    }

    /// Lets another thread go on first, if one can.
    pub fn spin(&self) {
        let mut state = self.world.lock();
        if !state.step() {
            self.world.fail(&mut state, "the run takes too many steps");
        }
        state.threads[self.me].status = Status::Spinning;
        let mut state = self.world.give(state, self.me);
        state.threads[self.me].status = Status::Ready;
    }

    pub fn sleep(&self, time: Duration) {
        let mut state = self.world.lock();
        state.step();
        state.progress();
        let deadline = Some(state.clock + time.as_nanos() as u64);
        state.threads[self.me].status = Status::Blocked { on: "sleep", deadline };
        drop(self.world.give(state, self.me));
    }

    pub fn elapsed(&self) -> Duration {
        let mut state = self.world.lock();
        state.step();
        Duration::from_nanos(state.clock)
    }

    pub fn now(&self) -> Instant {
        self.world.start + self.elapsed()
    }

    pub fn number(&self) -> u64 {
        self.world.lock().random()
    }

    /// The virtual clock's reading at `instant`.
    pub fn reading(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.world.start).as_nanos() as u64
    }
}

/// A simulated thread that can be joined.
#[derive(Clone)]
pub(crate) struct Joining(Place);

impl std::fmt::Debug for Joining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Joining").field(&self.0.me).finish()
    }
}

type Started<T> = (std::thread::JoinHandle<T>, Joining);

/// Starts a thread of the run `world`.
pub(super) fn start<T: Send + 'static>(
    world: &Arc<World>,
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Started<T>> {
    let me = world.lock().add_thread(name.clone());
    let place = Place { world: Arc::clone(world), me };
    let joining = Joining(place.clone());
    let run = move || {
        drop(place.world.wait_for_turn(place.world.lock(), me));
        CURRENT.set(Some(place.clone()));
        let result = catch_unwind(AssertUnwindSafe(body));
        CURRENT.set(None);
        place.world.leave(me, result.is_err());
        result.unwrap_or_else(|panic| resume_unwind(panic))
    };
    match std::thread::Builder::new().name(name).spawn(run) {
        Ok(handle) => Ok((handle, joining)),
        Err(error) => {
            world.lock().threads[me].status = Status::Done;
            Err(error)
        }
    }
}

/// Starts a thread, if the calling thread is simulated. Otherwise returns `body`.
pub(crate) fn spawn<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
    name: &str,
    body: F,
) -> Result<io::Result<Started<T>>, F> {
    match if super::is_active() { current() } else { None } {
        Some(place) => Ok(start(&place.world, name.to_owned(), body)),
        None => Err(body),
    }
}

impl Joining {
    /// Whether the thread has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.0.world.lock().threads[self.0.me].status == Status::Done
    }
}

/// Waits in virtual time until the thread has ended, if the caller is simulated.
pub(crate) fn join(joining: &Joining) {
    let Some(place) = current() else { return };
    place.point();
    let mut state = place.world.lock();
    while state.threads[joining.0.me].status != Status::Done {
        state.threads[place.me].status = Status::Blocked { on: "join", deadline: None };
        state = place.world.give(state, place.me);
    }
}
