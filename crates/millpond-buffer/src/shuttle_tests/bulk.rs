//! Many pages at a time: batches of claims, streams, reads in the background, rings, checkpoints
//! and the reclaimer. A fork grows and ends, and a pool changes its size.

use super::*;

/// Streams beside demand and eviction, and then a drop. With sixteen frames, a stream loads runs of
/// two pages ahead, while others pin the same pages or take their frames. A failed read is undone
/// for all.
#[test]
fn streams_beside_demand() {
    for failing in [0, 1] {
        let work = move |thread: u64, bench: &Bench| {
            let (session, rel) = bench.open();
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

/// A session begins reads and goes away, and another thread finishes them. Meanwhile a third waits
/// for the pages and a fourth drops the fork.
#[test]
fn background_reads_end_for_all_sessions() {
    reads_in_the_background(StreamOptions::default(), 2);
}

/// The same, with reads that wait for their turn: the end of other reads begins them.
#[test]
fn queued_background_reads_end_for_all_sessions() {
    // The store has two of them at a time.
    reads_in_the_background(StreamOptions { io_concurrency: 1, io_combine_limit: 1 }, 3);
}

/// In some schedule, at least `at_least` reads have been begun or wait for their turn.
fn reads_in_the_background(options: StreamOptions, at_least: u32) {
    // With this many frames a stream reads four pages ahead.
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
                        // The fork is gone, or was gone before this thread had its handle.
                        Err(BufferError::Dropped { .. } | BufferError::BeyondEnd { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            _ => bench.pool.drop_relation(REL.relation).unwrap(),
        }
    };
    explore_with(FRAMES, 4, 3, true, work, |bench| {
        // A drop waits for reads under way.
        assert_eq!(bench.pool.core.free_frames(), FRAMES);
    });
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!(most >= at_least, "{most} reads in the background, at most");
}

/// A scan uses a ring of one frame, while others change and pin the pages that it brings in.
#[test]
fn a_ring_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
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
        let (session, rel) = bench.open();
        assert_eq!(count(&session, &rel, 0).unwrap() + count(&session, &rel, 1).unwrap(), 4);
        all_is_given_back(bench);
    });
}

/// The count in the store's copy of a page.
fn stored(bench: &Bench, block: u32) -> u64 {
    let mut page = [0; PAGE_SIZE];
    bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
    verify_checksum(REL.page(BlockNumber(block)), &page).unwrap();
    page.u64(16)
}

/// A checkpoint beside writers: what was dirty when it began is in the store when it ends.
#[test]
fn a_checkpoint_misses_nothing() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        if thread == 2 {
            increment(&session, &rel, 0).unwrap();
            bench.pool.write_dirty(&session, |_| ()).unwrap();
            assert!(stored(bench, 0) >= 1, "missed");
        } else {
            increment(&session, &rel, thread as u32).unwrap();
        }
    };
    explore(3, 2, 3, work, |bench| {
        let (session, rel) = bench.open();
        assert_eq!(count(&session, &rel, 0).unwrap(), 2);
        assert_eq!(count(&session, &rel, 1).unwrap(), 1);
        all_is_given_back(bench);
    });
}

/// The same with writes that other threads finish in any order, the first of which fails. Meanwhile
/// sessions that change pages, or need their frames, go on.
#[test]
fn a_checkpoint_with_writes_behind_misses_nothing() {
    // The operation that fails may be another session's write or read.
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
        let (session, rel) = bench.open();
        if thread == 2 {
            insist_on(|| increment(&session, &rel, 0));
            bench.store.failing.store(1, Ordering::SeqCst);
            while bench.pool.write_dirty(&session, |_| ()).is_err() {}
            assert!(stored(bench, 0) >= 1, "missed");
        } else {
            insist_on(|| increment(&session, &rel, 2 * thread as u32));
            insist_on(|| count(&session, &rel, 4));
        }
    };
    explore_with(3, 5, 3, true, work, |bench| {
        let (session, rel) = bench.open();
        bench.store.failing.store(0, Ordering::SeqCst);
        assert_eq!(count(&session, &rel, 0).unwrap(), 2);
        assert_eq!(count(&session, &rel, 2).unwrap(), 1);
        all_is_given_back(bench);
    });
}

/// The reclaimer frees frames beside sessions that need some.
#[test]
fn reclaiming_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        if thread == 0 {
            bench.pool.reclaim(&session, 1).unwrap();
            return;
        }
        for block in 0..2 {
            increment(&session, &rel, block).unwrap();
        }
    };
    explore(3, 2, 3, work, |bench| {
        assert_eq!(count_all(bench, 2), 4);
        all_is_given_back(bench);
    });
}

/// Demand wakes a sleeping reclaimer, and so does the end. A lost wake-up would be a deadlock.
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

/// The pool shrinks and grows beside misses and pins. No change and no frame is lost.
#[test]
fn resizing_beside_increments() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
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
        assert_eq!(count_all(bench, 3), 4);
        let session = bench.pool.session().unwrap();
        bench.pool.resize(&session, 1).unwrap();
        bench.pool.resize(&session, 3).unwrap();
        assert_eq!(count_all(bench, 3), 4);
        all_is_given_back(bench);
    });
}

/// A checkpoint while the pool shrinks misses no dirty page beyond its new size.
#[test]
fn a_checkpoint_beside_shrinking() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        if thread == 0 {
            let _ = bench.pool.resize(&session, 1);
            return;
        }
        for block in [0, 1] {
            insist(|| increment(&session, &rel, block));
        }
        bench.pool.write_dirty(&session, |_| ()).unwrap();
        for block in [0, 1] {
            assert_eq!(stored(bench, block), 1, "missed");
        }
    };
    explore(3, 2, 2, work, all_is_given_back);
}

/// Batches of claims, while other sessions hold pins, pin again, and take claims away.
#[test]
fn pins_beside_batches() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        let pin = |block: u32| insist(|| session.pin(&rel, BlockNumber(block), Wait::Allowed));
        if thread == 0 {
            // More pages than there is room for: each load claims two frames at a time.
            (2..6).for_each(|block| drop(pin(block)));
            return;
        }
        let block = thread as u32 - 1;
        let latch = || insist(|| session.pin_shared(&rel, BlockNumber(block), Wait::Allowed));
        let mut held = latch().unlatch();
        for _ in 0..2 {
            insist(|| increment(&session, &rel, block));
            // For a while only the latch keeps the page, and then a pin does again.
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
        assert_eq!(count_all(bench, 2), 4);
        all_is_given_back(bench);
    });
}

/// Sessions extend a fork concurrently, with fewer frames than pages.
#[test]
fn extending_together() {
    let work = |_: u64, bench: &Bench| {
        let (session, rel) = bench.open();
        for _ in 0..2 {
            let mut page = session.extend(&rel, Wait::Allowed).unwrap();
            let block = u64::from(page.block().0).to_le_bytes();
            let mut change = page.change();
            change.write(16, &block);
            change.publish(Lsn(1));
        }
    };
    explore(3, 0, 2, work, |bench| {
        let (session, rel) = bench.open();
        assert_eq!(rel.block_count(), 4);
        for block in 0..4 {
            let read = session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16));
            assert_eq!(read.unwrap(), u64::from(block));
        }
        all_is_given_back(bench);
    });
}

/// A fork is dropped while others load its pages.
#[test]
fn dropping_beside_loads() {
    let work = |thread: u64, bench: &Bench| {
        let (session, rel) = bench.open();
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
