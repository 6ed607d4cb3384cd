//! What happens to row versions in a vacuum, and to line pointers that are used again.

use std::collections::BTreeSet;

use millpond_buffer::Wait;

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::{
    ChangeOutcome, HeapScan, KeyChange, NewRow, count_rows, delete, fetch, fetch_newest, insert,
    update, vacuum,
};
use crate::ctx::Ctx;
use crate::transam::{Snapshot, Xid};

const ROW: NewRow<'_> = NewRow { payload: b"some row", natts: 2 };

fn deleted(world: &World, ctx: &Ctx, tid: Tid) {
    let tx = Tx::begin(ctx);
    let outcome = delete(ctx, &world.heap, tid, tx.changer()).unwrap();
    assert!(matches!(outcome, ChangeOutcome::Done { .. }), "{outcome:?}");
    tx.finish(true);
}

/// Replaces a version. Returns the new version's tid and its maker.
fn replaced(world: &World, ctx: &Ctx, tid: Tid, payload: &[u8]) -> (Tid, Xid) {
    let (tx, row) = (Tx::begin(ctx), NewRow { payload, natts: 2 });
    let outcome = update(ctx, &world.heap, tid, row, KeyChange::None, tx.changer()).unwrap();
    let ChangeOutcome::Done { tid, .. } = outcome else { panic!("{outcome:?}") };
    let xid = tx.xid;
    tx.finish(true);
    (tid, xid)
}

/// Vacuums the table as one that has an index.
fn vacuumed(world: &World, ctx: &Ctx) {
    vacuum(ctx, &world.heap, None, Some(&mut |_| Ok(()))).unwrap();
}

/// The number of rows that a snapshot sees. All ways of reading must agree.
fn seen(world: &World, ctx: &Ctx, snapshot: &Snapshot, roots: &[Tid]) -> usize {
    let mut columns = Vec::new();
    let by_root = roots
        .iter()
        .filter_map(|&root| fetch(ctx, &world.heap, root, snapshot, &mut columns).unwrap());
    let by_root = by_root.count();
    let (mut scan, mut by_scan) = (HeapScan::new(world.heap.clone()), 0);
    while let Some(page) = scan.next_page(ctx, snapshot).unwrap() {
        by_scan += page.len();
    }
    let (mut scan, mut by_pages) = (HeapScan::new(world.heap.clone()), 0);
    while let Some(rows) = scan.count_page(ctx, snapshot).unwrap() {
        by_pages += rows;
    }
    let blocks = 0..world.heap.block_count();
    let counted = count_rows(ctx, &world.heap, blocks, snapshot, None).unwrap() as usize;
    assert_eq!([by_scan, by_pages, counted], [by_root; 3]);
    by_root
}

/// (heap rule 5)
#[test]
fn a_line_pointer_is_free_once_no_index_entry_names_it() {
    let world = World::new(16, 100);
    let (ctx, other) = (world.ctx(), world.ctx());
    let tids = [(); 3].map(|()| world.committed_row(&ctx, ROW));
    deleted(&world, &ctx, tids[1]);
    let (mut passes, mut during) = (0, None);
    let mut pass = |dead: &dyn Fn(Tid) -> bool| {
        assert_eq!(tids.map(dead), [false, true, false]);
        // The index still has the entry, so a row inserted now gets another tid.
        during = Some(world.committed_row(&other, ROW));
        passes += 1;
        Ok(())
    };
    vacuum(&ctx, &world.heap, None, Some(&mut pass)).unwrap();
    assert_eq!(passes, 1);
    assert!(!tids.contains(&during.unwrap()), "{during:?}");
    assert_eq!(world.committed_row(&ctx, ROW), tids[1]);
}

/// (heap rule 6)
#[test]
fn a_version_that_a_snapshot_sees_outlives_a_vacuum() {
    let world = World::new(16, 100);
    let (ctx, reader) = (world.ctx(), world.ctx());
    let tids = [(); 3].map(|()| world.committed_row(&ctx, ROW));
    let held = Held::take(&reader);
    deleted(&world, &ctx, tids[0]);
    replaced(&world, &ctx, tids[1], b"another row");
    vacuumed(&world, &ctx);
    assert_eq!(seen(&world, &reader, &held.snapshot, &tids), 3);
    drop(held);
    vacuumed(&world, &ctx);
    assert_eq!(seen(&world, &reader, &Held::take(&reader).snapshot, &tids), 2);
}

/// (heap rule 7)
#[test]
fn all_visible_holds_for_every_snapshot() {
    let world = World::new(16, 100);
    let (ctx, reader) = (world.ctx(), world.ctx());
    let held = Held::take(&reader);
    let mut tids = vec![world.committed_row(&ctx, ROW)];
    vacuumed(&world, &ctx);
    assert_eq!(seen(&world, &reader, &held.snapshot, &tids), 0, "older than the row");
    drop(held);
    vacuumed(&world, &ctx);
    let held = Held::take(&reader);
    assert_eq!(seen(&world, &reader, &held.snapshot, &tids), 1);
    let tx = Tx::begin(&ctx);
    tids.push(insert(&ctx, &world.heap, ROW, tx.xid, tx.command).unwrap());
    assert_eq!(seen(&world, &reader, &held.snapshot, &tids), 1, "an insertion that runs");
    tx.finish(true);
    assert_eq!(seen(&world, &reader, &held.snapshot, &tids), 1, "a later insertion");
    drop(held);
    vacuumed(&world, &ctx);
    deleted(&world, &ctx, tids[0]);
    assert_eq!(seen(&world, &reader, &Held::take(&reader).snapshot, &tids), 1, "a deletion");
}

/// (heap rule 4)
#[test]
fn heap_only_version_is_never_a_root() {
    let world = World::new(16, 100);
    let ctx = world.ctx();
    let [row, gone] = [(); 2].map(|()| world.committed_row(&ctx, ROW));
    deleted(&world, &ctx, gone);
    vacuumed(&world, &ctx);
    // The new version gets the line pointer of the other row, which index entries have named.
    assert_eq!(replaced(&world, &ctx, row, b"newer row").0, gone);
    let (held, mut columns) = (Held::take(&ctx), Vec::new());
    assert_eq!(fetch(&ctx, &world.heap, gone, &held.snapshot, &mut columns).unwrap(), None);
    assert_eq!(fetch(&ctx, &world.heap, row, &held.snapshot, &mut columns).unwrap(), Some(gone));
}

/// (heap rules 4 and 8)
#[test]
fn newest_version_is_identified_by_its_maker() {
    let world = World::new(16, 100);
    let ctx = world.ctx();
    ctx.set_wait(Wait::Allowed);
    let first = world.committed_row(&ctx, NewRow { payload: &[1; 5000], natts: 2 });
    let (second, maker) = replaced(&world, &ctx, first, &[2; 5000]);
    assert_ne!(second.block, first.block);
    // The vacuum freezes the new version, which keeps its maker's id.
    vacuumed(&world, &ctx);
    let mut columns = Vec::new();
    let newest = fetch_newest(&ctx, &world.heap, second, maker, &mut columns).unwrap();
    assert_eq!(newest.map(|newest| newest.tid), Some(second));
    assert_eq!(columns, [2; 5000]);
    // Another row takes the line pointer of the version.
    deleted(&world, &ctx, second);
    vacuumed(&world, &ctx);
    let mut others = BTreeSet::new();
    while others.insert(world.committed_row(&ctx, NewRow { payload: &[3; 5000], natts: 2 })) {
        if others.contains(&second) {
            break;
        }
    }
    let newest = fetch_newest(&ctx, &world.heap, second, maker, &mut columns).unwrap();
    assert_eq!(newest, None);
}

/// (heap rule 8)
#[test]
fn a_vacuum_leaves_no_old_id_unfrozen() {
    let world = World::new(16, 100);
    let ctx = world.ctx();
    for _ in 0..3 {
        world.committed_row(&ctx, ROW);
    }
    let stats = vacuum(&ctx, &world.heap, None, None).unwrap();
    assert_eq!(stats.oldest_xid, ctx.txns().horizon().oldest_running_xid);
}
