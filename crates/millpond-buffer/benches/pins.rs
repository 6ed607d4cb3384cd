//! The cost of a hit: pins and unpins, with and without a latch, in file order and at random. From
//! 1 to 10,000 pages are held at a time. Also optimistic reads, and misses that the store serves
//! from memory. The pins are of 50,000 pages, in a pool of 400 MB.
//!
//! `cargo bench -p millpond-buffer --bench pins`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use millpond_buffer::*;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::hint::black_box;
use std::sync::Arc;

const REL: RelFork = RelationId::constant(1).main();
/// As many blocks as PostgreSQL's counterpart chooses from.
const BLOCKS: u32 = 50_000;
const COUNTS: [u32; 9] = [1, 2, 3, 7, 11, 19, 100, 988, 10_000];

fn pool(frames: usize, blocks: u32) -> (Arc<BufferPool>, RelHandle) {
    let pool =
        BufferPool::new(PoolConfig::new(frames, 4), Arc::new(MemoryStore::new()), Arc::new(NoLog))
            .expect("a pool");
    pool.create(REL).expect("a fork");
    let rel = pool.relation(REL).expect("a fork");
    let session = pool.session().expect("a session");
    for _ in 0..blocks {
        session.extend(&rel, Wait::Allowed).expect("a page");
    }
    (pool, rel)
}

/// Blocks to visit: the first `count` in their order, or `count` of the whole fork in no order.
fn blocks(count: u32, random: bool) -> Vec<BlockNumber> {
    let mut blocks: Vec<_> = (0..if random { BLOCKS } else { count }).map(BlockNumber).collect();
    if random {
        blocks.shuffle(&mut SmallRng::seed_from_u64(7));
    }
    blocks.truncate(count as usize);
    blocks
}

#[inline(always)]
fn pin<'s>(session: &'s BufferSession, rel: &RelHandle, block: BlockNumber) -> PinnedPage<'s> {
    session.pin(rel, block, Wait::Allowed).expect("a page")
}

#[inline(always)]
fn pin_shared<'s>(
    session: &'s BufferSession,
    rel: &RelHandle,
    block: BlockNumber,
) -> SharedPage<'s> {
    session.pin_shared(rel, block, Wait::Allowed).expect("a page")
}

/// The four modes of docs/measurements: all pinned, then all released, or each at once. Both come
/// with and without a shared latch at each pin.
fn pins(c: &mut Criterion) {
    let (pool, rel) = pool(52_000, BLOCKS);
    let session = pool.session().expect("a session");
    let modes = [
        ("pin N, then release N", true, false),
        ("pin and latch N, then release N", true, true),
        ("pin and release", false, false),
        ("pin, latch and release", false, true),
    ];
    for (name, hold, latch) in modes {
        let mut group = c.benchmark_group(name);
        for (order, random) in [("sequential", false), ("random", true)] {
            for count in COUNTS {
                let blocks = blocks(count, random);
                let mut held = Vec::with_capacity(blocks.len());
                group.throughput(Throughput::Elements(u64::from(count)));
                group.bench_with_input(BenchmarkId::new(order, count), &blocks, |b, blocks| {
                    b.iter(|| match (hold, latch) {
                        (true, false) => {
                            held.extend(blocks.iter().map(|block| pin(&session, &rel, *block)));
                            held.clear();
                        }
                        (true, true) => {
                            held.extend(blocks.iter().map(|block| {
                                black_box(pin_shared(&session, &rel, *block)).unlatch()
                            }));
                            held.clear();
                        }
                        (false, false) => {
                            for block in blocks {
                                black_box(pin(&session, &rel, *block));
                            }
                        }
                        (false, true) => {
                            for block in blocks {
                                black_box(pin_shared(&session, &rel, *block));
                            }
                        }
                    });
                });
            }
        }
        group.finish();
    }
    let mut group = c.benchmark_group("one at a time");
    let some = blocks(1000, true);
    group.throughput(Throughput::Elements(1000));
    group.bench_function("pin", |b| {
        b.iter(|| {
            for block in &some {
                black_box(session.pin(&rel, *block, Wait::Allowed).expect("a page"));
            }
        });
    });
    group.bench_function("pin again", |b| {
        let _held = session.pin(&rel, BlockNumber(5), Wait::Allowed).expect("a page");
        b.iter(|| {
            for _ in 0..1000 {
                black_box(session.pin(&rel, BlockNumber(5), Wait::Allowed).expect("a page"));
            }
        });
    });
    group.finish();
}

fn reads(c: &mut Criterion) {
    let (pool, rel) = pool(12_000, 10_000);
    let session = pool.session().expect("a session");
    let mut group = c.benchmark_group("optimistic read of one word");
    group.throughput(Throughput::Elements(1000));
    for (name, count) in [("one page", 1), ("100 pages", 100), ("10000 pages", 10_000)] {
        let mut random = SmallRng::seed_from_u64(3);
        let visits: Vec<_> =
            (0..1000).map(|_| BlockNumber(random.random_range(0..count))).collect();
        group.bench_function(name, |b| {
            b.iter(|| {
                visits.iter().fold(0, |sum, block| {
                    let read = session.read(&rel, *block, Wait::Allowed, |page| page.u64(16));
                    sum ^ read.expect("a page")
                })
            });
        });
    }
    group.finish();
}

fn misses(c: &mut Criterion) {
    let (pool, rel) = pool(1000, 20_000);
    let session = pool.session().expect("a session");
    pool.write_dirty(&session, |_| ()).expect("written");
    let mut next = 0;
    c.bench_function("miss with a clean victim, memory store", |b| {
        b.iter(|| {
            next = (next + 1) % 20_000;
            let page = session.pin(&rel, BlockNumber(next), Wait::Allowed);
            black_box(page.expect("a page").block())
        });
    });

    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(FileStore::open(folder.path()).expect("a store"));
    let pool = BufferPool::new(PoolConfig::new(1000, 4), store, Arc::new(NoLog)).expect("a pool");
    pool.create(REL).expect("a fork");
    let rel = pool.relation(REL).expect("a fork");
    let session = pool.session().expect("a session");
    for at in 0..20_000u32 {
        let mut page = session.extend(&rel, Wait::Allowed).expect("a page");
        let mut change = page.change();
        change.write(16, &at.to_le_bytes());
        change.publish(Lsn(1));
    }
    pool.write_dirty(&session, |_| ()).expect("written");
    c.bench_function("miss with a clean victim, file in the system's cache", |b| {
        b.iter(|| {
            next = (next + 1) % 20_000;
            let page = session.pin(&rel, BlockNumber(next), Wait::Allowed);
            black_box(page.expect("a page").block())
        });
    });
    let page = [7; PAGE_SIZE];
    c.bench_function("checksum of a page", |b| {
        b.iter(|| compute_checksum(REL.page(BlockNumber(1)), black_box(&page)));
    });
}

criterion_group!(benches, pins, reads, misses);
criterion_main!(benches);
