//! Which pages the sweep takes, what it counts about them, and which leave a pool that is resized.
//!
//! A session that finds no frame waits for sessions that hold frames for a moment, and for no
//! others.

use super::*;
use crate::core::frame::OWNED;
use crate::replacement::evict::USED_BEHIND_THE_HAND;
use crate::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Reads a table of 40 pages round and round in a pool of 32 frames. Each page leaves shortly
/// before it is wanted again.
#[test]
fn regret_is_counted() {
    let Bench { pool, .. } = clock_sweep_bench(32, 40);
    let (session, rel) = pool.open();
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
        let pinned = pin_block(&session, &rel, 0);
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
    let (session, rel) = pool.open();
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
    let (session, rel) = pool.open();
    for block in 0..5 {
        number(&session, &rel, block);
    }
    store.fail_reads.store(true, Ordering::Relaxed);
    assert!(session.pin(&rel, BlockNumber(0), Wait::Allowed).is_err());
    store.fail_reads.store(false, Ordering::Relaxed);
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
    let (session, rel) = pool.open();
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
    let (session, rel) = pool.open();
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

/// A scan through a pool whose pages are in use takes at most a tenth of them, and a page that
/// comes back soon stays.
#[test]
fn pages_on_probation_leave_first() {
    // Half of the pool. The table is about six times as large as the pool.
    const HALF: u32 = if cfg!(miri) { 16 } else { 160 };
    const ALL: u32 = HALF * 25 / 2;
    let Bench { pool, store, .. } = bench(2 * HALF as usize, ALL);
    let (session, rel) = pool.open();
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
    let before = store.reads.load(Ordering::Relaxed);
    read(0..HALF);
    let again = store.reads.load(Ordering::Relaxed) - before;
    assert!(again < u64::from(HALF) / 10, "{again} of the pages in use had left");
    // The last pages of the scan are still there, and one that has left comes back to stay.
    let left = ALL - HALF * 5 / 8;
    read(ALL - HALF / 16..ALL);
    read(left..left + 1);
    read(2 * HALF..4 * HALF);
    let before = store.reads.load(Ordering::Relaxed);
    read(left..left + 1);
    assert_eq!(store.reads.load(Ordering::Relaxed), before);
}

/// The sessions that hold all frames are loading pages, and take longer than any number of yields.
/// That is no lack of frames.
#[test]
fn frames_that_others_are_loading_are_waited_for() {
    let Bench { store, pool, .. } = bench(2, 4);
    store.cold.store(true, Ordering::Relaxed);
    let closed = store.gate.write();
    let read = |block| {
        let (session, rel) = pool.open();
        session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16))
    };
    std::thread::scope(|scope| {
        let loaders = [0, 1].map(|block| scope.spawn(move || read(block)));
        while store.reads.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        let third = scope.spawn(move || read(2));
        // This time is not needed for success, but gives the session a chance to fail.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(200) && !third.is_finished() {
            std::thread::yield_now();
        }
        drop(closed);
        for (block, reader) in (0..).zip(loaders.into_iter().chain([third])) {
            assert_eq!(reader.join().unwrap().unwrap(), block);
        }
    });
}

/// When sessions have pinned every frame, other sessions soon get an error, also if several of them
/// look at the same time. A frame that is unpinned is found.
#[test]
fn pinned_frames_are_not_waited_for_long() {
    let Bench { pool, .. } = bench(4, 8);
    let (session, rel) = pool.open();
    let pin = |block| pin_block(&session, &rel, block);
    let pinned: Vec<_> = (0..4).map(pin).collect();
    let look = |block| {
        let (session, rel) = pool.open();
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
fn pages_in_constant_use_leave_if_they_are_not_pinned() {
    for bench in [bench(4, 8), clock_sweep_bench(4, 8)] {
        let (session, rel) = bench.pool.open();
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
    let (session, rel) = pool.open();
    let ring = Ring::with_pages(&pool, AccessStrategy::BulkRead, 4).unwrap();
    for block in 0..40 {
        session.read_with(&rel, BlockNumber(block), Wait::Allowed, Some(&ring), |_| ()).unwrap();
    }
    // As many pins as there are frames, whatever the ring holds.
    let pin = |block| pin_block(&session, &rel, block);
    let pinned: Vec<_> = (48..64).map(pin).collect();
    assert_eq!(pinned.len(), pool.frames());
}

#[test]
fn the_pool_grows_and_shrinks() {
    let Bench { pool, .. } = bench(16, 32);
    let (session, rel) = pool.open();
    for block in 0..16 {
        set_number(&session, &rel, block, 100 + u64::from(block), 1);
    }
    assert_eq!((pool.frames(), pool.max_frames()), (16, 32));
    pool.resize(&session, 32).unwrap();
    assert_eq!((pool.frames(), pool.core.free_frames()), (32, 16));
    for block in 16..32 {
        number(&session, &rel, block);
    }
    assert_eq!(pool.stats().evictions, 0);
    // Pages that do not fit leave, and are written if they must be.
    pool.resize(&session, 8).unwrap();
    let stats = pool.stats();
    assert_eq!((pool.frames(), stats.evictions, stats.writes), (8, 24, 8), "{stats:?}");
    for block in 0..16 {
        assert_eq!(number(&session, &rel, block), 100 + u64::from(block));
    }
    pool.resize(&session, 9).unwrap();
    assert_eq!(pool.core.free_frames(), 1);
    for refused in [0, 33] {
        let refused = pool.resize(&session, refused);
        assert!(matches!(refused, Err(BufferError::Size { max: 32, .. })), "{refused:?}");
    }
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 9);
}

/// Rule 2.
#[test]
fn a_pinned_page_stops_shrinking_and_it_can_be_tried_again() {
    let Bench { pool, .. } = bench(16, 16);
    let (session, rel) = pool.open();
    for block in 0..16 {
        number(&session, &rel, block);
    }
    let held = pin_block(&session, &rel, 9);
    let error = pool.resize(&session, 4).unwrap_err();
    let BufferError::Shrinking { frames, page, .. } = error else { panic!("{error}") };
    assert_eq!((frames, page), (held.frame() + 1, Some(held.page_id())));
    assert!(error.to_string().ends_with("while pages are in use"));
    assert_eq!(pool.frames(), frames);
    // The pool uses the frames that it has, between the size that was asked for and its present
    // size.
    let free = pool.core.free_frames();
    assert_eq!(free, frames - 4 - 1);
    assert_eq!(held.read(|page| page.u64(16)).unwrap(), 9);
    drop(held);
    pool.resize(&session, 4).unwrap();
    assert_eq!((pool.frames(), pool.core.free_frames()), (4, 0));
    assert_eq!(number(&session, &rel, 9), 9);
}

#[test]
fn a_page_that_cannot_be_written_stops_shrinking() {
    let Bench { pool, store, .. } = bench(8, 8);
    let (session, rel) = pool.open();
    for block in 0..8 {
        set_number(&session, &rel, block, 70, 1);
    }
    store.fail_writes.store(true, Ordering::Relaxed);
    assert!(matches!(pool.resize(&session, 2), Err(BufferError::Store(_))));
    assert_eq!((pool.frames(), pool.core.free_frames()), (8, 0));
    store.fail_writes.store(false, Ordering::Relaxed);
    pool.resize(&session, 2).unwrap();
    for block in 0..8 {
        assert_eq!(number(&session, &rel, block), 70);
    }
}

#[test]
fn what_stays_free_is_shared_out_again() {
    let mut config = PoolConfig::new(400, SESSIONS);
    config.freelists = 4;
    let store = Arc::new(TestStore::default());
    let pool = BufferPool::new(config, store, Arc::new(TestLog::default())).unwrap();
    let session = pool.session().unwrap();
    pool.resize(&session, 200).unwrap();
    let lists: Vec<_> = (0..4).map(|list| pool.core.free.len_of(list, &pool.core.frames)).collect();
    assert_eq!(lists, [50; 4]);
}

/// The session that takes a page's frame has lost the processor half-way. A caller that must not
/// wait is not kept waiting.
#[test]
fn a_page_that_is_leaving_would_block() {
    let Bench { pool, .. } = bench(2, 1);
    let (session, rel) = pool.open();
    let frame = pin_block(&session, &rel, 0).frame();
    let frame = &pool.core.frames[frame];
    frame.update(|state| Some(state | OWNED)).unwrap();
    let has_tried = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        // If the caller waits nevertheless, this thread ends the wait.
        scope.spawn(|| {
            for _ in 0..if cfg!(miri) { 100 } else { 100_000 } {
                if has_tried.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::yield_now();
            }
            frame.update(|state| Some(state & !OWNED)).unwrap();
        });
        let answer = session.pin(&rel, BlockNumber(0), Wait::Never).map(|page| page.block());
        has_tried.store(true, Ordering::Relaxed);
        answer
    });
    assert!(matches!(answer, Err(BufferError::WouldBlock)), "{answer:?}");
    assert_eq!(number(&session, &rel, 0), 0);
}
