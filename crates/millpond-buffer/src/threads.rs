//! The threads that use the pool: where they run, and how their long waits and panics are reported.
//!
//! **Processors.** Each has a small number, its place: for freelists and tables of files. The
//! kernel's numbers of processors say little about how many there are. A process that may use four
//! processors of a large machine may have numbers 3, 19, 35 and 51. By number alone, these would
//! share one of four places. So this module numbers processors in the order in which the process
//! meets them: the first has place 0, the next 1. A process with as many places as processors then
//! uses all of them, one each. With fewer places, some processors share one.
//!
//! The process has one table of places, by the kernel's numbers. An entry is 0, or the place plus
//! one. Each entry is written once, under a lock; after that the table is only read.
//!
//! Other systems than Linux don't tell a thread cheaply where it runs. There each thread has a
//! number of its own instead, in the order of their first calls, and so a place of its own.
//!
//! The table is read and written relaxed: an entry says nothing about other memory. A thread that
//! does not see an entry yet looks again under the lock.
//!
//! **Waits.** [`park`] waits until another thread or a device has done something. Such a wait has
//! no limit, since a device may take long. But it is not silent: after a while [`park`] logs what
//! the thread waits for, and returns. The caller checks again, and parks again.
//!
//! A store that forgets a read or write that it was given ([`std::mem::forget`]) keeps others
//! waiting for ever. The pool can't know that it will never end; the log tells the operator.
//!
//! **Panics.** [`catch_panic`] catches panics of code that the pool calls, and reports them.

use millpond_sync::parking::{self, ParkResult};
use millpond_sync::scheduler;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The processors of a simulation. A thread may be on any of them each time it asks.
const SIMULATED: usize = 4;

/// The size of the table. Processors whose numbers differ by a multiple of it share a place.
const MOST_NUMBERS: usize = 1024;

/// The processors on which this process has run.
struct Processors {
    places: [AtomicU16; MOST_NUMBERS],
    /// How many have a place.
    met: Mutex<u16>,
}

impl Processors {
    const fn new() -> Self {
        Self { places: [const { AtomicU16::new(0) }; MOST_NUMBERS], met: Mutex::new(0) }
    }

    /// The place of the processor with the kernel's `number`: less than the count of processors
    /// met.
    fn place(&self, number: usize) -> usize {
        let place = &self.places[number % MOST_NUMBERS];
        match place.load(Ordering::Relaxed) {
            0 => self.meet(place),
            one_more => usize::from(one_more) - 1,
        }
    }

    #[cold]
    fn meet(&self, place: &AtomicU16) -> usize {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have entered it just now.
        if place.load(Ordering::Relaxed) == 0 {
            *met += 1;
            place.store(*met, Ordering::Relaxed);
        }
        usize::from(place.load(Ordering::Relaxed)) - 1
    }
}

/// How many processors the process may use: that many places are enough.
pub(crate) fn count() -> usize {
    if scheduler::is_simulated() {
        return SIMULATED;
    }
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The place of the processor that this thread runs on, or of another if the thread has just moved.
/// A caller with fewer places takes the remainder.
pub(crate) fn place() -> usize {
    if let Some(number) = scheduler::number() {
        return number as usize % SIMULATED;
    }
    static PROCESSORS: Processors = Processors::new();
    PROCESSORS.place(number())
}

/// The kernel's number of the processor.
#[cfg(all(target_os = "linux", not(millpond_portable)))]
fn number() -> usize {
    rustix::thread::sched_getcpu()
}

/// The number of this thread.
#[cfg(not(all(target_os = "linux", not(millpond_portable))))]
fn number() -> usize {
    use std::sync::atomic::AtomicUsize;
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    // A thread whose thread-locals are gone is about to end.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// How long a wait lasts before the first report, and how long between two reports.
const REPORT_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 30_000 });

/// Parks on `key` if `still` holds, until it is unparked or earlier: the caller must check again.
pub(crate) fn park(key: usize, still: impl FnOnce() -> bool, what: impl FnOnce() -> String) {
    let deadline = millpond_sync::clock::now() + REPORT_AFTER;
    if parking::park(key, still, Some(deadline)) == ParkResult::TimedOut {
        let (seconds, what) = (REPORT_AFTER.as_secs(), what());
        catch_panic("the report of a long wait", || {
            tracing::warn!(seconds, "still waiting for {what}");
        });
    }
}

/// Runs `work`. A panic in it is caught and reported, and the result is `None`. A panic of the log
/// subscriber that gets the report is caught, too. Data that `work` shares with others must allow
/// for work left half-done.
pub(crate) fn catch_panic<R>(at: &str, work: impl FnOnce() -> R) -> Option<R> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        let tell = || tracing::error!("caught a panic during {at}");
        let _ = catch_unwind(AssertUnwindSafe(tell));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_places_as_they_are_met() {
        let processors = Processors::new();
        let numbers = [3, 19, 35, 51, 19, 3, 0, MOST_NUMBERS - 1, 35];
        assert_eq!(numbers.map(|number| processors.place(number)), [0, 1, 2, 3, 1, 0, 4, 5, 2]);
        assert_eq!(processors.place(MOST_NUMBERS + 3), 0, "with the one of the same remainder");
    }

    #[test]
    fn all_threads_find_the_same_places() {
        let processors = Processors::new();
        let of_all = || (0..100).map(|number| processors.place(number * 7)).collect::<Vec<_>>();
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(of_all)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(found.iter().all(|places| *places == found[0]));
        let mut places = found[0].clone();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..100), "each once");
    }
}
