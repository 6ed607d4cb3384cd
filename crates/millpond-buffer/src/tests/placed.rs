//! Pages that the kernel puts straight into frames: damaged ones, missing ones, and late readers.

use super::*;
use crate::store::as_inner;
use crate::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

const BLOCKS: u32 = 24;
const SEGMENT: u32 = 8;

struct Files {
    dir: TempDir,
    store: Arc<FileStore>,
    pool: Arc<BufferPool>,
    rel: RelHandle,
}

fn page_of(block: u32) -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_SIZE]);
    page[16..].as_chunks_mut::<4>().0.fill(block.to_le_bytes());
    set_checksum(REL.page(BlockNumber(block)), &mut page);
    page
}

fn files(frames: usize, io_method: IoMethod) -> Files {
    open(frames, io_method, false).unwrap()
}

/// Files of `blocks` blocks. `None` if direct I/O is not available here.
fn store(dir: &Path, blocks: u32, io_method: IoMethod, direct_io: bool) -> Option<Arc<FileStore>> {
    let segment_blocks = SEGMENT;
    let options =
        FileStoreOptions { segment_blocks, io_method, direct_io, ..FileStoreOptions::default() };
    let store = Arc::new(FileStore::open_with(dir, options).unwrap());
    if let Err(error) = store.create(REL) {
        assert!(direct_io, "{error}");
        println!("skipped: no direct I/O here: {error}");
        return None;
    }
    store.extend(REL, BlockNumber(0), blocks).unwrap();
    let pages: Vec<_> = (0..blocks).map(page_of).collect();
    let pages: Vec<_> = pages.iter().map(|page| &**page).collect();
    store.write(REL, BlockNumber(0), &pages).unwrap();
    Some(store)
}

/// Opens a pool on such files. With direct I/O, read-ahead happens in the background.
fn open(frames: usize, io_method: IoMethod, direct_io: bool) -> Option<Files> {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path(), BLOCKS, io_method, direct_io)?;
    let pool = BufferPool::new(PoolConfig::new(frames, 8), store.clone(), Arc::new(NoLog)).unwrap();
    let rel = pool.relation(REL).unwrap();
    Some(Files { dir, store, pool, rel })
}

/// Runs the test with each I/O method, with and without direct I/O.
fn each_way(frames: usize, test: impl Fn(Files)) {
    for method in [IoMethod::Sync, IoMethod::Worker, IoMethod::IoUring] {
        for direct in [false, true] {
            open(frames, method, direct).into_iter().for_each(&test);
        }
    }
}

impl Files {
    fn segment(&self, index: u32) -> PathBuf {
        let base = REL.relation.get();
        self.dir.path().join(if index == 0 { format!("{base}") } else { format!("{base}.{index}") })
    }

    fn read(&self, session: &BufferSession, block: u32, wait: Wait) -> Result<(), BufferError> {
        let mut bytes = Box::new([0; PAGE_SIZE]);
        session.read(&self.rel, BlockNumber(block), wait, |page| page.copy_page(&mut bytes))?;
        assert!(*bytes == *page_of(block), "block {block}");
        Ok(())
    }

    /// Reads all blocks by a stream; returns those that could not be read.
    fn scan(&self, session: &BufferSession) -> Vec<u32> {
        let mut stream = ReadStream::new(StreamOptions { io_concurrency: 4, io_combine_limit: 8 });
        let mut blocks = (0..BLOCKS).map(BlockNumber);
        let mut failed = Vec::new();
        let mut source = || blocks.next();
        while let Some(block) = stream.peek(session, &self.rel, Wait::Allowed, None, &mut source) {
            if self.read(session, block.0, Wait::Allowed).is_err() {
                failed.push(block.0);
            }
            stream.advance();
        }
        failed
    }

    /// Checks that nothing is stuck: all frames and all pages can be had.
    fn is_whole(&self, session: &BufferSession) {
        assert!(self.scan(session).is_empty());
        self.pool.drop_relation(REL.relation).unwrap();
        assert_eq!(self.pool.core.free_frames(), self.pool.frames());
    }
}

#[test]
fn damage_is_found_and_may_be_mended() {
    each_way(64, |files| {
        let session = files.pool.session().unwrap();
        let mut page = page_of(5);
        page[4000] ^= 1;
        files.store.write(REL, BlockNumber(5), &[&page]).unwrap();
        for wait in [Wait::Allowed, Wait::Never, Wait::Allowed] {
            match files.read(&session, 5, wait) {
                Err(BufferError::WouldBlock) if wait == Wait::Never => {}
                damaged => {
                    assert!(matches!(damaged, Err(BufferError::Checksum { .. })), "{damaged:?}");
                }
            }
        }
        assert_eq!(files.pool.core.free_frames(), 64);
        assert_eq!(files.scan(&session), [5]);
        files.store.write(REL, BlockNumber(5), &[&page_of(5)]).unwrap();
        files.is_whole(&session);
    });
}

#[test]
fn recovery_gets_zeros_for_what_is_damaged() {
    let files = files(4, IoMethod::Sync);
    let session = files.pool.session().unwrap();
    let mut page = page_of(5);
    page[4000] ^= 1;
    files.store.write(REL, BlockNumber(5), &[&page]).unwrap();
    let page = session.pin_or_zero(&files.rel, BlockNumber(5)).unwrap().into_shared().unwrap();
    assert!(is_new(page.bytes()));
}

/// A file ends within a page that is read, or within a run. What had been put into frames by then
/// is no page.
#[test]
fn a_file_that_is_too_short_leaves_nothing_stuck() {
    each_way(64, |files| {
        let session = files.pool.session().unwrap();
        let whole = fs::read(files.segment(1)).unwrap();
        let file = fs::OpenOptions::new().write(true).open(files.segment(1)).unwrap();
        file.set_len(3 * PAGE_SIZE as u64 + PAGE_SIZE as u64 / 2).unwrap();
        for wait in [Wait::Allowed, Wait::Never] {
            match files.read(&session, SEGMENT + 3, wait) {
                Err(BufferError::WouldBlock) if wait == Wait::Never => {}
                short => assert!(
                    matches!(short, Err(BufferError::Store(StoreError::BeyondEnd { .. }))),
                    "{short:?}"
                ),
            }
        }
        assert_eq!(files.pool.core.free_frames(), 64);
        assert_eq!(files.scan(&session), (SEGMENT + 3..2 * SEGMENT).collect::<Vec<_>>());
        fs::write(files.segment(1), whole).unwrap();
        files.is_whole(&session);
    });
}

/// A store of files that always has to wait, so that read-ahead happens in the background, and that
/// counts such reads.
struct Cold {
    inner: Arc<FileStore>,
    /// The number of reads of several pages.
    joined: AtomicUsize,
}

impl Cold {
    fn around<R>(&self, _: &str, call: impl FnOnce() -> R) -> R {
        call()
    }
}

impl PageStore for Cold {
    as_inner! { create remove exists block_count extend truncate write sync relations }
    as_inner! { read read_words }
    fn try_read(
        &self,
        _: RelFork,
        _: BlockNumber,
        _: &mut [&mut PageBytes],
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
    fn reads_in_background(&self) -> bool {
        self.inner.reads_in_background()
    }
    fn wait_for_read(&self, is_done: &dyn Fn() -> bool, sleep: &mut dyn FnMut()) {
        self.inner.wait_for_read(is_done, sleep);
    }
    fn start_read(&self, read: PendingRead) {
        self.joined.fetch_add(usize::from(read.count() > 1), Ordering::Relaxed);
        self.inner.start_read(read);
    }
}

/// The number of blocks of a table. A pool of [`SOME`] frames holds a part of them. Streams there
/// look further ahead than one read joins.
const MANY: u32 = 400;
const SOME: usize = 128;

/// Reads all blocks by a stream, starting at block `from`, and pauses in the middle of some.
fn scan_many(pool: &Arc<BufferPool>, from: u32, combine: u32) {
    let (session, rel) = (pool.session().unwrap(), pool.relation(REL).unwrap());
    let options = StreamOptions { io_concurrency: 4, io_combine_limit: combine };
    let mut stream = ReadStream::new(options);
    let mut blocks = (0..MANY).map(|at| BlockNumber((from + at) % MANY));
    let mut source = || blocks.next();
    let mut bytes = Box::new([0; PAGE_SIZE]);
    let (half, mut seen) = (PAGE_SIZE / 2, 0);
    while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, None, &mut source) {
        let mut yields = if block.0 % 16 == 3 { 200 } else { 0 };
        let copy = |page: &PageView<'_>| {
            page.copy(0, &mut bytes[..half]);
            // Other threads run in between, and the page leaves. The repeated read does not pause.
            (0..std::mem::take(&mut yields)).for_each(|_| std::thread::yield_now());
            page.copy(half, &mut bytes[half..]);
        };
        session.read(&rel, block, Wait::Allowed, copy).unwrap();
        let numbers = bytes[16..].as_chunks::<4>().0;
        assert!(numbers.iter().all(|number| *number == block.0.to_le_bytes()), "block {block}");
        stream.advance();
        seen += 1;
    }
    assert_eq!(seen, MANY);
}

/// The same with reads in the background, which kernel and device carry out while other threads
/// read. They join pages across the ends of files.
#[test]
fn late_readers_see_whole_pages_that_come_in_the_background() {
    let (worker, ring) = (IoMethod::Worker, IoMethod::IoUring);
    for (method, direct, combine) in [(worker, false, 5), (ring, false, 3), (ring, true, 5)] {
        let dir = TempDir::new().unwrap();
        let Some(inner) = store(dir.path(), MANY, method, direct) else { continue };
        if method == ring && inner.io_method() != ring {
            println!("skipped: no io_uring here");
            continue;
        }
        assert_eq!(inner.io_method(), method);
        let cold = Arc::new(Cold { inner, joined: AtomicUsize::new(0) });
        let pool =
            BufferPool::new(PoolConfig::new(SOME, 8), cold.clone(), Arc::new(NoLog)).unwrap();
        let mut rounds = 0;
        while rounds == 0 || pool.stats().restarts == 0 && rounds < 30 {
            rounds += 1;
            std::thread::scope(|scope| {
                for from in [0, 130, 260] {
                    scope.spawn({
                        let pool = &pool;
                        move || scan_many(pool, from, combine)
                    });
                }
            });
        }
        let (joined, stats) = (cold.joined.load(Ordering::Relaxed), pool.stats());
        assert!(joined >= 50, "{joined} joined reads in the background: {stats:?}");
        assert!(stats.restarts > 0, "no session came too late: {stats:?}");
        // A thread that finishes a read may still have its last page pinned for a moment.
        while let Err(error) = pool.drop_relation(REL.relation) {
            assert!(matches!(error, BufferError::InUse { .. }), "{error}");
            std::thread::yield_now();
        }
        assert_eq!(pool.core.free_frames(), SOME);
    }
}

/// Frames change pages all the time, while readers that are not told still read them.
#[test]
fn late_readers_see_whole_pages_or_begin_anew() {
    let (rounds, half) = (20_000, PAGE_SIZE / 2);
    let files = files(8, IoMethod::Sync);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = |step: u32| {
            let (files, ended) = (&files, &ended);
            move || {
                let session = files.pool.session().unwrap();
                for round in 0..rounds {
                    let block = round * step % BLOCKS;
                    let seen =
                        session.read(&files.rel, BlockNumber(block), Wait::Allowed, |page| {
                            [16, half - 96, half, PAGE_SIZE - 4].map(|at| {
                                // Now and then other threads run in between, and the page leaves.
                                if round % 8 == 0 && at == half {
                                    std::thread::yield_now();
                                }
                                page.u32(at)
                            })
                        });
                    assert_eq!(seen.unwrap(), [block; 4]);
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
                ended.store(true, Ordering::Relaxed);
            }
        };
        for step in [1, 5, 7] {
            scope.spawn(read(step));
        }
    });
    let stats = files.pool.stats();
    assert!(stats.misses > 100 && stats.restarts > 0, "no session came too late: {stats:?}");
    files.is_whole(&files.pool.session().unwrap());
}
