//! Several sessions on a pool that is much too small.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::prelude::*;

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::check::check_heap;
use crate::access::heap::{
    ChangeOutcome, HeapScan, KeyChange, NewRow, count_rows, fetch, insert, update, vacuum,
};
use crate::ctx::Ctx;

const ACCOUNTS: usize = 300;
const START: i64 = 1000;

fn balance(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[..8].try_into().unwrap())
}

fn row_of(account: usize, balance: i64, padding: usize) -> Vec<u8> {
    let mut row = balance.to_le_bytes().to_vec();
    row.extend_from_slice(&(account as u32).to_le_bytes());
    row.resize(12 + padding, 7);
    row
}

/// Index entries of each account: roots of its chains.
type Index = Vec<Mutex<Vec<Tid>>>;

/// The result of one change of a balance.
enum Change {
    Done,
    /// Deadlock, or too long a wait: roll back.
    GiveUp,
}

/// Adds `delta` to a balance, as READ COMMITTED does: waits for others, then looks again.
fn add(
    world: &World,
    tx: &mut Tx<'_>,
    index: &Index,
    account: usize,
    delta: i64,
    padding: usize,
) -> Change {
    let mut row = Vec::new();
    for _ in 0..20_000 {
        tx.refresh();
        let roots = index[account].lock().unwrap().clone();
        let found = roots
            .iter()
            .find_map(|&root| fetch(tx.ctx, &world.heap, root, &tx.snapshot(), &mut row).unwrap());
        // The index entry of a moved row may come after the commit was seen.
        let Some(tid) = found else {
            std::thread::yield_now();
            continue;
        };
        let new = row_of(account, balance(&row) + delta, padding);
        let by = tx.changer();
        let row = NewRow { payload: &new, natts: 3 };
        match update(tx.ctx, &world.heap, tid, row, KeyChange::None, by).unwrap() {
            ChangeOutcome::Done { tid, hot } => {
                if !hot {
                    index[account].lock().unwrap().push(tid);
                }
                return Change::Done;
            }
            ChangeOutcome::InProgress { .. } | ChangeOutcome::Updated { .. } => {
                std::thread::yield_now()
            }
            other => panic!("account {account}: {other:?}"),
        }
    }
    Change::GiveUp
}

fn transfers(world: &World, ctx: &Ctx, index: &Index, rng: &mut StdRng, rounds: usize) -> usize {
    let mut committed = 0;
    for _ in 0..rounds {
        let mut tx = Tx::begin(ctx);
        // Hot accounts give long chains and much pruning. Ascending order avoids deadlocks.
        let one = rng.random_range(0..8);
        let other = rng.random_range(8..ACCOUNTS);
        let amount = rng.random_range(-50..50);
        let padding = rng.random_range(0..200);
        let done = [(one, amount), (other, -amount)].into_iter().all(|(account, delta)| {
            matches!(add(world, &mut tx, index, account, delta, padding), Change::Done)
        });
        let commit = done && rng.random_bool(0.9);
        tx.finish(commit);
        committed += usize::from(commit);
    }
    committed
}

fn sum(world: &World, ctx: &Ctx) -> (usize, i64) {
    let held = Held::take(ctx);
    let snapshot = held.snapshot;
    let mut scan = HeapScan::new(world.heap.clone());
    let (mut rows, mut total) = (0, 0);
    while let Some(page) = scan.next_page(ctx, &snapshot).unwrap() {
        for (_, columns) in page.iter() {
            rows += 1;
            total += balance(columns);
        }
    }
    let blocks = 0..world.heap.block_count();
    assert_eq!(count_rows(ctx, &world.heap, blocks, &snapshot, None).unwrap(), rows as u64);
    (rows, total)
}

#[test]
fn concurrent_transfers_keep_the_sum() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let world = World::new(24, 80);
    let setup = world.ctx();
    let tx = Tx::begin(&setup);
    let mut index: Index = Vec::new();
    for account in 0..ACCOUNTS {
        let bytes = row_of(account, START, 100);
        let row = NewRow { payload: &bytes, natts: 3 };
        let tid = insert(&setup, &world.heap, row, tx.xid, tx.command).unwrap();
        index.push(Mutex::new(vec![tid]));
    }
    tx.finish(true);
    let (writers, running) = (3, AtomicUsize::new(3));
    let committed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (world, index, running, committed) = (&world, &index, &running, &committed);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed + writer);
                let ctx = world.ctx();
                let done = transfers(world, &ctx, index, &mut rng, 400);
                committed.fetch_add(done, Ordering::Relaxed);
                running.fetch_sub(1, Ordering::Release);
            });
        }
        let (world, index, running) = (&world, &index, &running);
        scope.spawn(move || {
            let ctx = world.ctx();
            while running.load(Ordering::Acquire) > 0 {
                assert_eq!(sum(world, &ctx), (ACCOUNTS, ACCOUNTS as i64 * START));
            }
        });
        scope.spawn(move || {
            let ctx = world.ctx();
            while running.load(Ordering::Acquire) > 0 {
                let mut pass = |dead: &dyn Fn(Tid) -> bool| {
                    for entry in index {
                        entry.lock().unwrap().retain(|&tid| !dead(tid));
                    }
                    Ok(())
                };
                vacuum(&ctx, &world.heap, None, Some(&mut pass)).unwrap();
            }
        });
    });
    assert_eq!(sum(&world, &setup), (ACCOUNTS, ACCOUNTS as i64 * START));
    assert!(committed.into_inner() > 0);
    let next = setup.txns().next_xid();
    check_heap(&setup, &world.heap, next, &mut |problem| panic!("{problem}")).unwrap();
    let counts = world.heap.counters().counts();
    assert!(counts.hot_updated > 0 && counts.pruned > 0, "{counts:?}");
}

#[test]
fn sessions_that_insert_at_once_keep_all_rows() {
    const EACH: u32 = 1500;
    let world = World::new(16, 100);
    let stop = AtomicBool::new(false);
    let tids: Vec<Vec<Tid>> = std::thread::scope(|scope| {
        let inserters: Vec<_> = (0..4u32)
            .map(|n| {
                let world = &world;
                scope.spawn(move || {
                    let ctx = world.ctx();
                    let tx = Tx::begin(&ctx);
                    let tids = (0..EACH).map(|i| {
                        let bytes = row_of((n * EACH + i) as usize, i64::from(n), i as usize % 90);
                        let row = NewRow { payload: &bytes, natts: 3 };
                        insert(&ctx, &world.heap, row, tx.xid, tx.command).unwrap()
                    });
                    let tids = tids.collect();
                    tx.finish(true);
                    tids
                })
            })
            .collect();
        let tids = inserters.into_iter().map(|thread| thread.join().unwrap()).collect();
        stop.store(true, Ordering::Release);
        tids
    });
    let ctx = world.ctx();
    let snapshot = Held::take(&ctx).snapshot;
    let mut row = Vec::new();
    for (n, tids) in tids.iter().enumerate() {
        for (i, &tid) in tids.iter().enumerate() {
            assert_eq!(fetch(&ctx, &world.heap, tid, &snapshot, &mut row).unwrap(), Some(tid));
            assert_eq!(balance(&row), n as i64);
            assert_eq!(row.len(), 12 + i % 90);
        }
    }
    let blocks = world.heap.block_count();
    assert_eq!(
        count_rows(&ctx, &world.heap, 0..blocks, &snapshot, None).unwrap(),
        4 * u64::from(EACH)
    );
    // Spread over pages, but not thinly: 6000 rows of 32 + 12 + 44 bytes and a line pointer.
    assert!(blocks < 100, "{blocks} blocks");
}
