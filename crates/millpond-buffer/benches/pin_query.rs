//! The cost of pins in a query that takes them. It reads rows by pin and shared latch, taken in one
//! step, in the order of an index, which is not the table's. The session holds pins of other pages
//! (an outer side's, a sort's, cursors'). A join also keeps the outer row's page pinned while it
//! reads inner rows.
//!
//! `cargo bench -p millpond-buffer --bench pin_query`
//!
//! It prints the least time per row of many runs of 2,000 rows, since the machine may be busy.

use millpond_buffer::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const REL: RelFork = RelationId::constant(1).main();
const PAGES: u32 = 30_000;
const ROWS: u32 = 2_000;
const RUNS: u32 = 500;

/// The page of the row that comes next in the index.
fn page_of(row: u32) -> BlockNumber {
    BlockNumber((u64::from(row) * 7_368_787 % u64::from(PAGES)) as u32)
}

fn least(mut run: impl FnMut(u32)) -> f64 {
    let mut least = f64::MAX;
    for at in 0..RUNS {
        let start = Instant::now();
        run(at * ROWS);
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(ROWS));
    }
    least
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = PoolConfig::new(PAGES as usize + 1000, 64);
    let pool = BufferPool::new(config, Arc::new(MemoryStore::new()), Arc::new(NoLog))?;
    pool.create(REL)?;
    let rel = pool.relation(REL)?;
    let session = pool.session()?;
    for _ in 0..PAGES {
        session.extend(&rel, Wait::Allowed)?;
    }
    let pin = |block| session.pin(&rel, block, Wait::Allowed).expect("a page");
    let latch = |block| session.pin_shared(&rel, block, Wait::Allowed).expect("a page");
    println!("| pins held | index scan, ns a row | join, ns a pair |");
    println!("|----------:|---------------------:|----------------:|");
    for held in [0, 10, 100, 1000, 10_000] {
        let keep: Vec<_> = (0..held).map(|at| pin(BlockNumber(PAGES - 1 - at))).collect();
        let scan = least(|first| {
            for row in first..first + ROWS {
                let page = latch(page_of(row));
                black_box(page.u64(64));
            }
        });
        // Ten inner rows for each outer row.
        let join = least(|first| {
            for outer in (first..first + ROWS).step_by(10) {
                let outer_page = pin(page_of(outer));
                for inner in 0..10 {
                    let page = latch(page_of(outer * 31 + inner));
                    black_box(page.u64(64));
                }
                black_box(&outer_page);
            }
        });
        println!("| {held:9} | {scan:20.1} | {join:15.1} |");
        drop(keep);
    }
    Ok(())
}
