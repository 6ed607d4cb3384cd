//! Pages that the kernel puts straight into frames: damaged ones, missing ones, and readers that come too late.

use super::support::REL;
use crate::*;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const BLOCKS: u32 = 24;
/// Blocks in a file.
const SEGMENT: u32 = 8;

struct Files {
    dir: TempDir,
    store: Arc<FileStore>,
    pool: Arc<BufferPool>,
    rel: RelHandle,
}

/// A page full of its number.
fn page_of(block: u32) -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_SIZE]);
    page[16..].as_chunks_mut::<4>().0.fill(block.to_le_bytes());
    set_checksum(REL.page(BlockNumber(block)), &mut page);
    page
}

fn files(frames: usize, io_method: IoMethod) -> Files {
    open(frames, io_method, false).unwrap()
}

/// With direct I/O what is read ahead is read in the background. `None` if there is no such thing here.
fn open(frames: usize, io_method: IoMethod, direct_io: bool) -> Option<Files> {
    let dir = TempDir::new().unwrap();
    let segment_blocks = SEGMENT;
    let options =
        FileStoreOptions { segment_blocks, io_method, direct_io, ..FileStoreOptions::default() };
    let store = Arc::new(FileStore::open_with(dir.path(), options).unwrap());
    if let Err(error) = store.create(REL) {
        assert!(direct_io, "{error}");
        println!("skipped: no direct I/O here: {error}");
        return None;
    }
    store.extend(REL, BlockNumber(0), BLOCKS).unwrap();
    for block in 0..BLOCKS {
        store.write(REL, BlockNumber(block), &[&page_of(block)]).unwrap();
    }
    let pool = BufferPool::new(PoolConfig::new(frames, 8), store.clone(), Arc::new(NoLog)).unwrap();
    let rel = pool.relation(REL).unwrap();
    Some(Files { dir, store, pool, rel })
}

/// In every way there is.
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

    /// Nothing is stuck: all frames can be had, and all pages.
    fn is_whole(&self, session: &BufferSession) {
        assert!(self.scan(session).is_empty());
        self.pool.drop_relation(REL.relation).unwrap();
        assert_eq!(self.pool.free_frames(), self.pool.frames());
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
        assert_eq!(files.pool.free_frames(), 64);
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

/// A file that ends within a page that is read, or within a run: what had been put into frames by then is no page.
#[test]
fn a_file_that_is_too_short_leaves_nothing_stuck() {
    each_way(64, |files| {
        let session = files.pool.session().unwrap();
        let whole = fs::read(files.segment(1)).unwrap();
        let file = fs::OpenOptions::new().write(true).open(files.segment(1)).unwrap();
        file.set_len(3 * PAGE_SIZE as u64 + 4096).unwrap();
        for wait in [Wait::Allowed, Wait::Never] {
            match files.read(&session, SEGMENT + 3, wait) {
                Err(BufferError::WouldBlock) if wait == Wait::Never => {}
                short => assert!(
                    matches!(short, Err(BufferError::Store(StoreError::BeyondEnd { .. }))),
                    "{short:?}"
                ),
            }
        }
        assert_eq!(files.pool.free_frames(), 64);
        assert_eq!(files.scan(&session), (SEGMENT + 3..2 * SEGMENT).collect::<Vec<_>>());
        fs::write(files.segment(1), whole).unwrap();
        files.is_whole(&session);
    });
}

/// The same by reads in the background, which kernel and device carry out while others read.
#[test]
fn late_readers_see_whole_pages_that_come_in_the_background() {
    for method in [IoMethod::Worker, IoMethod::IoUring] {
        let Some(files) = open(16, method, true) else { return };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let session = files.pool.session().unwrap();
                    (0..40).for_each(|_| assert!(files.scan(&session).is_empty()));
                });
            }
        });
        let stats = files.pool.stats();
        assert!(stats.read_ahead > 100, "{stats:?}");
        files.is_whole(&files.pool.session().unwrap());
    }
}

/// Frames change hands all the time, under the eyes of readers that are not told.
#[test]
fn late_readers_see_whole_pages_or_begin_anew() {
    let rounds = 20_000;
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
                            [16, 4000, 4096, PAGE_SIZE - 4].map(|at| {
                                // Now and then others come in between, and the page leaves.
                                if round % 8 == 0 && at == 4096 {
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
    assert!(stats.misses > 100 && stats.restarts > 0, "nobody came too late: {stats:?}");
    files.is_whole(&files.pool.session().unwrap());
}
