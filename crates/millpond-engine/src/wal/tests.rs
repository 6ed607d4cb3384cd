//! The log as a whole, on files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use millpond_buffer::{BlockNumber, Lsn, PAGE_SIZE, PageId, RelationId};

use super::reader::{LogReader, Step};
use super::*;
use crate::ids::{SessionNo, Xid};

mod failing_files;
mod gathering;
mod group_commit;
mod starts;

const SEGMENT: u64 = 1 << 16;

fn config(sessions: usize) -> LogConfig {
    LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes: 1 << 16,
        max_sessions: sessions,
        writer_delay: Duration::from_secs(3600),
        flush_after_bytes: u64::MAX,
        redo_of: crate::rmgr::redo_of,
    }
}

fn start(end: u64) -> LogStart {
    LogStart { end: Lsn(end), durable: Lsn(end), redo: Lsn(SEGMENT), start_no: 1 }
}

fn store(directory: &tempfile::TempDir) -> Arc<dyn LogStore> {
    Arc::new(FileLogStore::open(directory.path(), SEGMENT).unwrap())
}

fn page_id(block: u32) -> PageId {
    RelationId::constant(9).main().page(BlockNumber(block))
}

/// Every record from the beginning: start, info, payload, and whether it has images.
fn read_all(store: &Arc<dyn LogStore>) -> Vec<(Lsn, u8, Vec<u8>, usize)> {
    let mut reader = LogReader::new(Arc::clone(store), Lsn(SEGMENT)).unwrap();
    let mut all = Vec::new();
    while let Step::Record(found) = reader.next().unwrap() {
        let images = found.blocks.iter().filter(|block| block.image.is_some()).count();
        all.push((found.start, found.info, found.payload.to_vec(), images));
    }
    all
}

#[test]
fn many_sessions_insert_and_every_record_is_read_back_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), config(8), start(SEGMENT)).unwrap();
    std::thread::scope(|scope| {
        for session in 0..8u16 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..400u32 {
                    let mut payload = vec![session as u8; (n as usize * 37) % 9000];
                    payload.extend_from_slice(&n.to_le_bytes());
                    let record = Record::new(Xid(1), RmgrId::Heap, session as u8, &payload);
                    let inserted = log.insert(SessionNo(session), &record).unwrap();
                    if n % 16 == 0 {
                        log.flush(inserted.end).unwrap();
                        assert!(log.flushed() >= inserted.end);
                    }
                }
            });
        }
    });
    log.close().unwrap();
    let all = read_all(&store);
    assert_eq!(all.len(), 8 * 400);
    let mut next = [0u32; 8];
    for (_, session, payload, _) in all {
        let (fill, n) = payload.split_at(payload.len() - 4);
        assert!(fill.iter().all(|byte| *byte == session));
        assert_eq!(u32::from_le_bytes(n.try_into().unwrap()), next[usize::from(session)]);
        next[usize::from(session)] += 1;
    }
}

#[test]
fn the_first_change_after_a_checkpoint_began_carries_an_image() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), config(1), start(SEGMENT)).unwrap();
    let mut page = [0; PAGE_SIZE];
    let change = |page: &mut [u8; PAGE_SIZE]| {
        let record =
            Record::new(Xid(1), RmgrId::Heap, 0, b"").block(page_id(0), ImageMode::IfNeeded, b"x");
        let inserted = log.insert_with_pages(SessionNo(0), &record, &[page]).unwrap();
        page[..8].copy_from_slice(&inserted.end.get().to_le_bytes());
        inserted
    };
    change(&mut page);
    change(&mut page);
    let begun = log.begin_checkpoint(log.maintenance_stripe(), b"").unwrap();
    assert_eq!(log.redo_point(), begun.start);
    change(&mut page);
    let last = change(&mut page);
    log.flush(last.end).unwrap();
    let images: Vec<usize> = read_all(&store).into_iter().map(|record| record.3).collect();
    assert_eq!(images, [1, 0, 0, 1, 0]);
    log.close().unwrap();
}

#[test]
fn no_image_is_missing_with_concurrent_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), config(4), start(SEGMENT)).unwrap();
    std::thread::scope(|scope| {
        for session in 0..4u16 {
            let log = &log;
            scope.spawn(move || {
                let mut page = [0; PAGE_SIZE];
                let payload = u32::from(session).to_le_bytes();
                for _ in 0..2000 {
                    let record = Record::new(Xid(1), RmgrId::Heap, 7, &payload).block(
                        page_id(session.into()),
                        ImageMode::IfNeeded,
                        b"",
                    );
                    let inserted =
                        log.insert_with_pages(SessionNo(session), &record, &[&page]).unwrap();
                    page[..8].copy_from_slice(&inserted.end.get().to_le_bytes());
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..600 {
                log.begin_checkpoint(log.maintenance_stripe(), b"").unwrap();
                std::thread::yield_now();
            }
        });
    });
    log.close().unwrap();
    let mut seen = [false; 4];
    for (_, info, payload, images) in read_all(&store) {
        match info {
            7 => {
                let page = u32::from_le_bytes(payload.try_into().unwrap()) as usize;
                assert!(images > 0 || seen[page], "first change without an image");
                seen[page] = true;
            }
            info::CHECKPOINT_START => seen = [false; 4],
            _ => {}
        }
    }
}

struct Count(AtomicUsize, std::thread::Thread);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.unpark();
    }
}

#[test]
fn tasks_are_woken_when_their_record_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(1), start(SEGMENT)).unwrap();
    let count = Arc::new(Count(AtomicUsize::new(0), std::thread::current()));
    for n in 1..=50 {
        let record = Record::new(Xid(1), RmgrId::Transaction, 0, b"commit");
        let inserted = log.insert(SessionNo(0), &record).unwrap();
        log.on_commit_flushed(inserted.end, Duration::ZERO, Waker::from(Arc::clone(&count)));
        while count.0.load(Ordering::SeqCst) < n {
            std::thread::park();
        }
        log.outcome(inserted.end).unwrap();
        assert!(log.flushed() >= inserted.end);
    }
    log.close().unwrap();
}

#[test]
fn flush_beyond_the_end_of_the_log_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(1), start(SEGMENT)).unwrap();
    assert!(matches!(log.flush(Lsn(1 << 40)), Err(WalError::BeyondEnd { .. })));
    log.close().unwrap();
}

#[test]
fn a_stopped_log_fails_every_insert_and_flush_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(1), start(SEGMENT)).unwrap();
    let record = Record::new(Xid(1), RmgrId::Heap, 0, b"");
    let inserted = log.insert(SessionNo(0), &record).unwrap();
    log.stop("the dog ate it");
    for error in [
        log.insert(SessionNo(0), &record).unwrap_err(),
        log.flush(inserted.end).unwrap_err(),
        log.outcome(inserted.end).unwrap_err(),
    ] {
        assert!(error.to_string().contains("the dog ate it"), "{error}");
    }
    use millpond_buffer::LogFlush;
    assert!(log.flush_to(Lsn::ZERO).is_err());
    assert!(read_all(&log.store).is_empty());
}

#[test]
fn old_segments_are_recycled_and_their_records_do_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), config(1), start(SEGMENT)).unwrap();
    let payload = vec![3; 1000];
    let record = Record::new(Xid(1), RmgrId::Heap, 0, &payload);
    let mut last = Lsn::ZERO;
    for _ in 0..400 {
        last = log.insert(SessionNo(0), &record).unwrap().end;
    }
    log.flush(last).unwrap();
    log.retire(last, 4 * SEGMENT);
    let segments = store.segments().unwrap();
    assert_eq!(segments[0], last.get() / SEGMENT);
    assert!(segments.len() >= 3, "{segments:?}");
    log.close().unwrap();
    let mut reader = LogReader::new(Arc::clone(&store), last).unwrap();
    let Step::End { at, .. } = reader.next().unwrap() else { panic!("a record came back") };
    assert_eq!(at, last);
    assert_eq!(reader.find_claim_beyond(last).unwrap(), None);
}

/// The thread that makes room in the ring must not wait for room. It marks only an idle log.
#[test]
fn record_at_end_is_inserted_only_in_an_idle_log() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(1), start(SEGMENT)).unwrap();
    let record = Record::new(Default::default(), RmgrId::Log, info::NOOP, b"");
    let quiet = log.insert_position();
    let first = log.insert_at_end(SessionNo(0), &record, quiet).unwrap().unwrap();
    // Another record came first.
    assert!(log.insert_at_end(SessionNo(0), &record, quiet).unwrap().is_none());
    // Nothing of the first record has been written, so there may be no room.
    assert!(log.insert_at_end(SessionNo(0), &record, first.end).unwrap().is_none());
    log.flush(first.end).unwrap();
    assert!(log.insert_at_end(SessionNo(0), &record, first.end).unwrap().is_some());
}

#[test]
fn durable_mark_distinguishes_damage_from_a_torn_tail() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::without_thread(Arc::clone(&store), config(1), start(SEGMENT)).unwrap();
    let record = Record::new(Xid(1), RmgrId::Transaction, 0, b"commit");
    let inserted = log.insert(SessionNo(0), &record).unwrap();
    log.flush(inserted.end).unwrap();
    // Nothing else is inserted. The log's thread appends the mark when it wakes up.
    log.flusher_turn(true, false);
    log.close().unwrap();
    let offset = inserted.start.get() % SEGMENT + 30;
    let mut byte = [0];
    store.read(1, offset, &mut byte).unwrap();
    store.write(1, offset, &[byte[0] ^ 4]).unwrap();
    let mut reader = LogReader::new(store, inserted.start).unwrap();
    assert!(matches!(reader.next().unwrap(), Step::End { .. }));
    assert_eq!(reader.find_claim_beyond(inserted.start).unwrap(), Some(inserted.end));
}
