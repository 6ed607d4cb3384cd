use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{
    BlockNumber, BufferPool, ExclusivePage, MemoryStore, PoolConfig, RelFork, RelationId,
};

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

const REL: RelFork = RelationId::constant(7).main();

/// Runs the test on a log of its own and a new page.
fn on_a_new_page(test: impl FnOnce(&One, &mut ExclusivePage<'_>)) {
    const SEGMENT: u64 = 1 << 16;
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FileLogStore::open(directory.path(), SEGMENT).unwrap());
    let config = LogConfig {
        segment_bytes: SEGMENT,
        buffer_bytes: 1 << 16,
        max_sessions: 1,
        writer_delay: Duration::from_secs(3600),
        flush_after_bytes: u64::MAX,
    };
    let start = LogStart { end: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
    let log = Log::open(store, config, start).unwrap();
    let pool =
        BufferPool::new(PoolConfig::new(16, 2), Arc::new(MemoryStore::new()), log.clone()).unwrap();
    pool.create(REL).unwrap();
    let relation = pool.relation(REL).unwrap();
    let buffers = pool.session().unwrap();
    let mut page = buffers.extend(&relation, Wait::Allowed).unwrap();
    test(&One(log), &mut page);
}

/// A record whose redo cannot work: the heap refuses this kind.
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
