//! Threads that wait for reads, and the reads that they leave to others.

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
        assert!(store.io_method() != IoMethod::IoUring || by_waiter > 0, "nobody tends");
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
                assert!(has_come.load(Ordering::Acquire), "nobody else was given the page");
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
