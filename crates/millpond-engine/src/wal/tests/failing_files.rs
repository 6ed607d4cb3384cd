//! Names of log files that cannot be made durable, removed or opened (wal rules 8 and 9).

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};

use super::*;

/// A log with a switch that makes calls of one kind on `wal/` fail. Counts the failed calls.
struct World {
    directory: tempfile::TempDir,
    store: Arc<dyn LogStore>,
    log: Arc<Log>,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    fails: AtomicBool,
    failed: AtomicUsize,
}

impl Faults {
    fn set(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn count(&self) -> usize {
        self.failed.load(Ordering::SeqCst)
    }
}

impl World {
    fn new(failing: Call, error: fn() -> io::Error) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faults = Arc::new(Faults::default());
        let seen = Arc::clone(&faults);
        let vfs = AskingVfs::new(OsVfs, move |call, _: &Path| {
            if call == failing && seen.fails.load(Ordering::SeqCst) {
                seen.failed.fetch_add(1, Ordering::SeqCst);
                return Err(error());
            }
            Ok(())
        });
        let store: Arc<dyn LogStore> =
            Arc::new(FileLogStore::open_on(vfs, directory.path(), SEGMENT).unwrap());
        let log = Log::without_thread(Arc::clone(&store), config(1), start(SEGMENT)).unwrap();
        Self { directory, store, log, faults }
    }

    /// Makes durable records of a kilobyte, more than `bytes` bytes in all. Returns their range.
    fn fill(&self, rmgr: RmgrId, bytes: u64) -> Result<(Lsn, Lsn), WalError> {
        let start = self.log.insert_position();
        let payload = vec![3; 1000];
        loop {
            let record = Record::new(Xid(1), rmgr, 0, &payload);
            let end = self.log.insert(SessionNo(0), &record)?.end;
            self.log.flush(end)?;
            if end.get() > start.get() + bytes {
                return Ok((start, end));
            }
        }
    }

    /// The first existing segment.
    fn first(&self) -> u64 {
        self.store.segments().unwrap()[0]
    }

    /// After a crash all records between the two positions are there.
    fn assert_recovers(self, (start, end): (Lsn, Lsn)) {
        self.log.abandon();
        let mut reader = LogReader::new(store(&self.directory), start).unwrap();
        let last = loop {
            if let Step::End { at, .. } = reader.next().unwrap() {
                break at;
            }
        };
        assert_eq!(last, end);
    }
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn emfile() -> io::Error {
    io::Error::from_raw_os_error(24)
}

/// Retiring segments needs no durable name. After a failed sync of names, prepared segments still
/// work.
#[test]
fn a_failed_sync_of_the_directory_is_not_repeated_and_loses_no_commit() {
    let world = World::new(Call::SyncDirectory, eio);
    let (_, end) = world.fill(RmgrId::Heap, 4 * SEGMENT).unwrap();
    world.faults.set(true);
    for _ in 0..8 {
        world.log.retire(end, 4 * SEGMENT);
    }
    assert_eq!(world.faults.count(), 0, "checkpoints don't sync names");
    assert_eq!(world.first(), end.get() / SEGMENT);
    // Prepared segments take records. Then ordinary records are refused.
    let error = world.fill(RmgrId::Heap, 9 * SEGMENT).unwrap_err().to_string();
    assert!(error.contains("could not prepare log segment"), "{error}");
    assert_eq!(world.faults.count(), 1);
    // The device may work again, but what it lost stays lost.
    world.faults.set(false);
    for _ in 0..2 {
        let error = world.fill(RmgrId::Heap, SEGMENT).unwrap_err().to_string();
        assert!(error.contains("restart to recover"), "{error}");
    }
    assert_eq!(world.log.is_stopped(), None);
    let filled = world.fill(RmgrId::Transaction, SEGMENT / 2).unwrap();
    world.log.retire(filled.0, 2 * SEGMENT);
    assert_eq!(world.faults.count(), 1);
    world.assert_recovers(filled);
}

#[test]
fn segment_that_cannot_be_renamed_is_removed() {
    let world = World::new(Call::Rename, eio);
    let (_, end) = world.fill(RmgrId::Heap, 4 * SEGMENT).unwrap();
    world.faults.set(true);
    world.log.retire(end, 8 * SEGMENT);
    assert!(world.faults.count() > 0);
    assert_eq!(world.first(), end.get() / SEGMENT);
    world.faults.set(false);
    let filled = world.fill(RmgrId::Heap, 4 * SEGMENT).unwrap();
    world.assert_recovers(filled);
}

#[test]
fn failed_segment_removal_is_retried_by_a_later_checkpoint() {
    let world = World::new(Call::Remove, eio);
    let (_, end) = world.fill(RmgrId::Heap, 6 * SEGMENT).unwrap();
    world.faults.set(true);
    world.log.retire(end, 0);
    assert!(world.faults.count() > 0);
    assert_ne!(world.first(), end.get() / SEGMENT, "one is still there");
    let filled = world.fill(RmgrId::Heap, SEGMENT).unwrap();
    world.log.retire(filled.0, 0);
    world.faults.set(false);
    world.log.retire(filled.0, 0);
    assert_eq!(world.first(), filled.0.get() / SEGMENT);
    world.assert_recovers(filled);
}

/// Writes and syncs open no file. A transaction that needs an unprepared segment is refused.
#[test]
fn a_process_without_descriptors_does_not_stop_the_log() {
    let world = World::new(Call::Open, emfile);
    world.store.write_control(0, &[1; 512]).unwrap();
    world.fill(RmgrId::Heap, SEGMENT / 2).unwrap();
    world.faults.set(true);
    let error = world.fill(RmgrId::Heap, 9 * SEGMENT).unwrap_err().to_string();
    assert!(error.contains("create log segment") && error.contains("os error 24"), "{error}");
    world.fill(RmgrId::Transaction, SEGMENT / 2).unwrap();
    world.log.retire(world.log.flushed(), 8 * SEGMENT);
    world.store.write_control(1, &[2; 512]).unwrap();
    assert_eq!(world.log.is_stopped(), None);
    world.faults.set(false);
    let filled = world.fill(RmgrId::Heap, 4 * SEGMENT).unwrap();
    assert_eq!(world.log.is_stopped(), None);
    world.assert_recovers(filled);
}
