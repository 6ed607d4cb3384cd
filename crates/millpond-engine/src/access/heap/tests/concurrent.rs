//! Several sessions that insert, on a pool that is much too small. Concurrent updates and vacuums
//! are in `tests/isolation`.

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::{NewRow, count_rows, fetch, insert};

fn balance(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[..8].try_into().unwrap())
}

fn row_of(account: usize, balance: i64, padding: usize) -> Vec<u8> {
    let mut row = balance.to_le_bytes().to_vec();
    row.extend_from_slice(&(account as u32).to_le_bytes());
    row.resize(12 + padding, 7);
    row
}

#[test]
fn sessions_that_insert_at_once_keep_all_rows() {
    const EACH: u32 = 1500;
    let world = World::new(16, 100);
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
        inserters.into_iter().map(|thread| thread.join().unwrap()).collect()
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
