//! Group commit, counted: which thread syncs, and how many syncs a group takes. Nothing here
//! depends on time: the store's syncs wait at a gate that the test opens.

use std::io;

use parking_lot::{Condvar, Mutex};

use super::*;
use crate::wal::CONTROL_COPY_BYTES;

/// Files whose syncs wait while the gate is closed.
struct Gated {
    files: Arc<dyn LogStore>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    waiting: usize,
}

impl Gated {
    fn new(directory: &tempfile::TempDir) -> Arc<Self> {
        let (gate, changed) = Default::default();
        Arc::new(Self { files: store(directory), gate, changed })
    }

    fn close(&self) {
        self.gate.lock().closed = true;
    }

    fn open(&self) {
        self.gate.lock().closed = false;
        self.changed.notify_all();
    }

    fn wait_until_a_committer_waits(&self) {
        let mut gate = self.gate.lock();
        while gate.waiting == 0 {
            self.changed.wait(&mut gate);
        }
    }
}

impl LogStore for Gated {
    fn segment_bytes(&self) -> u64 {
        self.files.segment_bytes()
    }
    fn segments(&self) -> io::Result<Vec<u64>> {
        self.files.segments()
    }
    fn create(&self, segment: u64) -> io::Result<()> {
        self.files.create(segment)
    }
    fn recycle(&self, from: u64, to: u64) -> io::Result<()> {
        self.files.recycle(from, to)
    }
    fn remove(&self, segment: u64) -> io::Result<()> {
        self.files.remove(segment)
    }
    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.files.read(segment, offset, bytes)
    }
    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.files.write(segment, offset, bytes)
    }
    fn sync(&self, segment: u64) -> io::Result<()> {
        let mut gate = self.gate.lock();
        gate.waiting += 1;
        self.changed.notify_all();
        while gate.closed {
            self.changed.wait(&mut gate);
        }
        gate.waiting -= 1;
        drop(gate);
        self.files.sync(segment)
    }
    fn read_control(&self, copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        self.files.read_control(copy)
    }
    fn write_control(&self, copy: usize, bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        self.files.write_control(copy, bytes)
    }
}

fn commit_record() -> Record<'static> {
    Record::new(Xid(1), RmgrId::Transaction, 0, b"commit")
}

/// One session leads and is stuck in its sync. Seven that commit meanwhile share the next sync.
#[test]
fn commits_during_a_sync_share_the_next_sync() {
    let directory = tempfile::tempdir().unwrap();
    let gated = Gated::new(&directory);
    let log = Log::open(Arc::clone(&gated) as Arc<dyn LogStore>, config(8), start(SEGMENT));
    let log = log.unwrap();
    let before = log.stats();
    gated.close();
    let inserted = AtomicUsize::new(0);
    let commit = |session: u16| {
        let end = log.insert(SessionNo(session), &commit_record()).unwrap().end;
        inserted.fetch_add(1, Ordering::SeqCst);
        log.flush(end).unwrap();
        assert!(log.flushed() >= end);
    };
    let commit = &commit;
    std::thread::scope(|scope| {
        scope.spawn(move || commit(0));
        gated.wait_until_a_committer_waits();
        for session in 1..8 {
            scope.spawn(move || commit(session));
        }
        while inserted.load(Ordering::SeqCst) < 8 {
            std::thread::yield_now();
        }
        gated.open();
    });
    let after = log.stats();
    assert_eq!(after.records - before.records, 8);
    assert_eq!(after.by_backends.syncs - before.by_backends.syncs, 2);
    // The next leader may have written the existing records while the first leader was syncing.
    let writes = after.by_backends.writes - before.by_backends.writes;
    assert!((2..=3).contains(&writes), "{writes} writes");
    assert_eq!(after.by_log_thread, before.by_log_thread);
    assert_eq!(after.pauses, 0);
    log.close().unwrap();
}

/// While one session syncs, the next leader writes its record. Then it has only the sync left.
#[test]
fn next_leader_writes_during_the_sync() {
    let directory = tempfile::tempdir().unwrap();
    let gated = Gated::new(&directory);
    let log = Log::open(Arc::clone(&gated) as Arc<dyn LogStore>, config(2), start(SEGMENT));
    let log = log.unwrap();
    gated.close();
    let commit = |session| {
        let end = log.insert(SessionNo(session), &commit_record()).unwrap().end;
        log.flush(end).unwrap();
    };
    let commit = &commit;
    std::thread::scope(|scope| {
        scope.spawn(move || commit(0));
        gated.wait_until_a_committer_waits();
        scope.spawn(move || commit(1));
        while log.stats().by_backends.writes < 2 {
            std::thread::yield_now();
        }
        assert_eq!(log.stats().by_backends.syncs, 0, "the first still syncs");
        assert_eq!(log.insertion.written(), log.insert_position());
        assert!(log.flushed() < log.insert_position());
        gated.open();
    });
    let stats = log.stats().by_backends;
    assert_eq!((stats.writes, stats.syncs), (2, 2));
    log.close().unwrap();
}

/// Tasks of event loops: the log's thread leads for all that have come.
#[test]
fn tasks_during_a_sync_share_the_next_sync() {
    let directory = tempfile::tempdir().unwrap();
    let gated = Gated::new(&directory);
    let log = Log::open(Arc::clone(&gated) as Arc<dyn LogStore>, config(1), start(SEGMENT));
    let log = log.unwrap();
    let before = log.stats();
    gated.close();
    let count = Arc::new(Count(AtomicUsize::new(0), std::thread::current()));
    let commit = |pause: Duration| {
        let end = log.insert(SessionNo(0), &commit_record()).unwrap().end;
        log.on_commit_flushed(end, pause, Waker::from(Arc::clone(&count)));
    };
    commit(Duration::ZERO);
    gated.wait_until_a_committer_waits();
    (0..7).for_each(|_| commit(Duration::ZERO));
    gated.open();
    while count.0.load(Ordering::SeqCst) < 8 {
        std::thread::park();
    }
    let after = log.stats();
    assert_eq!(after.by_log_thread.syncs - before.by_log_thread.syncs, 2);
    assert_eq!((after.by_backends, after.pauses), (before.by_backends, 0));
    // One task of a group wants others to join: the log's thread pauses once for the whole group.
    gated.close();
    commit(Duration::ZERO);
    gated.wait_until_a_committer_waits();
    commit(Duration::ZERO);
    commit(Duration::from_micros(1));
    commit(Duration::from_micros(1));
    gated.open();
    while count.0.load(Ordering::SeqCst) < 12 {
        std::thread::park();
    }
    assert_eq!(log.stats().by_log_thread.syncs - after.by_log_thread.syncs, 2);
    assert_eq!(log.stats().pauses, 1);
    log.close().unwrap();
}

/// Only the leader is asked, and only if there is something to sync.
#[test]
fn a_leader_is_asked_how_long_it_pauses() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(2), start(SEGMENT)).unwrap();
    let asked = std::cell::Cell::new(0);
    let pause = |pause: Duration| {
        let asked = &asked;
        move || {
            asked.set(asked.get() + 1);
            pause
        }
    };
    let first = log.insert(SessionNo(0), &commit_record()).unwrap().end;
    let second = log.insert(SessionNo(0), &commit_record()).unwrap().end;
    log.flush_commit(second, Duration::ZERO, pause(Duration::from_micros(1))).unwrap();
    log.flush_commit(first, Duration::ZERO, pause(Duration::from_micros(1))).unwrap();
    assert_eq!((asked.get(), log.stats().pauses), (1, 1));
    let third = log.insert(SessionNo(0), &commit_record()).unwrap().end;
    log.flush_commit(third, Duration::ZERO, pause(Duration::ZERO)).unwrap();
    assert_eq!((asked.get(), log.stats().pauses), (2, 1), "none is no pause");
    log.close().unwrap();
}

/// A leader's pause of an hour ends when an inserter needs room in the ring, or the log stops.
#[test]
fn leader_pause_ends_when_an_inserter_needs_room() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(2), start(SEGMENT)).unwrap();
    let hour = || Duration::from_secs(3600);
    let end = log.insert(SessionNo(0), &commit_record()).unwrap().end;
    std::thread::scope(|scope| {
        let log = &log;
        scope.spawn(move || log.flush_commit(end, Duration::ZERO, hour).unwrap());
        while log.stats().pauses == 0 {
            std::thread::yield_now();
        }
        let payload = vec![0; 20_000];
        for _ in 0..10 {
            log.insert(SessionNo(1), &Record::new(Xid(2), RmgrId::Heap, 0, &payload)).unwrap();
        }
    });
    assert!(log.flushed() >= end);
    assert!(log.stats().buffers_full > 0);
    let end = log.insert(SessionNo(0), &commit_record()).unwrap().end;
    std::thread::scope(|scope| {
        let log = &log;
        scope.spawn(move || log.flush_commit(end, Duration::ZERO, hour).unwrap_err());
        while log.stats().pauses < 2 {
            std::thread::yield_now();
        }
        log.stop("enough");
    });
}

/// A plain flush waits for no leader's pause, neither a backend's nor that of the log's thread.
#[test]
fn a_plain_flush_ends_a_pause() {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::open(store(&directory), config(2), start(SEGMENT)).unwrap();
    let hour = Duration::from_secs(3600);
    let commit = |session| log.insert(SessionNo(session), &commit_record()).unwrap().end;
    std::thread::scope(|scope| {
        let (log, first) = (&log, commit(0));
        let leader = scope.spawn(move || log.flush_commit(first, Duration::ZERO, || hour).unwrap());
        while log.stats().pauses == 0 {
            std::thread::yield_now();
        }
        let second = commit(1);
        log.flush(second).unwrap();
        leader.join().unwrap();
        assert!(log.flushed() >= second);
    });
    let count = Arc::new(Count(AtomicUsize::new(0), std::thread::current()));
    log.on_commit_flushed(commit(0), hour, Waker::from(Arc::clone(&count)));
    while log.stats().pauses == 1 {
        std::thread::yield_now();
    }
    log.flush(commit(1)).unwrap();
    while count.0.load(Ordering::SeqCst) == 0 {
        std::thread::park();
    }
    log.close().unwrap();
}
