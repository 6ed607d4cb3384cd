//! Read streams, and the loads of several pages that they make.

use super::*;
use crate::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The number of blocks of a long table, and the most neighbours that one read joins.
const MANY: u32 = if cfg!(miri) { 60 } else { 300 };
const COMBINE: u32 = if cfg!(miri) { 4 } else { 16 };
const MOST_READS: u64 = if cfg!(miri) { 20 } else { 30 };

/// A stream that joins `COMBINE` pages, otherwise with PostgreSQL's defaults.
fn joining_stream() -> ReadStream {
    ReadStream::new(StreamOptions { io_combine_limit: COMBINE, ..StreamOptions::default() })
}

fn scan(
    stream: &mut ReadStream,
    session: &BufferSession,
    rel: &RelHandle,
    blocks: impl IntoIterator<Item = u32>,
) -> Result<u32, BufferError> {
    let mut source = source_of(blocks);
    let mut seen = 0;
    while let Some(block) = stream.peek(session, rel, Wait::Allowed, None, &mut source) {
        let number = session.read(rel, block, Wait::Allowed, |page| page.u64(16))?;
        assert_eq!(number, u64::from(block.0));
        stream.advance();
        seen += 1;
    }
    stream.reset();
    Ok(seen)
}

#[test]
fn neighbours_are_joined_and_the_distance_follows_the_device() {
    let bench = bench(STREAM_FRAMES, MANY);
    bench.store.cold.store(true, Ordering::Relaxed);
    let (session, rel) = bench.pool.open();
    let mut stream =
        ReadStream::new(StreamOptions { io_concurrency: 2, io_combine_limit: COMBINE });
    assert_eq!(scan(&mut stream, &session, &rel, 0..MANY).unwrap(), MANY);
    assert_eq!(
        bench.store.lengths.lock()[..5],
        [1, 2, 4, 8, 16].map(|pages| pages.min(COMBINE as usize))
    );
    assert!(bench.store.reads.load(Ordering::Relaxed) < MOST_READS);
    assert_eq!(stream.distance(), 3 * COMBINE as usize);
    // Now all is in memory, so nothing is read, and the distance shrinks.
    bench.store.lengths.lock().clear();
    assert_eq!(scan(&mut stream, &session, &rel, 0..MANY).unwrap(), MANY);
    assert!(bench.store.lengths.lock().is_empty());
    assert_eq!(stream.distance(), 1);
    let stats = bench.pool.stats();
    assert_eq!((stats.reads, stats.misses + stats.read_ahead), (u64::from(MANY), u64::from(MANY)));
    drop(session);
    all_free_after_drop(&bench);
}

#[test]
fn what_the_system_has_cached_is_joined_but_not_read_far_ahead() {
    let bench = bench(STREAM_FRAMES, MANY);
    let (session, rel) = bench.pool.open();
    let mut stream =
        ReadStream::new(StreamOptions { io_concurrency: 8, io_combine_limit: COMBINE });
    let mut most = 0;
    let mut source = source_of(0..MANY);
    while let Some(page) =
        stream.next_page(&session, &rel, Wait::Allowed, None, &mut source).unwrap()
    {
        assert_eq!(page.read(|page| page.u64(16)).unwrap(), u64::from(page.block().0));
        most = most.max(stream.distance());
    }
    assert_eq!(most, COMBINE as usize);
    assert!(bench.store.reads.load(Ordering::Relaxed) < MOST_READS);
}

#[test]
fn any_order_and_any_repetition() {
    const BLOCKS: u32 = if cfg!(miri) { 40 } else { 100 };
    let bench = bench(if cfg!(miri) { 32 } else { 64 }, BLOCKS);
    bench.store.cold.store(true, Ordering::Relaxed);
    let (session, rel) = bench.pool.open();
    let mut stream = ReadStream::default();
    let mixed = (0..4 * BLOCKS).map(|i| i.wrapping_mul(0x9E37_79B9) % BLOCKS);
    assert_eq!(scan(&mut stream, &session, &rel, mixed).unwrap(), 4 * BLOCKS);
    assert_eq!(scan(&mut stream, &session, &rel, (0..BLOCKS).rev()).unwrap(), BLOCKS);
    assert_eq!(scan(&mut stream, &session, &rel, [5; 50]).unwrap(), 50);
    drop(session);
    all_free_after_drop(&bench);
}

#[test]
fn without_concurrency_nothing_is_read_ahead() {
    let bench = bench(64, 20);
    let (session, rel) = bench.pool.open();
    let mut stream = ReadStream::new(StreamOptions { io_concurrency: 0, io_combine_limit: 16 });
    assert_eq!(scan(&mut stream, &session, &rel, 0..20).unwrap(), 20);
    assert_eq!(bench.pool.stats().read_ahead, 0);
}

#[test]
fn a_damaged_page_does_not_keep_out_its_neighbours() {
    let bench = bench(STREAM_FRAMES, 64);
    let mut page = [0; PAGE_SIZE];
    bench.store.inner.read(REL, BlockNumber(40), &mut [&mut page]).unwrap();
    page[100] ^= 1;
    bench.store.inner.write(REL, BlockNumber(40), &[&page]).unwrap();
    let (session, rel) = bench.pool.open();
    let mut stream = ReadStream::default();
    let mut blocks = 0..64;
    let mut damaged = Vec::new();
    let mut source = || blocks.next().map(BlockNumber);
    while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, None, &mut source) {
        match session.read(&rel, block, Wait::Allowed, |page| page.u64(16)) {
            Ok(number) => assert_eq!(number, u64::from(block.0)),
            Err(BufferError::Checksum { page, .. }) => damaged.push(page.block().0),
            Err(error) => panic!("{error}"),
        }
        stream.advance();
    }
    assert_eq!(damaged, [40]);
    assert_eq!(bench.pool.core.free_frames(), STREAM_FRAMES - 63);
}

#[test]
fn a_failed_or_panicking_read_undoes_all_of_it() {
    for panics in [false, true] {
        for cold in [false, true] {
            let bench = bench(STREAM_FRAMES, 64);
            bench.store.cold.store(cold, Ordering::Relaxed);
            let (session, rel) = bench.pool.open();
            let mut stream = ReadStream::default();
            scan(&mut stream, &session, &rel, 0..8).unwrap();
            let broken = if panics { &bench.store.panic_reads } else { &bench.store.fail_reads };
            broken.store(true, Ordering::Relaxed);
            let attempt = || scan(&mut stream, &session, &rel, 8..64);
            let attempt = catch_unwind(AssertUnwindSafe(attempt));
            assert!(attempt.is_err() == panics && !attempt.is_ok_and(|seen| seen.is_ok()));
            assert_eq!(
                (bench.pool.core.free_frames(), session.pinned_pages()),
                (STREAM_FRAMES - 8, 0)
            );
            broken.store(false, Ordering::Relaxed);
            assert_eq!(scan(&mut ReadStream::default(), &session, &rel, 0..64).unwrap(), 64);
            drop(session);
            all_free_after_drop(&bench);
        }
    }
}

#[test]
fn a_file_that_ends_within_a_run_is_an_error_of_the_page_that_is_missing() {
    let bench = bench(STREAM_FRAMES, 64);
    let (session, rel) = bench.pool.open();
    // The file is cut without the pool's knowledge.
    bench.store.inner.truncate(REL, 30).unwrap();
    let mut stream = ReadStream::default();
    let mut source = source_of(0..64);
    for block in 0..64u32 {
        assert_eq!(
            stream.peek(&session, &rel, Wait::Allowed, None, &mut source),
            Some(BlockNumber(block))
        );
        let read = session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16));
        match read {
            Ok(number) => assert_eq!(number, u64::from(block)),
            Err(BufferError::Store(StoreError::BeyondEnd { .. })) => assert!(block >= 30),
            Err(error) => panic!("{error}"),
        }
        stream.advance();
    }
    // Blocks beyond the fork's end do not exist, and the stream reports nothing about them.
    let mut beyond = 60..70;
    let mut source = || beyond.next().map(BlockNumber);
    stream.reset();
    for _ in 0..10 {
        assert!(stream.peek(&session, &rel, Wait::Allowed, None, &mut source).is_some());
        stream.advance();
    }
    assert_eq!(bench.pool.core.free_frames(), STREAM_FRAMES - 30);
}

/// Rule 10.
#[test]
fn a_tiny_pool_is_never_short_of_frames_because_of_a_stream() {
    const BLOCKS: u32 = if cfg!(miri) { 30 } else { 100 };
    let sizes: &[usize] = if cfg!(miri) { &[1, 16] } else { &[1, 2, 8, 40] };
    for &frames in sizes {
        let bench = bench(frames, BLOCKS);
        bench.store.cold.store(true, Ordering::Relaxed);
        let (session, rel) = bench.pool.open();
        let pinned: Vec<_> =
            (0..frames as u32 - 1).map(|block| pin_block(&session, &rel, block)).collect();
        let mut stream = ReadStream::default();
        assert_eq!(scan(&mut stream, &session, &rel, 0..BLOCKS).unwrap(), BLOCKS);
        drop(pinned);
        assert_eq!(scan(&mut stream, &session, &rel, 0..BLOCKS).unwrap(), BLOCKS);
    }
}

/// Rule 10.
#[test]
fn others_get_the_pages_of_a_session_that_has_gone() {
    const HALF: u32 = if cfg!(miri) { 40 } else { 100 };
    let bench = bench(STREAM_FRAMES, 2 * HALF);
    bench.store.cold.store(true, Ordering::Relaxed);
    let (session, rel) = bench.pool.open();
    let mut stream = joining_stream();
    scan(&mut stream, &session, &rel, 0..HALF).unwrap();
    bench.store.background.store(true, Ordering::Relaxed);
    let mut blocks = HALF..2 * HALF;
    let next =
        stream.peek(&session, &rel, Wait::Allowed, None, &mut || blocks.next().map(BlockNumber));
    assert_eq!(next, Some(BlockNumber(HALF)));
    drop((stream, session));
    assert!(bench.store.begun.lock().len() > 2, "several reads under way");
    let (store, pool) = (&bench.store, &bench.pool);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let session = pool.session().unwrap();
            for block in HALF..2 * HALF {
                assert_eq!(number(&session, &rel, block), u64::from(block));
            }
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) && !waiter.is_finished() {
            store.finish_begun();
            thread::yield_now();
        }
        waiter.join().unwrap();
    });
    all_free_after_drop(&bench);
}

#[test]
fn reads_under_way_end_before_a_fork_is_dropped_or_cut() {
    const BLOCKS: u32 = if cfg!(miri) { 100 } else { 200 };
    for cut in [false, true] {
        let bench = bench(STREAM_FRAMES, BLOCKS);
        bench.store.cold.store(true, Ordering::Relaxed);
        bench.store.background.store(true, Ordering::Relaxed);
        let (session, rel) = bench.pool.open();
        let mut stream = joining_stream();
        let mut source = source_of(0..BLOCKS);
        // The stream's reads on this thread make the distance grow, until one is begun in the
        // background.
        while bench.store.begun.lock().is_empty() {
            let block = stream.peek(&session, &rel, Wait::Allowed, None, &mut source).unwrap();
            if bench.store.begun.lock().is_empty() {
                assert_eq!(number(&session, &rel, block.0), u64::from(block.0));
                stream.advance();
            }
        }
        let (store, pool) = (&bench.store, &bench.pool);
        thread::scope(|scope| {
            let dropper = scope.spawn(|| match cut {
                true => pool.truncate(REL, 1),
                false => pool.drop_relation(REL.relation),
            });
            while !dropper.is_finished() {
                store.finish_begun();
                thread::yield_now();
            }
            dropper.join().unwrap().unwrap();
        });
        let left = session.read(&rel, BlockNumber(60), Wait::Allowed, |page| page.u64(16));
        let expected = if cut {
            matches!(left, Err(BufferError::BeyondEnd { .. }))
        } else {
            matches!(left, Err(BufferError::Dropped { .. }))
        };
        assert!(expected, "{left:?}");
        assert!(pool.core.free_frames() >= STREAM_FRAMES - 1);
    }
}

#[test]
fn a_session_that_must_not_wait_lets_others_read() {
    let bench = bench(STREAM_FRAMES, 64);
    bench.store.cold.store(true, Ordering::Relaxed);
    bench.store.background.store(true, Ordering::Relaxed);
    let (session, rel) = bench.pool.open();
    let mut stream = ReadStream::default();
    let mut source = source_of(0..64);
    let (mut seen, mut finished) = (0u32, 0);
    while let Some(block) = stream.peek(&session, &rel, Wait::Never, None, &mut source) {
        match session.read(&rel, block, Wait::Never, |page| page.u64(16)) {
            Ok(number) => {
                assert_eq!(number, u64::from(seen));
                stream.advance();
                seen += 1;
            }
            Err(BufferError::WouldBlock) => {
                finished += bench.store.finish_begun();
                // As a server's thread that may block does.
                number(&session, &rel, block.0);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(seen, 64);
    assert!(finished > 0);
}
