//! The processor time of a miss when the operating system has the page in its cache. Waiting does
//! not count.
//!
//! ```sh
//! cargo bench -p millpond-buffer --bench miss -- \
//!     DIR BLOCKS THREADS READS [POOL_PAGES] [none|reclaimer]
//! ```
//!
//! Each thread reads random blocks of a file with BLOCKS pages (made if it isn't there), of which
//! the pool holds POOL_PAGES (16384). The program prints reads, misses, and the user and system
//! time of each miss in nanoseconds, including the cost of hits.

use millpond_buffer::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const REL: RelFork = RelationId::constant(1).main();
const USAGE: &str = "miss DIR BLOCKS THREADS READS [POOL_PAGES] [none|reclaimer]";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [dir, blocks, threads, reads, ref rest @ ..] = args[..] else { return Err(USAGE.into()) };
    let (blocks, threads, reads) = (blocks.parse()?, threads.parse()?, reads.parse()?);
    let pool_pages = rest.first().map_or(Ok(16_384), |pages| pages.parse())?;
    let with_reclaimer = rest.get(1) == Some(&"reclaimer");
    let store = prepared(dir.as_ref(), blocks)?;
    let pool = BufferPool::new(PoolConfig::new(pool_pages, 256), store, Arc::new(NoLog))?;
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reclaimer =
            scope.spawn(|| if with_reclaimer { reclaim(&pool, &ending) } else { Ok(()) });
        let measured = measure(&pool, blocks, threads, reads);
        ending.store(true, Ordering::SeqCst);
        pool.wake_reclaimer();
        reclaimer.join().unwrap_or_else(|_| Err("the reclaimer panicked".into()))?;
        measured
    })
}

fn measure(pool: &Arc<BufferPool>, blocks: u32, threads: u32, reads: u64) -> Result<()> {
    // Runs until the pool is full and its memory is there.
    run(pool, blocks, threads, 4 * pool.frames() as u64 / u64::from(threads))?;
    let (before, begun) = (pool.stats(), processor_ns()?);
    run(pool, blocks, threads, reads)?;
    let (after, ended) = (pool.stats(), processor_ns()?);
    let misses = after.misses - before.misses;
    let each = |ns: u64| ns as f64 / misses as f64;
    let (user, system) = (each(ended.0 - begun.0), each(ended.1 - begun.1));
    println!(
        "{} reads, {misses} misses: {user:.0} ns user, {system:.0} ns system, {:.0} ns together",
        reads * u64::from(threads),
        user + system,
    );
    Ok(())
}

fn prepared(dir: &Path, blocks: u32) -> Result<Arc<FileStore>> {
    let store = Arc::new(FileStore::open(dir)?);
    store.create(REL)?;
    if store.block_count(REL)? < blocks {
        store.extend(REL, BlockNumber(0), blocks)?;
        let mut page = Box::new([0; PAGE_SIZE]);
        SmallRng::seed_from_u64(1).fill(&mut page[16..]);
        for block in 0..blocks {
            page[16..20].copy_from_slice(&block.to_le_bytes());
            set_checksum(REL.page(BlockNumber(block)), &mut page);
            store.write(REL, BlockNumber(block), &[&page])?;
        }
    }
    Ok(store)
}

fn reclaim(pool: &Arc<BufferPool>, ending: &AtomicBool) -> Result<()> {
    let session = pool.session()?;
    let mut reclaimer = Reclaimer::new(&session);
    while !ending.load(Ordering::SeqCst) {
        reclaimer.wait(|| ending.load(Ordering::SeqCst));
        reclaimer.work()?;
    }
    Ok(())
}

fn run(pool: &Arc<BufferPool>, blocks: u32, threads: u32, reads: u64) -> Result<()> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || read_some(pool, blocks, seed.into(), reads)))
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err("a thread panicked".into()))
        })
    })
}

fn read_some(pool: &Arc<BufferPool>, blocks: u32, seed: u64, reads: u64) -> Result<()> {
    let session = pool.session()?;
    let rel = pool.relation(REL)?;
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..reads {
        let block = BlockNumber(random.random_range(0..blocks));
        let number = session.read(&rel, block, Wait::Allowed, |page| page.u32(16))?;
        assert_eq!(number, block.0);
    }
    Ok(())
}

/// The process's user and system time. It is as coarse as the system's clock ticks (10 ms), so a
/// run should take a second or more.
fn processor_ns() -> Result<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // After the program's name, which may have spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let mut ticks = fields.skip(11).map(str::parse::<u64>);
    let mut next =
        || -> Result<u64> { Ok(ticks.next().ok_or("no times in /proc/self/stat")?? * 10_000_000) };
    Ok((next()?, next()?))
}
