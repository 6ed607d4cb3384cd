//! Pages whose change was interrupted. They harm no other page, and no session gets access to one,
//! however long it has waited.

use super::support::*;
use crate::replacement::refill::write_frames;
use crate::write_back::async_write::Window;
use crate::write_back::write::RunOf;
use crate::*;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
