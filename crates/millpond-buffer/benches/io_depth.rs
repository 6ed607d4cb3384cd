//! Reads random pages through the pool, at a given depth, from a file larger than the pool. The
//! result is to be compared with fio's on the same file (`bench/io.sh` runs both in turn).
//!
//! `cargo bench -p millpond-buffer --bench io_depth --` and one of these, DIR from the root:
//!
//! ```sh
//! DIR prepare BLOCKS
//! DIR read DEPTH SECONDS direct|buffered io_uring|worker|sync|threads [POOL_PAGES]
//! DIR scan|scan-ring DEPTH SECONDS direct|buffered io_uring|worker|sync [POOL_PAGES]
//! ```
//!
//! - `prepare` makes relation 1 with BLOCKS pages and prints the name of its file.
//! - `read` prints pages a second. A stream of random blocks keeps DEPTH reads under way. With
//!   `threads`, DEPTH sessions each wait for their own read.
//! - `scan` reads the pages in their order, 16 by one read; `scan-ring` does so in a ring of
//!   frames.

use millpond_buffer::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const REL: RelFork = RelationId::constant(1).main();
const WARM_UP: Duration = Duration::from_secs(1);
const USAGE: &str = "io_depth DIR prepare BLOCKS | io_depth DIR read DEPTH SECONDS direct|buffered \
                     io_uring|worker|sync|threads [POOL_PAGES] | io_depth DIR scan|scan-ring DEPTH SECONDS \
                     direct|buffered io_uring|worker|sync [POOL_PAGES]";

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Random,
    Scan,
    ScanInRing,
}

impl Order {
    fn of(command: &str) -> Option<Self> {
        match command {
            "read" => Some(Self::Random),
            "scan" => Some(Self::Scan),
            "scan-ring" => Some(Self::ScanInRing),
            _ => None,
        }
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [dir, "prepare", blocks] => prepare(dir.as_ref(), blocks.parse()?),
        [dir, command, depth, seconds, cache, method, ref pool @ ..] if pool.len() <= 1 => {
            let order = Order::of(command).ok_or(USAGE)?;
            let pool = pool.first().map_or(Ok(16_384), |pool| pool.parse())?;
            read(dir.as_ref(), order, depth.parse()?, seconds.parse()?, cache, method, pool)
        }
        _ => Err(USAGE.into()),
    }
}

fn prepare(dir: &Path, blocks: u32) -> Result<()> {
    let store = FileStore::open(dir)?;
    store.create(REL)?;
    store.extend(REL, BlockNumber(0), blocks)?;
    let mut page = Box::new([0; PAGE_SIZE]);
    let mut random = SmallRng::seed_from_u64(1);
    random.fill(&mut page[16..]);
    for block in 0..blocks {
        page[16..20].copy_from_slice(&block.to_le_bytes());
        set_checksum(REL.page(BlockNumber(block)), &mut page);
        store.write(REL, BlockNumber(block), &[&page])?;
    }
    store.sync()?;
    println!("{}", dir.join(REL.relation.to_string()).display());
    Ok(())
}

/// The store, if the system supports these options.
fn open(dir: &Path, depth: u32, cache: &str, method: &str) -> Result<Arc<FileStore>> {
    let io_method = match method {
        "io_uring" => IoMethod::IoUring,
        "worker" => IoMethod::Worker,
        "sync" | "threads" => IoMethod::Sync,
        _ => return Err(USAGE.into()),
    };
    let mut options = FileStoreOptions::default();
    options.io_method = io_method;
    options.io_workers = depth.clamp(1, 32) as usize;
    options.direct_io = cache == "direct";
    let store = Arc::new(FileStore::open_with(dir, options)?);
    if store.io_method() != io_method {
        return Err(format!("no {} here", io_method.name()).into());
    }
    Ok(store)
}

fn read(
    dir: &Path,
    order: Order,
    depth: u32,
    seconds: u64,
    cache: &str,
    method: &str,
    pool_pages: usize,
) -> Result<()> {
    let store = open(dir, depth, cache, method)?;
    let blocks = store.block_count(REL)?;
    let pool = BufferPool::new(PoolConfig::new(pool_pages, 256), store, Arc::new(NoLog))?;
    let (threads, io_concurrency) = match method {
        "threads" => (depth, 0),
        // The consumer's own page is one of those under way.
        _ => (1, depth.saturating_sub(1)),
    };
    // The first reads don't count: they fill the pool, whose memory the system then has to clear.
    let begun = Instant::now() + WARM_UP;
    let until = begun + Duration::from_secs(seconds);
    let before = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|seed| {
                let pool = &pool;
                scope.spawn(move || {
                    read_some(pool, blocks, order, io_concurrency, seed.into(), until)
                })
            })
            .collect();
        std::thread::sleep(WARM_UP);
        before.store(pool.stats().reads, Ordering::Relaxed);
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err("a thread panicked".into()))
        })
    })?;
    // A page found in the pool is no read.
    let reads = pool.stats().reads - before.into_inner();
    println!("{:.0}", reads as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}

fn read_some(
    pool: &Arc<BufferPool>,
    blocks: u32,
    order: Order,
    io_concurrency: u32,
    seed: u64,
    until: Instant,
) -> Result<()> {
    let session = pool.session()?;
    let rel = pool.relation(REL)?;
    let mut random = SmallRng::seed_from_u64(seed);
    let io_combine_limit = if order == Order::Random { 1 } else { 16 };
    let mut stream = ReadStream::new(
        StreamOptions::default()
            .with_io_concurrency(io_concurrency)
            .with_io_combine_limit(io_combine_limit),
    );
    let ring = match order {
        Order::ScanInRing => Ring::new(pool, AccessStrategy::BulkRead),
        _ => None,
    };
    let mut scan = (0..blocks).cycle();
    let mut source = || match order {
        Order::Random => Some(BlockNumber(random.random_range(0..blocks))),
        _ => scan.next().map(BlockNumber),
    };
    let mut done = 0u64;
    while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, ring.as_ref(), &mut source) {
        let number =
            session.read_with(&rel, block, Wait::Allowed, ring.as_ref(), |page| page.u32(16))?;
        assert_eq!(number, block.0);
        stream.advance();
        done += 1;
        if done.is_multiple_of(64) && Instant::now() >= until {
            break;
        }
    }
    Ok(())
}
