//! Which of several places is a processor's own: freelists, tables of files, descriptors.
//!
//! Numbers of processors say little about how many there are: a process that may use four of a large machine may have
//! those numbered 3, 19, 35 and 51, which by their number alone would share one of four places. So processors are numbered
//! here as this process is met on them: the first has place 0, the next 1, whatever the kernel calls them. As many places as
//! the process may use processors are then all used, by one each. Of more processors than places, some share one.
//!
//! **State.** A table by the kernel's number, for the whole process: 0, or one more than the place. Each entry is written once,
//! under a lock; after that the table is only read.
//!
//! **Memory ordering.** Relaxed: an entry says nothing about other memory, and who doesn't see it yet asks under the lock.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use millpond_sync::scheduler;

/// Processors of a simulation. A thread is on any of them whenever it asks.
const SIMULATED: usize = 4;

/// Processors whose numbers differ by that share a place.
const MOST_NUMBERS: usize = 1024;

/// The processors that this process has been met on.
struct Processors {
    places: [AtomicU16; MOST_NUMBERS],
    /// How many have a place.
    met: Mutex<u16>,
}

impl Processors {
    const fn new() -> Self {
        Self { places: [const { AtomicU16::new(0) }; MOST_NUMBERS], met: Mutex::new(0) }
    }

    /// The place of the processor that the kernel gives that number: below the count of processors met.
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
        // Another thread may have met it just now.
        if place.load(Ordering::Relaxed) == 0 {
            *met += 1;
            place.store(*met, Ordering::Relaxed);
        }
        usize::from(place.load(Ordering::Relaxed)) - 1
    }
}

/// How many processors the process may use: so many places are enough.
pub(crate) fn count() -> usize {
    if scheduler::is_simulated() {
        return SIMULATED;
    }
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The place of the processor that this thread runs on, or of another if it has just moved. Whoever has fewer places takes
/// the remainder.
pub(crate) fn place() -> usize {
    if let Some(number) = scheduler::number() {
        return number as usize % SIMULATED;
    }
    #[cfg(target_os = "linux")]
    let number = rustix::thread::sched_getcpu();
    #[cfg(not(target_os = "linux"))]
    let number = 0;
    static PROCESSORS: Processors = Processors::new();
    PROCESSORS.place(number)
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
