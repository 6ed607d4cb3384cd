//! What sessions do with pages, one step at a time, and what the pool says about it.

use super::*;
use crate::arena::FENCED;
use crate::core::frame::{NoPin, TOUCHED};
use crate::replacement::reuse::take_frame;
use crate::*;
use std::sync::atomic::Ordering;

#[test]
fn pages_come_and_go() {
    const BLOCKS: u32 = if cfg!(miri) { 6 } else { 20 };
    let Bench { store, pool, .. } = clock_sweep_bench(4, BLOCKS);
    let (session, rel) = pool.open();
    assert_eq!(rel.block_count(), BLOCKS);
    for round in 0..3 {
        for block in 0..BLOCKS {
            assert_eq!(number(&session, &rel, block), u64::from(block), "round {round}");
        }
    }
    let stats = pool.stats();
    assert_eq!(
        (stats.misses, stats.evictions, stats.writes),
        (u64::from(3 * BLOCKS), u64::from(3 * BLOCKS - 4), 0)
    );
    assert_eq!(store.reads.load(Ordering::Relaxed), u64::from(3 * BLOCKS));
    assert_eq!(session.pinned_pages(), 0);
}

#[test]
fn hits_stay_in_memory() {
    let Bench { pool, .. } = bench(8, 4);
    let (session, rel) = pool.open();
    for _ in 0..10 {
        for block in 0..4 {
            assert_eq!(number(&session, &rel, block), u64::from(block));
        }
    }
    // The first access to each page pins it after the miss, and then reads.
    assert_eq!((pool.stats().misses, pool.stats().hits), (4, 36));
}

/// A hint reads no page, counts nothing and is no use of the page.
#[test]
fn hints_have_no_effect() {
    let Bench { store, pool, .. } = clock_sweep_bench(2, 3);
    let (session, rel) = pool.open();
    number(&session, &rel, 0);
    number(&session, &rel, 1);
    let used = |block: u32| {
        let frame = session.core.resident(&rel, BlockNumber(block)).unwrap();
        session.core.pool.frames[frame as usize].usage()
    };
    let before = (pool.stats(), used(0), used(1));
    let mut seen = Vec::new();
    for block in 0..4 {
        let block = BlockNumber(block);
        session.prefetch_entry(&rel, block);
        session.look_ahead(&rel, block, |page| {
            page.prefetch(0..PAGE_SIZE);
            page.prefetch(PAGE_SIZE - 3..PAGE_SIZE + 9);
            page.prefetch(usize::MAX - 1..usize::MAX);
            seen.push((block.0, page.u64(16)));
        });
    }
    assert_eq!(seen, [(0, 0), (1, 1)]);
    let after = pool.stats();
    assert_eq!((after.hits, after.misses), (before.0.hits, before.0.misses));
    assert_eq!((used(0), used(1)), (before.1, before.2));
    assert_eq!(store.reads.load(Ordering::Relaxed), 2);
    // A page that is being changed is no reason to count anything either.
    let changing = session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap().into_exclusive();
    let mut changing = changing.unwrap();
    let change = changing.change();
    session.look_ahead(&rel, BlockNumber(0), |page| page.prefetch(0..8));
    drop(change);
    assert_eq!(pool.stats().restarts, before.0.restarts);
}

/// Rule 7.
#[test]
fn changes_survive_eviction_and_flush_the_log_first() {
    let Bench { store, log, pool } = bench(2, 6);
    let (session, rel) = pool.open();
    for block in 0..6 {
        set_number(&session, &rel, block, 100 + u64::from(block), 1000 + u64::from(block));
    }
    for block in 0..6 {
        assert_eq!(number(&session, &rel, block), 100 + u64::from(block));
    }
    assert!(log.flushed().0 >= 1003);
    let mut page = [0; PAGE_SIZE];
    store.inner.read(REL, BlockNumber(0), &mut [&mut page]).unwrap();
    verify_checksum(REL.page(BlockNumber(0)), &page).unwrap();
    assert_eq!((page_lsn(&page), page.u64(16)), (Lsn(1000), 100));
}

#[test]
fn pins_are_counted_by_session_and_frame() {
    let Bench { pool, .. } = bench(2, 3);
    let (session, rel) = pool.open();
    let first = pin_block(&session, &rel, 0);
    let again = pin_block(&session, &rel, 0);
    assert_eq!(session.pinned_pages(), 1);
    let other = pin_block(&session, &rel, 1);
    // Both frames are pinned: an error, not a hang.
    let full = session.pin(&rel, BlockNumber(2), Wait::Allowed);
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { frames: 2 })), "{full:?}");
    drop(first);
    assert!(session.pin(&rel, BlockNumber(2), Wait::Allowed).is_err());
    drop(again);
    assert_eq!(pin_block(&session, &rel, 2).block(), BlockNumber(2));
    drop(other);
    assert_eq!(session.pinned_pages(), 0);
}

/// A latch alone keeps its page, and so does the pin that it becomes. Frames are taken from other
/// pages, and the fork can't be dropped. If there are no other pages, that is an error, not a hang.
/// Rule 13.
#[test]
fn a_shared_latch_keeps_its_page() {
    let Bench { pool, .. } = bench(2, 4);
    let (one, two) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let latch = |block| one.pin_shared(&rel, BlockNumber(block), Wait::Allowed).unwrap();
    assert_eq!(number(&two, &rel, 1), 1);
    let page = latch(1);
    assert_eq!((one.pinned_pages(), page.u64(16)), (0, 1));
    for block in [0, 2, 3, 0, 2, 3] {
        assert_eq!(number(&two, &rel, block), u64::from(block));
    }
    assert_eq!((page.page_id(), page.u64(16)), (REL.page(BlockNumber(1)), 1));
    let other = pin_block(&two, &rel, 0);
    let full = two.pin(&rel, BlockNumber(2), Wait::Allowed);
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { frames: 2 })), "{full:?}");
    let page = page.unlatch();
    assert!(two.pin(&rel, BlockNumber(2), Wait::Allowed).is_err());
    assert_eq!((one.pinned_pages(), page.page_id()), (1, REL.page(BlockNumber(1))));
    drop(page);
    assert_eq!((one.pinned_pages(), number(&two, &rel, 2)), (0, 2));
    drop(other);
    // Not in memory: loaded, pinned and latched.
    let page = latch(3);
    assert_eq!((one.pinned_pages(), page.u64(16)), (1, 3));
    drop(page);
    let page = latch(3);
    assert_eq!((one.pinned_pages(), page.u64(16)), (0, 3));
    assert!(matches!(pool.drop_relation(REL.relation), Err(BufferError::InUse { .. })));
    drop(page);
    pool.drop_relation(REL.relation).unwrap();
}

/// The counts of a session stay in the sums when it ends. They do not become those of the next
/// session with its number.
#[test]
fn a_session_begins_with_no_counts() {
    let Bench { pool, .. } = bench(4, 2);
    let rel = pool.relation(REL).unwrap();
    let io = |session: &BufferSession| pool.session_io(session.number(), BackendKind::Client);
    let session = pool.session().unwrap();
    for block in [0, 1, 0] {
        assert_eq!(number(&session, &rel, block), u64::from(block));
    }
    let (old, before) = (session.number(), pool.stats());
    assert_eq!((io(&session)[0].reads, io(&session)[0].hits), (2, 1));
    drop(session);
    let next = pool.session().unwrap();
    assert_eq!(next.number(), old);
    assert_eq!(io(&next), IoByContext::default());
    assert_eq!(pool.stats(), before);
    number(&next, &rel, 1);
    assert_eq!((io(&next)[0].hits, pool.stats().hits), (1, before.hits + 1));
}

#[test]
fn latches_exclude_and_guards_convert() {
    let Bench { pool, .. } = bench(4, 2);
    let (one, two) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let pin = |session| BufferSession::pin(session, &rel, BlockNumber(1), Wait::Allowed).unwrap();
    let shared = pin(&one).into_shared().unwrap();
    assert_eq!(shared.bytes().u64(16), 1);
    let pinned = pin(&two).try_into_exclusive().unwrap_err();
    let pinned_one = shared.unlatch();
    let exclusive = pinned.try_into_exclusive().unwrap();
    assert!(pin(&one).try_into_shared().is_err());
    assert!(pinned_one.clone().try_into_exclusive().is_err());
    let shared = exclusive.downgrade();
    assert_eq!(pin(&one).into_shared().unwrap().u64(16), 1);
    assert!(pin(&one).try_into_exclusive().is_err());
    drop((shared, pinned_one));
    assert!(pin(&one).try_into_exclusive().is_ok());
    assert_eq!((one.pinned_pages(), two.pinned_pages()), (0, 0));
}

#[test]
fn a_cancelled_change_leaves_the_page_clean() {
    let Bench { store, pool, .. } = bench(4, 2);
    let (session, rel) = pool.open();
    let mut page = pin_block(&session, &rel, 0).into_exclusive().unwrap();
    page.change().cancel();
    drop(page);
    assert_eq!(pool.write_dirty(&session, |_| ()).unwrap(), 0);
    assert!(store.writes.lock().is_empty());
}

#[test]
fn hints_keep_the_lsn() {
    let Bench { pool, .. } = bench(4, 2);
    let (session, rel) = pool.open();
    set_number(&session, &rel, 0, 5, 77);
    let mut page = pin_block(&session, &rel, 0).into_exclusive().unwrap();
    let mut change = page.change();
    change.write(100, &[1]);
    change.publish_unlogged();
    assert_eq!((page.lsn(), page.u8(100), page.u64(16)), (Lsn(77), 1, 5));
}

#[test]
fn forks_grow() {
    const BLOCKS: u32 = if cfg!(miri) { 9 } else { 100 };
    let Bench { store, pool, .. } = bench(4, 0);
    let (session, rel) = pool.open();
    for block in 0..BLOCKS {
        let mut page = session.extend(&rel, Wait::Allowed).unwrap();
        assert_eq!(page.block(), BlockNumber(block));
        assert!(is_new(page.bytes()));
        write_number(&mut page, u64::from(block), u64::from(block));
    }
    assert_eq!(rel.block_count(), BLOCKS);
    for block in 0..BLOCKS {
        assert_eq!(number(&session, &rel, block), u64::from(block));
    }
    assert!(store.block_count(REL).unwrap() >= BLOCKS);
    pool.trim().unwrap();
    assert_eq!(store.block_count(REL).unwrap(), BLOCKS);
    let beyond = session.pin(&rel, BlockNumber(BLOCKS), Wait::Allowed);
    assert!(matches!(beyond, Err(BufferError::BeyondEnd { blocks: BLOCKS, .. })));
}

#[test]
fn a_checkpoint_writes_each_dirty_page_once_in_file_order() {
    let Bench { store, pool, .. } = bench(16, 33);
    let (session, rel) = pool.open();
    for block in [9, 3, 30, 4, 31, 5, 32] {
        set_number(&session, &rel, block, 1, 1);
    }
    let mut calls = Vec::new();
    let written = pool.write_dirty(&session, |progress| calls.push(progress)).unwrap();
    assert_eq!(written, 7);
    assert_eq!(calls.last(), Some(&WriteProgress { total: 7, done: 7 }));
    assert_eq!(*store.writes.lock(), [(REL, 3, 3), (REL, 9, 1), (REL, 30, 3)]);
    assert_eq!(pool.write_dirty(&session, |_| ()).unwrap(), 0);
    assert_eq!((pool.stats().writes, pool.stats().write_calls), (7, 3));
}

#[test]
fn dropping_and_truncating_discard_pages() {
    let Bench { store, pool, .. } = bench(16, 10);
    let (session, rel) = pool.open();
    for block in 0..10 {
        set_number(&session, &rel, block, 9, 9);
    }
    pool.truncate(REL, 4).unwrap();
    assert_eq!((rel.block_count(), store.block_count(REL).unwrap()), (4, 4));
    assert!(session.pin(&rel, BlockNumber(4), Wait::Allowed).is_err());
    assert_eq!(number(&session, &rel, 3), 9);
    assert_eq!(pool.core.free_frames(), 12);
    // A block that is made again is new.
    assert!(is_new(session.extend(&rel, Wait::Allowed).unwrap().bytes()));

    let pinned = pin_block(&session, &rel, 0);
    if !cfg!(miri) {
        assert!(matches!(pool.drop_relation(REL.relation), Err(BufferError::InUse { .. })));
    }
    drop(pinned);
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 16);
    assert!(!store.exists(REL).unwrap() && store.writes.lock().is_empty());
    let gone = session.pin(&rel, BlockNumber(0), Wait::Allowed);
    assert!(matches!(gone, Err(BufferError::Dropped { .. })), "{gone:?}");
    assert!(matches!(session.extend(&rel, Wait::Allowed), Err(BufferError::Dropped { .. })));

    // A relation made again with the same number is another relation.
    pool.create(REL).unwrap();
    let rel = pool.relation(REL).unwrap();
    assert_eq!(rel.block_count(), 0);
    assert!(is_new(session.extend(&rel, Wait::Allowed).unwrap().bytes()));
}

#[test]
fn reclaiming_frees_frames_and_writes_dirty_pages() {
    let Bench { store, pool, .. } = bench(8, 8);
    let (session, rel) = pool.open();
    for block in 0..8 {
        set_number(&session, &rel, block, 50, 50);
    }
    assert_eq!(pool.core.free_frames(), 0);
    assert_eq!(pool.reclaim(&session, 3).unwrap(), 3);
    // Dirty pages that the reclaimer has met on the way are written with them.
    assert_eq!((pool.core.free_frames(), pool.stats().writes), (3, 8));
    assert_eq!(*store.writes.lock(), [(REL, 0, 8)]);
    assert_eq!(pool.reclaim(&session, 3).unwrap(), 0);
    for block in 0..8 {
        assert_eq!(number(&session, &rel, block), 50);
    }
}

#[test]
fn never_waiting() {
    let Bench { store, pool, .. } = bench(2, 6);
    let (session, rel) = pool.open();
    let pin = |block| session.pin(&rel, BlockNumber(block), Wait::Never).map(|_| ());
    store.cold.store(true, Ordering::Relaxed);
    assert!(matches!(pin(0), Err(BufferError::WouldBlock)));
    assert_eq!(pool.core.free_frames(), 2);
    store.cold.store(false, Ordering::Relaxed);
    pin(0).unwrap();
    assert_eq!(pool.stats().allocations(), 1);
    store.cold.store(true, Ordering::Relaxed);
    pin(0).unwrap();
    store.cold.store(false, Ordering::Relaxed);
    // A dirty victim would have to be written.
    set_number(&session, &rel, 0, 1, 1);
    set_number(&session, &rel, 1, 1, 1);
    assert!(matches!(pin(2), Err(BufferError::WouldBlock)));
    assert!(store.writes.lock().is_empty());
    pool.write_dirty(&session, |_| ()).unwrap();
    pin(2).unwrap();
}

#[test]
fn sessions_are_limited_and_returned() {
    let Bench { pool, .. } = bench(2, 1);
    let all: Vec<_> = (0..SESSIONS).map(|_| pool.session().unwrap()).collect();
    assert!(matches!(pool.session(), Err(BufferError::TooManySessions { max: SESSIONS })));
    drop(all);
    let (session, rel) = pool.open();
    std::mem::forget(pin_block(&session, &rel, 0));
    drop(session);
    pool.drop_relation(REL.relation).unwrap();
}

#[test]
fn a_handle_of_another_pool_is_refused() {
    let (ours, theirs) = (bench(2, 1), bench(2, 1));
    let session = ours.pool.session().unwrap();
    let rel = theirs.pool.relation(REL).unwrap();
    let foreign = session.pin(&rel, BlockNumber(0), Wait::Allowed);
    assert!(matches!(foreign, Err(BufferError::ForeignHandle { .. })), "{foreign:?}");
}

/// Rule 9: dropping or truncating a fork looks at the frames that have its pages, and at no other.
#[test]
fn dropping_costs_what_the_fork_holds() {
    const OTHERS: u32 = if cfg!(miri) { 24 } else { 4000 };
    const OURS: u32 = if cfg!(miri) { 8 } else { 80 };
    let Bench { pool, .. } = bench((OTHERS + OURS) as usize, OTHERS);
    let session = pool.session().unwrap();
    let others = pool.relation(REL).unwrap();
    (0..OTHERS).for_each(|block| assert_eq!(number(&session, &others, block), block.into()));
    let mine = RelationId::constant(8).main();
    pool.create(mine).unwrap();
    let rel = pool.relation(mine).unwrap();
    (0..OURS).for_each(|_| drop(session.extend(&rel, Wait::Allowed).unwrap()));
    let touched = |what: &dyn Fn()| {
        let before = TOUCHED.get();
        what();
        TOUCHED.get() - before
    };
    // A claim and its settlement; the frames of pages that stay are not looked at.
    let cut = touched(&|| pool.truncate(mine, OURS * 3 / 4).unwrap());
    assert!((1..=2 * OURS as usize / 4).contains(&cut), "{cut} looks to cut a quarter");
    let dropped = touched(&|| pool.drop_relation(mine.relation).unwrap());
    assert!((1..=2 * OURS as usize).contains(&dropped), "{dropped} looks to drop the rest");
    let nothing = RelationId::constant(9);
    pool.create(nothing.main()).unwrap();
    assert_eq!(touched(&|| pool.drop_relation(nothing).unwrap()), 0);
    assert_eq!(others.pages_in_memory(), OTHERS as usize);
}

#[test]
fn a_free_frame_is_not_shown_with_the_page_that_left_it() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    number(&session, &rel, 0);
    assert_eq!(pool.frame_infos().filter(|frame| frame.page.is_some()).count(), 1);
    pool.reclaim(&session, 3).unwrap();
    assert_eq!(pool.frame_infos().filter(|frame| frame.page.is_some()).count(), 0);
}

/// A session has a page pinned. It believes that another page, which had the frame before, is still
/// there.
#[test]
fn a_second_pin_looks_at_the_page_too() {
    let Bench { pool, .. } = bench(2, 2);
    let (session, rel) = pool.open();
    let pin = pin_block(&session, &rel, 0);
    let believed = REL.page(BlockNumber(1));
    let again = session.core.pin_resident(pin.frame() as u32, believed, false);
    assert_eq!(again, Err(NoPin::Changed));
    drop(pin);
    assert_eq!(session.pinned_pages(), 0);
}

/// A frame that this thread is about to fill may have been taken from its page by another.
#[test]
fn a_frame_is_fenced_before_it_is_filled() {
    let Bench { pool, .. } = bench(2, 1);
    let session = pool.session().unwrap();
    let before = FENCED.get();
    drop(take_frame(&session.core, Wait::Allowed, None).unwrap());
    assert_eq!(FENCED.get() - before, 1);
}

#[test]
fn ring_sizes_are_postgresqls_and_at_most_an_eighth_of_the_pool() {
    let sizes = RingSizes::default();
    // PostgreSQL's pages; the pool's may have another size.
    let bytes = |strategy| sizes.pages(strategy) * 8192;
    assert_eq!(bytes(AccessStrategy::BulkRead), 256 << 10);
    assert_eq!(bytes(AccessStrategy::BulkWrite), 16 << 20);
    assert_eq!(bytes(AccessStrategy::Vacuum), 2 << 20);
    let pool = bench(128, 1).pool;
    assert_eq!(Ring::new(&pool, AccessStrategy::BulkRead).unwrap().capacity(), 16);
    let small = Ring::with_pages(&pool, AccessStrategy::Vacuum, 3).unwrap();
    assert_eq!((small.capacity(), small.strategy()), (3, AccessStrategy::Vacuum));
    assert!(Ring::with_pages(&pool, AccessStrategy::Vacuum, 0).is_none());
    assert!(Ring::new(&pool, AccessStrategy::Normal).is_none());
    assert!(!pool.is_large(32) && pool.is_large(32 + 1));
}
