//! Streams, reads in the background, rings.

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
