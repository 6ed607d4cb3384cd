//! Pins, misses, evictions, growth and the end of a fork.

use super::*;

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
