//! What a check says of a version whose successor's page does not exist. If a reader would follow
//! the link, that is damage. Otherwise it is the mark of an update that was rolled back, which
//! stays on its version while others hold the row.

use std::time::{Duration, Instant};

use millpond_buffer::{BlockNumber, Wait};

use super::world::{Tx, World};
use crate::access::Tid;
use crate::access::heap::check::check_heap;
use crate::access::heap::{
    ChangeOutcome, KeyChange, NewRow, WantedLock, delete, lock_row, truncate_end, update, vacuum,
};
use crate::ctx::Ctx;
use crate::page::item;
use crate::transam::LockStrength;
use crate::wal::storage::truncate_fork;

/// A third of a page.
fn third(key: u8) -> NewRow<'static> {
    const BYTES: [u8; 2200] = [7; 2200];
    NewRow { payload: &BYTES[usize::from(key)..], natts: 1 }
}

fn fill(world: &World, ctx: &Ctx, rows: u8) -> Vec<Tid> {
    (0..rows).map(|key| world.committed_row(ctx, third(key))).collect()
}

/// Replaces a row by one that does not fit its page.
fn move_away(world: &World, tx: &Tx<'_>, tid: Tid) -> Tid {
    let row = NewRow { payload: &[9; 4000], natts: 1 };
    let moved = update(tx.ctx, &world.heap, tid, row, KeyChange::None, tx.changer()).unwrap();
    let ChangeOutcome::Done { tid: next, hot: false } = moved else { panic!("{moved:?}") };
    next
}

fn problems(world: &World, ctx: &Ctx) -> Vec<String> {
    let mut found = Vec::new();
    let next = world.shared.txns.next_xid();
    check_heap(ctx, &world.heap, next, &mut |problem| found.push(problem.to_string())).unwrap();
    found
}

#[test]
fn mark_of_a_rolled_back_update_that_a_sharer_keeps_is_no_damage() {
    let world = World::new(32, 100);
    let (changer, sharer) = (world.ctx(), world.ctx());
    let tids = fill(&world, &changer, 3);
    let holder = Tx::begin(&sharer);
    let wanted = WantedLock::hold(LockStrength::KeyShare);
    let held = lock_row(&sharer, &world.heap, tids[0], wanted, holder.changer()).unwrap();
    assert!(matches!(held, ChangeOutcome::Done { .. }));
    let tx = Tx::begin(&changer);
    assert_eq!(move_away(&world, &tx, tids[0]).block, BlockNumber(1));
    tx.finish(false);
    vacuum(&changer, &world.heap, None, None).unwrap();
    assert_eq!(truncate_end(&changer, &world.heap).unwrap(), 1);
    assert_eq!(problems(&world, &changer), Vec::<String>::new(), "while the row is held");
    holder.finish(true);
    assert_eq!(problems(&world, &changer), Vec::<String>::new(), "once no session holds it");
}

#[test]
fn mark_of_an_update_that_is_rolled_back_during_a_vacuum_is_no_damage() {
    let world = World::new(32, 100);
    let ctx = world.ctx();
    let tids = fill(&world, &ctx, 6);
    // Vacuum removes this one at page 0, which shows that it has passed that page.
    let gone = Tx::begin(&ctx);
    delete(&ctx, &world.heap, tids[1], gone.changer()).unwrap();
    gone.finish(true);
    let tx = Tx::begin(&ctx);
    assert_eq!(move_away(&world, &tx, tids[0]).block, BlockNumber(2));
    // Until this latch is released, vacuum can't pass page 1.
    let other = world.ctx();
    let pinned = other.buffers().pin(&world.heap.main, BlockNumber(1), Wait::Allowed).unwrap();
    let in_the_way = pinned.into_exclusive().unwrap();
    std::thread::scope(|scope| {
        let vacuuming = scope.spawn(|| {
            let ctx = world.ctx();
            vacuum(&ctx, &world.heap, None, None).unwrap();
            truncate_end(&ctx, &world.heap).unwrap()
        });
        let patience = Instant::now() + Duration::from_secs(60);
        let has_passed = || {
            let (heap, first) = (&world.heap.main, BlockNumber(0));
            let read = ctx.buffers().read(heap, first, Wait::Allowed, |view| {
                item::line(view, tids[1].offset).is_normal()
            });
            !read.unwrap()
        };
        while !has_passed() && Instant::now() < patience {
            std::thread::yield_now();
        }
        tx.finish(false);
        drop(in_the_way);
        assert_eq!(vacuuming.join().unwrap(), 1, "the successor's page is cut off");
    });
    assert_eq!(problems(&world, &ctx), Vec::<String>::new());
}

#[test]
fn dead_version_may_outlive_its_successor() {
    let world = World::new(32, 100);
    let ctx = world.ctx();
    let tids = fill(&world, &ctx, 3);
    let tx = Tx::begin(&ctx);
    let next = move_away(&world, &tx, tids[0]);
    tx.finish(true);
    let tx = Tx::begin(&ctx);
    delete(&ctx, &world.heap, next, tx.changer()).unwrap();
    tx.finish(true);
    // As if a vacuum had passed page 0 while a snapshot was held, and page 1 after that.
    world.shared.txns.horizon();
    assert_eq!(problems_without_the_last_page(&world, &ctx), Vec::<String>::new());
}

/// Removes the last page, as damage would, and checks.
fn problems_without_the_last_page(world: &World, ctx: &Ctx) -> Vec<String> {
    let blocks = world.heap.block_count();
    truncate_fork(ctx, ctx.pool(), world.heap.main.rel(), blocks - 1).unwrap();
    problems(world, ctx)
}

#[test]
fn missing_successor_of_a_visible_version_is_damage() {
    let beyond_the_end =
        "block 0, line pointer 1: successor (1,1) is beyond the end of the table (1 blocks)";
    for commit in [false, true] {
        let world = World::new(32, 100);
        let (changer, reader) = (world.ctx(), world.ctx());
        let tids = fill(&world, &changer, 3);
        // This snapshot sees the version that is replaced, and would reach the new one through it.
        let snapshot = Tx::begin(&reader);
        let tx = Tx::begin(&changer);
        move_away(&world, &tx, tids[0]);
        if commit {
            tx.finish(true);
            assert_eq!(problems_without_the_last_page(&world, &changer), [beyond_the_end]);
        } else {
            assert_eq!(problems_without_the_last_page(&world, &changer), [beyond_the_end]);
            tx.finish(false);
        }
        snapshot.finish(false);
    }
}
