//! A session or thread that ends, panics or fails in the middle of any step leaves nothing stuck
//! (rule 6). No frame, pin, latch or entry is left over, and the page is as it was.
//!
//! Pages whose change was interrupted are damaged. They harm no other page, and no session gets
//! access to one, however long it has waited.

use super::support::*;
use crate::replacement::vacate::write_frames;
use crate::write_back::RunOf;
use crate::write_back::async_write::Window;
use crate::*;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

const FRAMES: usize = 4;
const BLOCKS: u32 = 8;

/// Every page can be read and latched, has the right contents, and can leave.
fn all_is_well(bench: &Bench, expected: impl Fn(u32) -> u64) {
    let session = bench.pool.session().unwrap();
    let rel = bench.pool.relation(REL).unwrap();
    for block in 0..BLOCKS {
        let page = session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
        let page = page.try_into_exclusive().unwrap_or_else(|_| panic!("{block} is latched"));
        assert_eq!(page.u64(16), expected(block));
    }
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    assert_eq!(bench.pool.reclaim(&session, FRAMES).unwrap(), FRAMES);
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.core.free_frames(), FRAMES);
}

fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "has not panicked");
}

/// Lets a session do `work` while the store or the log panics.
fn interrupted(broken: impl Fn(&Bench) -> &AtomicBool, work: impl Fn(&Bench, &BufferSession)) {
    let bench = bench(FRAMES, BLOCKS);
    let session = bench.pool.session().unwrap();
    let rel = bench.pool.relation(REL).unwrap();
    for block in 0..FRAMES as u32 {
        set_number(&session, &rel, block, 70, 7);
    }
    broken(&bench).store(true, Ordering::Relaxed);
    for _ in 0..3 {
        panics(|| work(&bench, &session));
    }
    broken(&bench).store(false, Ordering::Relaxed);
    assert_eq!(session.pinned_pages(), 0);
    // First while the session that panicked is alive, then without it.
    assert_eq!(number(&session, &rel, 1), 70);
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

fn a_miss(bench: &Bench, session: &BufferSession) {
    let rel = bench.pool.relation(REL).unwrap();
    let _ = session.pin(&rel, BlockNumber(6), Wait::Allowed);
}

fn a_checkpoint(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.write_dirty(session, |_| ());
}

fn the_reclaimer(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.reclaim(session, 2);
}

fn shrinking(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.resize(session, 2);
}

#[test]
fn a_write_that_panics() {
    for work in [a_miss, a_checkpoint, the_reclaimer] {
        interrupted(|bench| &bench.store.panic_writes, work);
    }
}

#[test]
fn a_log_that_panics() {
    for work in [a_miss, a_checkpoint, the_reclaimer] {
        interrupted(|bench| &bench.log.panics, work);
    }
}

/// Room to read ahead is given back, too. Otherwise no session would read ahead any more. A session
/// that finds all frames in use would wait for ever for a load that does not exist.
#[test]
fn a_log_that_panics_while_frames_to_read_ahead_are_looked_for() {
    use crate::read::read_ahead::{How, LoadedRun, Urgency, load_run};
    let (frames, wait, ahead) = (64, Wait::Allowed, 70..72);
    let bench = bench(frames, 80);
    let (pool, session) = (&bench.pool, bench.pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let under_way = Default::default();
    let load = |ring: Option<&Ring>| {
        let how = How { wait, urgency: Urgency::Later, under_way: &under_way, at_most: 1 };
        load_run(&session.core, &rel, BlockNumber(ahead.start), 2, ring, how)
    };
    let mut others = (0..80).filter(|block| !ahead.contains(block)).map(BlockNumber).cycle();
    for _ in 0..frames {
        let ring = Ring::with_pages(pool, AccessStrategy::BulkWrite, 2).unwrap();
        while ring.len() < 2 {
            drop(session.pin_with(&rel, others.next().unwrap(), wait, Some(&ring)).unwrap());
        }
        // The log is asked once for the first frame.
        bench.log.panics_when_asked.store(2, Ordering::Relaxed);
        panics(|| _ = load(Some(&ring)));
        assert_eq!(bench.log.panics_when_asked.load(Ordering::Relaxed), 0, "another panic");
    }
    assert_eq!(load(None), LoadedRun::AtHand(2));
    let pin = |block| session.pin(&rel, BlockNumber(block), wait);
    let pins: Vec<_> = (0..64).map(|block| pin(block).unwrap()).collect();
    let full = pin(64).map(drop);
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { .. })), "{full:?}");
    drop(pins);
    drop(session);
    all_free_after_drop(&bench);
}

#[test]
fn a_read_that_panics() {
    interrupted(
        |bench| &bench.store.panic_reads,
        |bench, session| {
            // Make room first, so that it is the read that panics.
            bench.pool.reclaim(session, 1).unwrap();
            a_miss(bench, session);
        },
    );
}

#[test]
fn a_checkpoint_whose_pace_panics() {
    let bench = bench(FRAMES, BLOCKS);
    let session = bench.pool.session().unwrap();
    let rel = bench.pool.relation(REL).unwrap();
    for block in [0, 2] {
        set_number(&session, &rel, block, 70, 7);
    }
    panics(|| drop(bench.pool.write_dirty(&session, |_| panic!("made to panic"))));
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), 1);
    drop(session);
    all_is_well(&bench, |block| if [0, 2].contains(&block) { 70 } else { u64::from(block) });
}

/// A pool full of dirty pages, left half-way to a smaller size by a panic.
fn half_shrunk() -> (Bench, BufferSession) {
    let bench = bench(FRAMES, BLOCKS);
    let session = bench.pool.session().unwrap();
    let rel = bench.pool.relation(REL).unwrap();
    for block in 0..FRAMES as u32 {
        set_number(&session, &rel, block, 70, 7);
    }
    bench.store.panic_writes.store(true, Ordering::Relaxed);
    panics(|| shrinking(&bench, &session));
    bench.store.panic_writes.store(false, Ordering::Relaxed);
    (bench, session)
}

/// A pool that was left half-way between two sizes can be given either.
#[test]
fn shrinking_that_panics() {
    let (bench, session) = half_shrunk();
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), FRAMES);
    bench.pool.resize(&session, FRAMES).unwrap();
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

/// The next attempt to shrink, and checkpoints, deal with what a failed attempt left behind.
#[test]
fn shrinking_further_after_a_panic() {
    let (bench, session) = half_shrunk();
    bench.pool.resize(&session, 1).unwrap();
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    for block in 0..FRAMES as u32 {
        let mut page = [0; PAGE_SIZE];
        bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
        assert_eq!(page.u64(16), 70, "{block}");
    }
    bench.pool.resize(&session, FRAMES).unwrap();
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

/// When a session ends with pins, even forgotten ones, the pins end with it.
#[test]
fn a_session_that_dies_with_pins() {
    let bench = bench(FRAMES, BLOCKS);
    let rel = bench.pool.relation(REL).unwrap();
    let session = bench.pool.session().unwrap();
    for block in 0..FRAMES as u32 {
        std::mem::forget(session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap());
    }
    let other = bench.pool.session().unwrap();
    let full = other.pin(&rel, BlockNumber(6), Wait::Allowed).map(|_| ());
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { .. })), "{full:?}");
    drop((session, other));
    all_is_well(&bench, u64::from);
}

/// When a thread panics, its session's pins and latches end with it.
#[test]
fn a_thread_that_dies_while_it_changes_nothing_yet() {
    let bench = bench(FRAMES, BLOCKS);
    std::thread::scope(|scope| {
        let died = scope.spawn(|| {
            let session = bench.pool.session().unwrap();
            let rel = bench.pool.relation(REL).unwrap();
            let _shared =
                session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap().into_shared().unwrap();
            let mut page =
                session.pin(&rel, BlockNumber(1), Wait::Allowed).unwrap().into_exclusive().unwrap();
            let _change = page.change();
            panic!("made to panic");
        });
        assert!(died.join().is_err());
    });
    all_is_well(&bench, u64::from);
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
    let pin = other.pin(&rel, BlockNumber(1), Wait::Allowed).unwrap();
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
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let pin = session.pin(&rel, BlockNumber(1), Wait::Allowed).unwrap();
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
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
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
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
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
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
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
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let pinned = session.pin(&rel, BlockNumber(1), Wait::Allowed).unwrap();
    let mut page = pinned.into_exclusive().unwrap();
    page.change().write(16, &[1; 100]);
    let mut change = page.change();
    change.write(500, &[1]);
    change.publish(Lsn(1));
    drop(page);
    let damaged = session.read(&rel, BlockNumber(1), Wait::Allowed, |page| page.u64(16));
    assert!(matches!(damaged, Err(BufferError::Damaged { .. })), "{damaged:?}");
}

#[test]
fn a_panicking_reader_holds_nothing() {
    let Bench { pool, .. } = bench(3, 3);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let read = || session.read(&rel, BlockNumber(1), Wait::Allowed, |_| panic!("made to panic"));
    let panicked: Result<Result<(), BufferError>, _> = catch_unwind(AssertUnwindSafe(read));
    assert!(panicked.is_err());
    let pinned = session.pin(&rel, BlockNumber(1), Wait::Allowed).unwrap();
    assert!(pinned.try_into_exclusive().is_ok());
    assert_eq!(session.pinned_pages(), 0);
}
