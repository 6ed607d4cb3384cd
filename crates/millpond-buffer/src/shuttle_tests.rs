//! Shuttle tests of the pool's protocols, on small pools, most of one to four frames. Each atomic
//! operation of entries, frames, latches and parking is a point where another session may go on.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p millpond-buffer --release shuttle`
//!
//! Here are pins, misses and evictions. [`bulk`] has what concerns many pages.
//!
//! Shuttle reports a deadlock (a lost wake-up) as such, and prints the schedule of a failure.

mod bulk;

use crate::store::as_inner;
use crate::*;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::thread;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::sync::Arc;

const REL: RelFork = RelationId::constant(7).main();
/// How many schedules of each kind a model runs under. `SHUTTLE_SCHEDULES` sets another number.
const SCHEDULES: usize = 3000;

/// A point where others may go on. (Not a yield: some schedulers switch at each yield.)
fn pause() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}

/// A store whose every operation lets other threads go on, and some of whose operations fail.
#[derive(Default)]
struct Slow {
    inner: Arc<MemoryStore>,
    failing: AtomicU64,
    /// Each read and write that is begun ends on its own thread; nothing can be read without
    /// waiting.
    background: bool,
}

impl Slow {
    fn around<R>(&self, _: &str, call: impl FnOnce() -> R) -> R {
        pause();
        call()
    }

    /// Fails `failing` times.
    fn pause(&self) -> Result<(), StoreError> {
        pause();
        let left = self.failing.load(Ordering::SeqCst);
        if left > 0 {
            self.failing.store(left - 1, Ordering::SeqCst);
            return Err(StoreError::io("do it", std::io::Error::other("made to fail")));
        }
        Ok(())
    }
}

impl PageStore for Slow {
    as_inner! { create remove exists block_count extend truncate sync relations }
    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.pause()?;
        self.inner.read(rel, first, pages)
    }
    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        if self.background {
            return Ok(false);
        }
        self.read(rel, first, pages).map(|()| true)
    }
    /// Reads into the frames while others go on, as a kernel does. A failure leaves some of it
    /// done.
    fn read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<(), StoreError> {
        let mut buffer = PageBuffer::new(pages.len());
        self.inner.read(rel, first, &mut buffer.pages_mut())?;
        for (words, page) in pages.iter().zip(buffer.pages()) {
            let (bytes, _) = page.as_chunks::<8>();
            for (at, (word, bytes)) in words.iter().zip(bytes).enumerate() {
                if at == 2 {
                    self.pause()?;
                }
                word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
            }
            pause();
        }
        Ok(())
    }
    fn try_read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<bool, StoreError> {
        if self.background {
            return Ok(false);
        }
        self.read_words(rel, first, pages).map(|()| true)
    }
    fn start_read(&self, mut read: PendingRead) {
        if self.background {
            // Reads while others go on, as a device does: into the frames, or into other memory.
            let is_placed = read.first().0.is_multiple_of(2);
            let zeros = move || {
                for words in read.words().into_iter().filter(|_| is_placed) {
                    let (begin, end) = words.split_at(2);
                    begin.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                    pause();
                    end.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                }
                if !is_placed {
                    read.pages_mut().into_iter().for_each(|page| page.fill(0));
                }
                read.finish(Ok(()));
            };
            thread::spawn(zeros);
            return;
        }
        let result = read.read_from(self);
        read.finish(result);
    }
    fn reads_in_background(&self) -> bool {
        self.background
    }
    fn start_write(&self, write: PendingWrite) {
        if self.background {
            let (inner, outcome) = (Arc::clone(&self.inner), self.pause());
            thread::spawn(move || {
                let write_it = || inner.write(write.rel(), write.first(), &write.pages());
                let result = outcome.and_then(|()| write_it());
                pause();
                write.finish(result);
            });
            return;
        }
        let result = self.write(write.rel(), write.first(), &write.pages());
        write.finish(result);
    }
    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.pause()?;
        self.inner.write(rel, first, pages)
    }
}

struct Bench {
    store: Arc<Slow>,
    pool: Arc<BufferPool>,
    ending: AtomicBool,
}

impl Bench {
    /// A session, and the fork.
    fn open(&self) -> (BufferSession, RelHandle) {
        (self.pool.session().unwrap(), self.pool.relation(REL).unwrap())
    }
}

fn bench(frames: usize, blocks: u32, background: bool) -> Bench {
    let store = Arc::new(Slow { background, ..Slow::default() });
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), blocks).unwrap();
    let mut config = PoolConfig::new(frames, 8);
    config.freelists = 1;
    config.max_frames = frames + 2;
    let pool = BufferPool::new(config, store.clone(), Arc::new(NoLog)).unwrap();
    Bench { store, pool, ending: AtomicBool::new(false) }
}

/// Runs `work` on `threads` threads, and then `after`.
fn explore(
    frames: usize,
    blocks: u32,
    threads: u64,
    work: impl Fn(u64, &Bench) + Send + Sync + 'static,
    after: impl Fn(&Bench) + Send + Sync + 'static,
) {
    explore_with(frames, blocks, threads, false, work, after);
}

/// Enough for each thread of a model: one of them makes a pool with its frames.
const STACK_BYTES: usize = 256 << 10;

fn explore_with(
    frames: usize,
    blocks: u32,
    threads: u64,
    background: bool,
    work: impl Fn(u64, &Bench) + Send + Sync + 'static,
    after: impl Fn(&Bench) + Send + Sync + 'static,
) {
    let work = Arc::new(work);
    let model = move || {
        let bench = Arc::new(bench(frames, blocks, background));
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let (work, bench) = (work.clone(), bench.clone());
                thread::spawn(move || work(thread, &bench))
            })
            .collect();
        for handle in handles {
            handle.join().unwrap();
        }
        after(&bench);
    };
    let model = Arc::new(model);
    let again = model.clone();
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    let schedules = std::env::var("SHUTTLE_SCHEDULES")
        .map_or(SCHEDULES, |number| number.parse().expect("SHUTTLE_SCHEDULES is a number"));
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || again());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || model());
}

/// The number that marks a page as this block's.
fn mark(block: u32) -> u64 {
    u64::from(block) + 100
}

/// Adds one to a page's counter and to its copy at the page's end, and marks the page.
fn increment(session: &BufferSession, rel: &RelHandle, block: u32) -> Result<(), BufferError> {
    let mut page = session.pin(rel, BlockNumber(block), Wait::Allowed)?.into_exclusive()?;
    let next = (page.u64(16) + 1).to_le_bytes();
    assert!([0, mark(block)].contains(&page.u64(24)), "another page");
    let mut change = page.change();
    change.write(24, &mark(block).to_le_bytes());
    change.write(16, &next);
    pause();
    change.write(8000, &next);
    change.publish(Lsn(1));
    Ok(())
}

fn count(session: &BufferSession, rel: &RelHandle, block: u32) -> Result<u64, BufferError> {
    let (marked, first, last) = session.read(rel, BlockNumber(block), Wait::Allowed, |page| {
        let first = page.u64(16);
        pause();
        (page.u64(24), first, page.u64(8000))
    })?;
    assert_eq!(first, last, "torn");
    assert!([0, mark(block)].contains(&marked), "another page");
    Ok(first)
}

/// The sum of the counters of the first blocks.
fn count_all(bench: &Bench, blocks: u32) -> u64 {
    let (session, rel) = bench.open();
    (0..blocks).map(|block| count(&session, &rel, block).unwrap()).sum()
}

fn all_is_given_back(bench: &Bench) {
    let (session, rel) = bench.open();
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    // Every frame can be used: none is stuck, pinned or latched.
    for block in 0..rel.block_count() {
        let page = session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
        assert!(page.try_into_exclusive().is_ok(), "latched");
    }
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.stats().free_frames, bench.pool.frames() as u64);
}

/// Repeats `act` until it gets a frame.
fn insist<R>(mut act: impl FnMut() -> Result<R, BufferError>) -> R {
    loop {
        match act() {
            Ok(result) => return result,
            Err(BufferError::NoUnpinnedBuffers { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Three sessions, two frames, three pages: sessions load, evict and write back each other's pages.
#[test]
fn increments_survive_evictions() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        for step in 0..2 {
            let block = ((thread + step) % 3) as u32;
            while let Err(error) = increment(&session, &rel, block) {
                assert!(matches!(error, BufferError::NoUnpinnedBuffers { .. }), "{error}");
                thread::yield_now();
            }
        }
    };
    explore(2, 3, 3, work, |bench| {
        assert_eq!(count_all(bench, 3), 6);
        all_is_given_back(bench);
    });
}

/// One frame and two pages, each session with its own. A session that finds its page's frame must
/// notice that the frame has been given to the other page since.
#[test]
fn a_frame_changes_hands() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        let block = thread as u32;
        for _ in 0..2 {
            insist(|| increment(&session, &rel, block));
        }
        assert_eq!(insist(|| count(&session, &rel, block)), 2);
    };
    explore(1, 2, 2, work, all_is_given_back);
}

/// Optimistic readers beside a writer, while pages come and go.
#[test]
fn optimistic_reads_are_whole() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        if thread == 0 {
            for _ in 0..2 {
                increment(&session, &rel, 0).unwrap();
            }
            return;
        }
        let mut least = 0;
        for block in [0, thread as u32, 0] {
            let seen = count(&session, &rel, block).unwrap();
            if block == 0 {
                assert!(seen >= least, "stale");
                least = seen;
            }
        }
    };
    explore(3, 3, 3, work, all_is_given_back);
}

/// All sessions want the same page at once. It is read once, and every waiting session is woken.
#[test]
fn one_loader_and_its_waiters() {
    let work = |_: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        assert_eq!(count(&session, &rel, 0).unwrap(), 0);
    };
    explore(2, 1, 3, work, |bench| {
        assert_eq!(bench.pool.stats().reads, 1);
        all_is_given_back(bench);
    });
}

/// The first read fails, and the other sessions go on. (Shuttle takes a panic for a failure of the
/// test, so tests on real threads cover reads that panic.)
#[test]
fn a_loader_that_fails_wakes_its_waiters() {
    let work = |thread: u64, bench: &Bench| {
        if thread == 0 {
            bench.store.failing.store(1, Ordering::SeqCst);
        }
        let (session, rel) = bench.open();
        if count(&session, &rel, 0).is_err() {
            assert_eq!(count(&session, &rel, 0).unwrap(), 0);
        }
    };
    explore(2, 1, 3, work, |bench| {
        bench.store.failing.store(0, Ordering::SeqCst);
        all_is_given_back(bench);
    });
}
