//! Asynchronous writes: each has begun, and the disk carries it out later, in any order.
//!
//! **Role.** They stand in for the `io_uring` of a real store. [`SimPages`](crate::SimPages) puts a
//! write into the disk's state and returns. A thread, which lives while there are such writes,
//! takes them one by one at random. It carries each out as a call that can fail, and finishes it.
//! So writes are in flight while their writer and other threads go on: with reads, other writes,
//! syncs, or the end of the machine.
//!
//! **After a crash.** When the power fails, each write in flight has reached the disk or not. If it
//! has, it is not synced, and tears like any other write. This is decided once, when the power
//! fails ([`Fault::PowerLoss`](crate::Fault), or the crash itself). A write that begins after that
//! never reaches the disk. When only the process dies, each write is there as a whole or not at
//! all. The kernel finishes what it has begun before a process is gone. Either way no caller is
//! told that it succeeded.
//!
//! **Misuse.** Truncating or removing blocks while they are written is an error: on a real disk the
//! write would bring the file's end back. The simulated disk panics.
//!
//! **Failure.** If a completion callback panics, the remaining writes end with an error, and the
//! disk's next call panics.

use std::sync::Arc;
use std::thread;

use millpond_buffer::{PendingWrite, RelFork, StoreError};
use rand::Rng;

use crate::disk::{Call, Name, SimDisk, State, power_loss};
use crate::pages::{failed, offset_of};

/// How many times at most the thread yields before it ends a write.
const MOST_TURNS: u32 = 12;

/// A write that has begun, through a handle of that generation.
pub(crate) struct LateWrite {
    generation: u64,
    write: PendingWrite,
}

impl LateWrite {
    fn name(&self) -> Name {
        Name::fork(self.write.rel())
    }

    fn end_block(&self) -> u32 {
        self.write.first().0 + self.write.count() as u32
    }

    /// The write reaches the disk, if its blocks exist.
    fn apply(&self, state: &mut State) {
        if let Some(file) = state.files.get_mut(&self.name()) {
            file.write(offset_of(self.write.first()), &self.bytes());
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.write.pages().iter().flat_map(|page| page.iter().copied()).collect()
    }

    fn carry_out(&self, state: &mut State) -> Result<(), StoreError> {
        let rel = self.write.rel();
        state
            .call(self.generation, Call::Change, |state| self.apply(state))
            .map_err(failed("write", rel))
    }
}

/// Begins a write, if there is power.
pub(crate) fn start(disk: &Arc<SimDisk>, generation: u64, write: PendingWrite) {
    let mut state = disk.state.lock();
    if state.powered_off {
        // The completion callback takes locks.
        drop(state);
        let error = failed("write", write.rel())(power_loss());
        write.finish(Err(error));
        return;
    }
    state.late.push(LateWrite { generation, write });
    if !std::mem::replace(&mut state.late_thread, true) {
        let ending = Ending(Arc::clone(disk));
        drop(state);
        thread::spawn(move || while ending.one() {});
    }
}

/// The thread that ends writes; one per disk, while there are any.
struct Ending(Arc<SimDisk>);

impl Ending {
    /// Ends a write after a while. Returns `false` if there was none.
    fn one(&self) -> bool {
        let turns = self.0.state.lock().late_rng.random_range(0..=MOST_TURNS);
        (0..turns).for_each(|_| thread::yield_now());
        let mut state = self.0.state.lock();
        if state.late.is_empty() {
            state.late_thread = false;
            return false;
        }
        let count = state.late.len();
        let at = state.late_rng.random_range(0..count);
        let late = state.late.swap_remove(at);
        let result = late.carry_out(&mut state);
        // The completion callback takes locks, and may begin another write.
        drop(state);
        late.write.finish(result);
        true
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.state.lock();
            state.late_panicked = true;
            let left = std::mem::take(&mut state.late);
            drop(state);
            drop(left);
        }
    }
}

impl State {
    /// The machine stops: some of the writes in flight reach the disk. Their callers are told
    /// later, by a call that fails.
    pub fn cut_short(&mut self) {
        let (late, generation) = (std::mem::take(&mut self.late), self.generation);
        for write in late.iter().filter(|late| late.generation == generation) {
            if self.late_rng.random() {
                write.apply(self);
            }
        }
        self.late = late;
    }

    /// Whether blocks from `first` on are being written.
    pub fn is_being_written(&self, generation: u64, rel: RelFork, first: u32) -> bool {
        self.late.iter().any(|late| {
            late.generation == generation && late.write.rel() == rel && late.end_block() > first
        })
    }
}

#[cfg(test)]
#[path = "late_tests.rs"]
mod tests;
