//! Reading: pages come from the store into frames, on demand or ahead of it.
//!
//! [`UnderWay`] is the queue of a stream's reads: it limits how many of them the store has at a
//! time. A read that ends begins the next one in the queue, on the thread where it ends. So the
//! device has as much to do as it may have, even while the consumer wakes up, looks at a page, or
//! has gone.
//!
//! **State.** One lock guards the number of reads that the store has and the queue of those that
//! wait. A read that the store has owns its [`Turn`], and the turn shares the stream's state. So
//! this state exists as long as a read is under way, whatever becomes of the stream.
//!
//! **Invariants.** A read waits for a turn only while the store has a read with one: both are
//! checked under the lock. No thread holds the lock during a call of the store or at the end of a
//! read. A turn that ends goes to the next read in the queue, or is given up. So the store never
//! has more reads than the stream allows.
//!
//! **Memory ordering.** The count is for the stream alone, which checks it before each block. It
//! publishes nothing else, so it is relaxed. All else is under the lock.
//!
//! **Failure.** A turn ends by being dropped, also if the read fails, or if a store that panicked
//! drops the read. A read that fails inside the store's `start_read` begins the next one on the
//! same stack, so the queue has to be short. If the store panics inside `start_read`, the panic
//! propagates to the caller that started the read. If a turn that ended started the read, there is
//! no such caller, and the panic is caught and reported. For the thread that ended the turn may be
//! in the middle of a panic of its own.

use crate::incidents::catch_panic;
use crate::store::{EndOfTurn, PageStore, PendingRead, Turn};
use millpond_sync::atomic::{AtomicU32, Ordering};
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

pub(crate) mod load;
pub(crate) mod read_ahead;

/// The reads of one stream: those that the store has, and those that wait for their turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnderWay(Arc<Turns>);

#[derive(Debug, Default)]
struct Turns {
    /// The number of both kinds of reads.
    count: AtomicU32,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of reads that the store has.
    begun: u32,
    waiting: VecDeque<Waiting>,
}

/// A read that waits for its turn, and the store that will do it.
struct Waiting(Arc<dyn PageStore>, PendingRead);

impl Debug for Waiting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.1.fmt(f)
    }
}

impl UnderWay {
    /// The number of reads that have begun or wait for their turn.
    pub(crate) fn count(&self) -> u32 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Begins a read, as soon as the store has fewer than `at_most` (which is not 0) of the
    /// stream's reads.
    pub(crate) fn begin(&self, store: &Arc<dyn PageStore>, read: PendingRead, at_most: u32) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        {
            let mut queue = self.0.queue.lock();
            if queue.begun >= at_most {
                queue.waiting.push_back(Waiting(Arc::clone(store), read));
                return;
            }
            queue.begun += 1;
        }
        self.hand_over(&**store, read);
    }

    /// Gives a read that has been counted to the store, with its turn.
    fn hand_over(&self, store: &dyn PageStore, mut read: PendingRead) {
        read.set_turn(Turn::new(Arc::clone(&self.0) as Arc<dyn EndOfTurn>));
        store.start_read(read);
    }
}

impl EndOfTurn for Turns {
    fn end(self: Arc<Self>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let next = {
            let mut queue = self.queue.lock();
            let next = queue.waiting.pop_front();
            queue.begun -= u32::from(next.is_none());
            next
        };
        if let Some(Waiting(store, read)) = next {
            // The requester learns of a panic, since the store drops the read. The other threads
            // are not concerned.
            catch_panic("the beginning of a read", || UnderWay(self).hand_over(&*store, read));
        }
    }
}
