//! Tests of the pool as a whole, and stores and logs for them: they fail on demand, count, and
//! remember calls.
#![allow(clippy::unwrap_used)]

mod async_write;
mod basics;
mod counterpart;
mod damage;
mod failures;
mod misuse;
#[cfg(all(feature = "file-store", not(miri)))]
mod placed;
mod random;
mod replacement;
mod rings;
// It protects entries by the page of memory, and relies on pages of 4 KiB.
#[cfg(not(any(miri, all(target_vendor = "apple", target_arch = "aarch64"))))]
mod shared_writes;
mod streams;
mod turns;
mod undone;

use crate::page::words;
use crate::store::as_inner;
use crate::*;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const REL: RelFork = RelationId::constant(7).main();

/// A log subscriber that calls a function for each line of the log.
pub(crate) struct OnLine<F>(pub(crate) F);

impl<F: Fn() + Send + Sync + 'static> tracing::Subscriber for OnLine<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0();
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A memory store that records writes, and whose operations can be made to fail or panic.
#[derive(Default)]
struct TestStore {
    inner: MemoryStore,
    fail_reads: AtomicBool,
    fail_writes: AtomicBool,
    /// Truncation stops half-way, with an error.
    half_truncates: AtomicBool,
    panic_reads: AtomicBool,
    panic_writes: AtomicBool,
    panic_starts: AtomicBool,
    /// `try_read` answers that it would have to wait.
    cold: AtomicBool,
    reads: AtomicU64,
    /// Reads that are begun stay here until a test finishes them.
    background: AtomicBool,
    begun: Mutex<Vec<PendingRead>>,
    /// Writes that are begun stay here until a test finishes them.
    behind: AtomicBool,
    begun_writes: Mutex<Vec<PendingWrite>>,
    /// The number of pages of each read that was begun or waited for.
    lengths: Mutex<Vec<usize>>,
    writes: Mutex<Vec<(RelFork, u32, usize)>>,
    /// Held by a test that lets no read go on.
    gate: RwLock<()>,
    /// `None` unless calls are noted.
    calls: Mutex<Option<Calls>>,
    /// The least time that each write takes, and the total time of all writes.
    write_us: AtomicU64,
    written_us: AtomicU64,
}

/// The calls of a store so far, and how one of them is broken.
#[derive(Default)]
struct Calls {
    names: Vec<&'static str>,
    broken: Option<Breakage>,
}

/// The way in which a call is broken.
#[derive(Debug, Clone, Copy)]
struct Breakage {
    /// The number of the call, counted from 0.
    step: usize,
    panics: bool,
    /// The store has done its work before the call fails.
    done: bool,
}

fn broken(what: &str) -> StoreError {
    StoreError::io(what, std::io::Error::other("made to fail"))
}

fn scribble(pages: &[&PageWords]) {
    let words = pages.iter().flat_map(|words| words.iter());
    words.for_each(|word| word.store(0xEEEE_EEEE_EEEE_EEEE, Ordering::Relaxed));
}

impl PageStore for TestStore {
    as_inner! { create remove exists block_count extend sync relations }
    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        self.around("truncate", || {
            if self.fail_writes.load(Ordering::Relaxed) {
                return Err(broken("truncate"));
            }
            if self.half_truncates.load(Ordering::Relaxed) {
                let half = (block_count + self.inner.block_count(rel)?).div_ceil(2);
                return self.inner.truncate(rel, half).and(Err(broken("truncate")));
            }
            self.inner.truncate(rel, block_count)
        })
    }
    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.lengths.lock().push(pages.len());
        drop(self.gate.read());
        assert!(!self.panic_reads.load(Ordering::Relaxed), "made to panic");
        if self.fail_reads.load(Ordering::Relaxed) {
            return Err(broken("read"));
        }
        self.around("read", || self.inner.read(rel, first, pages))
    }
    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        self.around("try_read", || match self.cold.load(Ordering::Relaxed) {
            true => Ok(false),
            false => self.read(rel, first, pages).map(|()| true),
        })
    }
    /// Leaves the frames with other bytes than before, whatever the result.
    fn read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<(), StoreError> {
        scribble(pages);
        let mut buffer = PageBuffer::new(pages.len());
        self.read(rel, first, &mut buffer.pages_mut())?;
        pages.iter().zip(buffer.pages()).for_each(|(words, page)| words::copy_in(words, page));
        Ok(())
    }
    fn try_read_words(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&PageWords],
    ) -> Result<bool, StoreError> {
        scribble(pages);
        self.around("try_read", || match self.cold.load(Ordering::Relaxed) {
            true => Ok(false),
            false => self.read_words(rel, first, pages).map(|()| true),
        })
    }
    fn start_read(&self, mut read: PendingRead) {
        assert!(!self.panic_starts.load(Ordering::Relaxed), "made to panic");
        if self.background.load(Ordering::Relaxed) {
            self.begun.lock().push(read);
            return;
        }
        let result = self.around("start_read", || read.read_from(self));
        read.finish(result);
    }
    fn reads_in_background(&self) -> bool {
        self.background.load(Ordering::Relaxed)
    }
    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        assert!(!self.panic_writes.load(Ordering::Relaxed), "made to panic");
        let (begun, takes) = (Instant::now(), self.write_us.load(Ordering::Relaxed));
        while begun.elapsed() < Duration::from_micros(takes) {
            std::thread::yield_now();
        }
        self.written_us.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        if self.fail_writes.load(Ordering::Relaxed) {
            return Err(broken("write"));
        }
        self.writes.lock().push((rel, first.0, pages.len()));
        self.around("write", || self.inner.write(rel, first, pages))
    }
    fn start_write(&self, write: PendingWrite) {
        if self.behind.load(Ordering::Relaxed) {
            self.begun_writes.lock().push(write);
        } else {
            let result = self.write(write.rel(), write.first(), &write.pages());
            write.finish(result);
        }
    }
}

/// A log that remembers how far it was flushed and that can be stopped.
#[derive(Default)]
struct TestLog {
    flushed: AtomicU64,
    stopped: AtomicBool,
    panics: AtomicBool,
    /// The number of the call of `flushed` that panics; 0: none.
    panics_when_asked: AtomicU64,
}

impl LogFlush for TestLog {
    fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError> {
        assert!(!self.panics.load(Ordering::Relaxed), "made to panic");
        if self.stopped.load(Ordering::Relaxed) {
            return Err(LogFlushError::new("made to stop"));
        }
        self.flushed.fetch_max(lsn.0, Ordering::Relaxed);
        Ok(())
    }
    fn flushed(&self) -> Lsn {
        let less = |left: u64| left.checked_sub(1);
        let left = self.panics_when_asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        assert_ne!(left, Ok(1), "made to panic");
        Lsn(self.flushed.load(Ordering::Relaxed))
    }
}

impl TestStore {
    /// Makes a call of the inner store. If calls are noted, notes it, and breaks it if it is the
    /// one to be broken.
    fn around<R>(
        &self,
        name: &'static str,
        call: impl FnOnce() -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut calls = self.calls.lock();
        let broken = calls.as_mut().and_then(|Calls { names, broken }| {
            names.push(name);
            broken.filter(|broken| broken.step + 1 == names.len())
        });
        drop(calls);
        let Some(Breakage { panics, done, .. }) = broken else { return call() };
        if done {
            call()?;
        }
        assert!(!panics, "made to panic");
        Err(crate::tests::broken(name))
    }

    /// Finishes all reads that have been begun; returns their number.
    fn finish_begun(&self) -> usize {
        let begun = std::mem::take(&mut *self.begun.lock());
        let count = begun.len();
        begun.into_iter().for_each(|read| self.finish(read));
        count
    }

    /// Waits until `count` writes have been begun.
    fn wait_for_writes(&self, count: usize) -> Vec<PendingWrite> {
        loop {
            let mut begun = self.begun_writes.lock();
            assert!(begun.len() <= count, "{begun:?}");
            if begun.len() == count {
                return std::mem::take(&mut *begun);
            }
            drop(begun);
            std::thread::yield_now();
        }
    }

    /// Carries out and finishes a write that has been begun.
    fn finish_write(&self, write: PendingWrite) {
        let result = self.write(write.rel(), write.first(), &write.pages());
        write.finish(result);
    }

    /// Finishes a read that has been begun.
    fn finish(&self, mut read: PendingRead) {
        let result = match read.first().0.is_multiple_of(2) {
            true => read.read_from(self),
            // Like a store that can't fill frames.
            false => self.read(read.rel(), read.first(), &mut read.pages_mut()),
        };
        read.finish(result);
    }
}

struct Bench {
    store: Arc<TestStore>,
    log: Arc<TestLog>,
    pool: Arc<BufferPool>,
}

/// Each session has its counters, which take Miri long.
const SESSIONS: usize = if cfg!(miri) { 6 } else { 16 };

/// The number of frames of a pool in which a stream, which gets an eighth, has room to look ahead.
/// Miri takes long to make them.
const STREAM_FRAMES: usize = if cfg!(miri) { 128 } else { 512 };

/// A pool of `frames` frames and a fork of `blocks` blocks, each carrying its number.
fn bench(frames: usize, blocks: u32) -> Bench {
    bench_of(PoolConfig::new(frames, SESSIONS), blocks)
}

/// The same under the plain clock sweep.
fn clock_sweep_bench(frames: usize, blocks: u32) -> Bench {
    let mut config = PoolConfig::new(frames, SESSIONS);
    config.policy = crate::policy::ReplacementPolicy::ClockSweep;
    bench_of(config, blocks)
}

fn bench_of(mut config: PoolConfig, blocks: u32) -> Bench {
    // One freelist, so that the choice of a frame does not depend on the processor.
    config.freelists = 1;
    // Tests that resize have small pools.
    config.max_frames =
        if cfg!(miri) && config.frames > 32 { config.frames } else { 2 * config.frames };
    let store = Arc::new(TestStore::default());
    let log = Arc::new(TestLog::default());
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), blocks).unwrap();
    for block in 0..blocks {
        let mut page = [0; PAGE_SIZE];
        page[16..24].copy_from_slice(&u64::from(block).to_le_bytes());
        set_checksum(REL.page(BlockNumber(block)), &mut page);
        store.inner.write(REL, BlockNumber(block), &[&page]).unwrap();
    }
    let pool = BufferPool::new(config, store.clone(), log.clone()).unwrap();
    Bench { store, log, pool }
}

/// Opens a session, and the fork.
trait Open {
    fn open(&self) -> (BufferSession, RelHandle);
}

impl Open for Arc<BufferPool> {
    fn open(&self) -> (BufferSession, RelHandle) {
        (self.session().unwrap(), self.relation(REL).unwrap())
    }
}

fn pin_block<'s>(session: &'s BufferSession, rel: &RelHandle, block: u32) -> PinnedPage<'s> {
    session.pin(rel, BlockNumber(block), Wait::Allowed).unwrap()
}

/// A stream's source.
fn source_of(blocks: impl IntoIterator<Item = u32>) -> impl FnMut() -> Option<BlockNumber> {
    let mut blocks = blocks.into_iter();
    move || blocks.next().map(BlockNumber)
}

/// Checks that no frame is held by a read or a load that should have ended.
fn all_free_after_drop(bench: &Bench) {
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.core.free_frames(), bench.pool.frames());
}

/// The number that a page carries, read optimistically.
fn number(session: &BufferSession, rel: &RelHandle, block: u32) -> u64 {
    session.read(rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16)).unwrap()
}

/// Changes the number that a page carries.
fn set_number(session: &BufferSession, rel: &RelHandle, block: u32, to: u64, lsn: u64) {
    let mut page = pin_block(session, rel, block).into_exclusive().unwrap();
    write_number(&mut page, to, lsn);
}

fn write_number(page: &mut ExclusivePage<'_>, to: u64, lsn: u64) {
    let mut change = page.change();
    change.write(16, &to.to_le_bytes());
    change.publish(Lsn(lsn));
}
