//! Damaged pages: what the store has is compared with its checksum and with what the log knows of
//! it.
//!
//! A page whose change was interrupted is damaged, too. It harms no other page, and no session gets
//! access to it, however long it has waited.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::replacement::vacate::write_frames;
use crate::write_back::RunOf;
use crate::write_back::async_write::Window;
use crate::*;

/// The end of the log.
const END: Lsn = Lsn(u64::from_le_bytes([1; 8]));

/// A log that knows the fork's length, and that all of its pages but one have been written to.
#[derive(Default)]
struct KnowingLog {
    least: AtomicU32,
    unwritten: AtomicU32,
}

impl LogFlush for KnowingLog {
    fn flush_to(&self, _: Lsn) -> Result<(), LogFlushError> {
        Ok(())
    }
    fn flushed(&self) -> Lsn {
        Lsn::MAX
    }
    fn least_blocks(&self, rel: RelFork) -> Option<u32> {
        (rel == REL).then(|| self.least.load(Ordering::Relaxed))
    }
    fn has_reached(&self, lsn: Lsn) -> bool {
        lsn <= END
    }
    fn may_be_zero(&self, page: PageId) -> bool {
        let block = page.block().0;
        block >= self.least.load(Ordering::Relaxed)
            || block == self.unwritten.load(Ordering::Relaxed)
    }
}

/// A store with five pages, all but the first of zeros, and a log that knows of `least` pages.
fn five(least: u32) -> (Arc<MemoryStore>, Arc<BufferPool>) {
    let store = Arc::new(MemoryStore::new());
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), 5).unwrap();
    let mut page = [1; PAGE_SIZE];
    set_checksum(REL.page(BlockNumber(0)), &mut page);
    store.write(REL, BlockNumber(0), &[&page]).unwrap();
    let log = KnowingLog { least: least.into(), unwritten: 3.into() };
    let pool = BufferPool::new(PoolConfig::new(64, 2), store.clone(), Arc::new(log)).unwrap();
    (store, pool)
}

#[test]
fn a_page_of_zeros_is_damage_unless_the_log_allows_it() {
    let (_, pool) = five(4);
    let (session, rel) = pool.open();
    let kinds = |block: u32| {
        let read = session.pin(&rel, BlockNumber(block), Wait::Allowed).map(drop);
        match read {
            Ok(()) => "read",
            Err(BufferError::Zeroed { page }) if page.block().0 == block => "zeroed",
            Err(other) => panic!("{other}"),
        }
    };
    // Twice: a page that was refused once must not be found in memory later.
    for _ in 0..2 {
        assert_eq!([0, 1, 2, 3, 4].map(kinds), ["read", "zeroed", "zeroed", "read", "read"]);
    }
}

#[test]
fn a_page_from_beyond_the_log_is_damage() {
    let (store, pool) = five(4);
    let (session, rel) = pool.open();
    let beyond = Lsn(END.get() + 1);
    for (block, lsn) in [(1, END), (2, beyond)] {
        let id = REL.page(BlockNumber(block));
        let mut page = [1; PAGE_SIZE];
        page[..8].copy_from_slice(&lsn.get().to_le_bytes());
        set_checksum(id, &mut page);
        store.write(REL, BlockNumber(block), &[&page]).unwrap();
    }
    session.pin(&rel, BlockNumber(1), Wait::Allowed).map(drop).unwrap();
    for _ in 0..2 {
        let refused = session.pin(&rel, BlockNumber(2), Wait::Allowed).map(drop).unwrap_err();
        let is_right = matches!(refused, BufferError::BeyondLog { lsn, .. } if lsn == beyond);
        assert!(is_right && refused.is_damage(), "{refused}");
    }
}

#[test]
fn a_stream_meets_damage_where_it_is() {
    let (_, pool) = five(4);
    let (session, rel) = pool.open();
    let mut stream = ReadStream::new(StreamOptions::default());
    let mut blocks = (0..5).map(BlockNumber);
    let mut next = || blocks.next();
    let mut found = Vec::new();
    while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, None, &mut next) {
        found.push(session.read(&rel, block, Wait::Allowed, |page| page.u64(16)).is_ok());
        stream.advance();
    }
    assert_eq!(found, [true, false, false, true, true]);
}

#[test]
fn recovery_takes_a_page_of_zeros_for_what_it_is() {
    let (_, pool) = five(4);
    let (session, rel) = pool.open();
    let page = session.pin_or_zero(&rel, BlockNumber(1)).unwrap();
    assert!(page.read(|page| page.u64(16)).unwrap() == 0);
}

#[test]
fn a_fork_that_is_too_short_is_told_from_one_that_is_not_there() {
    let (_, pool) = five(6);
    let short = pool.relation(REL);
    assert!(matches!(short, Err(BufferError::CutShort { blocks: 5, least: 6, .. })), "{short:?}");

    let (store, pool) = five(0);
    pool.relation(REL).unwrap();
    store.remove(REL.relation).unwrap();
    let log = KnowingLog::default();
    let pool = BufferPool::new(PoolConfig::new(64, 2), store, Arc::new(log)).unwrap();
    let missing = pool.relation(REL);
    assert!(
        matches!(&missing, Err(BufferError::Store(StoreError::Missing { rel })) if *rel == REL)
    );
    assert!(missing.is_err_and(|error| error.is_damage()));
    // The log knows nothing of other forks.
    assert_eq!(pool.relation(RelationId::constant(99).main()).unwrap().block_count(), 0);
}

#[test]
fn damage_in_the_store_is_found() {
    let Bench { store, pool, .. } = bench(2, 2);
    let (session, rel) = pool.open();
    let mut page = [0; PAGE_SIZE];
    store.inner.read(REL, BlockNumber(1), &mut [&mut page]).unwrap();
    // A page in the wrong place is as bad as a flipped bit.
    store.inner.write(REL, BlockNumber(0), &[&page]).unwrap();
    page[300] ^= 4;
    store.inner.write(REL, BlockNumber(1), &[&page]).unwrap();
    for block in [0, 1] {
        let damaged = session.pin(&rel, BlockNumber(block), Wait::Allowed);
        let Err(BufferError::Checksum { page, .. }) = damaged else { panic!("{damaged:?}") };
        assert_eq!(page, REL.page(BlockNumber(block)));
    }
    assert_eq!(pool.core.free_frames(), 2);
    // Recovery gets a page of zeros and fills it anew.
    let mut page = session.pin_or_zero(&rel, BlockNumber(1)).unwrap().into_exclusive().unwrap();
    assert!(is_new(page.bytes()));
    let mut change = page.change();
    change.write(16, &[8]);
    change.publish(Lsn(1));
    drop(page);
    assert_eq!(number(&session, &rel, 1), 8);
}

#[test]
fn an_interrupted_change_damages_its_page_only() {
    let Bench { store, pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    let interrupted = catch_unwind(AssertUnwindSafe(|| {
        let pinned = pin_block(&session, &rel, 1);
        let mut page = pinned.into_exclusive().unwrap();
        let mut change = page.change();
        change.write(16, &[1; 100]);
        panic!("made to panic");
    }));
    assert!(interrupted.is_err());
    assert_eq!(session.pinned_pages(), 0);
    let damaged = session.read(&rel, BlockNumber(1), Wait::Allowed, |page| page.u64(16));
    assert!(matches!(damaged, Err(BufferError::Damaged { .. })), "{damaged:?}");
    assert_eq!(number(&session, &rel, 2), 2);
    assert_eq!(number(&session, &rel, 0), 0);
    let checkpoint = pool.write_dirty(&session, |_| ());
    assert!(matches!(checkpoint, Err(BufferError::Damaged { .. })), "{checkpoint:?}");
    assert!(store.writes.lock().is_empty());
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 3);
}

/// Interrupts a change of a page.
fn damage(session: &BufferSession, rel: &RelHandle, block: u32) {
    let interrupted = catch_unwind(AssertUnwindSafe(|| {
        let pinned = session.pin(rel, BlockNumber(block), Wait::Allowed).unwrap();
        pinned.into_exclusive().unwrap().change().write(16, &[0xEE; 100]);
        panic!("made to panic");
    }));
    assert!(interrupted.is_err());
}

fn is_damaged<T: Debug>(result: Result<T, BufferError>, block: u32) {
    match result {
        Err(BufferError::Damaged { page }) => assert_eq!(page.block(), BlockNumber(block)),
        other => panic!("{other:?}"),
    }
}

fn frame_of(pool: &BufferPool, block: u32) -> u32 {
    let page = Some(REL.page(BlockNumber(block)));
    pool.frame_infos().position(|info| info.page == page).unwrap() as u32
}

/// The page was sound when it was pinned. Every later use of the pin finds the damage.
#[test]
fn a_pin_from_before_the_damage_leads_to_no_bytes() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, other) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let pin = pin_block(&other, &rel, 1);
    damage(&session, &rel, 1);
    is_damaged(pin.read(|page| page.u64(16)), 1);
    is_damaged(pin.clone().into_shared(), 1);
    is_damaged(other.pin_shared(&rel, BlockNumber(1), Wait::Allowed), 1);
    is_damaged(pin.clone().into_exclusive(), 1);
    assert!(pin.clone().try_into_shared().is_err());
    assert!(pin.clone().try_into_exclusive().is_err());
    // Each attempt has given back its latch and its pin.
    assert!(pool.core.frames[pin.frame()].latch().try_exclusive());
    pool.core.frames[pin.frame()].latch().unlock_exclusive();
    drop(pin);
    assert_eq!(other.pinned_pages(), 0);
}

/// The same when the damage is done while other sessions wait for the latch.
#[test]
fn waiter_for_a_latch_rechecks_the_page() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    let pin = pin_block(&session, &rel, 1);
    let page = pin.into_exclusive().unwrap();
    std::thread::scope(|scope| {
        let mut page = page;
        let mut change = page.change();
        change.write(16, &[0xEE; 100]);
        let waiters: Vec<_> = (0..3)
            .map(|way| {
                let (pool, rel) = (&pool, &rel);
                scope.spawn(move || {
                    let session = pool.session().unwrap();
                    let pin = session.pin(rel, BlockNumber(1), Wait::Allowed).unwrap();
                    match way {
                        0 => pin.into_shared().map(|_| ()),
                        1 => pin.into_exclusive().map(|_| ()),
                        _ => pin.read(|page| page.u64(16)).map(|_| ()),
                    }
                })
            })
            .collect();
        // All sessions have the page pinned, as a sound page that is being changed. They wait for
        // the latch, or are about to.
        while !pool.pin_counts().values().any(|sessions| *sessions == 4) {
            std::thread::yield_now();
        }
        drop(change);
        drop(page);
        waiters.into_iter().for_each(|waiter| is_damaged(waiter.join().unwrap(), 1));
    });
    assert!(pool.pin_counts().is_empty());
}

#[test]
fn damaged_page_does_not_block_writes_of_its_neighbours() {
    let Bench { store, pool, .. } = bench(16, 8);
    let (session, rel) = pool.open();
    (0..8).for_each(|block| set_number(&session, &rel, block, 100, 1));
    damage(&session, &rel, 3);
    let frames: Vec<u32> = (0..8).map(|block| frame_of(&pool, block)).collect();
    is_damaged(write_frames(&session.core, &frames), 3);
    assert_eq!(*store.writes.lock(), [(REL, 0, 3), (REL, 4, 4)]);
}

/// The page in a frame has changed and is damaged. The damage is not reported for the page that was
/// to be written from there.
#[test]
fn another_pages_damage_is_not_reported() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    damage(&session, &rel, 1);
    let frame = frame_of(&pool, 1);
    let window = Window::new(&session.core);
    let write = |block| window.write(&[(REL.page(BlockNumber(block)), frame)], RunOf::Marked, true);
    let before = write(2);
    assert!(before.result.is_ok());
    let now = write(1);
    assert_eq!(now.pages, 1);
    is_damaged(now.result, 1);
}

/// The damaged page stays, and so does its frame. All else beyond the new size leaves, and `resize`
/// does not wait for the damaged page.
#[test]
fn damaged_page_stays_and_other_pages_leave_on_shrinking() {
    let Bench { pool, .. } = bench(16, 16);
    let (session, rel) = pool.open();
    (0..16).for_each(|block| set_number(&session, &rel, block, 100, 1));
    let block = (0..16).find(|&block| frame_of(&pool, block) == 11).unwrap();
    damage(&session, &rel, block);
    is_damaged(pool.resize(&session, 4), block);
    assert_eq!((pool.frames(), pool.core.free_frames()), (12, 7));
    let others = (0..16).filter(|other| *other != block);
    others.for_each(|other| assert_eq!(number(&session, &rel, other), 100));
    pool.drop_relation(REL.relation).unwrap();
    pool.resize(&session, 4).unwrap();
}

#[test]
fn a_damaged_page_is_not_mended_by_the_next_change() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    let pinned = pin_block(&session, &rel, 1);
    let mut page = pinned.into_exclusive().unwrap();
    page.change().write(16, &[1; 100]);
    let mut change = page.change();
    change.write(500, &[1]);
    change.publish(Lsn(1));
    drop(page);
    let damaged = session.read(&rel, BlockNumber(1), Wait::Allowed, |page| page.u64(16));
    assert!(matches!(damaged, Err(BufferError::Damaged { .. })), "{damaged:?}");
}
