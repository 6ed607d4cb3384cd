//! Sessions commit on a slow disk that may fail; a waiting session writes ahead while another
//! syncs.
//!
//! The log's real code runs here, and must meet these conditions:
//!
//! - The log never says, not for a moment, that it is durable beyond what completed syncs cover.
//! - If a session learns that its commit is durable, the commit is on the disk.
//! - If a session learns that its commit failed, the log has stopped.
//! - After a failed sync nothing more is confirmed, although the next sync would succeed. A kernel
//!   behaves so when it has forgotten the pages it could not write.
//!
//! In another model sessions wait for nothing: the log's thread, once notified, syncs what gathers.
//! In pauses.rs syncs take time, so that leaders wait for others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_sync::sync::Mutex;
use millpond_sync::{clock, thread};

use super::super::{
    CONTROL_COPY_BYTES, Log, LogConfig, LogStart, LogStore, Record, RmgrId, WalError,
};
use crate::ids::{SessionNo, Xid};

mod pauses;

/// A few records long, so that some syncs cover two segments.
const SEGMENT: u64 = 256;

/// A disk that records what has been written to it, and what of that has been synced.
struct Disk {
    written: AtomicU64,
    /// Up to where each segment has been synced, by log position.
    synced: Mutex<Vec<u64>>,
    syncs: AtomicUsize,
    /// The index of the sync that fails, if the run gets that far.
    fails: usize,
    has_failed: AtomicBool,
    /// The time that a sync takes. (Nothing else takes any.)
    takes: Duration,
}

impl Disk {
    fn new(fails: usize) -> Self {
        Self {
            written: AtomicU64::new(SEGMENT),
            synced: Mutex::new(Vec::new()),
            syncs: AtomicUsize::new(0),
            fails,
            has_failed: AtomicBool::new(false),
            takes: Duration::ZERO,
        }
    }

    /// Everything below this position survives.
    fn durable(&self) -> Lsn {
        let synced = self.synced.lock();
        let mut durable = SEGMENT;
        for &upto in synced.iter().skip(1) {
            durable = durable.max(upto);
            if durable % SEGMENT != 0 {
                break;
            }
        }
        Lsn(durable)
    }
}

impl LogStore for Disk {
    fn segment_bytes(&self) -> u64 {
        SEGMENT
    }
    fn segments(&self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }
    fn create(&self, segment: u64) -> io::Result<()> {
        let mut synced = self.synced.lock();
        let known = synced.len() as u64;
        synced.extend((known..=segment).map(|segment| segment * SEGMENT));
        Ok(())
    }
    fn recycle(&self, _from: u64, _to: u64) -> io::Result<()> {
        unreachable!("nothing is retired")
    }
    fn remove(&self, _segment: u64) -> io::Result<()> {
        unreachable!("nothing is retired")
    }
    fn read(&self, _segment: u64, _offset: u64, _bytes: &mut [u8]) -> io::Result<()> {
        unreachable!("nothing is read")
    }

    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let at = segment * SEGMENT + offset;
        assert_eq!(self.written.load(Ordering::SeqCst), at, "two writers, or a gap");
        thread::yield_now();
        self.written.store(at + bytes.len() as u64, Ordering::SeqCst);
        Ok(())
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        // The sync need not cover what is written while it is in progress.
        let seen = self.written.load(Ordering::SeqCst).min((segment + 1) * SEGMENT);
        thread::yield_now();
        if !self.takes.is_zero() {
            clock::pass(self.takes);
        }
        if self.syncs.fetch_add(1, Ordering::SeqCst) == self.fails {
            self.has_failed.store(true, Ordering::SeqCst);
            return Err(io::Error::other("made to fail"));
        }
        // After a failure the kernel drops the pages it could not write, without a report.
        if !self.has_failed.load(Ordering::SeqCst) {
            let mut synced = self.synced.lock();
            let upto = &mut synced[segment as usize];
            *upto = (*upto).max(seen);
        }
        Ok(())
    }

    fn read_control(&self, _copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        Ok(None)
    }
    fn write_control(&self, _copy: usize, _bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        Ok(())
    }
}

fn check(log: &Log, disk: &Disk) {
    // Load them in this order: the durable position only grows.
    let flushed = log.flushed();
    assert!(flushed <= disk.durable(), "said to be durable, and is not");
}

fn commit(log: &Log, disk: &Disk, session: u16, payload: &[u8]) {
    let record = Record::new(Xid(1), RmgrId::Transaction, 0, payload);
    let inserted = match log.insert(SessionNo(session), &record) {
        Ok(inserted) => inserted,
        Err(WalError::Stopped { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let outcome = log.flush_commit(inserted.end, Duration::ZERO, || Duration::ZERO);
    check(log, disk);
    match outcome {
        Ok(()) => assert!(disk.durable() >= inserted.end, "a commit is lost"),
        Err(WalError::Stopped { .. }) => assert!(disk.has_failed.load(Ordering::SeqCst)),
        Err(error) => panic!("{error}"),
    }
}

/// The log's thread syncs after this many bytes that no session waits for: two records.
const AFTER: u64 = 80;

fn open(disk: &Arc<Disk>, sessions: u16, buffer_bytes: usize) -> Arc<Log> {
    let config = LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes,
        max_sessions: sessions.into(),
        flush_after_bytes: AFTER,
        ..LogConfig::default()
    };
    let start =
        LogStart { end: Lsn(SEGMENT), durable: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
    let store = Arc::clone(disk) as Arc<dyn LogStore>;
    Log::without_thread(store, config, start).expect("the log opens")
}

/// Each session commits `each` times, and the log's thread has as many turns. The first counted
/// sync is the log's own, when it is opened.
fn sessions(sessions: u16, each: usize, fails: usize) {
    sessions_on(Disk::new(fails), sessions, each);
}

fn sessions_on(disk: Disk, sessions: u16, each: usize) {
    let disk = Arc::new(disk);
    let log = open(&disk, sessions, 0);
    let mut threads = Vec::new();
    for session in 0..sessions {
        let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
        threads.push(thread::spawn(move || {
            (0..each).for_each(|_| commit(&log, &disk, session, b"commit"));
        }));
    }
    for turn in 0..each {
        log.flusher_turn(false, turn % 2 == 0);
        check(&log, &disk);
    }
    threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    check(&log, &disk);
    if !disk.has_failed.load(Ordering::SeqCst) {
        assert_eq!(log.flushed(), log.insert_position());
    }
}

const NEVER: usize = usize::MAX;

#[test]
fn flushed_position_never_exceeds_completed_syncs() {
    shuttle::check_random(|| sessions(3, 3, NEVER), 1500);
    shuttle::check_pct(|| sessions(3, 3, NEVER), 1500, 4);
}

#[test]
fn nothing_is_confirmed_after_a_failed_sync() {
    for fails in 1..6 {
        shuttle::check_random(move || sessions(3, 3, fails), 400);
        shuttle::check_pct(move || sessions(3, 3, fails), 400, 4);
    }
}

/// An insertion that meets the stop leaves a hole. The hole counts as complete only after the stop,
/// so a leader that looks for the stop after the slots sees it (wal rule 7).
fn hole() {
    let disk = Arc::new(Disk::new(NEVER));
    let log = open(&disk, 2, 0);
    log.insertion.begin(1, log.insertion.place().lsn);
    log.insertion.reserve(64);
    let leader = {
        let log = Arc::clone(&log);
        thread::spawn(move || log.flush(log.insert_position()))
    };
    // Setting the reason for a stop is not a step of the scheduler.
    thread::yield_now();
    log.stop("made to");
    log.insertion.finish(1);
    assert!(leader.join().expect("a leader").is_err());
    assert_eq!(disk.written.load(Ordering::SeqCst), SEGMENT, "the hole was written");
}

#[test]
fn no_hole_is_written() {
    shuttle::check_random(hole, 3000);
    shuttle::check_pct(hole, 1000, 3);
}

fn insert(log: &Log, session: u16) {
    let record = Record::new(Xid(1), RmgrId::Heap, 0, b"bulk");
    log.insert(SessionNo(session), &record).expect("an insertion");
}

/// The log's thread. It sleeps until it is notified; no delay wakes it.
fn spawn_writer(log: &Arc<Log>, disk: &Arc<Disk>) -> thread::JoinHandle<()> {
    let (log, disk) = (Arc::clone(log), Arc::clone(disk));
    thread::spawn(move || {
        while !log.flusher_turn(false, false) {
            check(&log, &disk);
            log.sleep(None);
        }
    })
}

fn end_writer(log: &Log, disk: &Disk, writer: thread::JoinHandle<()>) {
    log.flushing.ending.store(true, Ordering::Release);
    log.flushing.kick();
    writer.join().expect("the log's thread");
    check(log, disk);
}

/// Two records fill the ring. A leader that wants everything durable waits for a session's record,
/// and the session waits for room (wal rule 4).
fn crowded(sessions: u16, each: usize) {
    let disk = Arc::new(Disk::new(NEVER));
    let log = open(&disk, sessions, 0);
    let writer = spawn_writer(&log, &disk);
    let threads: Vec<_> = (0..sessions)
        .map(|session| {
            let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
            thread::spawn(move || {
                (0..each).for_each(|_| commit(&log, &disk, session, &[7; 180]));
            })
        })
        .collect();
    for _ in 0..2 * each {
        log.flush(log.insert_position()).expect("the log goes on");
        thread::yield_now();
    }
    threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    end_writer(&log, &disk, writer);
}

#[test]
fn leader_and_sessions_waiting_for_room_do_not_deadlock() {
    shuttle::check_random(|| crowded(3, 3), 1000);
    shuttle::check_pct(|| crowded(3, 3), 1000, 4);
}

/// Sessions insert and commit nothing. The log's thread sleeps until it is notified; no delay wakes
/// it. A notification may come while an earlier record is incomplete. Then the next insertion
/// repeats it. The last insertion is made when all others are complete. So after it, less is left
/// than the limit for gathering (wal rule 15).
fn gathering(sessions: u16, each: usize) {
    let disk = Arc::new(Disk::new(NEVER));
    // Less than an eighth of the ring is filled, because that would also notify the log's thread.
    let log = open(&disk, sessions, 1 << 13);
    let writer = spawn_writer(&log, &disk);
    let threads: Vec<_> = (0..sessions)
        .map(|session| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                (0..each).for_each(|_| insert(&log, session));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a session"));
    insert(&log, 0);
    let is_synced = |_| {
        thread::yield_now();
        log.insert_position().get() - log.flushed().get() < AFTER
    };
    assert!((0..10_000).any(is_synced), "the log's thread was not told");
    end_writer(&log, &disk, writer);
}

#[test]
fn gathered_log_is_synced_without_a_waiter() {
    shuttle::check_random(|| gathering(2, 4), 1500);
    shuttle::check_pct(|| gathering(3, 3), 500, 3);
}
