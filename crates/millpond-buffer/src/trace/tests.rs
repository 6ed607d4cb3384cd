//! Recorded accesses are read back as they were, and no file contents make reading panic.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::config::{PoolConfig, Wait};
use crate::ids::RelFork;
use crate::page::PageRead;
use crate::store::MemoryStore;
use crate::{BufferPool, Fork, IoContext, NoLog, PAGE_SIZE, RelHandle};
use proptest::prelude::*;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A sink that keeps what it is given, or refuses it.
#[derive(Debug, Default)]
struct Kept {
    bytes: Mutex<Vec<u8>>,
    refuse: AtomicBool,
    panic: AtomicBool,
    lost: AtomicU64,
}

impl PageTrace for Kept {
    fn now_nanos(&self) -> u64 {
        7
    }

    fn hand_over(&self, chunk: &mut Box<TraceChunk>) -> bool {
        assert!(!self.panic.load(Ordering::Relaxed), "the sink");
        if self.refuse.load(Ordering::Relaxed) {
            return false;
        }
        codec::encode(chunk, &mut self.bytes.lock().unwrap());
        true
    }

    fn lost(&self, records: u64) {
        assert!(!self.panic.load(Ordering::Relaxed), "the sink");
        self.lost.fetch_add(records, Ordering::Relaxed);
    }
}

const REL: RelFork = RelationId::constant(1).main();

/// A pool that records its accesses, and a fork.
fn recorded(trace: Arc<dyn PageTrace>) -> (Arc<BufferPool>, RelHandle) {
    let mut config = PoolConfig::new(16, 4);
    config.trace = Some(trace);
    let pool = BufferPool::new(config, Arc::new(MemoryStore::new()), Arc::new(NoLog)).unwrap();
    pool.create(REL).unwrap();
    let handle = pool.relation(REL).unwrap();
    (pool, handle)
}

fn records_of(chunks: &[u8]) -> Vec<TracedChunk> {
    let header = codec::header();
    let mut reader = TraceReader::new(header.as_slice().chain(chunks)).unwrap();
    let mut read = Vec::new();
    while let Some(chunk) = reader.next_chunk().unwrap() {
        read.push(chunk);
    }
    assert!(!reader.broken_off());
    read
}

fn any_record() -> impl Strategy<Value = TraceRecord> {
    let rel = prop_oneof![0u32..20, 0u32..1 << 28];
    let block = prop_oneof![0u32..100, any::<u32>()];
    (rel, 0u8..2, block, 0u8..16).prop_map(|(rel, fork, block, flags)| {
        let rel = RelFork::new(RelationId::constant(rel), Fork::from_number(fork).unwrap());
        TraceRecord { page: rel.page(BlockNumber(block)), flags: TraceFlags(flags) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 48 }))]

    #[test]
    fn what_is_recorded_is_read(records in prop::collection::vec(any_record(), 1..5 * CHUNK_RECORDS / 2)) {
        let kept = Arc::new(Kept::default());
        let sink: Arc<dyn PageTrace> = kept.clone();
        let session = SessionTrace::new(&sink, 3);
        for record in &records {
            session.note(record.page, record.flags);
        }
        drop(session);
        let chunks = records_of(&kept.bytes.lock().unwrap());
        prop_assert!(chunks.iter().all(|chunk| chunk.session == Some(3)));
        let read: Vec<_> = chunks.into_iter().flat_map(|chunk| chunk.records).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn no_bytes_make_it_panic(
        records in prop::collection::vec(any_record(), 1..50),
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        mend: bool,
    ) {
        let mut chunk = TraceChunk::new();
        for record in &records {
            chunk.push(record.page, record.flags);
        }
        let mut bytes = codec::header().to_vec();
        codec::encode(&chunk, &mut bytes);
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if mend {
            // The checksum is made right, so that reading gets to the records.
            let crc = codec::crc(&bytes[codec::HEADER_BYTES..]).to_le_bytes();
            let at = codec::HEADER_BYTES + codec::CRC_AT;
            bytes[at..at + 4].copy_from_slice(&crc);
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Ok(mut reader) = TraceReader::new(bytes.as_slice()) {
            while let Ok(Some(_)) = reader.next_chunk() {}
        }
    }
}

/// Notices a change of the format: it needs another version.
#[test]
fn the_bytes_are_those_of_the_description() {
    let mut chunk = TraceChunk::new();
    chunk.restart(2, 5);
    (chunk.ended_nanos, chunk.dropped) = (9, 1);
    let table = RelationId::constant(1000);
    chunk.push(table.main().page(BlockNumber(300)), TraceFlags::HIT);
    chunk.push(table.fork(Fork::Fsm).page(BlockNumber(0)), TraceFlags::VACUUM);
    chunk.push(table.main().page(BlockNumber(298)), TraceFlags::BULK_READ);
    let mut bytes = Vec::new();
    codec::encode(&chunk, &mut bytes);
    #[rustfmt::skip]
    let expected = [
        b'C', b'H', b'N', b'K',  11, 0, 0, 0,  3, 0, 0, 0,  2, 0, 0, 0,
        5, 0, 0, 0, 0, 0, 0, 0,  9, 0, 0, 0, 0, 0, 0, 0,  1, 0, 0, 0,  0, 0, 0, 0,
    ];
    assert_eq!(bytes[..codec::CRC_AT], expected);
    #[rustfmt::skip]
    let expected = [
        0xf8, 0xa0, 0x1f, 0xd8, 0x04, // 1000 << 2 = 4000; 300 -> 600
        0xf3, 0xa1, 0x1f, 0x00,       // 4001; 0
        0x01, 0x03,                   // place 0; -2 -> 3
    ];
    assert_eq!(bytes[codec::CHUNK_HEADER_BYTES..], expected);
    assert_eq!(codec::header()[..12], *b"MPONDTRC\x01\0\0\0");
    assert_eq!(codec::header()[12..], (PAGE_SIZE as u32).to_le_bytes());
}

#[test]
fn a_pool_records_hits_misses_and_new_pages() {
    let kept = Arc::new(Kept::default());
    let (pool, handle) = recorded(kept.clone());
    let session = pool.session().unwrap();
    drop(session.extend(&handle, Wait::Allowed).unwrap());
    session.set_io_context(IoContext::Vacuum);
    drop(session.pin(&handle, BlockNumber(0), Wait::Allowed).unwrap());
    session.set_io_context(IoContext::Normal);
    session.read(&handle, BlockNumber(0), Wait::Allowed, |page| page.u64(0)).unwrap();
    drop(session);
    let chunks = records_of(&kept.bytes.lock().unwrap());
    let flags: Vec<_> =
        chunks.iter().flat_map(|chunk| &chunk.records).map(|record| record.flags).collect();
    assert_eq!(
        flags,
        [TraceFlags::EXTEND, TraceFlags::HIT.with(TraceFlags::VACUUM), TraceFlags::HIT]
    );
    assert!(chunks[0].records.iter().all(|record| record.page == REL.page(BlockNumber(0))));
}

/// A sink that panics costs its records, but no pin or latch of a session (rule 6).
#[test]
fn a_sink_that_panics_makes_no_access_fail() {
    let kept = Arc::new(Kept::default());
    kept.panic.store(true, Ordering::Relaxed);
    let (pool, handle) = recorded(kept.clone());
    let session = pool.session().unwrap();
    // Each kind of access in turn is the one at which a chunk is full.
    let (block, wait) = (BlockNumber(0), Wait::Allowed);
    let extend = || drop(session.extend(&handle, wait).unwrap());
    let pin = || drop(session.pin(&handle, block, wait).unwrap());
    let latch = || drop(session.pin_shared(&handle, block, wait).unwrap());
    extend();
    let mut before = 1;
    for access in [&extend as &dyn Fn(), &pin, &latch] {
        (before..CHUNK_RECORDS - 1).for_each(|_| pin());
        access();
        before = 0;
    }
    drop(session);
    pool.truncate(REL, 0).unwrap();
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 16);
    assert!(kept.bytes.lock().unwrap().is_empty());
}

/// A sink that panics the first time, when it has taken the records already.
#[derive(Debug, Default)]
struct Swaps {
    /// The session and the number of lost records of each chunk.
    chunks: Mutex<Vec<(u32, u32)>>,
}

impl PageTrace for Swaps {
    fn now_nanos(&self) -> u64 {
        7
    }

    fn hand_over(&self, chunk: &mut Box<TraceChunk>) -> bool {
        let taken = std::mem::replace(chunk, TraceChunk::new());
        let mut chunks = self.chunks.lock().unwrap_or_else(|error| error.into_inner());
        chunks.push((taken.session, taken.dropped));
        assert!(chunks.len() > 1, "the first time");
        true
    }

    fn lost(&self, _: u64) {}
}

/// A sink without a clock.
#[derive(Debug, Default)]
struct Clockless {
    lost: AtomicU64,
}

impl PageTrace for Clockless {
    fn now_nanos(&self) -> u64 {
        panic!("the clock")
    }

    fn hand_over(&self, _: &mut Box<TraceChunk>) -> bool {
        unreachable!("without the time")
    }

    fn lost(&self, records: u64) {
        self.lost.fetch_add(records, Ordering::Relaxed);
    }
}

#[test]
fn a_sink_that_panics_with_a_chunk_has_lost_its_records() {
    let sink = Arc::new(Swaps::default());
    let session = SessionTrace::new(&(sink.clone() as Arc<dyn PageTrace>), 3);
    let page = REL.page(BlockNumber(0));
    (0..2 * CHUNK_RECORDS).for_each(|_| session.note(page, TraceFlags::NORMAL));
    assert_eq!(
        *sink.chunks.lock().unwrap_or_else(|error| error.into_inner()),
        [(3, 0), (3, CHUNK_RECORDS as u32)]
    );
}

#[test]
fn a_sink_whose_clock_panics_loses_records_and_no_session() {
    let sink = Arc::new(Clockless::default());
    let (pool, handle) = recorded(sink.clone());
    // One session at a time, three times.
    (0..3).for_each(|_| {
        drop(pool.session().unwrap().extend(&handle, Wait::Allowed).unwrap());
    });
    assert_eq!(sink.lost.load(Ordering::Relaxed), 3);
}

#[test]
fn what_is_dropped_is_counted() {
    let kept = Arc::new(Kept::default());
    let sink: Arc<dyn PageTrace> = kept.clone();
    let session = SessionTrace::new(&sink, 0);
    let page = REL.page(BlockNumber(1));
    let refuse = |refuse| kept.refuse.store(refuse, Ordering::Relaxed);
    refuse(true);
    (0..CHUNK_RECORDS + 5).for_each(|_| session.note(page, TraceFlags::HIT));
    refuse(false);
    (5..CHUNK_RECORDS).for_each(|_| session.note(page, TraceFlags::HIT));
    refuse(true);
    session.note(page, TraceFlags::HIT);
    drop(session);
    let chunks = records_of(&kept.bytes.lock().unwrap());
    assert_eq!(chunks.len(), 1);
    assert_eq!((chunks[0].dropped, chunks[0].records.len()), (CHUNK_RECORDS as u32, CHUNK_RECORDS));
    assert_eq!(kept.lost.load(Ordering::Relaxed), 1);
}

#[cfg(not(miri))]
mod files {
    use super::*;

    #[test]
    fn a_file_has_what_all_sessions_recorded_and_can_be_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let file = TraceFile::create(&path).unwrap();
        let sink: Arc<dyn PageTrace> = file.clone();
        std::thread::scope(|scope| {
            for number in 0..3u32 {
                let sink = &sink;
                scope.spawn(move || {
                    let session = SessionTrace::new(sink, number as usize);
                    for block in 0..5000 {
                        let rel = RelationId::constant(number).main();
                        session.note(rel.page(BlockNumber(block)), TraceFlags::HIT);
                    }
                });
            }
        });
        drop(sink);
        drop(file);
        let bytes = std::fs::read(&path).unwrap();
        let chunks = records_of(&bytes[codec::HEADER_BYTES..]);
        let dropped: u32 = chunks.iter().map(|chunk| chunk.dropped).sum();
        let records: usize = chunks.iter().map(|chunk| chunk.records.len()).sum();
        assert_eq!(dropped as usize + records, 15_000);

        // A cut that is not between chunks is noticed, and all whole chunks are read.
        let cut = &bytes[..bytes.len() - 1];
        let mut reader = TraceReader::new(cut).unwrap();
        let mut whole = 0;
        while reader.next_chunk().unwrap().is_some() {
            whole += 1;
        }
        assert_eq!((whole, reader.broken_off()), (chunks.len() - 1, true));
    }

    #[test]
    fn a_limit_keeps_the_newest() {
        const LIMIT: u64 = 100_000;
        let dir = tempfile::tempdir().unwrap();
        let (path, older) = (dir.path().join("trace"), dir.path().join("trace.1"));
        std::fs::write(&older, codec::header()).unwrap();
        let file = TraceFile::create_with_limit(&path, LIMIT).unwrap();
        assert!(!older.exists());
        let session = SessionTrace::new(&(file.clone() as Arc<dyn PageTrace>), 0);
        for block in 0..200_000 {
            session.note(REL.page(BlockNumber(block)), TraceFlags::HIT);
            // Lets the writer keep up.
            while block % 1024 == 0 && file.stats().records + 10_000 < u64::from(block) {
                std::thread::yield_now();
            }
        }
        drop(session);
        let counts = Arc::clone(file.counts());
        drop(file);
        let stats = counts.stats();
        assert_eq!((stats.records, stats.dropped), (200_000, 0), "{stats:?}");
        let bytes = [older, path].map(|path| std::fs::read(path).unwrap());
        let total: usize = bytes.iter().map(Vec::len).sum();
        assert!((LIMIT / 2..=LIMIT).contains(&(total as u64)), "{total} bytes");
        let chunks = bytes.iter().flat_map(|bytes| records_of(&bytes[codec::HEADER_BYTES..]));
        let records: Vec<_> = chunks.flat_map(|chunk| chunk.records).collect();
        assert_eq!(records.len() as u64, stats.records - stats.outdated);
        let blocks = records.iter().map(|record| record.page.block().get());
        assert!(blocks.eq(stats.outdated as u32..200_000));
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        std::fs::write(&path, "my diary").unwrap();
        assert_eq!(TraceFile::create(&path).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"my diary");
        let before = dir.path().join("diary");
        std::fs::write(dir.path().join("diary.1"), "of last year").unwrap();
        let refused = TraceFile::create_with_limit(&before, 1 << 20).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        drop(TraceFile::create(&before).unwrap());
        let path = dir.path().join("trace");
        drop(TraceFile::create(&path).unwrap());
        drop(TraceFile::create(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), codec::header());
    }
}
