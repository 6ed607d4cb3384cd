//! A log that continues where an earlier start has left it (wal rules 10, 11 and 13).

use std::collections::BTreeSet;
use std::path::Path;

use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};
use parking_lot::Mutex;

use super::*;

/// Opens the log at `end`, as the start with this number.
fn open(store: &Arc<dyn LogStore>, end: Lsn, start_no: u32) -> Arc<Log> {
    let start = LogStart { end, durable: end, redo: Lsn(SEGMENT), start_no };
    Log::without_thread(Arc::clone(store), config(1), start).unwrap()
}

fn insert(log: &Log, payload: &[u8]) -> Result<Lsn, WalError> {
    let record = Record::new(Xid(1), RmgrId::Heap, 0, payload);
    log.insert(SessionNo(0), &record).map(|inserted| inserted.end)
}

/// A tail was cut off. The new start's first record ends just where a record of the tail begins.
#[test]
fn a_record_of_an_earlier_start_ends_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let first = open(&store, Lsn(SEGMENT), 1);
    let ends = ["one", "two", "six"].map(|payload| insert(&first, payload.as_bytes()).unwrap());
    first.flush(ends[2]).unwrap();
    let second = open(&store, ends[0], 2);
    let end = insert(&second, b"new").unwrap();
    assert_eq!(end, ends[1]);
    second.flush(end).unwrap();
    let payloads: Vec<_> = read_all(&store).into_iter().map(|record| record.2).collect();
    assert_eq!(payloads, [b"one", b"new"]);
}

#[test]
fn an_insertion_during_redo_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(&store(&directory), Lsn(SEGMENT), 1);
    log.set_recovering(true);
    assert!(matches!(insert(&log, b"early"), Err(WalError::Recovering)));
    log.flusher_turn(true, true);
    assert_eq!(log.insert_position(), Lsn(SEGMENT));
    log.set_recovering(false);
    insert(&log, b"late").unwrap();
}

/// After a process is killed, some of its log may be in the kernel's cache only.
#[test]
fn a_start_syncs_the_log_that_it_has_read() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(&store(&directory), Lsn(SEGMENT), 1);
    let mut end = Lsn(SEGMENT);
    while end.get() < 3 * SEGMENT {
        end = insert(&first, &[7; 9000]).unwrap();
        first.flush(end).unwrap();
    }
    drop(first);
    let synced: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let its_synced = Arc::clone(&synced);
    let vfs = AskingVfs::new(OsVfs, move |call, path: &Path| {
        if call == Call::SyncData {
            its_synced.lock().extend(path.file_name().map(|name| name.display().to_string()));
        }
        Ok(())
    });
    let store: Arc<dyn LogStore> =
        Arc::new(FileLogStore::open_on(vfs, directory.path(), SEGMENT).unwrap());
    open(&store, end, 2);
    let synced = synced.lock();
    for segment in 1..=end.get() / SEGMENT {
        assert!(synced.contains(&format!("{segment:016x}")), "segment {segment}: {synced:?}");
    }
}
