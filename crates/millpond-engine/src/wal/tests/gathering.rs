//! The log's thread syncs the log once enough bytes have gathered, or after a delay, although no
//! session waits for that (wal rule 15). Most tests start no such thread. They call what it runs in
//! each round, its *turn*.

use super::*;

const AFTER: u64 = 16 << 10;
const PAYLOAD: [u8; 1000] = [7; 1000];

/// A log with a ring so large that its filling never notifies the log's thread here.
fn roomy(flush_after_bytes: u64) -> LogConfig {
    LogConfig { buffer_bytes: 1 << 20, flush_after_bytes, ..config(2) }
}

fn without_thread(directory: &tempfile::TempDir, flush_after_bytes: u64) -> Arc<Log> {
    Log::without_thread(store(directory), roomy(flush_after_bytes), start(SEGMENT)).unwrap()
}

fn insert(log: &Log) -> Lsn {
    log.insert(SessionNo(0), &Record::new(Xid(1), RmgrId::Heap, 0, &PAYLOAD)).unwrap().end
}

fn is_told(log: &Log) -> bool {
    log.flushing.work.load(Ordering::SeqCst)
}

/// A turn of the log's thread after it was kicked, before the delay is over.
fn turn(log: &Log) {
    log.flushing.work.store(false, Ordering::SeqCst);
    assert!(!log.flusher_turn(false, false));
}

#[test]
fn log_thread_syncs_when_enough_has_gathered() {
    let directory = tempfile::tempdir().unwrap();
    let log = without_thread(&directory, AFTER);
    for round in 1..=3 {
        let from = log.flushed();
        let mut end = from;
        while end.get() - from.get() < AFTER {
            assert!(!is_told(&log), "too early");
            turn(&log);
            assert_eq!(log.flushed(), from, "nothing asks for a sync");
            end = insert(&log);
        }
        assert!(is_told(&log));
        // What is inserted before the thread's turn is synced, too.
        end = insert(&log);
        turn(&log);
        assert_eq!(log.flushed(), end);
        let stats = log.stats();
        assert_eq!((stats.by_log_thread.syncs, stats.by_backends.syncs), (round, 0));
    }
}

/// The thread clears the flag just as it is notified. The next insertion notifies it again.
#[test]
fn missed_notification_is_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let log = without_thread(&directory, AFTER);
    while !is_told(&log) {
        insert(&log);
    }
    log.flushing.work.store(false, Ordering::SeqCst);
    insert(&log);
    assert!(is_told(&log));
    turn(&log);
    assert_eq!(log.flushed(), log.insert_position());
}

#[test]
fn what_a_commit_has_synced_is_not_synced_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = without_thread(&directory, AFTER);
    while !is_told(&log) {
        insert(&log);
    }
    log.flush(log.insert_position()).unwrap();
    insert(&log);
    turn(&log);
    assert!(log.flushed() < log.insert_position(), "too little has gathered since");
    assert_eq!(log.stats().by_log_thread.syncs, 0);
    assert!(!is_told(&log));
}

/// Zero: the thread syncs whenever it writes, and after a commit that does not wait.
#[test]
fn zero_flush_after_syncs_without_gathering() {
    let directory = tempfile::tempdir().unwrap();
    let log = without_thread(&directory, 0);
    insert(&log);
    assert!(!is_told(&log), "an insertion alone is no reason");
    log.commit_in_background();
    assert!(is_told(&log));
    turn(&log);
    assert_eq!(log.flushed(), log.insert_position());
    let log = without_thread(&tempfile::tempdir().unwrap(), AFTER);
    log.commit_in_background();
    assert!(!is_told(&log), "else it waits for more");
}

/// The log's thread syncs what comes before an incomplete record, and does not wait for that
/// record.
#[test]
fn incomplete_record_is_synced_later() {
    let directory = tempfile::tempdir().unwrap();
    let log = without_thread(&directory, AFTER);
    let before = insert(&log);
    log.insertion.begin(1, before);
    while !is_told(&log) {
        insert(&log);
    }
    turn(&log);
    assert_eq!(log.flushed(), before);
    log.insertion.finish(1);
    while !is_told(&log) {
        insert(&log);
    }
    turn(&log);
    assert_eq!(log.flushed(), log.insert_position());
}

/// With the thread. No session commits or waits for the long delay, and the log still becomes
/// durable. After a crash, all that was reported durable can be read.
#[test]
fn bulk_work_is_durable_without_a_commit_and_before_the_delay() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), roomy(AFTER), start(SEGMENT)).unwrap();
    for _ in 0..20 {
        let target = Lsn(log.flushed().get() + AFTER);
        while insert(&log) < target {}
        while log.flushed() < target {
            // A sync that began within the last insertion leaves that record to the next one, for
            // which more has to gather.
            if log.insert_position().get() - log.flushed().get() < AFTER {
                insert(&log);
            }
            std::thread::yield_now();
        }
    }
    let stats = log.stats();
    assert_eq!((stats.by_backends.syncs, stats.buffers_full), (0, 0));
    log.abandon();
    let flushed = log.flushed();
    let read = read_all(&store);
    let durable = read.iter().filter(|record| record.0 < flushed).count() as u64;
    let each = (flushed.get() - SEGMENT) / durable;
    assert_eq!(each, read[1].0.get() - read[0].0.get(), "every record is there");
}
