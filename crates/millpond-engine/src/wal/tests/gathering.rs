//! When what nobody waits for is synced (wal rule 15). Mostly without the log's thread, whose turns are the test's.

use super::*;

const AFTER: u64 = 16 << 10;
const PAYLOAD: [u8; 1000] = [7; 1000];

/// A log whose ring is so long that its filling up gives the log's thread nothing to do here.
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

/// The turn of a thread that was kicked, before anything is due for its age.
fn turn(log: &Log) {
    log.flushing.work.store(false, Ordering::SeqCst);
    assert!(!log.flusher_turn(false, false));
}

#[test]
fn the_logs_thread_is_told_and_syncs_when_enough_has_gathered() {
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
        // What comes before the thread has its turn goes along.
        end = insert(&log);
        turn(&log);
        assert_eq!(log.flushed(), end);
        let stats = log.stats();
        assert_eq!((stats.by_log_thread.syncs, stats.by_backends.syncs), (round, 0));
    }
}

/// The thread looks away just as it is told: the next insertion tells it again.
#[test]
fn a_word_that_was_missed_is_said_again() {
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

/// Zero: it syncs whenever it writes, and writes what commits leave behind that don't wait.
#[test]
fn with_zero_nothing_gathers() {
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

/// A record that is being inserted is not waited for: what is before it is synced.
#[test]
fn what_is_incomplete_is_left_for_later() {
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

/// With the thread: nobody commits, nobody waits for an hour, and the log is durable all the same; what is read back
/// after a crash then is all that was said to be durable.
#[test]
fn bulk_work_is_durable_without_a_commit_and_before_the_delay() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let log = Log::open(Arc::clone(&store), roomy(AFTER), start(SEGMENT)).unwrap();
    for _ in 0..20 {
        let target = Lsn(log.flushed().get() + AFTER);
        while insert(&log) < target {}
        while log.flushed() < target {
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
