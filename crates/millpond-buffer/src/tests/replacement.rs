//! Which pages the sweep takes, and what it counts about them.
//!
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

/// Reads a table of 40 pages round and round in a pool of 32 frames. Each page leaves shortly
/// before it is wanted again.
#[test]
fn regret_is_counted() {
    let Bench { pool, .. } = clock_sweep_bench(32, 40);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for _ in 0..2 {
        for block in 0..40 {
            assert_eq!(number(&session, &rel, block), u64::from(block));
        }
    }
    let stats = pool.stats();
    assert_eq!((stats.clock, stats.evictions), (80 - 32, 80 - 32), "{stats:?}");
    assert_eq!(stats.regret, 40, "{stats:?}");
    assert_eq!(stats.regret_age.iter().sum::<u64>(), 40);
    assert_eq!(stats.victim_age.iter().sum::<u64>(), stats.evictions);
    // A page was used at most twice: loaded, and read.
    assert_eq!(stats.victim_usage[1] + stats.victim_usage[2], stats.evictions, "{stats:?}");
    assert_eq!((stats.examined_per_allocation[0], stats.allocations()), (32, 80), "{stats:?}");
}

/// A page that the hand finds pinned gets its usage count back, even if the hand met it before it
/// was pinned.
#[test]
fn the_hand_passes_over_what_a_session_has_pinned() {
    for make in [clock_sweep_bench, bench] {
        let Bench { pool, .. } = make(4, 40);
        let (session, other) = (pool.session().unwrap(), pool.session().unwrap());
        let rel = pool.relation(REL).unwrap();
        let page = Some(REL.page(BlockNumber(0)));
        let usage = || pool.frame_infos().find(|frame| frame.page == page).map(|frame| frame.usage);
        let most = Some(policy::MAX_USAGE);
        let mut others = (1..40).cycle();
        let mut read_another = || {
            let block = others.next().unwrap();
            // Twice: a page on probation could leave without the hand.
            (0..2).for_each(|_| assert_eq!(number(&other, &rel, block), u64::from(block)));
        };
        for _ in 0..100 {
            read_another();
            (0..10).for_each(|_| assert_eq!(number(&session, &rel, 0), 0));
        }
        let pinned = session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap();
        assert_eq!(usage(), most);
        let (mut low, mut times_back) = (false, 0);
        for _ in 0..400 {
            read_another();
            times_back += usize::from(low && usage() == most);
            low = usage() <= Some(1) || low && usage() < most;
        }
        assert!(times_back > 3, "{times_back} times");
        drop(pinned);
    }
}

#[test]
fn a_page_that_leaves_for_long_is_not_regretted() {
    let Bench { pool, .. } = clock_sweep_bench(16, 100);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in (0..100).chain(0..10) {
        assert_eq!(number(&session, &rel, block), u64::from(block));
    }
    let stats = pool.stats();
    assert_eq!((stats.regret, stats.regret_age.iter().sum::<u64>()), (0, 10), "{stats:?}");
}

/// A failed load leaves the entry as it was, with the time that it remembers.
#[test]
fn a_failed_load_forgets_nothing() {
    let Bench { store, pool, .. } = bench(4, 8);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..5 {
        number(&session, &rel, block);
    }
    store.fail_reads.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(session.pin(&rel, BlockNumber(0), Wait::Allowed).is_err());
    store.fail_reads.store(false, std::sync::atomic::Ordering::Relaxed);
    number(&session, &rel, 0);
    assert_eq!(pool.stats().regret, 1);
}

/// A sweep of a large pool takes several frames at once; the others wait on the freelist.
/// Rule 8.
#[test]
fn frames_are_taken_in_batches() {
    // A frame for each 64 of the pool.
    let batch = if cfg!(miri) { 2 } else { 8 };
    let frames = 64 * batch;
    let Bench { pool, .. } = bench(frames as usize, frames + batch);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..=frames {
        number(&session, &rel, block);
    }
    let (stats, batch) = (pool.stats(), u64::from(batch));
    assert_eq!((stats.evictions, stats.free_frames), (batch, batch - 1), "{stats:?}");
    for block in (frames..rel.block_count()).skip(1) {
        number(&session, &rel, block);
    }
    let stats = pool.stats();
    assert_eq!((stats.evictions, stats.free_frames), (batch, 0), "{stats:?}");
}

#[test]
fn input_and_output_are_counted_by_kind_and_context() {
    let Bench { pool, .. } = bench(4, 8);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    number(&session, &rel, 0);
    session.set_backend_kind(BackendKind::Autovacuum);
    session.set_io_context(IoContext::Vacuum);
    set_number(&session, &rel, 1, 5, 1);
    session.set_io_context(IoContext::Normal);
    drop(session.extend(&rel, Wait::Allowed).unwrap());
    pool.write_dirty(&session, |_| ()).unwrap();
    pool.sync().unwrap();
    let stats = pool.stats();
    let client = stats.io_of(BackendKind::Client, IoContext::Normal);
    assert_eq!((client.hits, client.reads, client.read_bytes), (0, 1, PAGE_SIZE as u64));
    let vacuum = stats.io_of(BackendKind::Autovacuum, IoContext::Vacuum);
    assert_eq!((vacuum.reads, vacuum.writes), (1, 0));
    let normal = stats.io_of(BackendKind::Autovacuum, IoContext::Normal);
    assert_eq!((normal.extends, normal.writes, normal.write_bytes), (1, 1, PAGE_SIZE as u64));
    assert_eq!(stats.io_of(BackendKind::Checkpointer, IoContext::Normal).fsyncs, 1);
    assert_eq!((stats.reads, stats.writes, stats.extended), (2, 1, 1));
}

/// Neighbours among the victims are written together, in file order, whatever the order of their
/// frames.
#[test]
fn the_reclaimer_writes_neighbours_together() {
    let Bench { pool, store, .. } = bench(16, 16);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in [3, 9, 1, 2, 0, 8] {
        set_number(&session, &rel, block, 70, 1);
    }
    // All six have used up their counts after the hand has passed often enough.
    assert_eq!(pool.reclaim(&session, 16).unwrap(), 6);
    assert_eq!(*store.writes.lock(), [(REL, 0, 4), (REL, 8, 2)]);
    let stats = pool.stats();
    assert_eq!((stats.free_frames, stats.writes, stats.write_calls), (16, 6, 2));
    assert_eq!((stats.reclaimed, stats.dirty_evictions), (6, 0));
}

/// Unused dirty pages are written in their turn, although enough clean ones are found each time.
#[test]
fn the_reclaimer_does_not_pass_over_dirty_pages() {
    const BLOCKS: u32 = if cfg!(miri) { 192 } else { 512 };
    let Bench { pool, .. } = bench(64, BLOCKS);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..32 {
        set_number(&session, &rel, block, 70, 1);
    }
    for block in 32..BLOCKS {
        assert_eq!(number(&session, &rel, block), u64::from(block));
        if block % 4 == 0 {
            pool.reclaim(&session, 8).unwrap();
        }
    }
    assert_eq!(pool.stats().writes, 32);
}

/// A page that can't be written does not keep the others from being freed, and stays as it was.
#[test]
fn the_reclaimer_goes_on_after_an_error() {
    let Bench { pool, store, .. } = bench(8, 8);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..8 {
        number(&session, &rel, block);
    }
    set_number(&session, &rel, 3, 70, 1);
    store.fail_writes.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(pool.reclaim(&session, 8).unwrap(), 7);
    assert!(matches!(pool.reclaim(&session, 8), Err(BufferError::Store(_))));
    store.fail_writes.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(pool.reclaim(&session, 8).unwrap(), 1);
    assert_eq!(number(&session, &rel, 3), 70);
}

/// A reclaimer runs in a thread of its own, beside a session that dirties more pages than the pool
/// holds. The session need not write or sweep.
#[test]
fn the_reclaimer_keeps_ahead_of_demand() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const BLOCKS: u32 = if cfg!(miri) { 30 } else { 4000 };
    let frames = if cfg!(miri) { 16 } else { 1024 };
    let Bench { pool, .. } = bench(frames, BLOCKS);
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reclaimer = scope.spawn(|| {
            let session = pool.session().unwrap();
            let mut reclaimer = Reclaimer::new(&session);
            while !ending.load(Ordering::SeqCst) {
                reclaimer.wait(|| ending.load(Ordering::SeqCst));
                reclaimer.work().unwrap();
            }
        });
        let session = pool.session().unwrap();
        let rel = pool.relation(REL).unwrap();
        for block in 0..BLOCKS {
            // The demand of a session that also does something with its pages.
            while pool.core.free_frames() == 0 {
                std::thread::yield_now();
            }
            set_number(&session, &rel, block, 1, 1);
        }
        ending.store(true, Ordering::SeqCst);
        pool.wake_reclaimer();
        reclaimer.join().unwrap();
    });
    let stats = pool.stats();
    assert_eq!(stats.dirty_evictions, 0, "{stats:?}");
    assert!(stats.reclaimed >= u64::from(BLOCKS) - frames as u64, "{stats:?}");
}

/// A scan through a pool whose pages are in use takes at most a tenth of them, and a page that
/// comes back soon stays.
#[test]
fn pages_on_probation_leave_first() {
    // Half of the pool. The table is about six times as large as the pool.
    const HALF: u32 = if cfg!(miri) { 16 } else { 160 };
    const ALL: u32 = HALF * 25 / 2;
    let Bench { pool, store, .. } = bench(2 * HALF as usize, ALL);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let read = |blocks: std::ops::Range<u32>| {
        blocks.for_each(|block| assert_eq!(number(&session, &rel, block), u64::from(block)));
    };
    // Half of the pool is used again, before and after pages for the other half came.
    read(0..HALF);
    read(HALF..2 * HALF);
    read(0..HALF);
    read(2 * HALF..4 * HALF);
    read(0..HALF);
    read(4 * HALF..ALL);
    let before = store.reads.load(std::sync::atomic::Ordering::Relaxed);
    read(0..HALF);
    let again = store.reads.load(std::sync::atomic::Ordering::Relaxed) - before;
    assert!(again < u64::from(HALF) / 10, "{again} of the pages in use had left");
    // The last pages of the scan are still there, and one that has left comes back to stay.
    let left = ALL - HALF * 5 / 8;
    read(ALL - HALF / 16..ALL);
    read(left..left + 1);
    read(2 * HALF..4 * HALF);
    let before = store.reads.load(std::sync::atomic::Ordering::Relaxed);
    read(left..left + 1);
    assert_eq!(store.reads.load(std::sync::atomic::Ordering::Relaxed), before);
}

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
