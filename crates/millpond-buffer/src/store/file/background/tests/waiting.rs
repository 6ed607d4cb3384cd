//! Threads that wait for reads, the reads that they leave to others, and what rings do for them.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use super::*;
use crate::{PageRead, ReadStream, StreamOptions, Wait, set_checksum};

/// A waiting thread finishes its own reads, and other threads finish those that it leaves.
#[test]
fn waiting_thread_finishes_its_own_reads() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        let heard = std::cell::RefCell::new(Vec::new());
        let waiter = std::thread::current().id();
        let by_waiter = Arc::new(AtomicUsize::new(0));
        let begin = |first, count| {
            let (told, by_waiter) = (told.clone(), Arc::clone(&by_waiter));
            begin_then(&store, first, count, move |answer| {
                let is_waiter = std::thread::current().id() == waiter;
                by_waiter.fetch_add(usize::from(is_waiter), Ordering::Relaxed);
                told.send(answer).unwrap();
            });
        };
        for i in 0..100 {
            begin(i * 2 % BLOCKS, 1);
            begin((i * 2 + 20) % (BLOCKS - 2), 3);
            let is_done = || {
                heard.borrow_mut().extend(hear.try_iter());
                heard.borrow().len() > i as usize
            };
            while !is_done() {
                store
                    .wait_for_read(&is_done, &mut || heard.borrow_mut().push(hear.recv().unwrap()));
            }
        }
        let left = 200 - heard.borrow().len();
        heard.borrow_mut().extend(hear.iter().take(left));
        assert!(heard.take().into_iter().all(|(_, read)| read.is_ok()));
        // The reaper may come first now and then, but not always.
        let by_waiter = by_waiter.load(Ordering::Relaxed);
        assert!(store.io_method() != IoMethod::IoUring || by_waiter > 0, "no waiter took one");
    });
}

/// The kernel completes a read in the thread that has begun it, although that thread computes and
/// never calls the kernel.
#[test]
fn computing_thread_does_not_block_waiting_threads() {
    every_method(|store| {
        let (told, hear) = mpsc::channel();
        let (has_begun, has_come) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begin(&store, 0, 1, &told);
                has_begun.store(true, Ordering::Release);
                // Nothing here calls the kernel.
                let until = Instant::now() + Duration::from_secs(60);
                while !has_come.load(Ordering::Acquire) && Instant::now() < until {
                    std::hint::spin_loop();
                }
                assert!(has_come.load(Ordering::Acquire), "no other session was given the page");
            });
            while !has_begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let heard = std::cell::RefCell::new(None);
            let is_done = || {
                let mut heard = heard.borrow_mut();
                *heard = heard.take().or_else(|| hear.try_recv().ok());
                heard.is_some()
            };
            while !is_done() {
                store.wait_for_read(&is_done, &mut || *heard.borrow_mut() = hear.recv().ok());
            }
            has_come.store(true, Ordering::Release);
            assert_eq!(heard.take().unwrap().1.unwrap(), [0]);
        });
    });
}

/// Reads without end, each of which begins when the one before ends.
#[derive(Clone)]
struct Chain {
    store: Arc<FileStore>,
    /// The number of reads that have ended, and of those that ended on the waiting thread.
    ended: Arc<AtomicUsize>,
    by_waiter: Arc<AtomicUsize>,
    waiter: std::thread::ThreadId,
    may_end: Arc<AtomicBool>,
    told: mpsc::Sender<Answer>,
}

impl Chain {
    /// Enough to recognize a thread that would go on for ever.
    const LONG: usize = 20_000;

    fn begin(self) {
        begin_then(&Arc::clone(&self.store), 0, 1, move |answer| {
            let is_waiter = std::thread::current().id() == self.waiter;
            self.by_waiter.fetch_add(usize::from(is_waiter), Ordering::Relaxed);
            let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
            match ended >= Self::LONG || self.may_end.load(Ordering::Relaxed) {
                true => self.told.send(answer).unwrap(),
                false => self.begin(),
            }
        });
    }
}

/// A thread that waits for one read leaves when that has come, however many other reads there are.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
#[test]
fn waiting_thread_leaves_when_its_page_has_come() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store(dir.path(), IoMethod::IoUring, false) else { return };
    let store = Arc::new(store);
    for _ in 0..20 {
        let (told, hear) = mpsc::channel();
        let chain = Chain {
            store: Arc::clone(&store),
            ended: Arc::default(),
            by_waiter: Arc::default(),
            waiter: std::thread::current().id(),
            may_end: Arc::default(),
            told,
        };
        chain.clone().begin();
        let is_done = || chain.ended.load(Ordering::Relaxed) > 0;
        while !is_done() {
            store.wait_for_read(&is_done, &mut std::thread::yield_now);
        }
        // One more read may have been reaped with the thread's own.
        assert!(chain.by_waiter.load(Ordering::Relaxed) <= 2, "its page has come");
        chain.may_end.store(true, Ordering::Relaxed);
        hear.recv().unwrap().1.unwrap();
    }
}

/// Streams that are left alone, and other sessions that need their pages.
#[test]
fn sessions_with_streams_and_without() {
    every_method(|store| {
        store.extend(REL, BlockNumber(0), 400).unwrap();
        for block in (0..400).map(BlockNumber) {
            let mut page = [0; PAGE_SIZE];
            page[16..20].copy_from_slice(&block.0.to_le_bytes());
            set_checksum(REL.page(block), &mut page);
            store.write(REL, block, &[&page]).unwrap();
        }
        let pool =
            BufferPool::new(PoolConfig::new(128, 8), Arc::new(store), Arc::new(NoLog)).unwrap();
        std::thread::scope(|scope| {
            for number in 0..6u32 {
                let pool = &pool;
                scope.spawn(move || {
                    let session = pool.session().unwrap();
                    let rel = pool.relation(REL).unwrap();
                    for round in 0..12 {
                        let options =
                            StreamOptions { io_concurrency: 6, io_combine_limit: 1 + number % 3 };
                        let mut stream = ReadStream::new(options);
                        let next = |at: u32| (at * 97 + 13 + round) % 400;
                        let (mut at, mut expected) = (number * 7 + round, number * 7 + round);
                        let mut source = || {
                            at = next(at);
                            Some(BlockNumber(at))
                        };
                        for _ in 0..30 {
                            expected = next(expected);
                            let page =
                                stream.next_page(&session, &rel, Wait::Allowed, None, &mut source);
                            let page = page.unwrap().unwrap();
                            let found = (page.block().0, page.read(|page| page.u32(16)).unwrap());
                            assert_eq!(found, (expected, expected));
                        }
                        let block = BlockNumber((round * 31 + number) % 400);
                        let found = session.read(&rel, block, Wait::Allowed, |page| page.u32(16));
                        assert_eq!(found.unwrap(), block.0);
                    }
                });
            }
        });
    });
}

/// What a ring asks of the kernel, and a kernel that refuses to serve it, for a while or for good.
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
mod rings {
    use rustix::io::Errno;

    use super::super::uring::{Uring, refusals};
    use super::*;
    use crate::arena::Arena;
    use crate::store::Memory;
    use crate::store::file::changes::Unsynced;
    use crate::tests::OnLine;

    /// A store with shared rings; `None` if the system doesn't support them.
    fn store_with_shared_rings(dir: &std::path::Path) -> Option<FileStore> {
        let store = store(dir, IoMethod::IoUring, false)?;
        if store.background.running().shared_rings.is_none() {
            println!("skipped: no io_uring for all here");
            return None;
        }
        Some(store)
    }

    /// At first the kernel has no memory for a thread that enters a ring. The jobs of other threads
    /// there don't suffer.
    #[test]
    fn a_kernel_without_memory_is_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let Some(store) = store_with_shared_rings(dir.path()) else { return };
        let (told, hear) = mpsc::channel();
        let heard = std::cell::RefCell::new(Vec::new());
        refusals::set(Errno::NOMEM, 5);
        (0..6).step_by(2).for_each(|first| begin(&store, first, 1, &told));
        assert_eq!(refusals::left(), 2);
        let is_done = || {
            heard.borrow_mut().extend(hear.try_iter());
            heard.borrow().len() == 3
        };
        while !is_done() {
            store.wait_for_read(&is_done, &mut || heard.borrow_mut().push(hear.recv().unwrap()));
        }
        refusals::set(Errno::NOMEM, 0);
        for (first, read) in heard.take() {
            assert_eq!(read.unwrap(), [first]);
        }
    }

    /// The requester gets the error, and later reads go to the threads that own rings.
    #[test]
    fn others_read_when_a_ring_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        let Some(store) = store_with_shared_rings(dir.path()) else { return };
        let (told, hear) = mpsc::channel();
        refusals::set(Errno::IO, 1);
        begin(&store, 0, 2, &told);
        let (_, failed) = hear.recv().unwrap();
        assert!(failed.unwrap_err().to_string().contains("io_uring failed"));
        // Otherwise the reaper would look after it for ever.
        let shared = store.background.running().shared_rings.as_ref();
        assert!(shared.is_none_or(shared_rings::SharedRings::are_idle));
        for first in (0..BLOCKS).step_by(2) {
            begin(&store, first, 2, &told);
            assert_eq!(hear.recv().unwrap().1.unwrap(), [first, first + 1]);
        }
    }

    /// Callbacks panic while jobs are given up. No memory comes back that the device may still
    /// write to, and all requesters are told.
    #[test]
    fn memory_that_a_ring_has_is_left_whatever_panics() {
        let dir = tempfile::tempdir().unwrap();
        let Some(store) = store_with_shared_rings(dir.path()) else { return };
        let arena = Arena::new(16, false).unwrap();
        // Either the end of a job panics, and then the log; or the log alone, as it reports that
        // the store has stopped.
        for ends_panic in [true, false] {
            let (told, hear) = mpsc::channel();
            let stops = Arc::<Unsynced>::default();
            let mut ring = Uring::for_all().unwrap();
            for first in 0..4 {
                let told = told.clone();
                let done = move |memory: Option<Memory>, result: Result<(), StoreError>| {
                    told.send((memory.is_some(), result.is_ok())).unwrap();
                    assert!(!ends_panic, "made to panic");
                };
                let lent = arena.lend(first * 4..first * 4 + 4);
                let PendingRead(transfer) =
                    PendingRead::into_frames(REL, BlockNumber(first * 5), lent, done);
                let pieces = store.pieces_of(&transfer, REL, BlockNumber(first * 5)).unwrap();
                let unsynced = (!ends_panic).then(|| Arc::clone(&stops));
                assert!(ring.add(Job { transfer, pieces, unsynced }).is_none());
            }
            refusals::set(Errno::IO, 1);
            let panics = OnLine(|| panic!("made to panic by a line in the log"));
            tracing::subscriber::with_default(panics, || drop(ring));
            assert_eq!(hear.try_iter().collect::<Vec<_>>(), [(false, false); 4]);
            // What a write has left in the file is unknown, so no sync may succeed after it.
            assert_eq!(stops.check_running().is_err(), !ends_panic);
        }
    }

    const MARK: u8 = 0xEE;

    /// The contents of blocks in the store.
    fn stored(first: u32, count: u32) -> Vec<u8> {
        let page = |block: u32| {
            let mut page = [block as u8; PAGE_SIZE];
            page[..4].copy_from_slice(&block.to_le_bytes());
            page
        };
        (first..first + count).flat_map(page).collect()
    }

    /// Goes on with a read of which some bytes are there. Returns the number of pieces of memory in
    /// the first request.
    fn read_rest(
        store: &FileStore,
        PendingRead(transfer): PendingRead,
        first: u32,
        done: usize,
    ) -> usize {
        let pieces = store.pieces_of(&transfer, REL, BlockNumber(first)).unwrap();
        let job = Job { transfer, pieces, unsynced: None };
        let mut ring = Uring::for_all().unwrap();
        // A ring that is dropped waits for the kernel, and goes on where that has stopped.
        ring.add_rest(job, done)
    }

    #[test]
    fn a_request_is_for_what_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let Some(store) = store(dir.path(), IoMethod::IoUring, false) else { return };
        let arena = Arena::new(8, false).unwrap();
        for (first, count) in [(5, 4), (3, 3), (6, 2), (6, 1), (2, 1)] {
            let all = count as usize * PAGE_SIZE;
            let border = (SEGMENT - first % SEGMENT) as usize * PAGE_SIZE;
            let places = [0, 512, PAGE_SIZE, PAGE_SIZE + 512, border - 512, border, border + 512];
            for done in places.into_iter().filter(|done| *done < all) {
                let case = format!("{count} blocks from {first}, {done} bytes done");
                let check = |found: &[u8]| {
                    assert!(found[..done].iter().all(|byte| *byte == MARK), "{case}: before");
                    assert!(found[done..] == stored(first, count)[done..], "{case}: after");
                };
                // Into frames.
                let (told, hear) = mpsc::channel();
                let lent = arena.lend(0..count);
                let marks = u64::from_ne_bytes([MARK; 8]);
                lent.words().flatten().for_each(|word| word.store(marks, Ordering::Relaxed));
                let tell = move |memory: Option<Memory>, result: Result<(), StoreError>| {
                    told.send((memory, result)).unwrap();
                };
                let read = PendingRead::into_frames(REL, BlockNumber(first), lent, tell);
                let vectors = read_rest(&store, read, first, done);
                let end = if done < border { border.min(all) } else { all };
                let expected =
                    if count > 1 { end.div_ceil(PAGE_SIZE) - done / PAGE_SIZE } else { 0 };
                assert_eq!(vectors, expected, "{case}");
                let (memory, result) = hear.recv().unwrap();
                result.unwrap();
                let Some(Memory::Frames(lent, None)) = memory else { panic!("{case}: elsewhere") };
                let words = lent.words().flatten().map(|word| word.load(Ordering::Relaxed));
                check(&words.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>());
                // Into memory of its own.
                let (told, hear) = mpsc::channel();
                let mut buffer = PageBuffer::new(count as usize);
                buffer.pages_mut().into_iter().for_each(|page| page.fill(MARK));
                let tell = move |buffer: PageBuffer, result: Result<(), StoreError>| {
                    told.send((buffer, result)).unwrap();
                };
                let read = PendingRead::new(REL, BlockNumber(first), buffer, tell);
                assert_eq!(read_rest(&store, read, first, done), 0, "{case}");
                let (buffer, result) = hear.recv().unwrap();
                result.unwrap();
                check(&buffer.pages().flatten().copied().collect::<Vec<u8>>());
            }
        }
    }
}
