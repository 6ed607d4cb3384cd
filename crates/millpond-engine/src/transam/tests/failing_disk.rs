//! The commit number file on a disk that is full or fails: errors, memory, and what readers get.

use std::io;
use std::path::Path;

use millpond_buffer::{FileStore, FileStoreOptions};
use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};

use super::*;
use crate::transam::chunk::CHUNK;

/// The chunks that the tests allow in memory.
const IN_MEMORY: usize = 3;

const NOTHING: u64 = 0;
const FULL: u64 = 1;
const NO_READS: u64 = 2;
const NO_WRITES: u64 = 3;
const NO_CUT: u64 = 4;

/// The disk's answer to a call on the commit number file.
fn answer(fault: u64, call: Call, path: &Path) -> io::Result<()> {
    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;
    let errno = match (fault, call) {
        _ if !path.ends_with("base/3") => return Ok(()),
        // A full file system only has no room for new blocks.
        (FULL, Call::Allocate | Call::Write) => ENOSPC,
        (NO_READS, Call::Read) | (NO_WRITES, Call::Write) | (NO_CUT, Call::SetLen) => EIO,
        _ => return Ok(()),
    };
    Err(io::Error::from_raw_os_error(errno))
}

struct World {
    fixture: Fixture<FileStore>,
    fault: Arc<AtomicU64>,
    worker: Ctx,
    fates: Vec<(Xid, Option<Csn>)>,
    _directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fault = Arc::<AtomicU64>::default();
        let asked = Arc::clone(&fault);
        let vfs = AskingVfs::new(OsVfs, move |call, path| {
            answer(asked.load(Ordering::Relaxed), call, path)
        });
        let mut options = FileStoreOptions::default();
        options.vfs = vfs;
        let store = FileStore::open_with(directory.path().join("base"), options).unwrap();
        // The smallest pool: most pages of the file must be read again.
        let fixture = Fixture::on(store, 8, 64, 1);
        let worker = fixture.ctx();
        worker.txns().kept_chunks.store(IN_MEMORY, Ordering::Relaxed);
        World { fixture, fault, worker, fates: Vec::new(), _directory: directory }
    }

    fn set_fault(&self, fault: u64) {
        self.fault.store(fault, Ordering::Relaxed);
    }

    /// Runs as many transactions as there are ids in `chunks` chunks. Every third is rolled back.
    fn run(&mut self, chunks: u64) -> Result<(), EngineError> {
        for _ in 0..chunks * CHUNK {
            let xid = self.worker.assign_xid()?;
            let fate = if xid.0.is_multiple_of(3) {
                self.worker.txns().abort(&self.worker, &[]);
                None
            } else {
                commit(&self.worker)
            };
            self.fates.push((xid, fate));
        }
        Ok(())
    }

    /// Runs transactions until one gets no id, and returns the error.
    fn run_until_refused(&mut self) -> EngineError {
        for _ in 0..20 {
            if let Err(error) = self.run(1) {
                return error;
            }
        }
        panic!("20 chunks of transactions went through");
    }

    /// A chunk that waits for its place in the file may still be in the ring.
    fn expect_bounded_memory(&self) {
        let kept = self.worker.txns().ring.overflow.len();
        assert!(kept <= IN_MEMORY + 1, "{kept} chunks in memory");
    }

    /// Every status is either correct for a snapshot or an error. Returns the number of errors.
    fn count_unreadable(&self, reader: &Ctx, held: Csn) -> usize {
        let mut unreadable = 0;
        for &(xid, csn) in self.fates.iter().step_by(37) {
            let sees = match reader.txns().status(reader, xid) {
                Ok(XidStatus::Committed(seen)) => seen <= held,
                Ok(_) => false,
                Err(EngineError::Buffer(_)) => {
                    unreadable += 1;
                    continue;
                }
                Err(other) => panic!("{xid}: {other}"),
            };
            assert_eq!(sees, csn.is_some_and(|csn| csn <= held), "{xid}, {csn:?} for {held}");
        }
        unreadable
    }
}

fn is_out_of_space(error: &EngineError) -> bool {
    matches!(error, EngineError::Buffer(BufferError::Store(store)) if store.is_out_of_space())
}

#[test]
fn a_full_disk_refuses_new_transactions_rather_than_fill_the_memory() {
    let mut world = World::new();
    let reader = world.fixture.ctx();
    world.run(2).unwrap();
    let held = reader.txns().snapshot(&reader);
    world.run(8).unwrap();
    world.set_fault(FULL);
    for _ in 0..3 {
        let error = world.run_until_refused();
        assert!(is_out_of_space(&error), "{error}");
        world.expect_bounded_memory();
    }
    assert_eq!(world.count_unreadable(&reader, held), 0);
    world.set_fault(NOTHING);
    world.run(8).unwrap();
    world.expect_bounded_memory();
    assert_eq!(world.count_unreadable(&reader, held), 0);
}

#[test]
fn transactions_go_on_without_room_on_disk_once_the_snapshot_is_gone() {
    let mut world = World::new();
    let reader = world.fixture.ctx();
    let held = reader.txns().snapshot(&reader);
    world.run(8).unwrap();
    world.set_fault(FULL);
    world.run_until_refused();
    reader.txns().release_snapshot(&reader, held);
    world.run(20).unwrap();
    world.worker.txns().maintain(&world.worker).unwrap();
    assert_eq!(world.worker.txns().ring.overflow.len(), 0);
}

#[test]
fn write_errors_refuse_new_transactions() {
    let mut world = World::new();
    let reader = world.fixture.ctx();
    let held = reader.txns().snapshot(&reader);
    world.run(8).unwrap();
    world.set_fault(NO_WRITES);
    let error = world.run_until_refused();
    assert!(matches!(error, EngineError::Buffer(_)), "{error}");
    world.expect_bounded_memory();
    assert_eq!(world.count_unreadable(&reader, held), 0);
    world.set_fault(NOTHING);
    world.run(8).unwrap();
    assert_eq!(world.count_unreadable(&reader, held), 0);
}

#[test]
fn a_commit_number_that_cannot_be_read_is_an_error_for_its_reader_only() {
    let mut world = World::new();
    let reader = world.fixture.ctx();
    world.run(2).unwrap();
    let held = reader.txns().snapshot(&reader);
    // More chunks than the pool has frames.
    world.run(100).unwrap();
    world.set_fault(NO_READS);
    assert!(world.count_unreadable(&reader, held) > 0);
    world.run(4).unwrap();
    let late = reader.txns().snapshot(&reader);
    let (xid, csn) = world.fates[world.fates.len() - 1];
    assert_eq!(status(&reader, xid), csn.map_or(XidStatus::Aborted, XidStatus::Committed));
    reader.txns().release_snapshot(&reader, late);
    world.set_fault(NOTHING);
    assert_eq!(world.count_unreadable(&reader, held), 0);
}

#[test]
fn failed_file_truncation_stops_no_transaction() {
    let mut world = World::new();
    let reader = world.fixture.ctx();
    let held = reader.txns().snapshot(&reader);
    world.run(20).unwrap();
    world.set_fault(NO_CUT);
    reader.txns().release_snapshot(&reader, held);
    assert!(world.worker.txns().maintain(&world.worker).is_err());
    let held = reader.txns().snapshot(&reader);
    world.run(20).unwrap();
    assert_eq!(world.count_unreadable(&reader, held), 0);
    reader.txns().release_snapshot(&reader, held);
    world.run(20).unwrap();
    world.set_fault(NOTHING);
    world.worker.txns().maintain(&world.worker).unwrap();
    let store = &world.fixture.store;
    assert_eq!(store.block_count(crate::transam::csn_pages::CSN_FILE).unwrap(), 0);
}
