//! A deterministic scheduler: it alone decides which thread runs. A seed determines the whole run.
//!
//! **Role.** [`run`] starts a function in a new thread. That thread, and all threads that it starts
//! by [`thread`](crate::thread), are *simulated*. One of them runs at a time, and it goes on until
//! it reaches a point at which the scheduler may choose another. Points are locks, parking,
//! sleeping, starting and joining threads, and calls of [`point`] (files call it before and after
//! each operation). The choice is random, and follows from the seed.
//!
//! **Time** is virtual ([`clock`](crate::clock)). Each point takes a moment. When no thread can go
//! on, time jumps to the next deadline, so an hour of sleep takes no real time.
//!
//! **What runs** is the code that ships, with the processor's own atomics. So threads switch at
//! points only, never between two loads. The models cover interleavings between loads.
//!
//! **Cost elsewhere.** Without a run under way, each hook is one load of a flag that no thread
//! writes. Hooks are on slow paths only; [`hot_point`] does something only with debug assertions.
//!
//! **Failure.** [`run`] reports a panic in any thread, a deadlock, too many steps, and a thread
//! that blocks outside of the scheduler. Threads that can't end then sleep for ever.

mod parking;
mod place;
mod world;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) use parking::{park, park_at_once, unpark_filter};
pub(crate) use place::{Joining, join, spawn};
use place::{Place, current};
use world::World;

/// The number of runs under way in this process.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Whether some thread of this process may be simulated.
#[inline]
pub(crate) fn is_active() -> bool {
    RUNS.load(Ordering::Relaxed) != 0
}

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A run fails after this number of points.
    pub steps: u64,
    /// A run fails when no thread has reached a point for this long, in real time.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 50_000_000, stall: Duration::from_secs(60) }
    }
}

/// A run that ended.
#[derive(Debug)]
pub struct Run<T> {
    /// What the function returned.
    pub value: T,
    /// The number of points that its threads reached.
    pub steps: u64,
    /// The number of times that another thread went on.
    pub switches: u64,
    /// The duration of the run in virtual time.
    pub time: Duration,
    /// A hash of all choices.
    pub hash: u64,
}

/// Why a run failed.
#[derive(Debug)]
pub struct Failure {
    /// The seed that repeats the failure.
    pub seed: u64,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.what)
    }
}

impl std::error::Error for Failure {}

/// Runs `body` and all threads that it starts under a scheduler with that seed. Returns when the
/// last of the threads has ended.
pub fn run<T: Send + 'static>(
    seed: u64,
    limits: Limits,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Run<T>, Failure> {
    RUNS.fetch_add(1, Ordering::SeqCst);
    let world = World::new(seed, limits);
    let root = Arc::clone(&world);
    let spawned = place::start(&root, "main".to_owned(), body);
    let ended = spawned.map_err(|error| format!("no thread: {error}")).and_then(|(handle, _)| {
        world.wait_for_end()?;
        handle.join().map_err(|_| "the function panicked".to_owned())
    });
    RUNS.fetch_sub(1, Ordering::SeqCst);
    let value = ended.map_err(|what| Failure { seed, what })?;
    let state = world.lock();
    let time = Duration::from_nanos(state.clock);
    Ok(Run { value, steps: state.steps, switches: state.switches, time, hash: state.hash })
}

/// Whether the calling thread is simulated.
#[must_use]
pub fn is_simulated() -> bool {
    is_active() && current().is_some()
}

/// A place at which the scheduler may run another thread.
#[inline]
pub fn point() {
    if is_active()
        && let Some(place) = current()
    {
        place.point();
    }
}

/// A [`point`] on a path that must cost nothing: it does nothing without debug assertions.
#[inline]
pub fn hot_point() {
    if cfg!(debug_assertions) {
        point();
    }
}

/// Lets other threads go on first. `false`: the thread is not simulated.
#[inline]
pub(crate) fn yield_now() -> bool {
    is_active() && current().inspect(Place::spin).is_some()
}

/// Sleeps in virtual time. `false`: the thread is not simulated.
pub(crate) fn sleep(time: Duration) -> bool {
    is_active() && current().inspect(|place| place.sleep(time)).is_some()
}

/// Tries until it succeeds, while other threads go on. `None`: the thread is not simulated.
#[inline]
pub(crate) fn acquire<G>(attempt: impl FnMut() -> Option<G>) -> Option<G> {
    if is_active() { acquire_slowly(attempt) } else { None }
}

#[cold]
fn acquire_slowly<G>(mut attempt: impl FnMut() -> Option<G>) -> Option<G> {
    let place = current()?;
    place.point();
    loop {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        place.spin();
    }
}

/// Virtual time, for a simulated thread.
#[inline]
pub(crate) fn now() -> Option<Instant> {
    if is_active() { current().map(|place| place.now()) } else { None }
}

/// Virtual time since 1970, for a simulated thread.
pub(crate) fn since_1970() -> Option<Duration> {
    // Any date will do.
    const START: Duration = Duration::from_secs(1_700_000_000);
    if is_active() { current().map(|place| START + place.elapsed()) } else { None }
}

/// The process id. A simulated thread gets the same number in each run.
pub fn process_id() -> u32 {
    if is_simulated() { 1 } else { std::process::id() }
}

/// A number for a simulated thread, in place of a random number or the processor's number. It is
/// the same in each run of a seed.
#[inline]
pub fn number() -> Option<u64> {
    if is_active() { current().map(|place| place.number()) } else { None }
}
