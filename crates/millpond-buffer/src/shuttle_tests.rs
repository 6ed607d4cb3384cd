//! Shuttle's exploration of the pool's protocols, on pools of two or three frames: every atomic
//! operation of entries, frames, latches and parking is a point where another session may go on.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p millpond-buffer --release shuttle`
//!
//! Shuttle reports a deadlock (a lost wake-up) as such, and prints the schedule of a failure.

use crate::store::as_inner;
use crate::*;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::thread;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const REL: RelFork = RelationId::constant(7).main();
const ITERATIONS: usize = 3000;

/// A point where others may go on. (Not a yield: under some schedulers that always lets them.)
fn pause() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}

/// A store whose every operation lets others go on, and some of whose operations fail.
#[derive(Default)]
struct Slow {
    inner: Arc<MemoryStore>,
    failing: AtomicU64,
    panics: AtomicBool,
    /// Reads and writes that are begun are finished by a thread of their own, and nothing is at hand.
    background: bool,
}

impl Slow {
    /// Fails as often as it was told to.
    fn pause(&self) -> Result<(), StoreError> {
        pause();
        let left = self.failing.load(Ordering::SeqCst);
        if left > 0 {
            self.failing.store(left - 1, Ordering::SeqCst);
            assert!(!self.panics.load(Ordering::SeqCst), "made to panic");
            return Err(StoreError::io("do it", std::io::Error::other("made to fail")));
        }
        Ok(())
    }
}

impl PageStore for Slow {
    as_inner! { create exists block_count truncate sync relations }
    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        pause();
        self.inner.remove(relation)
    }
    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        pause();
        self.inner.extend(rel, first, count)
    }
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
    /// As a kernel does: into the frames, while others go on, and if it fails with some of it done.
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
            // As a device does: into the frames, while others go on; or elsewhere.
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

/// Runs `work` on that many threads, then lets `after` look.
fn explore(
    frames: usize,
    blocks: u32,
    threads: u64,
    work: impl Fn(u64, &Bench) + Send + Sync + 'static,
    after: impl Fn(&Bench) + Send + Sync + 'static,
) {
    explore_with(frames, blocks, threads, false, work, after);
}

/// Of each thread of a model: a pool with its frames is made on it.
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
    Runner::new(RandomScheduler::new(ITERATIONS), config.clone()).run(move || again());
    Runner::new(PctScheduler::new(3, ITERATIONS), config).run(move || model());
}

/// What marks a page as that block's.
fn mark(block: u32) -> u64 {
    u64::from(block) + 100
}

/// Adds one to a page's counter, and to a second word at its end; and marks the page as its own.
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

fn all_is_given_back(bench: &Bench) {
    let session = bench.pool.session().unwrap();
    let rel = bench.pool.relation(REL).unwrap();
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    // Every frame can be had: none is stuck, pinned or latched.
    for block in 0..rel.block_count() {
        let page = session.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
        assert!(page.try_into_exclusive().is_ok(), "latched");
    }
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.stats().free_frames, bench.pool.frames() as u64);
}

/// Three sessions, two frames, three pages: loads, evictions and write-backs of one another's pages.
#[test]
fn increments_survive_evictions() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        for step in 0..2 {
            let block = ((thread + step) % 3) as u32;
            while let Err(error) = increment(&session, &rel, block) {
                assert!(matches!(error, BufferError::NoUnpinnedBuffers { .. }), "{error}");
                thread::yield_now();
            }
        }
    };
    explore(2, 3, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        let sum: u64 = (0..3).map(|block| count(&session, &rel, block).unwrap()).sum();
        assert_eq!(sum, 6);
        all_is_given_back(bench);
    });
}

/// Tries until a frame can be had.
fn insist<R>(mut act: impl FnMut() -> Result<R, BufferError>) -> R {
    loop {
        match act() {
            Ok(result) => return result,
            Err(BufferError::NoUnpinnedBuffers { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// One frame and two pages, each session with its own: whoever finds its page's frame must notice
/// that it has been given to the other page since.
#[test]
fn a_frame_changes_hands() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
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
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
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

/// All want the same page at once: it is read once, and whoever waits is woken.
#[test]
fn one_loader_and_its_waiters() {
    let work = |_: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(count(&session, &rel, 0).unwrap(), 0);
    };
    explore(2, 1, 3, work, |bench| {
        assert_eq!(bench.pool.stats().reads, 1);
        all_is_given_back(bench);
    });
}

/// The first read fails, or panics: the others get on.
#[test]
fn a_loader_that_fails_wakes_its_waiters() {
    for panics in [false, true] {
        let work = move |thread: u64, bench: &Bench| {
            if thread == 0 {
                bench.store.panics.store(panics, Ordering::SeqCst);
                bench.store.failing.store(1, Ordering::SeqCst);
            }
            let session = bench.pool.session().unwrap();
            let rel = bench.pool.relation(REL).unwrap();
            let read = || count(&session, &rel, 0);
            let failed = match catch_unwind(AssertUnwindSafe(read)) {
                Ok(result) => result.is_err(),
                Err(_) => true,
            };
            if failed {
                assert_eq!(count(&session, &rel, 0).unwrap(), 0);
            }
        };
        if panics {
            // Shuttle takes a panic for a failure of the test, so only errors are explored; panics
            // are tested on real threads.
            continue;
        }
        explore(2, 1, 3, work, |bench| {
            bench.store.failing.store(0, Ordering::SeqCst);
            all_is_given_back(bench);
        });
    }
}

/// A checkpoint beside writers: what was dirty when it began is in the store when it ends.
#[test]
fn a_checkpoint_misses_nothing() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 2 {
            increment(&session, &rel, 0).unwrap();
            bench.pool.write_dirty(&session, |_| ()).unwrap();
            let mut page = [0; PAGE_SIZE];
            bench.store.inner.read(REL, BlockNumber(0), &mut [&mut page]).unwrap();
            assert!(page.u64(16) >= 1, "missed");
            verify_checksum(REL.page(BlockNumber(0)), &page).unwrap();
        } else {
            increment(&session, &rel, thread as u32).unwrap();
        }
    };
    explore(3, 2, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(count(&session, &rel, 0).unwrap(), 2);
        assert_eq!(count(&session, &rel, 1).unwrap(), 1);
        all_is_given_back(bench);
    });
}

/// The same with writes that others finish, in any order, the first of which fails: who changes pages, and who needs
/// their frames, goes on meanwhile.
#[test]
fn a_checkpoint_with_writes_behind_misses_nothing() {
    // The failure may as well be another's write or read.
    fn insist_on<R>(mut act: impl FnMut() -> Result<R, BufferError>) -> R {
        insist(|| {
            loop {
                match act() {
                    Err(BufferError::Store(_)) => thread::yield_now(),
                    other => return other,
                }
            }
        })
    }
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 2 {
            insist_on(|| increment(&session, &rel, 0));
            bench.store.failing.store(1, Ordering::SeqCst);
            while bench.pool.write_dirty(&session, |_| ()).is_err() {}
            let mut page = [0; PAGE_SIZE];
            bench.store.inner.read(REL, BlockNumber(0), &mut [&mut page]).unwrap();
            assert!(page.u64(16) >= 1, "missed");
            verify_checksum(REL.page(BlockNumber(0)), &page).unwrap();
        } else {
            insist_on(|| increment(&session, &rel, 2 * thread as u32));
            insist_on(|| count(&session, &rel, 4));
        }
    };
    explore_with(3, 5, 3, true, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        bench.store.failing.store(0, Ordering::SeqCst);
        assert_eq!(count(&session, &rel, 0).unwrap(), 2);
        assert_eq!(count(&session, &rel, 2).unwrap(), 1);
        all_is_given_back(bench);
    });
}

/// A fork is dropped while others load its pages.
#[test]
fn dropping_beside_loads() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 0 {
            bench.pool.drop_relation(REL.relation).unwrap();
            return;
        }
        for block in [0, 1] {
            match count(&session, &rel, block) {
                Ok(seen) => assert_eq!(seen, 0),
                Err(BufferError::Dropped { .. } | BufferError::BeyondEnd { .. }) => return,
                Err(error) => panic!("{error}"),
            }
        }
    };
    explore(2, 2, 3, work, |bench| {
        assert_eq!(bench.pool.stats().free_frames, 2);
    });
}

/// Sessions extend a fork together, with fewer frames than pages.
#[test]
fn extending_together() {
    let work = |_: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        for _ in 0..2 {
            let mut page = session.extend(&rel, Wait::Allowed).unwrap();
            let block = u64::from(page.block().0).to_le_bytes();
            let mut change = page.change();
            change.write(16, &block);
            change.publish(Lsn(1));
        }
    };
    explore(3, 0, 2, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(rel.block_count(), 4);
        for block in 0..4 {
            let read = session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16));
            assert_eq!(read.unwrap(), u64::from(block));
        }
        all_is_given_back(bench);
    });
}

/// Freeing frames ahead of demand, beside demand.
#[test]
fn reclaiming_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 0 {
            bench.pool.reclaim(&session, 1).unwrap();
            return;
        }
        for block in 0..2 {
            increment(&session, &rel, block).unwrap();
        }
    };
    explore(3, 2, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(count(&session, &rel, 0).unwrap() + count(&session, &rel, 1).unwrap(), 4);
        all_is_given_back(bench);
    });
}

/// Streams beside demand, eviction and a drop: with sixteen frames, runs of two are loaded ahead while others pin
/// the same pages or take their frames. A read that fails is undone for everybody.
#[test]
fn streams_beside_demand() {
    for failing in [0, 1] {
        let work = move |thread: u64, bench: &Bench| {
            let session = bench.pool.session().unwrap();
            let rel = bench.pool.relation(REL).unwrap();
            if thread == 0 {
                bench.store.failing.store(failing, Ordering::SeqCst);
                for block in [5, 1, 2] {
                    let _ = count(&session, &rel, block);
                }
                return;
            }
            let options = StreamOptions { io_concurrency: 2, io_combine_limit: 2 };
            let mut stream = ReadStream::new(options);
            stream.assume_distance(4);
            let mut blocks = 0..6;
            let mut source = || blocks.next().map(BlockNumber);
            while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, None, &mut source) {
                if let Ok(seen) = count(&session, &rel, block.0) {
                    assert_eq!(seen, 0);
                }
                stream.advance();
            }
        };
        explore(16, 6, 3, work, |bench| {
            bench.store.failing.store(0, Ordering::SeqCst);
            bench.pool.drop_relation(REL.relation).unwrap();
            assert_eq!(bench.pool.stats().free_frames, 16);
        });
    }
}

/// Reads that are begun by a session that goes away, and finished by another thread, while a third waits for
/// the pages and a fourth drops the fork.
#[test]
fn reads_in_the_background_end_for_everybody() {
    reads_in_the_background(StreamOptions::default(), 2);
}

/// The same, with reads that wait for their turn: the end of others begins them.
#[test]
fn reads_that_wait_for_their_turn_end_for_everybody() {
    // The store has two of them at a time.
    reads_in_the_background(StreamOptions { io_concurrency: 1, io_combine_limit: 1 }, 3);
}

/// `at_least` so many reads have been begun, or wait for their turn, in some schedule.
fn reads_in_the_background(options: StreamOptions, at_least: u32) {
    // Of so many frames a stream reads four ahead.
    const FRAMES: usize = 32;
    let most = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let seen = Arc::clone(&most);
    let work = move |thread: u64, bench: &Bench| {
        let rel = bench.pool.relation(REL).unwrap();
        match thread {
            0 => {
                let session = bench.pool.session().unwrap();
                let mut stream = ReadStream::new(options);
                stream.assume_distance(4);
                let mut blocks = [0, 1, 3, 2].into_iter();
                let mut source = || blocks.next().map(BlockNumber);
                stream.peek(&session, &rel, Wait::Allowed, None, &mut source);
                seen.fetch_max(stream.under_way(), std::sync::atomic::Ordering::Relaxed);
            }
            1 => {
                let session = bench.pool.session().unwrap();
                for block in [1, 0] {
                    match count(&session, &rel, block) {
                        Ok(seen) => assert_eq!(seen, 0),
                        // Gone, or gone before this thread had its handle.
                        Err(BufferError::Dropped { .. } | BufferError::BeyondEnd { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            _ => bench.pool.drop_relation(REL.relation).unwrap(),
        }
    };
    explore_with(FRAMES, 4, 3, true, work, |bench| {
        // A drop waits for what is under way.
        assert_eq!(bench.pool.free_frames(), FRAMES);
    });
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!(most >= at_least, "{most} reads in the background, at most");
}

/// A scan goes round in a ring of one frame, beside others who change and pin the pages that it brings in.
#[test]
fn a_ring_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread > 0 {
            for block in 0..2 {
                insist(|| increment(&session, &rel, block));
            }
            return;
        }
        let ring = Ring::with_pages(&bench.pool, AccessStrategy::BulkRead, 1).unwrap();
        for block in [0, 1, 2, 0, 1] {
            let seen = insist(|| {
                session.read_with(&rel, BlockNumber(block), Wait::Allowed, Some(&ring), |page| {
                    (page.u64(24), page.u64(16), page.u64(8000))
                })
            });
            assert!([0, mark(block)].contains(&seen.0), "another page");
            assert_eq!(seen.1, seen.2, "torn");
        }
    };
    explore(2, 3, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(count(&session, &rel, 0).unwrap() + count(&session, &rel, 1).unwrap(), 4);
        all_is_given_back(bench);
    });
}

/// A reclaimer that sleeps and is woken, by demand and at the end. A lost wake-up would be a deadlock.
#[test]
fn the_reclaimer_wakes_and_ends() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        if thread == 0 {
            let mut reclaimer = Reclaimer::new(&session);
            while !bench.ending.load(Ordering::SeqCst) {
                reclaimer.wait(|| bench.ending.load(Ordering::SeqCst));
                reclaimer.work().unwrap();
            }
            return;
        }
        let rel = bench.pool.relation(REL).unwrap();
        for block in 0..3 {
            insist(|| increment(&session, &rel, block));
        }
        bench.ending.store(true, Ordering::SeqCst);
        bench.pool.wake_reclaimer();
    };
    explore(8, 3, 2, work, all_is_given_back);
}

/// The pool shrinks and grows beside misses and pins: nothing is lost, and no frame either.
#[test]
fn resizing_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 0 {
            for frames in [2, 5, 3] {
                match bench.pool.resize(&session, frames) {
                    Ok(()) => assert_eq!(bench.pool.frames(), frames),
                    Err(BufferError::Shrinking { frames: left, .. }) => assert!(left > frames),
                    Err(error) => panic!("{error}"),
                }
            }
            return;
        }
        for block in [0, thread as u32] {
            insist(|| increment(&session, &rel, block));
        }
    };
    explore(4, 3, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        let sum: u64 = (0..3).map(|block| count(&session, &rel, block).unwrap()).sum();
        assert_eq!(sum, 4);
        bench.pool.resize(&session, 1).unwrap();
        bench.pool.resize(&session, 3).unwrap();
        assert_eq!((0..3).map(|block| count(&session, &rel, block).unwrap()).sum::<u64>(), 4);
        all_is_given_back(bench);
    });
}

/// A checkpoint while the pool shrinks misses no dirty page beyond its new size.
#[test]
fn a_checkpoint_beside_shrinking() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        if thread == 0 {
            let _ = bench.pool.resize(&session, 1);
            return;
        }
        for block in [0, 1] {
            insist(|| increment(&session, &rel, block));
        }
        bench.pool.write_dirty(&session, |_| ()).unwrap();
        for block in [0, 1] {
            let mut page = [0; PAGE_SIZE];
            bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
            assert_eq!(page.u64(16), 1, "missed");
        }
    };
    explore(3, 2, 2, work, all_is_given_back);
}

/// Batches of claims beside sessions that hold pins for a while, pin again, and take claims away.
#[test]
fn pins_beside_batches() {
    let work = |thread: u64, bench: &Bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        let pin = |block: u32| insist(|| session.pin(&rel, BlockNumber(block), Wait::Allowed));
        if thread == 0 {
            // More than there is room for: each load claims two frames at a time.
            (2..6).for_each(|block| drop(pin(block)));
            return;
        }
        let block = thread as u32 - 1;
        let latch = || insist(|| session.pin_shared(&rel, BlockNumber(block), Wait::Allowed));
        let mut held = latch().unlatch();
        for _ in 0..2 {
            insist(|| increment(&session, &rel, block));
            // The latch alone keeps the page for a while, and then a pin does again.
            let latched = latch();
            drop(held);
            pause();
            assert_eq!(latched.u64(24), mark(block), "not the page that is latched");
            held = latched.unlatch();
            assert_eq!(
                held.read(|page| page.u64(24)).unwrap(),
                mark(block),
                "not the page that is pinned"
            );
        }
        drop(held);
        assert_eq!(session.pinned_pages(), 0);
    };
    explore(4, 6, 3, work, |bench| {
        let session = bench.pool.session().unwrap();
        let rel = bench.pool.relation(REL).unwrap();
        assert_eq!(count(&session, &rel, 0).unwrap() + count(&session, &rel, 1).unwrap(), 4);
        all_is_given_back(bench);
    });
}
