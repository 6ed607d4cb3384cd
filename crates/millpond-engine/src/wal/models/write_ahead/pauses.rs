//! Leaders wait for others that are likely to come (companions.rs).
//!
//! In most of these models time stands still, so only another thread can end a leader's wait. If it
//! does not, the model deadlocks. In the last one syncs take time, and a thread lets time pass.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicBool, Ordering};
use millpond_sync::{clock, thread};

use super::{Disk, NEVER, commit, end_writer, open, sessions_on, spawn_writer};
use crate::ids::{SessionNo, Xid};
use crate::wal::{Log, Record, RmgrId, WalError};

/// The time of a sync: worth waiting for.
const SYNC: Duration = Duration::from_millis(1);

/// A log whose next leader waits until a group of this size is there.
fn open_expecting(disk: &Arc<Disk>, size: usize) -> Arc<Log> {
    let log = open(disk, 2, 0);
    log.flushing.group.lead().companions.synced(SYNC);
    log.flushing.group.set_size(size);
    log
}

/// Two of these fill the ring.
fn insert_large(log: &Log, session: u16) -> Result<Lsn, WalError> {
    let record = Record::new(Xid(1), RmgrId::Heap, 0, &[7; 180]);
    log.insert(SessionNo(session), &record).map(|inserted| inserted.end)
}

/// A session commits alone, and pauses if it leads. Once its record is in the log, `other` runs.
/// The group would be three, so that one more does not complete it.
fn beside_a_pause(has_writer: bool, other: impl FnOnce(&Log)) -> Arc<Log> {
    let disk = Arc::new(Disk::new(NEVER));
    let log = open_expecting(&disk, 3);
    let writer = has_writer.then(|| spawn_writer(&log, &disk));
    let begin = log.insert_position();
    let session = {
        let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
        thread::spawn(move || {
            let Ok(end) = insert_large(&log, 0) else { return };
            match log.flush_commit(end, Duration::ZERO, || Duration::ZERO) {
                Ok(()) => assert!(disk.durable() >= end, "a commit is lost"),
                Err(_) => assert!(log.is_stopped().is_some()),
            }
        })
    };
    while log.insert_position() == begin {
        thread::yield_now();
    }
    other(&log);
    session.join().expect("a session");
    if let Some(writer) = writer {
        end_writer(&log, &disk, writer);
    }
    log
}

fn check_beside(has_writer: bool, other: fn(&Log)) {
    let model = move || drop(beside_a_pause(has_writer, other));
    shuttle::check_random(model, 2000);
    shuttle::check_pct(model, 1000, 4);
}

#[test]
fn flush_ends_a_pause() {
    check_beside(false, |log| log.flush(log.insert_position()).expect("a flush"));
}

/// A checkpoint then waits until the session has committed.
#[test]
fn checkpoint_ends_a_pause() {
    check_beside(false, |log| log.hurry(log.insert_position()));
}

/// The leader waits again the next time: it may be that a commit would have come.
#[test]
fn pause_cut_short_does_not_count() {
    let model = || {
        let log = beside_a_pause(false, |log| log.hurry(log.insert_position()));
        let wait = log.flushing.group.lead().companions.wait(2, 1);
        assert!(wait.is_some());
    };
    shuttle::check_random(model, 2000);
}

#[test]
fn stop_ends_a_pause() {
    check_beside(false, |log| log.stop("made to"));
}

#[test]
fn inserter_that_needs_room_ends_a_pause() {
    check_beside(true, |log| {
        for _ in 0..3 {
            insert_large(log, 1).expect("an insertion");
        }
        // The session may pause only now, and no inserter needs room.
        log.hurry(log.insert_position());
    });
}

#[test]
fn task_of_an_event_loop_ends_a_pause() {
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    check_beside(true, |log| {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        log.on_commit_flushed(log.insert_position(), Duration::ZERO, waker);
        let is_woken = |_| {
            thread::yield_now();
            woken.0.load(Ordering::Acquire)
        };
        assert!((0..10_000).any(is_woken), "the task waits for the leader's pause");
    });
}

/// The leader of two commits waits for the other one.
fn pair() {
    let disk = Arc::new(Disk::new(NEVER));
    let log = open_expecting(&disk, 2);
    let before = log.syncs();
    let other = {
        let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
        thread::spawn(move || commit(&log, &disk, 1, b"commit"))
    };
    commit(&log, &disk, 0, b"commit");
    other.join().expect("a session");
    assert_eq!(log.syncs(), before + 1);
}

#[test]
fn two_commits_have_one_sync() {
    shuttle::check_random(pair, 3000);
    shuttle::check_pct(pair, 1000, 4);
}

/// Sessions come and go. If no commit comes, the time of a sync ends the wait.
fn slow_syncs(each: usize, fails: usize) {
    let is_over = Arc::new(AtomicBool::new(false));
    let time = {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                clock::pass(SYNC / 2);
                thread::yield_now();
            }
        })
    };
    sessions_on(Disk { takes: SYNC, ..Disk::new(fails) }, 3, each);
    is_over.store(true, Ordering::Release);
    time.join().expect("time");
}

#[test]
fn pauses_end_when_no_commit_comes() {
    shuttle::check_random(|| slow_syncs(3, NEVER), 1500);
    shuttle::check_pct(|| slow_syncs(3, NEVER), 500, 4);
}

#[test]
fn nothing_is_confirmed_after_a_pause_and_a_failed_sync() {
    for fails in 1..6 {
        shuttle::check_random(move || slow_syncs(3, fails), 300);
    }
}
