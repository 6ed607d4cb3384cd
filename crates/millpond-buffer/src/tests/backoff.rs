//! A session that finds no frame waits for sessions that hold frames for a moment, and for no
//! others.

use super::support::*;
use crate::replacement::evict::USED_BEHIND_THE_HAND;
use crate::store::as_inner;
use crate::*;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A store whose reads wait until they may go on.
#[derive(Default)]
struct Gate {
    inner: MemoryStore,
    closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl PageStore for Gate {
    as_inner! { create remove exists block_count extend truncate nothing_at_hand write sync relations }
    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut PageBytes],
    ) -> Result<(), StoreError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut closed = self.closed.lock();
        self.opened.wait_while(&mut closed, |closed| *closed);
        self.inner.read(rel, first, pages)
    }
}

/// The sessions that hold all frames are loading pages, and take longer than any number of yields.
/// That is no lack of frames.
#[test]
fn frames_that_others_are_loading_are_waited_for() {
    let store = Arc::new(Gate::default());
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), 4).unwrap();
    let mut config = PoolConfig::new(2, 8);
    config.freelists = 1;
    let pool = BufferPool::new(config, store.clone(), Arc::new(NoLog)).unwrap();
    *store.closed.lock() = true;
    let read = |block| {
        let session = pool.session().unwrap();
        let rel = pool.relation(REL).unwrap();
        session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16))
    };
    std::thread::scope(|scope| {
        let loaders = [0, 1].map(|block| scope.spawn(move || read(block)));
        while store.waiting.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        let third = scope.spawn(move || read(2));
        // This time is not needed for success, but gives the session a chance to fail.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(200) && !third.is_finished() {
            std::thread::yield_now();
        }
        *store.closed.lock() = false;
        store.opened.notify_all();
        for reader in loaders.into_iter().chain([third]) {
            assert_eq!(reader.join().unwrap().unwrap(), 0);
        }
    });
}

/// When sessions have pinned every frame, other sessions soon get an error, also if several of them
/// look at the same time. A frame that is unpinned is found.
#[test]
fn pinned_frames_are_not_waited_for_long() {
    let Bench { pool, .. } = bench(4, 8);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let pin = |block| session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
    let pinned: Vec<_> = (0..4).map(pin).collect();
    let look = |block| {
        let session = pool.session().unwrap();
        let rel = pool.relation(REL).unwrap();
        session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16))
    };
    std::thread::scope(|scope| {
        let lookers = [4, 5, 6].map(|block| scope.spawn(move || look(block)));
        for looker in lookers {
            let refused = looker.join().unwrap();
            let expected = BufferError::NoUnpinnedBuffers { frames: 4 };
            assert_eq!(format!("{refused:?}"), format!("{:?}", Err::<u64, _>(expected)));
        }
    });
    drop(pinned);
    assert_eq!(look(4).unwrap(), 4);
}

/// Readers raise all usage counts as quickly as they are lowered, and pin nothing. They prevent no
/// session from getting a frame, of a clean page or of a dirty one.
#[test]
fn pages_in_constant_use_leave_if_nobody_has_pinned_them() {
    for bench in [bench(4, 8), clock_sweep_bench(4, 8)] {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        (0..4).for_each(|block| assert_eq!(number(&session, &rel, block), block.into()));
        USED_BEHIND_THE_HAND.set(true);
        // A session that must not wait would get an error at once if there were no frame.
        for block in [4, 0, 5, 1] {
            let read = session.read(&rel, BlockNumber(block), Wait::Never, |page| page.u64(16));
            assert_eq!(read.unwrap(), u64::from(block));
        }
        for block in 0..8 {
            set_number(&session, &rel, block, 100 + u64::from(block), 1);
        }
        (0..8).for_each(|block| assert_eq!(number(&session, &rel, block), 100 + u64::from(block)));
        USED_BEHIND_THE_HAND.set(false);
    }
}

/// Taking the reserve of an idle job is better than finding no frame.
#[test]
fn an_idle_jobs_reserve_is_taken_rather_than_none() {
    let Bench { pool, .. } = bench(16, 64);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let ring = Ring::with_pages(&pool, AccessStrategy::BulkRead, 4).unwrap();
    for block in 0..40 {
        session.read_with(&rel, BlockNumber(block), Wait::Allowed, Some(&ring), |_| ()).unwrap();
    }
    // As many pins as there are frames, whatever the ring holds.
    let pin = |block| session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
    let pinned: Vec<_> = (48..64).map(pin).collect();
    assert_eq!(pinned.len(), pool.frames());
}
