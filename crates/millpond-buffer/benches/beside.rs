//! Counts what bulk work costs sessions that read points beside it. It measures no time.
//!
//! ```sh
//! cargo bench -p millpond-buffer --bench beside [-- KEYS JOB...]
//! ```
//!
//! The pool is that of `docs/measurements`'s measurement: 256 MB, and the table and index of
//! pgbench at scale 100 (without their bytes). Each select reads four pages: the index's root, an
//! inner page, a leaf and the row's page.
//!
//! KEYS are the same beside every job: `uniform`; `zipfian` with the exponent 1.1, in no order; or
//! `moving`. The last is zipfian, and wants other rows every 250,000 selects.
//!
//! After each select the job reads as many pages as it was measured to read in that time. JOBs:
//!
//! - `alone`: none.
//! - `seqscan`: two lanes of a parallel scan with a ring each, begun anew at the end.
//! - `indexscan`: one wide ring for leaves and rows.
//! - `vacuum`: table and index.
//! - `copy`: pages added to another table.

use millpond_buffer::*;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::error::Error;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FRAMES: usize = 32_768;
const ROWS: u32 = 10_000_000;
const ROWS_PER_PAGE: u32 = 156;
const KEYS_PER_LEAF: u32 = 909;
const LEAVES_PER_INNER: u32 = 285;
const TABLE: RelFork = RelationId::constant(1).main();
const INDEX: RelFork = RelationId::constant(2).main();
const COPY: RelFork = RelationId::constant(3).main();
/// The number of selects until the state is steady, and then the number of those that are counted.
const SETTLE: u32 = 1_500_000;
const COUNTED: u32 = 1_000_000;
/// The number of selects between two turns of the reclaimer.
const RECLAIM: u32 = 64;
/// The number of selects for which the moving keys stay the same.
const MOVE: u32 = 250_000;
const EXPONENT: f64 = 1.1;

/// Forks of empty pages: only the number of pages is right.
struct Zeros;

impl PageStore for Zeros {
    fn create(&self, _: RelFork) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn remove(&self, _: RelationId) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn exists(&self, _: RelFork) -> std::result::Result<bool, StoreError> {
        Ok(true)
    }
    fn block_count(&self, rel: RelFork) -> std::result::Result<u32, StoreError> {
        Ok(match rel {
            TABLE => ROWS.div_ceil(ROWS_PER_PAGE),
            INDEX => first_leaf() + ROWS.div_ceil(KEYS_PER_LEAF),
            _ => 0,
        })
    }
    fn extend(&self, _: RelFork, _: BlockNumber, _: u32) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn truncate(&self, _: RelFork, _: u32) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn read(
        &self,
        _: RelFork,
        _: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> std::result::Result<(), StoreError> {
        pages.iter_mut().for_each(|page| page.fill(0));
        Ok(())
    }
    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> std::result::Result<bool, StoreError> {
        self.read(rel, first, pages).map(|()| true)
    }
    fn write(
        &self,
        _: RelFork,
        _: BlockNumber,
        _: &[&[u8; PAGE_SIZE]],
    ) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn sync(&self) -> std::result::Result<(), StoreError> {
        Ok(())
    }
    fn relations(&self) -> std::result::Result<Vec<RelationId>, StoreError> {
        Ok(vec![TABLE.relation, INDEX.relation])
    }
}

fn inner_pages() -> u32 {
    ROWS.div_ceil(KEYS_PER_LEAF).div_ceil(LEAVES_PER_INNER)
}

fn first_leaf() -> u32 {
    1 + inner_pages()
}

/// The distribution of the rows that are wanted.
enum Keys {
    Uniform,
    /// The row of each rank, and the number of selects for which these stay.
    Zipfian(Vec<u32>, u32),
}

impl Keys {
    fn new(name: &str) -> Result<Self> {
        match name {
            "uniform" => Ok(Self::Uniform),
            "zipfian" => Ok(Self::Zipfian(in_no_order(2), u32::MAX)),
            "moving" => Ok(Self::Zipfian(in_no_order(2), MOVE)),
            other => Err(format!("there are no {other} keys").into()),
        }
    }

    fn next(&mut self, random: &mut SmallRng, select: u32) -> u32 {
        match self {
            Self::Uniform => random.random_range(0..ROWS),
            Self::Zipfian(rows, lasting) => {
                if select > 0 && select.is_multiple_of(*lasting) {
                    *rows = in_no_order(u64::from(select));
                }
                rows[zipfian(random) as usize - 1]
            }
        }
    }
}

fn in_no_order(seed: u64) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..ROWS).collect();
    rows.shuffle(&mut SmallRng::seed_from_u64(seed));
    rows
}

/// A rank from 1 to `ROWS`, by rejection (L. Devroye, Non-Uniform Random Variate Generation,
/// X.6.1).
fn zipfian(random: &mut SmallRng) -> u32 {
    let b = 2_f64.powf(EXPONENT - 1.0);
    loop {
        let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        let x = u.powf(-1.0 / (EXPONENT - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(EXPONENT - 1.0);
        if x <= f64::from(ROWS) && v * x * (t - 1.0) / (b - 1.0) <= t / b {
            return x as u32;
        }
    }
}

struct World {
    pool: Arc<BufferPool>,
    session: BufferSession,
    table: RelHandle,
    index: RelHandle,
    random: SmallRng,
}

impl World {
    fn new() -> Result<Self> {
        let mut config = PoolConfig::new(FRAMES, 8);
        // One freelist, so that the place where a frame comes from does not depend on the
        // processor.
        config.freelists = 1;
        let pool = BufferPool::new(config, Arc::new(Zeros), Arc::new(NoLog))?;
        let (table, index) = (pool.relation(TABLE)?, pool.relation(INDEX)?);
        let session = pool.session()?;
        Ok(Self { session, pool, table, index, random: SmallRng::seed_from_u64(1) })
    }

    fn read(&self, rel: &RelHandle, block: u32, ring: Option<&Ring>) -> Result<()> {
        let read = |page: &PageView<'_>| page.u64(16);
        self.session.read_with(rel, BlockNumber(block), Wait::Allowed, ring, read)?;
        Ok(())
    }

    fn select(&mut self, row: u32) -> Result<()> {
        let leaf = row / KEYS_PER_LEAF;
        let inner = 1 + leaf / LEAVES_PER_INNER;
        for block in [0, inner, first_leaf() + leaf] {
            self.read(&self.index, block, None)?;
        }
        self.read(&self.table, row / ROWS_PER_PAGE, None)
    }
}

/// A part of a relation that a stream reads from one end to the other, again and again.
struct Lane {
    rel: RelHandle,
    blocks: std::ops::Range<u32>,
    next: u32,
    ring: Option<Ring>,
    stream: ReadStream,
}

impl Lane {
    fn new(rel: &RelHandle, blocks: std::ops::Range<u32>) -> Self {
        let (rel, next) = (rel.clone(), blocks.end);
        Self { rel, blocks, next, ring: None, stream: ReadStream::default() }
    }

    /// Reads the next page. `ring` makes the ring at the beginning of each round.
    fn step(&mut self, world: &World, ring: impl Fn() -> Option<Ring>) -> Result<()> {
        let Self { rel, blocks, next, stream, .. } = self;
        let mut source = || {
            let block = *next;
            *next += 1;
            (block < blocks.end).then_some(BlockNumber(block))
        };
        let session = &world.session;
        match stream.peek(session, rel, Wait::Allowed, self.ring.as_ref(), &mut source) {
            Some(block) => {
                world.read(&self.rel, block.0, self.ring.as_ref())?;
                self.stream.advance();
            }
            None => {
                (self.next, self.ring) = (self.blocks.start, ring());
                self.stream = ReadStream::default();
            }
        }
        Ok(())
    }
}

/// A ring as the engine makes it for a scan, with room for what may be read ahead.
fn scan_ring(pool: &Arc<BufferPool>) -> Option<Ring> {
    Ring::with_read_ahead(pool, AccessStrategy::BulkRead, 32, 256)
}

/// The work of the job after each select.
type Job = Box<dyn FnMut(&World) -> Result<()>>;

fn job(world: &World, name: &str) -> Result<Job> {
    let (pool, table, index) = (world.pool.clone(), world.table.clone(), world.index.clone());
    let blocks = table.block_count();
    Ok(match name {
        "alone" => Box::new(|_| Ok(())),
        "seqscan" => {
            let halves = [0..blocks / 2, blocks / 2..blocks];
            let mut lanes = halves.map(|half| Lane::new(&table, half));
            Box::new(move |world| {
                // Four pages in the time of a select.
                for lane in lanes.iter_mut() {
                    (0..2).try_for_each(|_| lane.step(world, || scan_ring(&pool)))?;
                }
                Ok(())
            })
        }
        "indexscan" => {
            let (mut row, mut ring) = (ROWS, None);
            Box::new(move |world| {
                if row >= ROWS {
                    (row, ring) = (0, Ring::widening(&pool, AccessStrategy::BulkRead, 32));
                }
                // One page of rows, and now and then a leaf.
                world.read(&index, first_leaf() + row / KEYS_PER_LEAF, ring.as_ref())?;
                world.read(&table, row / ROWS_PER_PAGE, ring.as_ref())?;
                row += ROWS_PER_PAGE;
                Ok(())
            })
        }
        "vacuum" => {
            let mut lanes =
                [Lane::new(&table, 0..blocks), Lane::new(&index, 0..index.block_count())];
            Box::new(move |world| {
                // Vacuum reads one relation after the other. Here they take turns in proportion to
                // their sizes.
                let ring = || Ring::new(&pool, AccessStrategy::Vacuum);
                lanes[0].step(world, ring)?;
                lanes[0].step(world, ring)?;
                if lanes[0].next % 12 < 2 { lanes[1].step(world, ring) } else { Ok(()) }
            })
        }
        "copy" => {
            let copy = pool.relation(COPY)?;
            let (mut ring, mut selects) = (None, 0_u32);
            Box::new(move |world| {
                // One page in the time of several selects.
                selects += 1;
                if !selects.is_multiple_of(4) {
                    return Ok(());
                }
                if copy.block_count() % blocks == 0 {
                    ring = Ring::new(&pool, AccessStrategy::BulkWrite);
                }
                let mut page = world.session.extend_with(&copy, Wait::Allowed, ring.as_ref())?;
                let mut change = page.change();
                change.write(16, &[1; 8]);
                change.publish_unlogged();
                Ok(())
            })
        }
        other => return Err(format!("there is no job {other}").into()),
    })
}

/// The pages of the index and of the table in the pool, and the free frames.
fn who_has(world: &World) -> [usize; 3] {
    let (index, table) = (world.index.pages_in_memory(), world.table.pages_in_memory());
    [index, table, world.pool.stats().free_frames as usize]
}

fn run(keys: &mut Keys, name: &str) -> Result<f64> {
    let mut world = World::new()?;
    let reclaimer_session = world.pool.session()?;
    reclaimer_session.set_backend_kind(BackendKind::BackgroundWriter);
    let reclaimer_pool = world.pool.clone();
    // As many free frames as a busy reclaimer keeps.
    let target = FRAMES / 64;
    let mut job = job(&world, name)?;
    let normal = |world: &World| {
        let io = *world.pool.stats().io_of(BackendKind::Client, IoContext::Normal);
        (io.hits, io.read_bytes / PAGE_SIZE as u64)
    };
    let mut before = (0, 0);
    let mut stats = world.pool.stats();
    for select in 0..SETTLE + COUNTED {
        if select == SETTLE {
            (before, stats) = (normal(&world), world.pool.stats());
        }
        let row = keys.next(&mut world.random, select);
        world.select(row)?;
        job(&world)?;
        if select % RECLAIM == 0 && world.pool.stats().free_frames < target as u64 / 2 {
            reclaimer_pool.reclaim(&reclaimer_session, target)?;
        }
    }
    let after = normal(&world);
    let (hits, misses) = (after.0 - before.0, after.1 - before.1);
    let ratio = 100.0 * hits as f64 / (hits + misses) as f64;
    let [index, table, free] = who_has(&world);
    let now = world.pool.stats();
    println!(
        "| {name:9} | {ratio:7.3} | {index:9} | {table:9} | {free:6} | {:9} | {:9.2} |",
        now.evictions - stats.evictions,
        (now.frames_examined - stats.frames_examined) as f64 / f64::from(COUNTED),
    );
    Ok(ratio)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (distributions, jobs) = match args.split_first() {
        Some((keys, jobs)) => (vec![keys.as_str()], jobs.to_vec()),
        None => (vec!["uniform", "zipfian", "moving"], Vec::new()),
    };
    let all = ["alone", "seqscan", "indexscan", "vacuum", "copy"].map(str::to_owned);
    let jobs = if jobs.is_empty() { &all[..] } else { &jobs[..] };
    for name in distributions {
        println!(
            "| {name:9} | hits, % | of index  | of table  | free   | evictions | examined a select |"
        );
        println!(
            "|-----------|--------:|----------:|----------:|-------:|----------:|----------:|"
        );
        let mut alone = None;
        for job in jobs {
            let ratio = run(&mut Keys::new(name)?, job)?;
            let alone = *alone.get_or_insert(ratio);
            if ratio != alone {
                eprintln!("{job}: falls by {:.3} points", alone - ratio);
            }
        }
    }
    Ok(())
}
