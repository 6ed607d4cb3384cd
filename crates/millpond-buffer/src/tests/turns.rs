//! Reads that wait for their turn, and streams with as many reads as they may have.

use super::*;
use crate::read::UnderWay;
use crate::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A bench whose reads are begun, and end when a test finishes them.
fn slow_bench(blocks: u32) -> Bench {
    slow(bench(STREAM_FRAMES, blocks))
}

fn slow(bench: Bench) -> Bench {
    bench.store.background.store(true, Ordering::Relaxed);
    bench.store.cold.store(true, Ordering::Relaxed);
    bench
}

/// The number of reads that a stream may have at a time, apart from that of the next page: the
/// default, or few for Miri.
const CONCURRENCY: u32 = if cfg!(miri) { 3 } else { 16 };
/// The most reads that the store has at a time, and the most that the stream has with its backlog.
const AT_ONCE: u32 = CONCURRENCY + 1;
const MOST: u32 = 2 * AT_ONCE;
/// The number of pages of a table of which every other is read, so that no neighbours are joined.
/// It is enough for streams to look as far ahead as they may.
const BLOCKS: u32 = if cfg!(miri) { 60 } else { 150 };

fn options() -> StreamOptions {
    StreamOptions { io_concurrency: CONCURRENCY, ..StreamOptions::default() }
}

/// A stream that has begun all reads that it may: it goes past blocks without reading them, and no
/// read is finished.
fn backlog(session: &BufferSession, rel: &RelHandle) -> ReadStream {
    let mut stream = ReadStream::new(options());
    let mut source = source_of((0..BLOCKS).step_by(2));
    while stream.under_way() < MOST {
        assert!(stream.peek(session, rel, Wait::Allowed, None, &mut source).is_some());
        stream.advance();
    }
    stream
}

#[test]
fn a_stream_is_not_at_its_end_because_it_may_begin_no_read() {
    for combine in [1, 16] {
        let bench = slow_bench(BLOCKS);
        let (session, rel) = bench.pool.open();
        let options = StreamOptions { io_combine_limit: combine, ..options() };
        let mut stream = ReadStream::new(options);
        let mut source = source_of((0..BLOCKS).step_by(2));
        for expected in (0..BLOCKS).step_by(2) {
            let next = stream.peek(&session, &rel, Wait::Allowed, None, &mut source);
            assert_eq!(next, Some(BlockNumber(expected)));
            assert!(stream.under_way() <= MOST);
            stream.advance();
        }
        assert_eq!(stream.peek(&session, &rel, Wait::Allowed, None, &mut source), None);
        assert_eq!((stream.under_way(), bench.store.begun.lock().len()), (MOST, AT_ONCE as usize));
        while bench.store.finish_begun() > 0 {}
        assert_eq!(stream.under_way(), 0);
        drop(session);
        all_free_after_drop(&bench);
    }
}

#[test]
fn a_stream_begins_anew_beside_the_reads_of_its_last_source() {
    let bench = slow_bench(BLOCKS);
    let (session, rel) = bench.pool.open();
    let mut stream = backlog(&session, &rel);
    stream.reset();
    assert_eq!((stream.under_way(), bench.store.begun.lock().len()), (0, AT_ONCE as usize));
    let mut source = source_of((1..BLOCKS).step_by(2));
    for expected in (1..BLOCKS).step_by(2) {
        let next = stream.peek(&session, &rel, Wait::Allowed, None, &mut source);
        assert_eq!(next, Some(BlockNumber(expected)));
        // The new source's reads need nothing of the old one's, which go on by themselves.
        assert!(expected > 1 || bench.store.begun.lock().len() > AT_ONCE as usize);
        while bench.store.finish_begun() > 0 {}
        assert_eq!(number(&session, &rel, expected), u64::from(expected));
        stream.advance();
    }
    assert_eq!(stream.peek(&session, &rel, Wait::Allowed, None, &mut source), None);
    assert!(bench.store.begun.lock().is_empty());
    drop(session);
    all_free_after_drop(&bench);
}

/// The thread that fills lent frames, or tells a kernel where they are, makes the fence itself. The
/// fence of the thread that made the versions odd does not order its stores.
#[test]
#[cfg(not(any(loom, shuttle)))]
fn thread_that_fills_frames_makes_the_fence() {
    use crate::arena::FENCED;
    let bench = slow_bench(BLOCKS);
    let (session, rel) = bench.pool.open();
    let mut stream = backlog(&session, &rel);
    let mut read = bench.store.begun.lock().pop().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(FENCED.get(), 0);
            read.read_from(&*bench.store).unwrap();
            assert_eq!(FENCED.get(), 1);
            #[cfg(feature = "file-store")]
            assert_eq!((read.0.targets().len(), FENCED.get()), (1, 2));
            #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
            assert!(read.0.start().is_some() && FENCED.get() == 3);
        });
    });
    read.finish(Ok(()));
    stream.reset();
    while bench.store.finish_begun() > 0 {}
    drop(session);
    all_free_after_drop(&bench);
}

/// A read that is given up leaves its frames to the device, and the pages come to other frames.
#[test]
#[cfg_attr(miri, ignore = "what is left to the device is a leak to Miri")]
fn frames_of_an_abandoned_read_are_never_used_again() {
    let bench = slow_bench(BLOCKS);
    let (session, rel) = bench.pool.open();
    let frames = bench.pool.frames();
    let mut stream = backlog(&session, &rel);
    let read = bench.store.begun.lock().pop().unwrap();
    let (block, lost) = (read.first().0, read.words()[0].as_ptr());
    read.0.abandon(StoreError::Missing { rel: REL });
    stream.reset();
    while bench.store.finish_begun() > 0 {}
    for block in (0..BLOCKS).chain([block]) {
        assert_eq!(number(&session, &rel, block), u64::from(block));
        let page = pin_block(&session, &rel, block);
        let shared = page.into_shared().unwrap();
        assert_ne!(shared.bytes().as_ptr().addr(), lost.addr());
    }
    drop(session);
    bench.pool.write_dirty(&bench.pool.session().unwrap(), |_| ()).unwrap();
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!((bench.pool.core.free_frames(), bench.pool.stats().lost_frames), (frames - 1, 1));
    // Growing still works. Shrinking ends at the lost frame, at once.
    let (session, last) = (bench.pool.session().unwrap(), bench.pool.max_frames());
    bench.pool.resize(&session, last).unwrap();
    let error = bench.pool.resize(&session, 1).unwrap_err();
    assert!(matches!(error, BufferError::Shrinking { page: None, is_lost: true, .. }), "{error:?}");
    assert!(error.to_string().contains("before a restart"), "{error}");
    assert_eq!(bench.pool.core.free_frames(), bench.pool.frames() - 1);
}

/// However often a device gives up, the lost frames are at most what reading ahead may have. No
/// session waits for them.
#[test]
#[cfg_attr(miri, ignore = "what is left to the device is a leak to Miri")]
fn lost_frames_are_part_of_what_reading_ahead_may_have() {
    let bench = slow(bench(64, 400));
    let (pool, session) = (&bench.pool, bench.pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let mut lost = 0;
    for round in 0..20 {
        let options = StreamOptions { io_concurrency: 4, io_combine_limit: 4 };
        let mut stream = ReadStream::new(options);
        let mut source = source_of(round * 20..round * 20 + 20);
        while stream.peek(&session, &rel, Wait::Allowed, None, &mut source).is_some() {
            stream.advance();
        }
        loop {
            let begun = std::mem::take(&mut *bench.store.begun.lock());
            if begun.is_empty() {
                break;
            }
            for read in begun {
                lost += read.count();
                read.0.abandon(StoreError::Missing { rel: REL });
            }
        }
    }
    assert_eq!((lost, pool.stats().lost_frames), (64 / 4, 64 / 4));
    assert!(!pool.core.ahead.wait_for_one(&**pool.store()), "waited for what is lost");
    (0..400).for_each(|block| assert_eq!(number(&session, &rel, block), block.into()));
    let pin = |block| session.pin(&rel, BlockNumber(block), Wait::Allowed);
    let pins: Vec<_> = (0..48).map(|block| pin(block).unwrap()).collect();
    let full = pin(100).map(drop);
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { .. })), "{full:?}");
    drop(pins);
    assert_eq!(number(&session, &rel, 100), 100);
}

#[test]
// It looks at memory as the kernel shows it in `/proc`.
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "what is left to the device is a leak to Miri")]
fn the_memory_of_an_abandoned_read_outlives_the_pool() {
    use std::os::unix::fs::FileExt;
    let bench = slow_bench(BLOCKS);
    let pool = Arc::downgrade(&bench.pool);
    let (session, rel) = bench.pool.open();
    let stream = backlog(&session, &rel);
    let read = bench.store.begun.lock().pop().unwrap();
    let words = read.words()[0];
    let address = words.as_ptr().addr() as u64;
    let says = 0x5EE5_1DE5_5EE5_1DE5_u64;
    words[0].store(says, Ordering::Relaxed);
    read.0.abandon(StoreError::Missing { rel: REL });
    drop((stream, session, rel));
    while bench.store.finish_begun() > 0 {}
    drop(bench);
    assert!(pool.upgrade().is_none(), "something still holds the pool");
    // Memory that is not mapped can't be read.
    let (memory, mut found) = (std::fs::File::open("/proc/self/mem").unwrap(), [0; 8]);
    memory.read_exact_at(&mut found, address).unwrap();
    assert_eq!(u64::from_ne_bytes(found), says);
}

/// However a read ends, the next has begun before the requester is told.
#[test]
fn a_turn_is_given_up_before_the_end_is_told() {
    let ends: [fn(PendingRead); 3] =
        [|read| read.finish(Ok(())), drop, |read| read.0.abandon(StoreError::Missing { rel: REL })];
    // An abandoned read's memory is left to the device for good, which is a leak to Miri.
    let ends = &ends[..if cfg!(miri) { 2 } else { 3 }];
    for end in ends {
        let Bench { pool, store, .. } = slow_bench(4);
        let under_way = UnderWay::default();
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        for block in 0..3 {
            let (store, told) = (Arc::clone(&store), Arc::clone(&told));
            let done = move |_, _| {
                told.lock().push((block, store.begun.lock().first().map(PendingRead::first)));
            };
            let read = PendingRead::new(REL, BlockNumber(block), PageBuffer::new(1), done);
            under_way.begin(pool.store(), read, 1);
        }
        let next = || store.begun.lock().pop();
        while let Some(read) = next() {
            end(read);
        }
        let expected = [(0, Some(BlockNumber(1))), (1, Some(BlockNumber(2))), (2, None)];
        assert_eq!(*told.lock(), expected);
        assert_eq!(under_way.count(), 0);
    }
}

/// The device answers in an order of its own. While the consumer waits for a late read, others
/// begin as soon as earlier ones have ended.
#[test]
fn a_late_read_does_not_keep_others_from_beginning() {
    let Bench { pool, store, .. } = slow_bench(2 * BLOCKS);
    let (session, rel) = pool.open();
    let mut stream = ReadStream::new(StreamOptions { io_concurrency: 3, io_combine_limit: 1 });
    let mut source = source_of((0..2 * BLOCKS).step_by(2));
    let mut peek = |stream: &mut ReadStream| {
        let block = stream.peek(&session, &rel, Wait::Allowed, None, &mut source);
        assert!(store.begun.lock().len() <= 4, "too many at a time");
        block.unwrap()
    };
    while stream.distance() < 16 {
        let block = peek(&mut stream);
        store.finish_begun();
        number(&session, &rel, block.0);
        stream.advance();
    }
    store.finish_begun();
    // The first read that has not ended is late.
    let late = loop {
        let block = peek(&mut stream);
        if !session.core.is_absent(&rel, block)
            && store.begun.lock().first().is_some_and(|read| read.first() == block)
        {
            break block;
        }
        number(&session, &rel, block.0);
        stream.advance();
    };
    let mut ended = 0;
    loop {
        let others = store.begun.lock().split_off(1);
        if others.is_empty() {
            break;
        }
        ended += others.len();
        others.into_iter().for_each(|read| store.finish(read));
        assert_eq!(peek(&mut stream), late);
    }
    assert!(ended >= 12, "{ended} reads beside one that is late");
    store.finish_begun();
    number(&session, &rel, late.0);
}

#[test]
fn reads_that_wait_for_their_turn_begin_by_themselves() {
    let bench = slow(bench(STREAM_FRAMES, 2 * BLOCKS));
    let (pool, store) = (&bench.pool, &bench.store);
    let (session, rel) = pool.open();
    let mut stream = ReadStream::new(StreamOptions { io_concurrency: 1, io_combine_limit: 1 });
    let mut source = source_of((0..2 * BLOCKS).step_by(2));
    let mut peek = |stream: &mut ReadStream| {
        stream.peek(&session, &rel, Wait::Allowed, None, &mut source).unwrap()
    };
    while stream.distance() < 8 {
        let block = peek(&mut stream);
        while store.finish_begun() > 0 {}
        number(&session, &rel, block.0);
        stream.advance();
    }
    while store.finish_begun() > 0 {}
    while store.begun.lock().len() < 2 {
        stream.advance();
        peek(&mut stream);
    }
    drop((stream, session));
    // Each read that ends makes room for one, and there are never more than two.
    let mut ended = 0;
    loop {
        let next = store.begun.lock().pop();
        let Some(next) = next else { break };
        store.finish(next);
        ended += 1;
        assert!(store.begun.lock().len() <= 2, "too many at a time");
    }
    assert!(ended > 2, "none of {ended} reads waited");
    all_free_after_drop(&bench);
}

/// A store panics in `start_read` while other reads wait for their turn. Each of their requesters
/// is told once. The thread that ends an earlier read sees no panic.
#[test]
fn a_store_that_panics_where_reads_begin() {
    for is_first in [false, true] {
        let Bench { pool, store, .. } = slow_bench(4);
        let under_way = UnderWay::default();
        let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let begin = |block: u32, at_most: u32| {
            let told = Arc::clone(&told);
            let done = move |_, result: Result<(), StoreError>| {
                told.lock().push((block, result.is_ok()));
            };
            let read = PendingRead::new(REL, BlockNumber(block), PageBuffer::new(1), done);
            under_way.begin(pool.store(), read, at_most);
        };
        (0..3).for_each(|block| begin(block, 1));
        store.panic_starts.store(true, Ordering::Relaxed);
        let mut expected = vec![(2, false), (1, false), (0, true)];
        if is_first {
            // This read need not wait, so the panic propagates to its caller. Meanwhile those that
            // wait get their turns.
            assert!(catch_unwind(AssertUnwindSafe(|| begin(3, 2))).is_err());
            expected = vec![(2, false), (1, false), (3, false), (0, true)];
        }
        let read = store.begun.lock().pop().unwrap();
        store.finish(read);
        assert_eq!(*told.lock(), expected);
        assert_eq!(under_way.count(), 0);
        store.panic_starts.store(false, Ordering::Relaxed);
        begin(3, 1);
        assert_eq!(store.finish_begun(), 1);
        assert_eq!(told.lock().last(), Some(&(3, true)));
    }
}

/// The same for what a stream has taken for its reads: frames, entries, room.
#[test]
fn reads_that_panic_where_they_begin_hold_nothing() {
    let bench = slow_bench(BLOCKS);
    let (session, rel) = bench.pool.open();
    let stream = backlog(&session, &rel);
    bench.store.panic_starts.store(true, Ordering::Relaxed);
    while bench.store.finish_begun() > 0 {}
    assert_eq!(stream.under_way(), 0);
    // The pages of reads that had begun have come. Those that waited are absent, and can be read.
    assert_eq!(bench.pool.core.free_frames(), STREAM_FRAMES - AT_ONCE as usize);
    (0..BLOCKS).for_each(|block| assert_eq!(number(&session, &rel, block), block.into()));
    drop((stream, session));
    all_free_after_drop(&bench);
}
