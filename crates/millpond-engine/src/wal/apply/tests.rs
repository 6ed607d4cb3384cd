use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{BlockNumber, BufferPool, MemoryStore, PoolConfig, RelationId};

use super::*;
use crate::transam::Xid;
use crate::wal::{FileLogStore, ImageMode, LogConfig, LogStart, RmgrId};

struct One(Arc<Log>);

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

struct Place {
    _directory: tempfile::TempDir,
    session: One,
    pool: Arc<BufferPool>,
}

fn place() -> Place {
    const SEGMENT: u64 = 1 << 16;
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FileLogStore::open(directory.path(), SEGMENT).unwrap());
    let config = LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes: 1 << 16,
        max_sessions: 1,
        writer_delay: Duration::from_secs(3600),
    };
    let start = LogStart { end: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
    let log = Log::open(store, config, start).unwrap();
    let pool =
        BufferPool::new(PoolConfig::new(16, 2), Arc::new(MemoryStore::new()), log.clone()).unwrap();
    Place { _directory: directory, session: One(log), pool }
}

/// A record whose redo cannot work: the heap refuses this kind.
fn nonsense(page: PageId) -> Record<'static> {
    Record::new(Xid(9), RmgrId::Heap, 255, b"").block(page, ImageMode::IfNeeded, b"")
}

#[test]
fn a_record_that_does_not_apply_stops_the_log() {
    let place = place();
    let buffers = place.pool.session().unwrap();
    let rel = RelationId::constant(7).main();
    place.pool.create(rel).unwrap();
    let handle = place.pool.relation(rel).unwrap();
    let mut page = buffers.extend(&handle, Wait::Allowed).unwrap();
    let record = nonsense(page.page_id());
    assert!(log_and_apply(&place.session, &mut [&mut page], record).is_err());
    assert!(place.session.0.is_stopped().unwrap().contains("does not apply"));
}

#[test]
fn a_stopped_log_leaves_the_page_alone() {
    let place = place();
    let buffers = place.pool.session().unwrap();
    let rel = RelationId::constant(7).main();
    place.pool.create(rel).unwrap();
    let handle = place.pool.relation(rel).unwrap();
    let mut page = buffers.extend(&handle, Wait::Allowed).unwrap();
    place.session.0.stop("test");
    let before = *page.bytes();
    let record = nonsense(page.page_id());
    let error = log_and_apply(&place.session, &mut [&mut page], record).unwrap_err();
    assert!(error.to_string().contains("test"), "{error}");
    assert!(*page.bytes() == before);
}

#[test]
fn pages_must_be_those_of_the_record() {
    let place = place();
    let buffers = place.pool.session().unwrap();
    let rel = RelationId::constant(7).main();
    place.pool.create(rel).unwrap();
    let handle = place.pool.relation(rel).unwrap();
    let mut page = buffers.extend(&handle, Wait::Allowed).unwrap();
    let record = nonsense(rel.page(BlockNumber(77)));
    let error = log_and_apply(&place.session, &mut [&mut page], record).unwrap_err();
    assert!(matches!(error, EngineError::Internal { .. }), "{error}");
    assert!(place.session.0.is_stopped().is_none());
}
