//! Checkpoints and the reclaimer: which pages they write, several writes at a time, and what
//! happens when some fail.

use super::*;
use crate::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread;

const WRITES: u32 = 10;
const DEPTH: usize = 4;

/// A pool with every other page of a fork changed, so that no two are neighbours. Its store keeps
/// the writes that are begun.
fn changed() -> Bench {
    let mut config = PoolConfig::new(64, 8);
    config.io_max_concurrency = DEPTH;
    let bench = bench_of(config, 2 * WRITES);
    let (session, rel) = bench.pool.open();
    (0..WRITES).for_each(|at| set_number(&session, &rel, 2 * at, 100 + u64::from(at), 5));
    bench.store.behind.store(true, Ordering::Relaxed);
    bench
}

fn is_dirty(bench: &Bench, block: u32) -> bool {
    let page = Some(REL.page(BlockNumber(block)));
    bench.pool.frame_infos().any(|frame| frame.page == page && frame.dirty)
}

fn stored(bench: &Bench, block: u32) -> u64 {
    let mut page = [0; PAGE_SIZE];
    bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
    verify_checksum(REL.page(BlockNumber(block)), &page).unwrap();
    page.u64(16)
}

fn checkpoint(bench: &Bench, device: impl FnOnce()) -> Result<usize, BufferError> {
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let session = bench.pool.session().unwrap();
            bench.pool.write_dirty(&session, |_| ())
        });
        device();
        writer.join().unwrap()
    })
}

#[test]
fn writes_begin_in_file_order_and_end_in_any_order() {
    let bench = changed();
    let store = &bench.store;
    let written = checkpoint(&bench, || {
        let mut expected = 0;
        for count in [4, 4, 2] {
            let begun = store.wait_for_writes(count);
            // The log is flushed before any of them begins.
            assert_eq!(bench.log.flushed().0, 5);
            for write in &begun {
                assert_eq!((write.first().0, write.count()), (expected, 1));
                expected += 2;
            }
            begun.into_iter().rev().for_each(|write| store.finish_write(write));
        }
    });
    assert_eq!(written.unwrap(), WRITES as usize);
    for at in 0..WRITES {
        assert!(!is_dirty(&bench, 2 * at));
        assert_eq!(stored(&bench, 2 * at), 100 + u64::from(at));
    }
    let stats = bench.pool.stats();
    let io = stats.io_of(BackendKind::Client, IoContext::Normal);
    assert_eq!((io.writes, io.write_bytes), (10, 10 * PAGE_SIZE as u64));
}

fn broken() -> StoreError {
    StoreError::io("write it", std::io::Error::other("made to fail"))
}

/// Some writes in the middle fail. The checkpoint reports that, their pages are as dirty as before,
/// the writes beside them succeed, and no other write begins.
#[test]
fn failed_writes_leave_pages_dirty_and_end_the_checkpoint() {
    let bench = changed();
    let store = &bench.store;
    let written = checkpoint(&bench, || {
        let begun = store.wait_for_writes(4);
        let [first, second, third, fourth] = <[PendingWrite; 4]>::try_from(begun).unwrap();
        second.finish(Err(broken()));
        // The store loses this one on its way.
        drop(third);
        [fourth, first].into_iter().for_each(|write| store.finish_write(write));
    });
    let error = written.unwrap_err();
    assert!(error.to_string().contains("made to fail"), "{error}");
    assert!(store.begun_writes.lock().is_empty());
    assert_eq!(
        [0, 2, 4, 6, 8].map(|block| is_dirty(&bench, block)),
        [false, true, true, false, true]
    );
    assert_eq!([0, 2, 4, 6].map(|block| stored(&bench, block)), [100, 2, 4, 103]);
    store.behind.store(false, Ordering::Relaxed);
    let session = bench.pool.session().unwrap();
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), 8);
    (0..WRITES).for_each(|at| assert_eq!(stored(&bench, 2 * at), 100 + u64::from(at)));
}

/// A page that changes during its write is dirty again, whether the write succeeds or not.
#[test]
fn a_change_meanwhile_is_not_lost() {
    for fails in [false, true] {
        let bench = changed();
        let store = &bench.store;
        let (session, rel) = bench.pool.open();
        let written = checkpoint(&bench, || {
            let mut begun = store.wait_for_writes(4);
            set_number(&session, &rel, 0, 7, 6);
            if fails {
                begun.remove(0).finish(Err(broken()));
            }
            begun.into_iter().for_each(|write| store.finish_write(write));
            if !fails {
                [4, 2].into_iter().for_each(|count| {
                    store
                        .wait_for_writes(count)
                        .into_iter()
                        .for_each(|write| store.finish_write(write));
                });
            }
        });
        assert_eq!(written.is_err(), fails);
        assert!(is_dirty(&bench, 0));
        store.behind.store(false, Ordering::Relaxed);
        bench.pool.write_dirty(&session, |_| ()).unwrap();
        assert_eq!(stored(&bench, 0), 7);
    }
}

/// A checkpoint that is broken off waits for the writes that it has begun, and leaves the rest.
#[test]
fn a_writer_that_panics_leaves_nothing_under_way() {
    let bench = changed();
    let store = &bench.store;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let session = bench.pool.session().unwrap();
            let pace = |progress: WriteProgress| assert!(progress.done < 3, "made to panic");
            let work = || bench.pool.write_dirty(&session, pace);
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
            (0..3).for_each(|at| assert!(!is_dirty(&bench, 2 * at)));
        });
        store.wait_for_writes(3).into_iter().for_each(|write| store.finish_write(write));
        writer.join().unwrap();
    });
    store.behind.store(false, Ordering::Relaxed);
    let session = bench.pool.session().unwrap();
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), WRITES as usize - 3);
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.core.free_frames(), 64);
}

/// The reclaimer goes on after a failure, and takes the frames whose pages have been written. It
/// tries the failed page again by itself, alone.
#[test]
fn the_reclaimer_frees_what_has_been_written() {
    let bench = changed();
    let store = &bench.store;
    let freed = thread::scope(|scope| {
        let reclaimer = scope.spawn(|| {
            let session = bench.pool.session().unwrap();
            bench.pool.reclaim(&session, 64)
        });
        while !reclaimer.is_finished() {
            for write in std::mem::take(&mut *store.begun_writes.lock()) {
                match write.first().0 {
                    4 => write.finish(Err(broken())),
                    _ => store.finish_write(write),
                }
            }
            thread::yield_now();
        }
        reclaimer.join().unwrap()
    });
    assert_eq!((freed.unwrap(), bench.pool.core.free_frames()), (WRITES as usize, 64));
    assert_eq!(store.writes.lock().last(), Some(&(REL, 4, 1)));
    assert_eq!((store.writes.lock().len(), stored(&bench, 4)), (WRITES as usize, 102));
}

/// This includes writes that the store carries out at once when the pool has it begin them.
#[test]
fn the_time_of_every_write_is_counted() {
    let bench = changed();
    bench.store.behind.store(false, Ordering::Relaxed);
    bench.store.write_us.store(1000, Ordering::Relaxed);
    let session = bench.pool.session().unwrap();
    session.set_io_timing(true);
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    let counted = bench.pool.stats().io_of(BackendKind::Client, IoContext::Normal).write_us;
    let taken = bench.store.written_us.load(Ordering::Relaxed);
    assert!(taken >= 1000 * u64::from(WRITES) && counted >= taken, "{counted} of {taken} µs");
}

/// Neighbours among the victims are written together, in file order, whatever the order of their
/// frames.
#[test]
fn the_reclaimer_writes_neighbours_together() {
    let Bench { pool, store, .. } = bench(16, 16);
    let (session, rel) = pool.open();
    for block in [3, 9, 1, 2, 0, 8] {
        set_number(&session, &rel, block, 70, 1);
    }
    // All six have used up their counts after the hand has passed often enough.
    assert_eq!(pool.reclaim(&session, 16).unwrap(), 6);
    assert_eq!(*store.writes.lock(), [(REL, 0, 4), (REL, 8, 2)]);
    let stats = pool.stats();
    assert_eq!((stats.free_frames, stats.writes, stats.write_calls), (16, 6, 2));
    assert_eq!((stats.reclaimed, stats.dirty_evictions), (6, 0));
}

/// Unused dirty pages are written in their turn, although enough clean ones are found each time.
#[test]
fn the_reclaimer_does_not_pass_over_dirty_pages() {
    const BLOCKS: u32 = if cfg!(miri) { 192 } else { 512 };
    let Bench { pool, .. } = bench(64, BLOCKS);
    let (session, rel) = pool.open();
    for block in 0..32 {
        set_number(&session, &rel, block, 70, 1);
    }
    for block in 32..BLOCKS {
        assert_eq!(number(&session, &rel, block), u64::from(block));
        if block % 4 == 0 {
            pool.reclaim(&session, 8).unwrap();
        }
    }
    assert_eq!(pool.stats().writes, 32);
}

/// A page that can't be written does not keep the others from being freed, and stays as it was.
#[test]
fn the_reclaimer_goes_on_after_an_error() {
    let Bench { pool, store, .. } = bench(8, 8);
    let (session, rel) = pool.open();
    for block in 0..8 {
        number(&session, &rel, block);
    }
    set_number(&session, &rel, 3, 70, 1);
    store.fail_writes.store(true, Ordering::Relaxed);
    assert_eq!(pool.reclaim(&session, 8).unwrap(), 7);
    assert!(matches!(pool.reclaim(&session, 8), Err(BufferError::Store(_))));
    store.fail_writes.store(false, Ordering::Relaxed);
    assert_eq!(pool.reclaim(&session, 8).unwrap(), 1);
    assert_eq!(number(&session, &rel, 3), 70);
}

/// A reclaimer runs in a thread of its own, beside a session that dirties more pages than the pool
/// holds. The session need not write or sweep.
#[test]
fn the_reclaimer_frees_frames_before_they_are_needed() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const BLOCKS: u32 = if cfg!(miri) { 30 } else { 4000 };
    let frames = if cfg!(miri) { 16 } else { 1024 };
    let Bench { pool, .. } = bench(frames, BLOCKS);
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reclaimer = scope.spawn(|| {
            let session = pool.session().unwrap();
            let mut reclaimer = Reclaimer::new(&session);
            while !ending.load(Ordering::SeqCst) {
                reclaimer.wait(|| ending.load(Ordering::SeqCst));
                reclaimer.work().unwrap();
            }
        });
        let (session, rel) = pool.open();
        for block in 0..BLOCKS {
            // The demand of a session that also does something with its pages.
            while pool.core.free_frames() == 0 {
                std::thread::yield_now();
            }
            set_number(&session, &rel, block, 1, 1);
        }
        ending.store(true, Ordering::SeqCst);
        pool.wake_reclaimer();
        reclaimer.join().unwrap();
    });
    let stats = pool.stats();
    assert_eq!(stats.dirty_evictions, 0, "{stats:?}");
    assert!(stats.reclaimed >= u64::from(BLOCKS) - frames as u64, "{stats:?}");
}
