use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use millpond_buffer::{
    BlockNumber, BufferPool, ExclusivePage, LogFlush, MemoryStore, PageId, PoolConfig, RelFork,
    RelationId,
};
use millpond_vfs::testing::{AskingVfs, Call};
use millpond_vfs::{OsVfs, Vfs};
use parking_lot::Mutex;

use super::*;
use crate::ids::Xid;
use crate::wal::{FileLogStore, ImageMode, LogConfig, LogStart, RmgrId, info};

/// A session that only logs.
pub(in crate::wal) struct One(pub(in crate::wal) Arc<Log>);

impl Logging for One {
    fn log(&self) -> &Log {
        &self.0
    }

    fn stripe(&self) -> SessionNo {
        SessionNo(0)
    }

    fn wait(&self) -> Wait {
        Wait::Allowed
    }
}

const REL: RelFork = RelationId::constant(7).main();

/// A log in files, without its thread, and a pool with an empty fork.
fn log_and_pool(vfs: Arc<dyn Vfs>, directory: &Path) -> (Arc<Log>, Arc<BufferPool>) {
    const SEGMENT: u64 = 1 << 16;
    let store = Arc::new(FileLogStore::open_on(vfs, directory, SEGMENT).unwrap());
    let config = LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes: 1 << 16,
        max_sessions: 1,
        writer_delay: Duration::from_secs(3600),
        flush_after_bytes: u64::MAX,
        redo_of: crate::rmgr::redo_of,
    };
    let start =
        LogStart { end: Lsn(SEGMENT), durable: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
    let log = Log::without_thread(store, config, start).unwrap();
    let pool =
        BufferPool::new(PoolConfig::new(16, 2), Arc::new(MemoryStore::new()), log.clone()).unwrap();
    pool.create(REL).unwrap();
    (log, pool)
}

/// Runs the test on a new log and a new page.
fn on_a_new_page(test: impl FnOnce(&One, &mut ExclusivePage<'_>)) {
    let directory = tempfile::tempdir().unwrap();
    let (log, pool) = log_and_pool(Arc::new(OsVfs), directory.path());
    let relation = pool.relation(REL).unwrap();
    let buffers = pool.session().unwrap();
    let mut page = buffers.extend(&relation, Wait::Allowed).unwrap();
    test(&One(log), &mut page);
}

/// A record whose redo fails: the heap refuses this kind.
fn nonsense(page: PageId) -> Record<'static> {
    Record::new(Xid(9), RmgrId::Heap, 255, b"").block(page, ImageMode::IfNeeded, b"")
}

#[test]
fn a_record_that_does_not_apply_stops_the_log() {
    on_a_new_page(|session, page| {
        let record = nonsense(page.page_id());
        assert!(log_and_apply(session, &mut [page], record).is_err());
        assert!(session.0.is_stopped().unwrap().contains("does not apply"));
    });
}

#[test]
fn a_stopped_log_leaves_the_page_alone() {
    on_a_new_page(|session, page| {
        session.0.stop("test");
        let before = *page.bytes();
        let record = nonsense(page.page_id());
        let error = log_and_apply(session, &mut [page], record).unwrap_err();
        assert!(error.to_string().contains("test"), "{error}");
        assert!(*page.bytes() == before);
    });
}

#[test]
fn pages_must_be_those_of_the_record() {
    on_a_new_page(|session, page| {
        let record = nonsense(REL.page(BlockNumber(77)));
        let error = log_and_apply(session, &mut [page], record).unwrap_err();
        assert!(matches!(error, EngineError::Internal { .. }), "{error}");
        assert!(session.0.is_stopped().is_none());
    });
}

/// An insertion creates a segment when it needs one. At that moment the test looks at the page.
#[test]
fn a_page_is_marked_dirty_before_its_record_is_inserted() {
    let pool: Arc<OnceLock<Arc<BufferPool>>> = Arc::default();
    let block = Arc::new(AtomicU32::new(0));
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let (its_pool, its_block, its_seen) = (pool.clone(), block.clone(), seen.clone());
    let vfs = AskingVfs::new(OsVfs, move |call, path: &Path| {
        let makes_segment = call == Call::Open && path.extension().is_some_and(|end| end == "new");
        if let (true, Some(pool)) = (makes_segment, its_pool.get()) {
            let page = REL.page(BlockNumber(its_block.load(Ordering::Relaxed)));
            let mut frames = pool.frame_infos();
            its_seen.lock().push(frames.any(|frame| frame.page == Some(page) && frame.dirty));
        }
        Ok(())
    });
    let directory = tempfile::tempdir().unwrap();
    let (log, its) = log_and_pool(vfs, directory.path());
    let its = pool.get_or_init(|| its);
    let (relation, buffers) = (its.relation(REL).unwrap(), its.session().unwrap());
    let payload = [7; 20_000];
    for number in 0..20 {
        block.store(number, Ordering::Relaxed);
        let mut page = buffers.extend(&relation, Wait::Allowed).unwrap();
        let record = Record::new(Xid(9), RmgrId::Log, info::WRITE, &payload);
        let record = record.block(page.page_id(), ImageMode::IfNeeded, &[100, 0, 1, 0, 3]);
        let end = log_and_apply(&One(log.clone()), &mut [&mut page], record).unwrap();
        log.flush(end).unwrap();
    }
    let seen = seen.lock();
    assert!(seen.len() > 3 && seen.iter().all(|is_dirty| *is_dirty), "{seen:?}");
}

/// The table of forks has a new block as soon as its record is in the log (wal rule 17).
#[test]
fn the_table_of_forks_has_a_block_whose_first_record_is_inserted() {
    let directory = tempfile::tempdir().unwrap();
    let (log, pool) = log_and_pool(Arc::new(OsVfs), directory.path());
    // A user's: of the engine's own forks each record is noted.
    let rel = RelationId::constant(16_384).main();
    pool.create(rel).unwrap();
    log.forks().create(rel, Xid(1));
    let (relation, buffers) = (pool.relation(rel).unwrap(), pool.session().unwrap());
    let mut page = buffers.extend(&relation, Wait::Allowed).unwrap();
    assert!(log.may_be_zero(page.page_id()));
    let record = Record::new(Xid(9), RmgrId::Log, info::WRITE, b"");
    let record = record.block(page.page_id(), ImageMode::IfNeeded, &[100, 0, 1, 0, 3]);
    log_and_apply(&One(log.clone()), &mut [&mut page], record).unwrap();
    assert!(!log.may_be_zero(page.page_id()));
    assert_eq!(log.least_blocks(rel), Some(1));
}

/// The pool syncs the log before it writes a page (wal rule 12). The log's thread does not run
/// here.
#[test]
fn a_page_is_written_after_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let (log, pool) = log_and_pool(Arc::new(OsVfs), directory.path());
    let (relation, buffers) = (pool.relation(REL).unwrap(), pool.session().unwrap());
    let change = |page: &mut ExclusivePage<'_>| {
        let record = Record::new(Xid(9), RmgrId::Log, info::WRITE, b"");
        let record = record.block(page.page_id(), ImageMode::IfNeeded, &[100, 0, 1, 0, 3]);
        log_and_apply(&One(log.clone()), &mut [page], record).unwrap()
    };
    let mut page = buffers.extend(&relation, Wait::Allowed).unwrap();
    let end = change(&mut page);
    drop(page);
    assert!(log.flushed() < end);
    assert_eq!(pool.write_dirty(&buffers, |_| {}).unwrap(), 1);
    assert!(log.flushed() >= end);
    // After a stop the pool writes no page.
    let page = buffers.pin(&relation, BlockNumber(0), Wait::Allowed).unwrap();
    change(&mut page.into_exclusive().unwrap());
    log.stop("test");
    assert!(pool.write_dirty(&buffers, |_| {}).is_err());
}
