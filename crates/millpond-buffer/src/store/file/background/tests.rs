#![allow(clippy::unwrap_used)]
// Some helpers serve only tests that are left out without io_uring or direct I/O.
#![cfg_attr(
    not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))),
    allow(dead_code, unused_imports)
)]

mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use millpond_vfs::testing::AskingVfs;
use millpond_vfs::{OsVfs, Vfs};

use super::*;
use crate::ids::{BlockNumber, RelFork, RelationId};
use crate::read::UnderWay;
use crate::store::{
    FileStore, FileStoreOptions, PageBuffer, PageStore, PendingRead, PendingWrite, StoreError,
};
use crate::{BufferPool, NoLog, PAGE_SIZE, PAGE_WORDS, PageWords, PoolConfig};

pub(super) const REL: RelFork = RelationId::constant(16384).main();
const BLOCKS: u32 = 40;
/// The number of blocks in a file.
pub(super) const SEGMENT: u32 = 7;

/// A store of small segments whose pages begin with their numbers; `None` if the system doesn't
/// support the method.
pub(super) fn store(
    dir: &std::path::Path,
    io_method: IoMethod,
    direct_io: bool,
) -> Option<FileStore> {
    store_on(Arc::new(OsVfs), dir, io_method, direct_io)
}

fn store_on(
    vfs: Arc<dyn Vfs>,
    dir: &std::path::Path,
    io_method: IoMethod,
    direct_io: bool,
) -> Option<FileStore> {
    let has_descriptors = vfs.gives_descriptors();
    let options = FileStoreOptions {
        segment_blocks: SEGMENT,
        io_method,
        direct_io,
        vfs,
        ..FileStoreOptions::default()
    };
    let store = FileStore::open_with(dir, options).unwrap();
    if let Err(error) = store.create(REL) {
        assert!(direct_io, "{error}");
        println!("skipped: no direct I/O here: {error}");
        return None;
    }
    store.extend(REL, BlockNumber(0), BLOCKS).unwrap();
    for block in 0..BLOCKS {
        let mut page = [block as u8; PAGE_SIZE];
        page[..4].copy_from_slice(&block.to_le_bytes());
        store.write(REL, BlockNumber(block), &[&page]).unwrap();
    }
    if io_method == IoMethod::IoUring && store.io_method() != IoMethod::IoUring && has_descriptors {
        println!("skipped: no io_uring here");
        return None;
    }
    Some(store)
}

type Answer = (u32, Result<Vec<u32>, StoreError>);

/// Begins a read and sends its answer to `told`. Some of these reads go to rings that waiting
/// threads tend, but no thread waits here.
fn begin(store: &FileStore, first: u32, count: usize, told: &mpsc::Sender<Answer>) {
    let told = told.clone();
    begin_then(store, first, count, move |answer| told.send(answer).unwrap());
}

/// Begins a read; the thread that finishes it calls `then`.
fn begin_then(
    store: &FileStore,
    first: u32,
    count: usize,
    then: impl FnOnce(Answer) + Send + 'static,
) {
    let done = move |buffer: PageBuffer, result: Result<(), StoreError>| {
        let number = |page: &[u8; PAGE_SIZE]| {
            let (number, rest) = page.split_first_chunk().unwrap();
            let number = u32::from_le_bytes(*number);
            assert!(rest.iter().all(|&byte| byte == number as u8));
            number
        };
        then((first, result.map(|()| buffer.pages().map(number).collect())));
    };
    let mut read = PendingRead::new(REL, BlockNumber(first), PageBuffer::new(count), done);
    if first.is_multiple_of(2) {
        read.set_awaited();
    }
    store.start_read(read);
}

/// A build without io_uring reads and writes by workers.
#[cfg(not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
#[test]
fn workers_stand_in_for_io_uring() {
    let dir = tempfile::tempdir().unwrap();
    let options = FileStoreOptions { io_method: IoMethod::IoUring, ..FileStoreOptions::default() };
    let store = FileStore::open_with(dir.path(), options).unwrap();
    assert_eq!(store.io_method(), IoMethod::Worker);
}

/// The methods of this build, with direct I/O and without where the build has it.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
const METHODS: &[IoMethod] = &[IoMethod::IoUring, IoMethod::Worker, IoMethod::Sync];
#[cfg(not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
const METHODS: &[IoMethod] = &[IoMethod::Worker, IoMethod::Sync];
const DIRECT: &[bool] = if cfg!(millpond_portable) { &[false] } else { &[false, true] };

fn every_method(test: impl Fn(FileStore)) {
    for &method in METHODS {
        for &direct in DIRECT {
            let dir = tempfile::tempdir().unwrap();
            if let Some(store) = store(dir.path(), method, direct) {
                assert_eq!(store.io_method(), method);
                test(store);
            }
        }
    }
    for method in [IoMethod::IoUring, IoMethod::Worker, IoMethod::Sync] {
        let dir = tempfile::tempdir().unwrap();
        let plain = AskingVfs::new(OsVfs, |_, _| Ok(()));
        if let Some(store) = store_on(plain, dir.path(), method, false) {
            assert_ne!(store.io_method(), IoMethod::IoUring, "without descriptors");
            test(store);
        }
    }
}

#[test]
fn many_reads_across_segments() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        let reads = (0..600u32).map(|i| (i * 7 % 31, (i % 9 + 1) as usize));
        for (first, count) in reads.clone() {
            begin(&store, first, count, &told);
        }
        let mut expected: Vec<_> =
            reads.map(|(first, count)| (first..first + count as u32).collect::<Vec<_>>()).collect();
        let mut seen: Vec<_> = hear.iter().take(600).map(|(_, read)| read.unwrap()).collect();
        expected.sort();
        seen.sort();
        assert_eq!(seen, expected);
    });
}

#[test]
fn reads_beyond_the_end_are_errors_and_the_others_go_on() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        for (first, count) in [(38, 4), (35, 5), (90, 1), (0, 1)] {
            begin(&store, first, count, &told);
        }
        for (first, read) in hear.iter().take(4) {
            assert_eq!(read.is_ok(), first == 35 || first == 0, "{first}: {read:?}");
        }
        store.remove(REL.relation).unwrap();
        begin(&store, 0, 1, &told);
        assert!(hear.recv().unwrap().1.is_err());
    });
}

/// Begins a write of pages whose contents are `number` and up.
fn begin_write(
    store: &FileStore,
    first: u32,
    count: usize,
    number: u8,
    told: &mpsc::Sender<(u32, Result<(), StoreError>)>,
) {
    let mut buffer = PageBuffer::new(count);
    for (at, page) in buffer.pages_mut().into_iter().enumerate() {
        page.fill(number + at as u8);
    }
    let told = told.clone();
    let done = move |_: PageBuffer, result: Result<(), StoreError>| {
        told.send((first, result)).unwrap();
    };
    store.start_write(PendingWrite::new(REL, BlockNumber(first), buffer, done));
}

fn first_bytes(store: &FileStore, blocks: std::ops::Range<u32>) -> Vec<u8> {
    blocks
        .map(|block| {
            let mut page = [0; PAGE_SIZE];
            store.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
            assert!(page.iter().all(|byte| *byte == page[0]), "block {block} is torn");
            page[0]
        })
        .collect()
}

#[test]
fn many_writes_across_segments() {
    every_method(|store| {
        store.sync().unwrap();
        assert_eq!(store.unsynced.left().1, 0);
        let (told, hear) = mpsc::channel();
        for first in (0..BLOCKS).step_by(5) {
            begin_write(&store, first, 5, 100 + first as u8, &told);
        }
        for (_, written) in hear.iter().take(BLOCKS as usize / 5) {
            written.unwrap();
        }
        assert_eq!(store.unsynced.left().1, 6);
        store.sync().unwrap();
        assert_eq!(store.unsynced.left().1, 0);
        let expected: Vec<u8> = (100..100 + BLOCKS as u8).collect();
        assert_eq!(first_bytes(&store, 0..BLOCKS), expected);
    });
}

/// A requester may sync as soon as it is told that its write has ended: the file is noted by then.
#[test]
fn a_write_is_noted_before_its_end_is_told() {
    every_method(|store| {
        store.sync().unwrap();
        let (told, hear) = mpsc::channel();
        let unsynced = Arc::clone(&store.unsynced);
        let done = move |_: PageBuffer, result: Result<(), StoreError>| {
            told.send((unsynced.left().1, result.is_ok())).unwrap();
        };
        store.start_write(PendingWrite::new(REL, BlockNumber(6), PageBuffer::new(2), done));
        assert_eq!(hear.recv().unwrap(), (2, true));
    });
}

/// Only those of several writes fail that must, and each reports its own error.
#[test]
fn a_write_that_fails_is_an_error_of_its_own() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        begin_write(&store, 0, 3, 1, &told);
        // Segments have seven blocks, so the seventh does not exist.
        begin_write(&store, 42, 2, 2, &told);
        begin_write(&store, 40, 4, 3, &told);
        begin_write(&store, 6, 2, 4, &told);
        for (first, written) in hear.iter().take(4) {
            assert_eq!(written.is_ok(), first < 40, "{first}: {written:?}");
        }
        assert_eq!(first_bytes(&store, 0..3), [1, 2, 3]);
        assert_eq!(first_bytes(&store, 6..8), [4, 5]);
        // Once a sync has failed, nothing is written any more.
        store.unsynced.stop("sync it".to_owned(), std::io::Error::other("made to fail"));
        begin_write(&store, 0, 1, 9, &told);
        let (_, refused) = hear.recv().unwrap();
        assert!(matches!(refused, Err(StoreError::Stopped { .. })), "{refused:?}");
        assert_eq!(first_bytes(&store, 0..1), [1]);
    });
}

#[test]
fn writes_of_a_store_that_is_dropped_are_finished() {
    for method in [IoMethod::IoUring, IoMethod::Worker, IoMethod::Sync] {
        let dir = tempfile::tempdir().unwrap();
        let Some(store) = store(dir.path(), method, false) else { continue };
        let (told, hear) = mpsc::channel();
        (0..BLOCKS).for_each(|block| begin_write(&store, block, 1, 100 + block as u8, &told));
        drop((store, told));
        assert_eq!(hear.iter().filter(|(_, written)| written.is_ok()).count(), 40);
        let store = FileStore::open_with(
            dir.path(),
            FileStoreOptions { segment_blocks: 7, ..FileStoreOptions::default() },
        );
        let expected: Vec<u8> = (100..140).collect();
        assert_eq!(first_bytes(&store.unwrap(), 0..BLOCKS), expected);
    }
}

#[test]
fn a_store_that_is_dropped_finishes_what_was_begun() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        for i in 0..300 {
            begin(&store, i % BLOCKS, 1, &told);
        }
        drop((store, told));
        assert_eq!(hear.iter().filter(|(_, read)| read.is_ok()).count(), 300);
    });
}

#[test]
fn a_callback_that_panics_ends_only_its_own_read() {
    every_method(|store| {
        let method = store.io_method();
        if method == IoMethod::Sync {
            return;
        }
        let (told, hear) = mpsc::channel();
        for i in 0..5 {
            let done = |_: PageBuffer, _: Result<(), StoreError>| panic!("made to panic");
            let read = PendingRead::new(REL, BlockNumber(i), PageBuffer::new(1), done);
            store.start_read(read);
            begin(&store, i, 1, &told);
        }
        assert!(hear.iter().take(5).all(|(_, read)| read.is_ok()));
    });
}

#[test]
fn an_idle_thread_is_woken() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        for i in (1..200).step_by(2) {
            begin(&store, i % BLOCKS, 1, &told);
            assert_eq!(hear.recv().unwrap().1.unwrap(), [i % BLOCKS]);
        }
    });
}

// The portable paths have no direct I/O on Linux.
#[cfg(not(millpond_portable))]
#[test]
fn memory_that_is_not_aligned_will_do_for_direct_io() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store(dir.path(), IoMethod::Sync, true) else { return };
    let mut memory = vec![[0u8; PAGE_SIZE]; 3];
    let bytes = memory.as_flattened_mut();
    let at = if bytes.as_ptr().addr().is_multiple_of(4096) { 1 } else { 0 };
    let page: &mut [u8; PAGE_SIZE] = bytes[at..].first_chunk_mut().unwrap();
    store.read(REL, BlockNumber(9), &mut [&mut *page]).unwrap();
    assert_eq!(page[..5], [9, 0, 0, 0, 9]);
    page.fill(77);
    store.write(REL, BlockNumber(9), &[&*page]).unwrap();
    assert!(!store.try_read(REL, BlockNumber(9), &mut [&mut *page]).unwrap());
    store.read(REL, BlockNumber(9), &mut [&mut *page]).unwrap();
    assert_eq!(*page, [77; PAGE_SIZE]);
    // The same with words, at two places that are not both aligned.
    let words: Vec<AtomicU64> = (0..=PAGE_WORDS).map(|_| AtomicU64::new(0)).collect();
    for at in [0, 1] {
        let page: &PageWords = words[at..].first_chunk().unwrap();
        store.read_words(REL, BlockNumber(9), &[page]).unwrap();
        let word = u64::from_ne_bytes([77; 8]);
        assert!(page.iter().all(|found| found.swap(0, Ordering::Relaxed) == word), "{at}");
    }
}

/// A job without pages ends where it is taken from the queue. The read that it begins there comes
/// to the same queue.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
#[test]
fn a_read_that_ends_at_once_begins_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store(dir.path(), IoMethod::IoUring, false) else { return };
    let store = Arc::new(store);
    let pool = BufferPool::new(PoolConfig::new(16, 2), store.clone(), Arc::new(NoLog)).unwrap();
    // The ring's thread is busy until all reads have been prepared.
    let (busy, is_busy) = mpsc::channel();
    let (free, is_free) = mpsc::channel::<()>();
    let wait = move |_, _| {
        busy.send(()).unwrap();
        is_free.recv().unwrap();
    };
    store.start_read(PendingRead::new(REL, BlockNumber(0), PageBuffer::new(1), wait));
    is_busy.recv().unwrap();
    let (told, hear) = mpsc::channel();
    let under_way = UnderWay::default();
    for number in 0..3 {
        let told = told.clone();
        let done = move |_, result: Result<(), StoreError>| {
            result.unwrap();
            told.send(number).unwrap();
        };
        let read = PendingRead::new(REL, BlockNumber(0), PageBuffer::new(0), done);
        under_way.begin(pool.store(), read, 1);
    }
    assert_eq!(under_way.count(), 3);
    free.send(()).unwrap();
    for number in 0..3 {
        let heard = hear.recv_timeout(std::time::Duration::from_secs(60));
        if heard.is_err() {
            // A thread that waits for itself has the queue's lock, and dropping the store would
            // wait for that.
            std::mem::forget(pool.clone());
        }
        assert_eq!(heard, Ok(number));
    }
}
