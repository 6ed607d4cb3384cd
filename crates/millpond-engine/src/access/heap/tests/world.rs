//! A heap with everything it needs, for tests.

use std::sync::Arc;

use millpond_buffer::{BlockNumber, BufferPool, Lsn, MemoryStore, PoolConfig, RelationId, Wait};

use crate::access::Tid;
use crate::access::heap::{Changer, HeapRelation, NewRow, insert};
use crate::ctx::{Ctx, Shared};
use crate::proc::ProcArray;
use crate::transam::row_locks::MAX_SHARED_ROWS;
use crate::transam::{CommandId, Csn, Durability, Snapshot, Transactions, Xid};
use crate::wal::reader::{LogReader, Step};
use crate::wal::{Decoded, FileLogStore, Log, LogConfig, LogStart};

pub const RELATION: RelationId = RelationId::constant(100);
const OTHER_RELATION: RelationId = RelationId::constant(101);
const SESSIONS: u16 = 32;
const SEGMENT: u64 = 1 << 20;

pub struct World {
    pub shared: Shared,
    pub heap: HeapRelation,
    log_store: Arc<FileLogStore>,
    _directory: tempfile::TempDir,
}

impl World {
    pub fn new(frames: usize, fillfactor: u8) -> Self {
        Self::with_shared_rows(frames, fillfactor, MAX_SHARED_ROWS)
    }

    /// The same, with room for this many rows that several transactions hold.
    pub fn with_shared_rows(frames: usize, fillfactor: u8, shared_rows: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log_store = Arc::new(FileLogStore::open(directory.path(), SEGMENT).unwrap());
        let config = LogConfig {
            segment_bytes: SEGMENT,
            buffer_bytes: 1 << 20,
            max_sessions: SESSIONS as usize,
            redo_of: crate::rmgr::redo_of,
            ..LogConfig::default()
        };
        let start =
            LogStart { end: Lsn(SEGMENT), durable: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
        let log = Log::open(log_store.clone(), config, start).unwrap();
        // A page that is not in the pool must be waited for.
        let store = Arc::new(MemoryStore::cold());
        let config = PoolConfig::new(frames, SESSIONS as usize);
        let pool = BufferPool::new(config, store, log.clone()).unwrap();
        let procs = ProcArray::new(SESSIONS);
        let txns = Transactions::with_shared_rows(procs.clone(), 1 << 14, Xid::FIRST, shared_rows);
        let shared = Shared::new(pool, log, procs, txns);
        let ctx = Ctx::new(&shared, "test").unwrap();
        shared.txns.finish_recovery(&ctx).unwrap();
        HeapRelation::create(&shared.pool, RELATION).unwrap();
        let sessions = SESSIONS as usize;
        let heap = HeapRelation::open(&shared.pool, RELATION, fillfactor, sessions).unwrap();
        World { shared, heap, log_store, _directory: directory }
    }

    pub fn ctx(&self) -> Ctx {
        Ctx::new(&self.shared, "test").unwrap()
    }

    /// Evicts everything that is not pinned: for a moment every frame belongs to another relation.
    pub fn push_out(&self, ctx: &Ctx) {
        let (pool, session) = (&self.shared.pool, ctx.buffers());
        pool.create(OTHER_RELATION.main()).unwrap();
        let other = pool.relation(OTHER_RELATION.main()).unwrap();
        let frames = pool.frames() as u32;
        while other.block_count() < frames {
            drop(session.extend(&other, Wait::Allowed).unwrap());
        }
        let pin = |block| session.pin(&other, BlockNumber(block), Wait::Allowed).unwrap();
        let pins: Vec<_> = (0..frames).map(pin).collect();
        drop(pins);
    }

    /// A row of a transaction that has committed.
    pub fn committed_row(&self, ctx: &Ctx, row: NewRow<'_>) -> Tid {
        let tx = Tx::begin(ctx);
        let tid = insert(ctx, &self.heap, row, tx.xid, tx.command).unwrap();
        tx.finish(true);
        tid
    }

    /// Calls `show` with every record of the log, in order.
    pub fn replay(&self, mut show: impl FnMut(&Decoded<'_>)) {
        self.shared.log.flush(self.shared.log.insert_position()).unwrap();
        let mut reader = LogReader::new(self.log_store.clone(), Lsn(SEGMENT)).unwrap();
        while let Step::Record(record) = reader.next().unwrap() {
            show(&record);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shared.log.abandon();
    }
}

/// A transaction of a test.
pub struct Tx<'a> {
    pub ctx: &'a Ctx,
    pub xid: Xid,
    pub command: CommandId,
    pub csn: Csn,
}

impl<'a> Tx<'a> {
    pub fn begin(ctx: &'a Ctx) -> Self {
        let csn = ctx.txns().snapshot(ctx);
        Tx { ctx, xid: ctx.assign_xid().unwrap(), command: CommandId(0), csn }
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot { csn: self.csn, own: Some(self.xid), command: self.command }
    }

    /// The transaction and its current command, as the maker of changes.
    pub fn changer(&self) -> Changer {
        Changer { xid: self.xid, cid: self.command }
    }

    pub fn next_command(&mut self) {
        self.command = CommandId(self.command.0 + 1);
    }

    /// READ COMMITTED: a new snapshot for the next statement.
    pub fn refresh(&mut self) {
        let csn = self.ctx.txns().snapshot(self.ctx);
        self.ctx.txns().release_snapshot(self.ctx, self.csn);
        self.csn = csn;
        self.next_command();
    }

    pub fn finish(self, commit: bool) {
        if commit {
            self.ctx.txns().commit(self.ctx, &[], Durability::Background).unwrap();
        } else {
            self.ctx.txns().abort(self.ctx, &[]);
        }
        self.ctx.txns().release_snapshot(self.ctx, self.csn);
    }
}

/// A snapshot outside of a transaction, held until dropped.
pub struct Held<'a> {
    ctx: &'a Ctx,
    pub snapshot: Snapshot,
}

impl<'a> Held<'a> {
    pub fn take(ctx: &'a Ctx) -> Self {
        let csn = ctx.txns().snapshot(ctx);
        Held { ctx, snapshot: Snapshot { csn, own: None, command: CommandId(0) } }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ctx.txns().release_snapshot(self.ctx, self.snapshot.csn);
    }
}
