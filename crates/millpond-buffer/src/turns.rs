//! Turns: how many reads of a stream the store has at a time.
//!
//! A read that ends begins the next that waits, on whatever thread it ends. So the device has as much to do as it may have
//! while the consumer is about to wake up, or looks at a page, or has gone.
//!
//! **State.** One lock has how many reads the store has and the queue of those that wait. A read that the store has owns
//! its [`Turn`], and that the stream's state: it is there as long as a read is under way, whatever becomes of the stream.
//!
//! **Invariants.** Nobody waits for a turn unless the store has a read with one: both are looked at under the lock. The
//! lock is held for neither a call of the store's nor the end of a read. A turn that ends goes to the next that waits, or is
//! given up: the store never has more than the stream allows.
//!
//! **Memory ordering.** The count is for the stream alone, which asks before each block, and carries nothing but itself:
//! relaxed. All else is under the lock.
//!
//! **Failure.** A turn ends by being dropped: also if the read fails, or is dropped by a store that panicked. A read that
//! fails where it begins, in the store's `start_read`, begins the next on the same stack: so the queue has to be short.
//! If the store panics there it is the panic of whoever asked, who is there, or it goes no further: then it is whoever ends
//! the read before that runs into it, maybe in the middle of a panic of its own.

use crate::contained::contained;
use crate::pool::BufferPool;
use crate::store::PendingRead;
use millpond_sync::atomic::{AtomicU32, Ordering};
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// The reads of one stream: those that the store has, and those that wait for their turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnderWay(Arc<Turns>);

#[derive(Debug, Default)]
struct Turns {
    /// Both kinds.
    count: AtomicU32,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// How many the store has.
    begun: u32,
    waiting: VecDeque<Waiting>,
}

/// A read that waits for its turn, and who has the store for it.
struct Waiting(Arc<BufferPool>, PendingRead);

impl Debug for Waiting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.1.fmt(f)
    }
}

impl UnderWay {
    /// How many have begun, or wait for their turn.
    pub(crate) fn count(&self) -> u32 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Begins a read, as soon as the store has less than `at_most` (which is not 0) of the stream's.
    pub(crate) fn begin(&self, pool: &Arc<BufferPool>, read: PendingRead, at_most: u32) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        {
            let mut queue = self.0.queue.lock();
            if queue.begun >= at_most {
                queue.waiting.push_back(Waiting(Arc::clone(pool), read));
                return;
            }
            queue.begun += 1;
        }
        self.hand_over(pool, read);
    }

    /// Gives a read that has been counted to the store, with its turn.
    fn hand_over(&self, pool: &BufferPool, mut read: PendingRead) {
        read.set_turn(Turn(self.clone()));
        pool.store.start_read(read);
    }
}

/// One read's turn. Dropped, when the store is done with the read, it is the next one's.
pub(crate) struct Turn(UnderWay);

impl Drop for Turn {
    fn drop(&mut self) {
        let turns = &self.0.0;
        turns.count.fetch_sub(1, Ordering::Relaxed);
        let next = {
            let mut queue = turns.queue.lock();
            let next = queue.waiting.pop_front();
            queue.begun -= u32::from(next.is_none());
            next
        };
        if let Some(Waiting(pool, read)) = next {
            // Who asked for it hears of a panic, since the store drops the read; the others have nothing to do with it.
            contained("the beginning of a read", || self.0.hand_over(&pool, read));
        }
    }
}
