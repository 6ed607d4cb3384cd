//! After a failed sync the system's cache may show bytes that are not on disk. A later sync of the
//! same file does not write them. The next start reads the log from that cache.

use std::path::Path;
use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::reader::{LogReader, Step};
use millpond_engine::wal::{FileLogStore, Log, LogConfig, LogStart, LogStore, Record, RmgrId};
use millpond_sim::vfs::{Errno, SimFs, VfsFault, When};
use millpond_vfs::Vfs;

const SEGMENT: u64 = 1 << 16;

fn store(fs: &SimFs) -> Arc<dyn LogStore> {
    Arc::new(FileLogStore::open_on(fs.mount(), Path::new("/data"), SEGMENT).unwrap())
}

fn open(store: &Arc<dyn LogStore>, durable: Lsn, end: Lsn, start_no: u32) -> Arc<Log> {
    let config = LogConfig { segment_bytes: SEGMENT, max_sessions: 1, ..LogConfig::default() };
    let start = LogStart { end, durable, redo: Lsn(SEGMENT), start_no };
    Log::open(Arc::clone(store), config, start).unwrap()
}

fn insert(log: &Log) -> Lsn {
    let record = Record::new(Xid(1), RmgrId::Heap, 0, &[7; 3000]);
    log.insert(SessionNo(0), &record).unwrap().end
}

fn end(store: &Arc<dyn LogStore>) -> Lsn {
    let mut reader = LogReader::new(Arc::clone(store), Lsn(SEGMENT)).unwrap();
    loop {
        if let Step::End { at, .. } = reader.next().unwrap() {
            return at;
        }
    }
}

#[test]
fn log_that_a_start_has_read_survives_a_failed_sync_before() {
    let mut shown = 0;
    for seed in 0..50 {
        let fs = SimFs::new(seed);
        fs.mount().create_directory(Path::new("/data")).unwrap();
        fs.mount().open_directory(Path::new("/")).unwrap().sync().unwrap();
        let first = open(&store(&fs), Lsn(SEGMENT), Lsn(SEGMENT), 1);
        let durable = insert(&first);
        first.flush(durable).unwrap();
        let undone = insert(&first);
        // The write succeeds, and its sync fails.
        fs.fail_after(1, VfsFault::Error(Errno::Io, When::Before));
        first.flush(undone).unwrap_err();
        drop(first);
        fs.kill();
        let found = end(&store(&fs));
        shown += u32::from(found == undone);
        drop(open(&store(&fs), durable, found, 2));
        fs.crash();
        assert!(end(&store(&fs)) >= found, "seed {seed}: a start has lost what it had read");
    }
    assert!(shown > 0, "no cache showed what was not on disk");
}
