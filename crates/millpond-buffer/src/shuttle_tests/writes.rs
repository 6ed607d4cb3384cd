//! Checkpoints, the reclaimer, a pool that changes its size.

use super::*;

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

/// Freeing frames ahead of demand, beside demand.
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
