//! The cost of a pin, beside PostgreSQL's: nanoseconds per pin and release of a page in memory. The
//! number of pages held at a time goes from 1 to 10,000.
//!
//! `cargo bench -p millpond-buffer --bench pin_table -- [fences]`
//!
//! PostgreSQL's figures are medians of `ReadBuffer` and `ReleaseBuffer` in an extension of
//! PostgreSQL 15.20 on the same kind of machine, of 2026-11-21 (see docs/measurements). A figure
//! of Millpond is the time that a tenth of many short runs are faster than, so a busy machine
//! disturbs it little. `fences`: as on a kernel without `membarrier`.

use millpond_buffer::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const REL: RelFork = RelationId::constant(1).main();
/// Pages from which the random ones are drawn.
const UNIVERSE: u32 = 50_000;
const COUNTS: [u32; 9] = [1, 2, 3, 7, 11, 19, 100, 988, 10_000];
const MODES: [&str; 4] = [
    "pin N, then release N",
    "pin and latch N shared, then release N",
    "pin and release at once",
    "pin, latch shared and release at once",
];
/// For each mode and count: sequential, random.
const POSTGRESQL: [[(f64, f64); 9]; 4] = [
    [
        (75., 67.),
        (68., 65.),
        (67., 67.),
        (67., 68.),
        (85., 79.),
        (94., 97.),
        (124., 130.),
        (147., 173.),
        (204., 327.),
    ],
    [
        (91., 91.),
        (91., 87.),
        (97., 116.),
        (93., 94.),
        (110., 104.),
        (119., 119.),
        (149., 152.),
        (177., 195.),
        (240., 378.),
    ],
    [
        (69., 71.),
        (75., 75.),
        (67., 77.),
        (67., 70.),
        (67., 65.),
        (67., 67.),
        (73., 76.),
        (78., 93.),
        (84., 178.),
    ],
    [
        (87., 107.),
        (87., 88.),
        (90., 97.),
        (95., 87.),
        (88., 94.),
        (91., 95.),
        (94., 95.),
        (91., 108.),
        (97., 202.),
    ],
];

/// `count` different blocks, at random.
fn draw(random: &mut u64, count: usize) -> Vec<BlockNumber> {
    let mut blocks: Vec<_> = (0..UNIVERSE).map(BlockNumber).collect();
    for at in 0..count {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let other = at + (*random % (blocks.len() - at) as u64) as usize;
        blocks.swap(at, other);
    }
    blocks.truncate(count);
    blocks
}

// Inlined, and with nothing but an address kept from the optimiser. A guard that passes through
// memory costs as much again. PostgreSQL's guard is a number and passes through none.
#[inline(always)]
fn pin<'s>(session: &'s BufferSession, rel: &RelHandle, block: BlockNumber) -> PinnedPage<'s> {
    session.pin(rel, block, Wait::Allowed).expect("a page")
}

#[inline(always)]
fn latch<'s>(session: &'s BufferSession, rel: &RelHandle, block: BlockNumber) -> SharedPage<'s> {
    session.pin_shared(rel, block, Wait::Allowed).expect("a page")
}

fn run(session: &BufferSession, rel: &RelHandle, mode: usize, blocks: &[BlockNumber], rounds: u32) {
    let mut held = Vec::with_capacity(blocks.len());
    for _ in 0..rounds {
        match mode {
            0 => {
                blocks.iter().for_each(|&block| held.push(pin(session, rel, block)));
                held.clear();
            }
            // As for PostgreSQL's figures: the latch is given back at once, the pin is kept.
            1 => {
                for &block in blocks {
                    let page = latch(session, rel, block);
                    black_box(page.bytes().as_ptr());
                    held.push(page.unlatch());
                }
                held.clear();
            }
            2 => blocks.iter().for_each(|&block| {
                black_box(pin(session, rel, block).frame());
            }),
            _ => blocks.iter().for_each(|&block| {
                black_box(latch(session, rel, block).bytes().as_ptr());
            }),
        }
    }
}

/// The time of one pair, from many runs of about 2,000 pairs: that of the run that a tenth of the
/// runs are faster than. Longer and slower runs include other work of the machine.
fn measure(session: &BufferSession, rel: &RelHandle, mode: usize, blocks: &[BlockNumber]) -> f64 {
    let rounds = (2_000 / blocks.len() as u32).max(1);
    let runs = if rounds == 1 { 300 } else { 2_000 };
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        run(session, rel, mode, blocks, rounds);
        let pairs = f64::from(rounds) * blocks.len() as f64;
        times.push(start.elapsed().as_nanos() as f64 / pairs);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = PoolConfig::new(UNIVERSE as usize + 1000, 128);
    config.membarrier = !std::env::args().any(|arg| arg == "fences");
    let pool = BufferPool::new(config, Arc::new(MemoryStore::new()), Arc::new(NoLog))?;
    pool.create(REL)?;
    let rel = pool.relation(REL)?;
    let session = pool.session()?;
    for _ in 0..UNIVERSE {
        session.extend(&rel, Wait::Allowed)?;
    }
    let mut random = 7;
    for (mode, name) in MODES.iter().enumerate() {
        println!("\n{name}\n");
        println!("|      N | sequential | PostgreSQL | ratio | random | PostgreSQL | ratio |");
        println!("|-------:|-----------:|-----------:|------:|-------:|-----------:|------:|");
        for (count, theirs) in COUNTS.iter().zip(POSTGRESQL[mode]) {
            let sequential: Vec<_> = (0..*count).map(BlockNumber).collect();
            let drawn = draw(&mut random, *count as usize);
            let ours = [&sequential, &drawn].map(|blocks| measure(&session, &rel, mode, blocks));
            println!(
                "| {count:6} | {:10.1} | {:10} | {:5.1} | {:6.1} | {:10} | {:5.1} |",
                ours[0],
                theirs.0,
                theirs.0 / ours[0],
                ours[1],
                theirs.1,
                theirs.1 / ours[1],
            );
        }
    }
    Ok(())
}
