//! Synchronized scans: wherever they begin and however they mix, each returns every row once.

use std::ops::Range;
use std::thread;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::{HeapScan, InsertOptions, NewRow, ScanBlocks, insert_many};
use crate::ctx::Ctx;

const FRAMES: usize = 64;
const ROWS: usize = 600;

/// A heap of about 86 pages on a pool of 64, and the tids of its rows.
fn world() -> (World, Vec<Tid>) {
    let world = World::new(FRAMES, 100);
    let ctx = world.ctx();
    let tx = Tx::begin(&ctx);
    let payload = [7; 1000];
    let rows = vec![NewRow { payload: &payload, natts: 1 }; ROWS];
    let mut tids = Vec::new();
    let options = InsertOptions::default();
    insert_many(&ctx, &world.heap, &rows, tx.xid, tx.command, options, &mut tids).unwrap();
    tx.finish(true);
    assert!(world.shared.pool.is_large(world.heap.block_count()));
    (world, tids)
}

/// The rows of the next `pages` pages.
fn read(scan: &mut HeapScan, ctx: &Ctx, pages: usize) -> Vec<Tid> {
    let held = Held::take(ctx);
    let mut found = Vec::new();
    for _ in 0..pages {
        let Some(page) = scan.next_page(ctx, &held.snapshot).unwrap() else { break };
        found.extend(page.iter().map(|row| row.0));
    }
    found
}

fn all_of(ctx: &Ctx, world: &World, lane: usize, range: Range<u32>) -> Vec<Tid> {
    let scan = HeapScan::over(world.heap.clone(), ScanBlocks::Range(range));
    read(&mut scan.for_bulk(ctx, lane), ctx, usize::MAX)
}

#[test]
fn a_scan_joins_another_and_reads_each_row_once() {
    let (world, tids) = world();
    let ctx = world.ctx();
    let mut first = HeapScan::new(world.heap.clone()).for_bulk(&ctx, 0);
    assert_eq!(read(&mut first, &ctx, 40).first(), tids.first());
    // The first scan has reported block 32.
    let mut second = HeapScan::new(world.heap.clone()).for_bulk(&ctx, 0);
    let mut joined = read(&mut second, &ctx, usize::MAX);
    assert_eq!(joined.first().map(|tid| tid.block.0), Some(32));
    joined.sort_unstable();
    assert_eq!(joined, tids);
    // A scan that wraps around leaves the position where it began.
    let third = all_of(&ctx, &world, 0, 0..world.heap.block_count());
    assert_eq!(third.first().map(|tid| tid.block.0), Some(32));
    // A scan in another lane, or with the setting off, does not join these scans.
    assert_eq!(all_of(&ctx, &world, 1, 0..world.heap.block_count()), tids);
    let mut alone = ctx.bulk_access();
    alone.synchronize_scans = false;
    ctx.set_bulk_access(alone);
    assert_eq!(all_of(&ctx, &world, 0, 0..world.heap.block_count()), tids);
}

#[test]
fn scans_beside_each_other_return_every_row_once() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let (world, tids) = world();
    let blocks = world.heap.block_count();
    thread::scope(|scope| {
        for number in 0..4 {
            let (world, tids) = (&world, &tids);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed ^ number);
                let ctx = world.ctx();
                for _ in 0..6 {
                    // A scan that stops anywhere, and leaves its position behind.
                    let mut stopped = HeapScan::new(world.heap.clone()).for_bulk(&ctx, 0);
                    read(&mut stopped, &ctx, rng.random_range(0..blocks as usize));
                    // A scan in parts of any size, in random lanes.
                    let cut = rng.random_range(0..=blocks);
                    let lanes = [rng.random_range(0..3), rng.random_range(0..3)];
                    let mut found = all_of(&ctx, world, lanes[0], 0..cut);
                    found.extend(all_of(&ctx, world, lanes[1], cut..blocks));
                    found.sort_unstable();
                    assert_eq!(&found, tids, "seed {seed}");
                }
            });
        }
    });
}
