//! A session: one transaction at a time, and all that statements do to tables.
//!
//! # Order of calls
//!
//! [`begin`](Session::begin); for each statement [`start_statement`](Session::start_statement), reads and changes,
//! [`end_statement`](Session::end_statement); then [`commit`](Session::commit) or [`abort`](Session::abort). After an error
//! in a statement only `abort` undoes what it did: there are no savepoints yet.
//!
//! Before a statement touches a table it calls [`lock_table`](Session::lock_table), which also tells whether the
//! definition is still the current one. Locks last until the end of the transaction.
//!
//! # Waiting
//!
//! With [`set_wait`](Session::set_wait)`(Wait::Never)` an operation that would have to wait (for a page, a row's other
//! writer, a lock, room in the log) fails with [`EngineError::WouldBlock`] instead, before it has changed
//! anything: the same call can be repeated where waiting is allowed. An index scan or heap scan can be
//! resumed with its next call.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use millpond_buffer::{Lsn, Wait};

use crate::access::Tid;
use crate::catalog::{CatalogState, IndexDef, NewIndex, NewTable, Oid, TableDef};
use crate::engine::Engine;
use crate::error::{EngineError, EngineResult};
use crate::lmgr::{LockMode, LockTag};
use crate::table::{
    Direction, HeapScan, IndexScan, KeyRange, LockStrength, ParallelScan, RowBatch, RowBuf,
    RowOutcome,
};
use crate::transam::{Isolation, SessionNo, Xid};
use crate::types::Datum;

/// How a transaction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Its isolation level.
    pub isolation: Isolation,
    /// Whether changes are refused.
    pub read_only: bool,
    /// `synchronous_commit = off`: commit returns before the log is durable.
    pub asynchronous: bool,
}

/// How a commit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Done. (With `asynchronous`, or nothing to write: without waiting for the log.)
    Done,
    /// The commit record is in the log but not yet durable. Wait with [`Session::on_durable`], then call
    /// [`Session::finish_commit`]; only under [`Wait::Never`].
    Pending(CommitTicket),
}

/// A commit on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitTicket {
    /// The commit is durable when the log is flushed up to here.
    pub lsn: Lsn,
}

/// How far a VACUUM went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumSummary {
    /// Pages looked at.
    pub pages: u64,
    /// Row versions removed.
    pub removed: u64,
    /// Rows that remain.
    pub remaining: u64,
    /// Dead row versions that somebody may still see.
    pub not_yet_removable: u64,
}

/// Cancels what a session does, from any thread.
#[derive(Clone, Debug)]
pub struct CancelHandle {}

impl CancelHandle {
    /// The session's running statement fails soon with `Cancelled`.
    pub fn cancel(&self) {}
}

/// A session. Moves between threads, but is used by one at a time.
#[derive(Debug)]
pub struct Session {
    engine: Arc<Engine>,
}

const PENDING: EngineError = EngineError::Internal { what: "not connected yet" };

impl Session {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Its number: its slot in the tables of sessions.
    pub fn number(&self) -> SessionNo {
        SessionNo(0)
    }

    /// Whether operations may wait from now on. A new session's may.
    pub fn set_wait(&self, wait: Wait) {
        let _ = wait;
    }

    /// Whether operations may wait.
    pub fn wait(&self) -> Wait {
        Wait::Allowed
    }

    /// How long to wait for locks at most (`lock_timeout`).
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        let _ = timeout;
    }

    /// A handle that cancels this session's statements.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle {}
    }

    /// Fails with `Cancelled` if the session has been told to stop. Long computations call it now and then.
    pub fn check_cancel(&self) -> EngineResult<()> {
        Ok(())
    }

    /// Takes back a request to cancel (between statements).
    pub fn clear_cancel(&self) {}

    // ---- transactions

    /// Starts a transaction.
    pub fn begin(&mut self, options: TransactionOptions) -> EngineResult<()> {
        let _ = options;
        Err(PENDING)
    }

    /// Whether a transaction is running.
    pub fn in_transaction(&self) -> bool {
        false
    }

    /// The running transaction's options.
    pub fn options(&self) -> TransactionOptions {
        TransactionOptions::default()
    }

    /// Changes the options of the running transaction (SET TRANSACTION). The isolation level can't change after the
    /// first statement.
    pub fn set_options(&mut self, options: TransactionOptions) -> EngineResult<()> {
        let _ = options;
        Ok(())
    }

    /// The transaction's id, if it has changed anything.
    pub fn xid(&self) -> Option<Xid> {
        None
    }

    /// Starts a statement: takes its snapshot (REPEATABLE READ: the first statement's), and lets it see what
    /// earlier statements of the transaction did.
    pub fn start_statement(&mut self) -> EngineResult<()> {
        Err(PENDING)
    }

    /// Lets what was done so far be seen by what follows in the same statement, under the same snapshot.
    pub fn advance_command(&mut self) -> EngineResult<()> {
        Err(PENDING)
    }

    /// Ends a statement: lets go of its snapshot where the isolation level permits, so that VACUUM need
    /// not wait for an idle transaction. Its scans end with it.
    pub fn end_statement(&mut self) {}

    /// Commits. Waits for the log to be durable, or says that it is pending (under `Wait::Never`). On an
    /// error the transaction is rolled back, unless the error is `InDoubt`.
    pub fn commit(&mut self) -> EngineResult<Commit> {
        Err(PENDING)
    }

    /// Wakes `waker` when the commit is durable or the log has failed.
    pub fn on_durable(&self, ticket: &CommitTicket, waker: Waker) {
        let _ = ticket;
        waker.wake();
    }

    /// Ends a commit that was pending. WouldBlock (under `Wait::Never`) if it still is.
    pub fn finish_commit(&mut self, ticket: CommitTicket) -> EngineResult<()> {
        let _ = ticket;
        Err(PENDING)
    }

    /// Rolls back. Never fails for want of memory, room or permission to wait; harmless outside a transaction.
    pub fn abort(&mut self) {}

    // ---- definitions

    /// The catalog as this session sees it.
    pub fn catalog(&self) -> Arc<CatalogState> {
        self.engine.catalog()
    }

    /// The number of the catalog that this session sees: as long as it doesn't change, no definition has.
    /// One load.
    pub fn catalog_generation(&self) -> u64 {
        0
    }

    /// Locks a table until the end of the transaction (SELECT: `AccessShare`, INSERT, UPDATE, DELETE, COPY:
    /// `RowExclusive`) and checks that the definition is still current: `TableError::StaleDefinition` if not.
    /// Locking again costs little.
    pub fn lock_table(&self, table: &Arc<TableDef>, mode: LockMode) -> EngineResult<()> {
        let _ = (table, mode);
        Err(PENDING)
    }

    /// Creates a table with its primary key and unique indexes.
    pub fn create_table(&mut self, table: NewTable) -> EngineResult<Arc<TableDef>> {
        let _ = table;
        Err(PENDING)
    }

    /// Drops a table with its indexes.
    pub fn drop_table(&mut self, table: Oid) -> EngineResult<()> {
        let _ = table;
        Err(PENDING)
    }

    /// Creates an index and fills it from the table. With `primary` this is ALTER TABLE ADD PRIMARY KEY.
    pub fn create_index(&mut self, index: NewIndex) -> EngineResult<Arc<IndexDef>> {
        let _ = index;
        Err(PENDING)
    }

    /// Drops an index. One that belongs to a constraint only with `constraint`.
    pub fn drop_index(&mut self, index: Oid, constraint: bool) -> EngineResult<()> {
        let _ = (index, constraint);
        Err(PENDING)
    }

    /// Empties tables.
    pub fn truncate(&mut self, tables: &[Oid]) -> EngineResult<()> {
        let _ = tables;
        Err(PENDING)
    }

    /// Removes dead rows. Outside of a transaction only; runs transactions of its own.
    pub fn vacuum(&mut self, table: Oid) -> EngineResult<VacuumSummary> {
        let _ = table;
        Err(PENDING)
    }

    /// Counts rows for the planner's estimates, from a sample of pages.
    pub fn analyze(&mut self, table: Oid) -> EngineResult<()> {
        let _ = table;
        Err(PENDING)
    }

    // ---- reading

    /// The visible row with this key, copied into `row`: at most one (the index is unique and the key is
    /// complete). Allocates nothing once `row` is large enough; writes no shared memory when all is in memory.
    pub fn lookup(
        &self,
        table: &TableDef,
        index: &IndexDef,
        key: &[Datum<'_>],
        row: &mut RowBuf,
    ) -> EngineResult<bool> {
        let _ = (table, index, key, row);
        Err(PENDING)
    }

    /// The version at this place, if the statement sees it.
    pub fn fetch(&self, table: &TableDef, tid: Tid, row: &mut RowBuf) -> EngineResult<bool> {
        let _ = (table, tid, row);
        Err(PENDING)
    }

    /// Begins a scan of an index, in the memory of an earlier one.
    pub fn start_index_scan(
        &self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        range: &KeyRange,
        direction: Direction,
        scan: &mut IndexScan,
    ) -> EngineResult<()> {
        let _ = (table, index, range, direction, scan);
        Err(PENDING)
    }

    /// Begins a scan of a table.
    pub fn heap_scan(&self, table: &Arc<TableDef>) -> EngineResult<HeapScan> {
        let _ = table;
        Err(PENDING)
    }

    /// A scan of a table that other threads can share, under this statement's snapshot and seeing what the
    /// transaction did in earlier statements.
    pub fn parallel_scan(&self, table: &Arc<TableDef>) -> EngineResult<ParallelScan> {
        let _ = table;
        Err(PENDING)
    }

    /// Blocks of a table.
    pub fn block_count(&self, table: &TableDef) -> EngineResult<u32> {
        let _ = table;
        Err(PENDING)
    }

    /// Blocks of an index.
    pub fn index_block_count(&self, index: &IndexDef) -> EngineResult<u32> {
        let _ = index;
        Err(PENDING)
    }

    // ---- changing

    /// Inserts a row: checks NOT NULL, stores it, enters it in all indexes, refuses duplicates (after waiting
    /// for whoever is about to insert the same key).
    pub fn insert(&self, table: &TableDef, values: &[Datum<'_>]) -> EngineResult<Tid> {
        let _ = (table, values);
        Err(PENDING)
    }

    /// Checks NOT NULL, encodes the row and adds it to the batch.
    pub fn add_to_batch(
        &self,
        table: &TableDef,
        values: &[Datum<'_>],
        batch: &mut RowBatch,
    ) -> EngineResult<()> {
        let _ = (table, values, batch);
        Err(PENDING)
    }

    /// Inserts all rows of the batch and empties it. Needs permission to wait.
    pub fn insert_batch(&self, table: &TableDef, batch: &mut RowBatch) -> EngineResult<u64> {
        let _ = (table, batch);
        Err(PENDING)
    }

    /// Replaces the version that `row` holds by one with these values. Waits for another transaction that is
    /// changing the row; if that commits see [`RowOutcome::Changed`]; in REPEATABLE READ it is a
    /// `SerializationFailure`.
    pub fn update(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        values: &[Datum<'_>],
    ) -> EngineResult<RowOutcome> {
        let _ = (table, row, values);
        Err(PENDING)
    }

    /// Deletes the version that `row` holds; otherwise as [`Self::update`].
    pub fn delete(&self, table: &TableDef, row: &mut RowBuf) -> EngineResult<RowOutcome> {
        let _ = (table, row);
        Err(PENDING)
    }

    /// Locks the version that `row` holds (SELECT FOR UPDATE); otherwise as [`Self::update`].
    pub fn lock_row(
        &self,
        table: &TableDef,
        row: &mut RowBuf,
        strength: LockStrength,
    ) -> EngineResult<RowOutcome> {
        let _ = (table, row, strength);
        Err(PENDING)
    }

    // ---- locks of applications

    /// Takes any lock, until the end of the transaction or (`session`) of the session.
    pub fn acquire(&self, tag: LockTag, mode: LockMode, session: bool) -> EngineResult<()> {
        let _ = (tag, mode, session);
        Err(PENDING)
    }
}
