//! Reading: a page comes into memory on demand, and a stream's reads wait for their turn.
//!
//! **A miss** goes from an absent entry to a resident page (RULES.md has the picture).
//! [`crate::replacement::evict`] makes room for it.
//!
//! Exactly one session turns an entry to LOADING; the others park on it. It takes a frame only
//! after that, so no session loses a frame in a race. (A read-ahead of several pages takes its
//! frames first, which is safe there: [`crate::read::read_ahead`].) When it takes a frame, the page
//! that leaves is unlinked completely before the new one is linked (rule 3).
//!
//! The store reads the page straight into the frame. Late optimistic readers may still look at that
//! frame. But the frame is OWNED and its version odd since before, so they discard what they see.
//! The frame holds no page until the new one has been verified.
//!
//! Two guards make every step undo itself when it fails or panics (rule 6). [`Loading`] sets the
//! entry to absent and wakes the waiters. [`crate::replacement::Owned`] gives the frame to a
//! freelist.
//!
//! **The queue** ([`UnderWay`]) is that of a stream's reads: it limits how many of them the store
//! has at a time. A read that ends begins the next one in the queue, on the thread where it ends.
//! So the device has as much to do as it may have, even while the consumer wakes up, looks at a
//! page, or has gone.
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

use crate::store::{EndOfTurn, PageStore, PendingRead, StoreError, Turn};

use crate::config::Wait;
use crate::core::frame::NoPin;
use crate::core::page_table::{LOADING, frame_of, left_at};
use crate::core::relation::{Growth, Loading, RelHandle, Relation, wait_for_load};
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::{BlockNumber, PageId};
use crate::page::words;
use crate::policy;
use crate::replacement::Owned;
use crate::replacement::reuse::take_frame;
use crate::replacement::ring::Ring;
use crate::replacement::vacate::discard_one;
use crate::stats::Event;
use crate::threads::catch_panic;
use crate::trace::TraceFlags;
use millpond_sync::atomic::{AtomicU32, Ordering};
use millpond_sync::hint::Backoff;
use millpond_sync::sync::Mutex;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

pub(crate) mod read_ahead;

/// What to do about a page that is missing or not valid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Zero,
}

/// Pins a page that was not found in memory. (It returns the frame, not a guard. A function
/// that is not inlined returns a guard through memory, and the guard of a hit would take that
/// way, too.)
#[cold]
#[inline(never)]
pub(crate) fn pin_slow(
    session: &SessionCore,
    rel: &RelHandle,
    block: BlockNumber,
    wait: Wait,
    ring: Option<&Ring>,
) -> Result<u32, BufferError> {
    pin_or_load(session, rel, block, wait, Missing::Fail, ring)
}

/// Pins a page whatever its state in the store, for recovery. A page that is missing or not
/// valid becomes a page of zeros in memory. Creates and extends the fork where needed.
pub(crate) fn pin_or_zero(
    session: &SessionCore,
    rel: &RelHandle,
    block: BlockNumber,
) -> Result<u32, BufferError> {
    if block.0 >= rel.block_count() {
        grow_to(session, rel, block)?;
    }
    pin_or_load(session, rel, block, Wait::Allowed, Missing::Zero, None)
}

fn pin_or_load(
    session: &SessionCore,
    rel: &RelHandle,
    block: BlockNumber,
    wait: Wait,
    missing: Missing,
    ring: Option<&Ring>,
) -> Result<u32, BufferError> {
    let relation = &*rel.0;
    session.check_handle(relation)?;
    let page = relation.page(block);
    let mut backoff = Backoff::new();
    loop {
        relation.check(block)?;
        let entry = relation.translation.entry(block);
        let now = entry.load(Ordering::Acquire);
        if let Some(frame) = frame_of(now) {
            match session.pin_resident(frame, page, ring.is_some()) {
                Ok(()) => {
                    session.count(Event::Hit, 1);
                    session.trace(page, TraceFlags::HIT);
                    return Ok(frame);
                }
                Err(NoPin::Damaged) => return Err(BufferError::Damaged { page }),
                // The page is just leaving. The session that takes its frame needs only a few
                // more steps, but it may have been descheduled.
                Err(NoPin::Changed) => match wait {
                    Wait::Allowed => backoff.snooze(),
                    Wait::Never if backoff.spin() => {}
                    Wait::Never => return Err(BufferError::WouldBlock),
                },
            }
        } else if now & LOADING != 0 {
            if wait == Wait::Never {
                return Err(BufferError::WouldBlock);
            }
            session.count(Event::LoadWait, 1);
            session.timed(Event::ReadTime, || wait_for_load(&*session.pool.store, entry, page));
        } else if let Some(loading) = relation.begin_load(block, entry, session.pins.barriers())? {
            return load_page(session, relation, block, loading, wait, missing, ring);
        }
    }
}

/// The usage count of a page that is loaded now and left memory at `left_at`. A ring's page is
/// not on probation, because its ring makes it leave.
fn first_usage(session: &SessionCore, left_at: Option<u64>, ring: Option<&Ring>) -> u8 {
    match ring {
        Some(_) => policy::FIRST_USAGE,
        None => session.pool.first_usage(left_at),
    }
}

/// Loads a page. It is then pinned by this session.
fn load_page(
    session: &SessionCore,
    relation: &Relation,
    block: BlockNumber,
    loading: Loading<'_>,
    wait: Wait,
    missing: Missing,
    ring: Option<&Ring>,
) -> Result<u32, BufferError> {
    let page = relation.page(block);
    let mut owned = take_frame(session, wait, ring)?;
    let usage = first_usage(session, left_at(loading.before()), ring);
    fetch(session, relation, block, &mut owned, wait, missing)?;
    let frame = owned.publish(session, page, &loading, usage);
    let left_at = left_at(loading.before());
    loading.finish(frame);
    session.count(Event::Miss, 1);
    // A ring's page does not count as a return: it leaves again, as if it had never come.
    if let Some(left_at) = left_at.filter(|_| ring.is_none()) {
        session.count_return(left_at);
    }
    session.trace(page, TraceFlags::NORMAL);
    Ok(frame)
}

/// Reads a page from the store into a frame and checks it. Even on an error, the frame's bytes
/// may have changed.
fn fetch(
    session: &SessionCore,
    relation: &Relation,
    block: BlockNumber,
    owned: &mut Owned<'_>,
    wait: Wait,
    missing: Missing,
) -> Result<(), BufferError> {
    let (rel, store) = (relation.rel, &session.pool.store);
    let words = session.pool.words(owned.number());
    words::to_be_filled(words);
    let read = match wait {
        Wait::Never => match store.try_read_words(rel, block, &[words]) {
            Ok(true) => Ok(()),
            Ok(false) => return Err(BufferError::WouldBlock),
            Err(error) => Err(error),
        },
        Wait::Allowed => session.timed(Event::ReadTime, || store.read_words(rel, block, &[words])),
    };
    let checked = match read {
        Ok(()) => {
            session.count(Event::Read, 1);
            session.count(Event::ReadCall, 1);
            owned.verify(relation.page(block))
        }
        Err(error @ (StoreError::BeyondEnd { .. } | StoreError::Missing { .. })) => {
            Err(error.into())
        }
        Err(error) => return Err(error.into()),
    };
    if checked.is_err() && missing == Missing::Zero {
        words::clear(session.pool.words(owned.number()));
        return Ok(());
    }
    checked
}

pub(crate) fn extend(
    session: &SessionCore,
    rel: &RelHandle,
    wait: Wait,
    ring: Option<&Ring>,
) -> Result<(u32, PageId), BufferError> {
    let relation = &*rel.0;
    session.check_handle(relation)?;
    let owned = take_frame(session, wait, ring)?;
    words::clear(session.pool.words(owned.number()));
    let mut growth = match wait {
        Wait::Allowed => relation.growth(),
        Wait::Never => relation.try_growth().ok_or(BufferError::WouldBlock)?,
    };
    if relation.is_dropped() {
        return Err(BufferError::Dropped { rel: relation.rel });
    }
    let block = relation.blocks();
    if block == growth.allocated {
        if wait == Wait::Never {
            return Err(BufferError::WouldBlock);
        }
        allocate(session, relation, &mut growth, block)?;
    }
    let page = relation.page(BlockNumber(block));
    let entry = relation.translation.entry(BlockNumber(block));
    // No session loads a block beyond the end; one that has begun to steps back. A page found
    // here is left over from a truncation that failed half-way.
    let mut backoff = Backoff::new();
    let loading = loop {
        match Loading::begin(entry) {
            Some(loading) => break loading,
            // Both of the following may wait.
            None if wait == Wait::Never => return Err(BufferError::WouldBlock),
            None if frame_of(entry.load(Ordering::Acquire)).is_some() => {
                discard_one(&session.pool, relation, BlockNumber(block), entry)?;
            }
            None => backoff.snooze(),
        }
    };
    let number = owned.number();
    let frame = &session.pool.frames[number as usize];
    // The latch is free, since the frame is owned. Or a session holds it for a moment: it
    // latched the frame for its old page, and is about to notice that this has left.
    frame.latch().exclusive();
    owned.publish(session, page, &loading, first_usage(session, None, ring));
    if block < growth.stale {
        frame.mark_dirty();
    }
    relation.set_blocks(block + 1);
    loading.finish(number);
    drop(growth);
    session.count(Event::Extended, 1);
    session.count(Event::ExtendCall, 1);
    session.trace(page, TraceFlags::EXTEND);
    Ok((number, page))
}

/// Allocates space in the store for blocks from `first` on. The larger the fork, the more
/// blocks.
fn allocate(
    session: &SessionCore,
    relation: &Relation,
    growth: &mut Growth,
    first: u32,
) -> Result<(), BufferError> {
    let room = (u32::MAX - 1).saturating_sub(first);
    if room == 0 {
        return Err(BufferError::RelationFull { rel: relation.rel });
    }
    let count = (first / 8).clamp(1, 64).min(room);
    let extend = || session.pool.store.extend(relation.rel, BlockNumber(first), count);
    session.timed(Event::ExtendTime, extend)?;
    growth.allocated = first + count;
    Ok(())
}

/// Creates a fork if needed, and extends it to include `block`.
fn grow_to(session: &SessionCore, rel: &RelHandle, block: BlockNumber) -> Result<(), BufferError> {
    let relation = &*rel.0;
    session.check_handle(relation)?;
    if block.0 >= u32::MAX - 1 {
        return Err(BufferError::RelationFull { rel: relation.rel });
    }
    let mut growth = relation.growth();
    if relation.is_dropped() {
        return Err(BufferError::Dropped { rel: relation.rel });
    }
    let needed = block.0 + 1;
    if growth.allocated < needed {
        session.pool.store.create(relation.rel)?;
        let first = growth.allocated;
        session.pool.store.extend(relation.rel, BlockNumber(first), needed - first)?;
        growth.allocated = needed;
    }
    if relation.blocks() < needed {
        relation.set_blocks(needed);
    }
    Ok(())
}

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
