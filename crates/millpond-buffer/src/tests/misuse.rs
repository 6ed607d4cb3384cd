//! Mistakes in the use of the library have a documented result. It is an error that names the
//! mistake, or in debug builds a panic instead of an endless wait.

use super::*;
use crate::core::relation::Loading;
use crate::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two pools whose relations have the same names and the same numbers of blocks, but not the same
/// frames.
fn two_pools() -> (Bench, Bench) {
    (bench(64, 200), bench(16, 200))
}

#[test]
fn a_pool_refuses_the_session_of_another() {
    let (large, small) = two_pools();
    let stranger = small.pool.session().unwrap();
    let (session, rel) = large.pool.open();
    for block in 0..64 {
        set_number(&session, &rel, block, 500, 5);
    }
    assert!(matches!(large.pool.resize(&stranger, 4), Err(BufferError::ForeignSession)));
    assert!(matches!(large.pool.reclaim(&stranger, 4), Err(BufferError::ForeignSession)));
    let written = large.pool.write_dirty(&stranger, |_| ());
    assert!(matches!(written, Err(BufferError::ForeignSession)));
    assert_eq!((large.pool.frames(), small.pool.frames()), (64, 16));
    assert_eq!(large.pool.write_dirty(&session, |_| ()).unwrap(), 64);
}

/// Otherwise its frames, which are numbers, would get two owners.
#[test]
fn a_ring_serves_its_own_pool_only() {
    let (ours, theirs) = two_pools();
    let (session, stranger) = (ours.pool.session().unwrap(), theirs.pool.session().unwrap());
    let ring = Ring::new(&ours.pool, AccessStrategy::BulkRead).unwrap();
    let (rel, their_rel) = (ours.pool.relation(REL).unwrap(), theirs.pool.relation(REL).unwrap());
    let read = |session: &BufferSession, rel: &RelHandle, block| {
        let ring = Some(&ring);
        session.read_with(rel, BlockNumber(block), Wait::Allowed, ring, |page| page.u64(16))
    };
    for block in 0..200 {
        assert_eq!(read(&session, &rel, block).unwrap(), u64::from(block));
        let refused = read(&stranger, &their_rel, block);
        assert!(matches!(refused, Err(BufferError::ForeignRing)), "{refused:?}");
    }
    let mut stream = ReadStream::default();
    let mut blocks = (0..200).map(BlockNumber);
    let refused =
        stream.next_page(&stranger, &their_rel, Wait::Allowed, Some(&ring), &mut || blocks.next());
    assert!(matches!(refused, Err(BufferError::ForeignRing)), "{refused:?}");
    drop(refused);
    drop((ring, session, stranger));
    all_free_after_drop(&ours);
    all_free_after_drop(&theirs);
}

/// What a stream reads ahead goes to frames of the session's pool. Another pool's entries must not
/// lead there.
#[test]
fn a_stream_reads_nothing_ahead_for_another_pool() {
    let (ours, theirs) = (bench(64, 200), bench(64, 200));
    ours.store.cold.store(true, Ordering::Relaxed);
    let session = ours.pool.session().unwrap();
    let (rel, their_rel) = (ours.pool.relation(REL).unwrap(), theirs.pool.relation(REL).unwrap());
    let mut stream = ReadStream::default();
    let mut source = source_of(0..60);
    while stream.next_page(&session, &rel, Wait::Allowed, None, &mut source).unwrap().is_some() {}
    assert!(stream.distance() > 1);
    stream.reset();
    let mut blocks = (100..200).map(BlockNumber);
    let refused =
        stream.next_page(&session, &their_rel, Wait::Allowed, None, &mut || blocks.next());
    assert!(matches!(refused, Err(BufferError::ForeignHandle { .. })), "{refused:?}");
    drop(refused);
    drop(stream);
    assert!((0..200).all(|block| session.core.is_absent(&their_rel, BlockNumber(block))));
    let stranger = theirs.pool.session().unwrap();
    for block in 0..200 {
        assert_eq!(number(&stranger, &their_rel, block), u64::from(block));
    }
    drop((session, stranger));
    all_free_after_drop(&ours);
    all_free_after_drop(&theirs);
}

#[test]
fn recovery_leaves_another_pool_alone() {
    let (ours, theirs) = two_pools();
    let session = ours.pool.session().unwrap();
    let their_rel = theirs.pool.relation(REL).unwrap();
    let refused = session.pin_or_zero(&their_rel, BlockNumber(300));
    assert!(matches!(refused, Err(BufferError::ForeignHandle { .. })), "{refused:?}");
    assert_eq!(their_rel.block_count(), 200);
    assert_eq!(theirs.store.inner.block_count(REL).unwrap(), 200);
}

#[test]
fn too_many_freelists_are_refused() {
    let mut config = PoolConfig::new(8, 1);
    config.freelists = usize::MAX;
    let made = BufferPool::new(
        config,
        std::sync::Arc::new(MemoryStore::new()),
        std::sync::Arc::new(NoLog),
    );
    assert!(matches!(made, Err(BufferError::Config { .. })), "{made:?}");
}

/// A forgotten change counts as interrupted, whatever happens to its latch.
#[test]
fn a_forgotten_change_leaves_the_page_damaged() {
    let Bench { pool, .. } = bench(8, 4);
    let (session, rel) = pool.open();
    let half_changed = |block| {
        let pinned = pin_block(&session, &rel, block);
        let mut page = pinned.into_exclusive().unwrap();
        let mut change = page.change();
        change.write(16, &[0xEE; 8]);
        std::mem::forget(change);
        page
    };
    drop(half_changed(0));
    drop(half_changed(1).unlatch());
    drop(half_changed(2).downgrade());
    let mut page = half_changed(3);
    let mut change = page.change();
    change.write(24, &[0xDD; 8]);
    change.publish(Lsn(9));
    drop(page);
    for block in 0..4 {
        let read = session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16));
        assert!(matches!(read, Err(BufferError::Damaged { .. })), "block {block}: {read:?}");
    }
}

/// This is so in release builds; in debug builds it panics.
#[cfg(not(debug_assertions))]
#[test]
fn a_write_beyond_the_end_is_left_out() {
    let Bench { pool, .. } = bench(2, 1);
    let (session, rel) = pool.open();
    let pinned = pin_block(&session, &rel, 0);
    let mut page = pinned.into_exclusive().unwrap();
    let mut change = page.change();
    change.write(PAGE_SIZE - 2, &[1, 2, 3, 4]);
    change.write(PAGE_SIZE + 8, &[1]);
    change.write(usize::MAX, &[1]);
    change.publish(Lsn(9));
    assert_eq!(page.u16(PAGE_SIZE - 2), 0x0201);
}

/// As many guards of a page are forgotten as its latch can count. The next reader is refused. Live
/// guards still show the page, so no session can change it, and it does not leave.
#[test]
fn forgotten_guards_do_not_overflow_the_latch() {
    use millpond_sync::latch::MAX_READERS;
    let Bench { pool, .. } = bench(2, 3);
    let (session, other) = (pool.session().unwrap(), pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let pin = || pin_block(&session, &rel, 0);
    let latch = || session.pin_shared(&rel, BlockNumber(0), Wait::Allowed);
    let number = pin().frame();
    pool.core.frames[number].latch().forget_shared(MAX_READERS - 2);
    std::mem::forget(latch().unwrap());
    let shared = latch().unwrap();
    let ways: [&dyn Fn(); 2] = [&|| drop(latch()), &|| drop(pin().into_shared())];
    for way in ways {
        assert!(catch_unwind(AssertUnwindSafe(way)).is_err(), "one guard too many");
        assert_eq!(session.pinned_pages(), 0);
    }
    assert!(pin().try_into_shared().is_err());
    assert!(pin().try_into_exclusive().is_err());
    // The other frame is used for all pages; this one keeps its page.
    (1..3).for_each(|block| assert_eq!(super::number(&other, &rel, block), block.into()));
    assert_eq!(shared.u64(16), 0);
    assert_eq!(pin().frame(), number);
}

/// A store forgets a read. A session that wants the page waits for ever, but it says so.
#[test]
#[cfg_attr(miri, ignore = "what is forgotten is a leak to Miri")]
fn a_read_that_is_forgotten_is_reported() {
    let bench = bench(STREAM_FRAMES, 60);
    let Bench { store, pool, .. } = &bench;
    store.background.store(true, Ordering::Relaxed);
    store.cold.store(true, Ordering::Relaxed);
    let (session, rel) = pool.open();
    let mut stream = ReadStream::new(StreamOptions::default());
    let mut blocks = (0..60).step_by(2).map(BlockNumber);
    while store.begun.lock().is_empty() {
        let next = stream.peek(&session, &rel, Wait::Allowed, None, &mut || blocks.next());
        assert!(next.is_some(), "nothing is read ahead");
        stream.advance();
    }
    let mut begun = std::mem::take(&mut *store.begun.lock());
    let forgotten = begun.pop().unwrap();
    let block = forgotten.first();
    std::mem::forget(forgotten);
    drop(begun);
    let lines = Arc::new(AtomicUsize::new(0));
    let waiter = std::thread::spawn({
        let (lines, pool, rel) = (Arc::clone(&lines), Arc::clone(pool), rel.clone());
        move || {
            let count = OnLine(move || {
                lines.fetch_add(1, Ordering::Relaxed);
            });
            let session = pool.session().unwrap();
            tracing::subscriber::with_default(count, || number(&session, &rel, block.0))
        }
    });
    while lines.load(Ordering::Relaxed) < 2 {
        assert!(!waiter.is_finished(), "nothing has been read");
        std::thread::yield_now();
    }
    // As if the read had ended after all.
    drop(Loading::resume(rel.0.translation.entry(block), 0));
    assert_eq!(waiter.join().unwrap(), block.0.into());
}

#[cfg(debug_assertions)]
mod waiting_for_oneself {
    use super::*;

    /// Latches block 0 in one session, then does `work` with the pool.
    fn with(exclusive: bool, work: impl FnOnce(&BufferSession, &RelHandle)) {
        let Bench { pool, .. } = bench(8, 2);
        let (session, rel) = pool.open();
        let held = pin_block(&session, &rel, 0);
        if exclusive {
            let _held = held.into_exclusive().unwrap();
            work(&session, &rel);
        } else {
            let _held = held.into_shared().unwrap();
            work(&session, &rel);
        }
    }

    fn pin<'s>(session: &'s BufferSession, rel: &RelHandle) -> PinnedPage<'s> {
        session.pin(rel, BlockNumber(0), Wait::Allowed).unwrap()
    }

    #[test]
    #[should_panic(
        expected = "waits for itself: it holds block 0 of relation 7 latched (Exclusively)"
    )]
    fn exclusively_twice() {
        with(true, |session, rel| drop(pin(session, rel).into_exclusive()));
    }

    #[test]
    #[should_panic(expected = "waits for itself")]
    fn shared_and_then_exclusively() {
        with(false, |session, rel| drop(pin(session, rel).into_exclusive()));
    }

    #[test]
    #[should_panic(expected = "waits for itself")]
    fn exclusively_and_then_shared() {
        with(true, |session, rel| drop(session.pin_shared(rel, BlockNumber(0), Wait::Allowed)));
    }

    #[test]
    #[should_panic(expected = "would wait for itself")]
    fn a_checkpoint_under_a_latch() {
        with(true, |session, _| drop(session.pool().write_dirty(session, |_| ())));
    }

    #[test]
    #[should_panic(expected = "waits for itself")]
    fn a_read_of_what_it_is_changing() {
        with_change(|session, rel| {
            let _ = session.read(rel, BlockNumber(0), Wait::Allowed, |page| page.u64(16));
        });
    }

    #[test]
    #[should_panic(expected = "waits for itself")]
    fn a_change_of_what_it_reads_under_the_latch() {
        let Bench { pool, .. } = bench(8, 2);
        let (session, rel) = pool.open();
        let pin = pin(&session, &rel);
        // No optimistic read succeeds, as if the page kept changing.
        pool.core.frames[pin.frame()].version().write_begin();
        let change = |_: &PageView<'_>| {
            session
                .core
                .latched
                .is_about_to_latch(pin.page_id(), crate::core::session::How::Exclusively);
        };
        let _ = pin.read(change);
    }

    fn with_change(work: impl FnOnce(&BufferSession, &RelHandle)) {
        let Bench { pool, .. } = bench(8, 2);
        let (session, rel) = pool.open();
        let mut page = pin(&session, &rel).into_exclusive().unwrap();
        let mut change = page.change();
        change.write(16, &[1]);
        work(&session, &rel);
    }

    /// A latch that has been given back blocks nothing.
    #[test]
    fn one_after_the_other() {
        with(false, |session, rel| {
            drop(pin(session, rel).into_shared().unwrap());
            let other = session.pin(rel, BlockNumber(1), Wait::Allowed).unwrap();
            let other = other.into_exclusive().unwrap().downgrade().unlatch();
            let other = other.into_exclusive().unwrap().unlatch();
            assert!(other.try_into_exclusive().is_ok());
        });
    }
}
