//! A store, a log or a kernel that fails: pages stay dirty, forks stay whole, and nothing is stuck.

use super::*;
use crate::*;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Rules 6 and 7.
#[test]
fn a_failed_write_keeps_the_page_dirty() {
    let Bench { store, pool, .. } = bench(2, 4);
    let (session, rel) = pool.open();
    set_number(&session, &rel, 0, 70, 1);
    set_number(&session, &rel, 1, 71, 1);
    store.fail_writes.store(true, Ordering::Relaxed);
    assert!(matches!(
        session.pin(&rel, BlockNumber(2), Wait::Allowed),
        Err(BufferError::Store(StoreError::Io { .. }))
    ));
    assert!(pool.write_dirty(&session, |_| ()).is_err());
    store.fail_writes.store(false, Ordering::Relaxed);
    assert_eq!(pool.write_dirty(&session, |_| ()).unwrap(), 2);
    assert_eq!(*store.writes.lock(), [(REL, 0, 2)]);
    for block in [2, 3, 0, 1] {
        let expected = if block < 2 { 70 + block } else { block };
        assert_eq!(number(&session, &rel, block), u64::from(expected));
    }
}

/// Rule 7.
#[test]
fn nothing_is_written_once_the_log_has_stopped() {
    let Bench { store, log, pool } = bench(3, 5);
    let (session, rel) = pool.open();
    set_number(&session, &rel, 0, 70, 1);
    log.stopped.store(true, Ordering::Relaxed);
    assert!(matches!(pool.write_dirty(&session, |_| ()), Err(BufferError::Log(_))));
    // Clean pages still make room, so reading goes on.
    for block in 0..5 {
        let expected = if block == 0 { 70 } else { u64::from(block) };
        assert_eq!(number(&session, &rel, block), expected);
    }
    assert!(store.writes.lock().is_empty());
}

#[test]
fn recovery_makes_what_is_missing() {
    let Bench { store, pool, .. } = bench(4, 2);
    let session = pool.session().unwrap();
    let other = RelationId::constant(8).main();
    let rel = pool.relation(other).unwrap();
    assert_eq!(rel.block_count(), 0);
    let page = session.pin_or_zero(&rel, BlockNumber(5)).unwrap().into_shared().unwrap();
    assert!(is_new(page.bytes()));
    assert_eq!((rel.block_count(), store.block_count(other).unwrap()), (6, 6));
}

#[test]
fn a_failed_truncation_brings_no_old_page_back() {
    let Bench { store, pool, .. } = bench(2, 4);
    let (session, rel) = pool.open();
    store.fail_writes.store(true, Ordering::Relaxed);
    assert!(pool.truncate(REL, 1).is_err());
    store.fail_writes.store(false, Ordering::Relaxed);
    assert_eq!(rel.block_count(), 1);
    // The blocks are made again as new pages, in memory and in the store, although the store still
    // has the old ones.
    drop(session.extend(&rel, Wait::Allowed).unwrap());
    drop(session.extend(&rel, Wait::Allowed).unwrap());
    pool.write_dirty(&session, |_| ()).unwrap();
    pool.reclaim(&session, 2).unwrap();
    assert_eq!((number(&session, &rel, 1), number(&session, &rel, 2)), (0, 0));
    pool.truncate(REL, 1).unwrap();
    assert_eq!(store.block_count(REL).unwrap(), 1);
}

/// A store that cuts only some of a fork's files has fewer blocks than before. The missing blocks
/// are made again before any session writes to them, and the next attempt cuts them.
#[test]
fn a_truncation_that_stops_half_way_leaves_no_block_that_is_not_there() {
    let Bench { store, pool, .. } = bench(16, 12);
    let (session, rel) = pool.open();
    store.half_truncates.store(true, Ordering::Relaxed);
    assert!(pool.truncate(REL, 2).is_err());
    assert_eq!((rel.block_count(), store.block_count(REL).unwrap()), (2, 7));
    (0..12).for_each(|_| drop(session.extend(&rel, Wait::Allowed).unwrap()));
    pool.write_dirty(&session, |_| ()).unwrap();
    pool.reclaim(&session, 16).unwrap();
    (2..14).for_each(|block| assert_eq!(number(&session, &rel, block), 0));
    assert!(pool.truncate(REL, 3).is_err());
    store.half_truncates.store(false, Ordering::Relaxed);
    pool.truncate(REL, 3).unwrap();
    assert_eq!(store.block_count(REL).unwrap(), 3);
}

/// Without a barrier no page leaves. Free frames can still be had, and the log is not flooded.
#[test]
fn a_refused_barrier_is_an_error_and_few_lines_in_the_log() {
    let Bench { pool, .. } = bench(2, 4);
    let (session, rel) = pool.open();
    pool.core.pins.refuse.store(true, Ordering::Relaxed);
    (0..2).for_each(|block| assert_eq!(number(&session, &rel, block), block.into()));
    let lines = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&lines);
    let count = OnLine(move || {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    tracing::subscriber::with_default(count, || {
        for _ in 0..100 {
            assert!(session.pin(&rel, BlockNumber(2), Wait::Never).is_err());
        }
    });
    let said = lines.load(Ordering::Relaxed);
    assert!((1..=16).contains(&said), "{said} lines");
    assert_eq!((number(&session, &rel, 0), number(&session, &rel, 1)), (0, 1));
    pool.core.pins.refuse.store(false, Ordering::Relaxed);
    assert_eq!(number(&session, &rel, 2), 2);
}

/// Without a barrier it is unknown whether a load has seen that the fork is being dropped. So the
/// fork stays, and the caller has to repeat the call.
#[test]
fn a_refused_barrier_keeps_a_fork() {
    let Bench { pool, .. } = bench(2, 2);
    let (session, rel) = pool.open();
    assert_eq!(number(&session, &rel, 0), 0);
    pool.core.pins.refuse.store(true, Ordering::Relaxed);
    let in_use = |result| matches!(result, Err(BufferError::InUse { .. }));
    assert!(in_use(pool.truncate(REL, 1)) && in_use(pool.drop_relation(REL.relation)));
    pool.core.pins.refuse.store(false, Ordering::Relaxed);
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 2);
}

/// A block that is made again finds the old page still in memory: the truncation that should have
/// removed it had no barrier.
#[test]
fn a_refused_barrier_ends_the_removal_of_a_page_with_an_error() {
    let Bench { pool, .. } = bench(4, 2);
    let (session, rel) = pool.open();
    assert_eq!(number(&session, &rel, 1), 1);
    pool.core.pins.refuse.store(true, Ordering::Relaxed);
    let in_use = |error| matches!(error, BufferError::InUse { .. });
    assert!(in_use(pool.truncate(REL, 1).unwrap_err()));
    assert!(in_use(session.extend(&rel, Wait::Allowed).map(drop).unwrap_err()));
    pool.core.pins.refuse.store(false, Ordering::Relaxed);
    drop(session.extend(&rel, Wait::Allowed).unwrap());
    assert_eq!(number(&session, &rel, 1), 0, "it is a new page");
}

/// A log whose flush, when armed, reports that it was asked, waits until it may go on, and fails.
#[derive(Default)]
struct SlowToFail(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl LogFlush for SlowToFail {
    fn flush_to(&self, _: Lsn) -> Result<(), LogFlushError> {
        let Some((asked, go_on)) = self.0.lock().take() else { return Ok(()) };
        asked.send(()).unwrap();
        go_on.recv().unwrap();
        Err(LogFlushError::new("made to fail"))
    }
    fn flushed(&self) -> Lsn {
        Lsn::ZERO
    }
}

/// A page that can't be written is reported although another frame is only held for a moment: its
/// holder may be the session itself.
#[test]
fn failed_write_is_reported_while_a_page_is_latched() {
    let Bench { store, pool, .. } = bench(3, 4);
    let (session, rel) = pool.open();
    for block in 0..3 {
        set_number(&session, &rel, block, 70, 1);
    }
    store.fail_writes.store(true, Ordering::Relaxed);
    let latched = pin_block(&session, &rel, 0).into_exclusive().unwrap();
    assert!(matches!(
        session.pin(&rel, BlockNumber(3), Wait::Allowed),
        Err(BufferError::Store(StoreError::Io { .. }))
    ));
    drop(latched);
}

#[test]
fn a_change_taken_back_after_a_failed_write_keeps_the_page_dirty() {
    let (store, log) = (Arc::new(MemoryStore::new()), Arc::new(SlowToFail::default()));
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), 1).unwrap();
    let pool = BufferPool::new(PoolConfig::new(4, 4), store.clone(), log.clone()).unwrap();
    let (session, rel) = pool.open();
    set_number(&session, &rel, 0, 70, 1);
    let ((asked, was_asked), (go, go_on)) = (channel(), channel());
    *log.0.lock() = Some((asked, go_on));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let session = pool.session().unwrap();
            pool.write_dirty(&session, |_| ())
        });
        // The page has been copied out, so it is not dirty just now.
        was_asked.recv().unwrap();
        let mut page = pin_block(&session, &rel, 0).into_exclusive().unwrap();
        let change = page.change();
        go.send(()).unwrap();
        assert!(matches!(writer.join().unwrap(), Err(BufferError::Log(_))));
        change.cancel();
    });
    assert_eq!(pool.write_dirty(&session, |_| ()).unwrap(), 1);
    let mut page = [0; PAGE_SIZE];
    store.read(REL, BlockNumber(0), &mut [&mut page]).unwrap();
    assert_eq!(page.u64(16), 70);
}

#[test]
fn pages_left_by_failed_truncation_do_not_stop_growth() {
    let Bench { pool, .. } = bench(8, 4);
    let (session, other) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let pinned = pin_block(&session, &rel, 1);
    assert!(matches!(pool.truncate(REL, 1), Err(BufferError::InUse { .. })));
    let extended = other.extend(&rel, Wait::Allowed).map(|_| ());
    assert!(matches!(extended, Err(BufferError::InUse { .. })), "{extended:?}");
    drop(pinned);
    assert_eq!(other.extend(&rel, Wait::Allowed).unwrap().block(), BlockNumber(1));
    // The old page does not come back from the store either.
    pool.write_dirty(&session, |_| ()).unwrap();
    pool.reclaim(&session, 8).unwrap();
    assert_eq!((pool.core.free_frames(), number(&session, &rel, 1)), (8, 0));
}

/// A caller that must not wait does not wait for a page that a failed truncation left.
#[test]
fn extend_without_waiting_returns_would_block_after_failed_truncation() {
    let Bench { pool, .. } = bench(8, 4);
    let (session, other) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let pinned = pin_block(&session, &rel, 1);
    assert!(matches!(pool.truncate(REL, 1), Err(BufferError::InUse { .. })));
    let extended = other.extend(&rel, Wait::Never).map(|_| ());
    assert!(matches!(extended, Err(BufferError::WouldBlock)), "{extended:?}");
    drop(pinned);
    assert_eq!(other.extend(&rel, Wait::Allowed).unwrap().block(), BlockNumber(1));
}

/// The pages that a failed truncation left in memory go before a call cuts the store.
/// Otherwise they would be written beyond the end.
#[test]
fn pages_left_by_failed_truncation_are_never_written() {
    let larger = |pool: &BufferPool| pool.truncate(REL, 3);
    for cut in [BufferPool::trim as fn(&BufferPool) -> _, larger] {
        let Bench { store, pool, .. } = bench(8, 4);
        let (session, rel) = pool.open();
        let pinned = pin_block(&session, &rel, 1);
        assert!(matches!(pool.truncate(REL, 1), Err(BufferError::InUse { .. })));
        let refused = cut(&pool);
        assert!(matches!(refused, Err(BufferError::InUse { .. })), "{refused:?}");
        let mut page = pinned.into_exclusive().unwrap();
        page.change().publish(Lsn(0));
        drop(page);
        cut(&pool).unwrap();
        pool.write_dirty(&session, |_| ()).unwrap();
        assert_eq!((pool.core.free_frames(), store.block_count(REL).unwrap()), (8, 1));
    }
}

/// A fork with a page in use does not keep other forks' spare room from being given back.
#[test]
fn room_is_given_back_also_beside_what_is_in_use() {
    let Bench { store, pool, .. } = bench(8, 4);
    let session = pool.session().unwrap();
    let others = [100, 101, 102, 103, 104].map(|number| RelationId::constant(number).main());
    let held = |other| store.block_count(other).unwrap();
    for other in others {
        store.create(other).unwrap();
        let rel = pool.relation(other).unwrap();
        (0..17).for_each(|_| drop(session.extend(&rel, Wait::Allowed).unwrap()));
        assert!(held(other) > 17);
    }
    let rel = pool.relation(REL).unwrap();
    let pinned = pin_block(&session, &rel, 1);
    assert!(matches!(pool.truncate(REL, 1), Err(BufferError::InUse { .. })));
    assert!(matches!(pool.trim(), Err(BufferError::InUse { .. })));
    assert_eq!(others.map(held), [17; 5]);
    drop(pinned);
}

#[test]
fn a_log_line_that_panics_leaves_an_interrupted_change_unlatched() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    let pin = || session.pin(&rel, BlockNumber(0), Wait::Allowed);
    let subscriber = OnLine(|| panic!("the subscriber"));
    tracing::subscriber::with_default(subscriber, || {
        let mut page = pin().unwrap().into_exclusive().unwrap();
        let mut change = page.change();
        change.write(16, &[1]);
        std::mem::forget(change);
        drop(page.unlatch());
    });
    assert!(matches!(pin(), Err(BufferError::Damaged { .. })));
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 3);
}
