//! A table, and statements on it through the engine's API.
//!
//! `accounts (id int primary key, branch int, balance bigint, filler text)`, with an index on
//! `branch`. Thus an update of the balance stays in its page; one of the branch adds to both
//! indexes.

use millpond_buffer::IoMethod;
use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::IndexScan;
use millpond_engine::session::{Commit, TransactionOptions};
use millpond_engine::table::{Direction, KeyRange, RowBuf, RowOutcome};
use millpond_engine::types::key::{KeyOrder, NextColumn, RangeEnd};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineConfig, EngineError, EngineResult, Session};
use std::sync::Arc;
use tempfile::TempDir;

/// The rows of a new table.
pub const ROWS: i32 = 20_000;
/// The rows that a scan reads.
pub const RANGE: i32 = 100;
const FILLFACTOR: u8 = 70;
const BRANCHES: i32 = 100;
const FILLER: &str =
    "eighty-four bytes as in pgbench's table, whose rows are wider than what they say......";

/// The statements to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statement {
    /// One row by its key.
    SelectByKey,
    /// A hundred rows in the order of the key.
    SelectRange,
    /// A new row.
    Insert,
    /// Updates a row, found by its key, without a new index entry.
    UpdateInPage,
    /// Updates a column that is in an index.
    UpdateIndexed,
}

impl Statement {
    /// All statements.
    pub const ALL: [Self; 5] = [
        Self::SelectByKey,
        Self::SelectRange,
        Self::Insert,
        Self::UpdateInPage,
        Self::UpdateIndexed,
    ];

    /// Its name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SelectByKey => "select by key",
            Self::SelectRange => "range of 100",
            Self::Insert => "insert",
            Self::UpdateInPage => "update in page",
            Self::UpdateIndexed => "update, indexed",
        }
    }

    /// Whether it only reads.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::SelectByKey | Self::SelectRange)
    }
}

/// An engine in its own directory, with the table.
pub struct World {
    engine: Arc<Engine>,
    table: Arc<TableDef>,
    // The last field: the directory is removed after the engine is dropped.
    _directory: TempDir,
}

impl World {
    /// Makes the engine and the table, for `sessions` sessions.
    pub fn new(sessions: usize) -> EngineResult<Self> {
        let directory = tempfile::tempdir().map_err(|_| internal("no temporary directory"))?;
        let mut config = EngineConfig::new(directory.path());
        config.buffers = 8192;
        config.max_connections = sessions + 1;
        config.io_method = IoMethod::Sync;
        config.autovacuum.enabled = false;
        let engine = Engine::open(config)?;
        let mut session = engine.session()?;
        session.begin(TransactionOptions::default())?;
        session.start_statement()?;
        session.ddl().create_table(accounts())?;
        session.end_statement();
        session.commit()?;
        let table = session.catalog().table_by_name("accounts").cloned();
        let table = table.ok_or(internal("the table is missing"))?;
        let mut driver = Driver::of(session, Arc::clone(&table), 0);
        for first in (0..ROWS).step_by(1000) {
            driver.transaction(false, |driver| {
                (first..first + 1000).try_for_each(|id| driver.insert(id))
            })?;
        }
        // No checkpoint may follow: the first change of a page after one logs a full-page image.
        driver.session.maintenance().vacuum(table.oid)?;
        drop(driver);
        Ok(Self { engine, table, _directory: directory })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// A session that runs statements. Each needs its own number.
    pub fn driver(&self, number: u64) -> EngineResult<Driver> {
        Ok(Driver::of(self.engine.session()?, Arc::clone(&self.table), number))
    }
}

fn internal(what: &'static str) -> EngineError {
    EngineError::Internal { what }
}

fn accounts() -> NewTable {
    let index = |column, primary| NewIndex {
        name: None,
        table: 0,
        columns: vec![IndexColumn { column, order: KeyOrder::ASC }],
        unique: primary,
        primary,
        constraint: primary,
        fillfactor: 90,
    };
    NewTable {
        name: "accounts".into(),
        columns: vec![
            ColumnDef::new("id", DataType::Int4),
            ColumnDef::new("branch", DataType::Int4),
            ColumnDef::new("balance", DataType::Int8),
            ColumnDef::new("filler", DataType::Text),
        ],
        fillfactor: FILLFACTOR,
        indexes: vec![index(0, true), index(1, false)],
    }
}

/// A session, and memory that its statements reuse.
pub struct Driver {
    session: Session,
    table: Arc<TableDef>,
    row: RowBuf,
    range: KeyRange,
    scan: IndexScan,
    /// The state of the pseudo-random numbers.
    state: u64,
    /// The next id to insert. The ids of different sessions are far apart.
    next_id: i32,
}

impl Driver {
    fn of(session: Session, table: Arc<TableDef>, number: u64) -> Self {
        let (row, range, scan) = (RowBuf::new(), KeyRange::default(), IndexScan::new());
        let next_id = ROWS + (number as i32).wrapping_mul(10_000_000).rem_euclid(2_000_000_000);
        let state = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(number + 1);
        Self { session, table, row, range, scan, state, next_id }
    }

    /// Runs a statement in its own transaction.
    pub fn run(&mut self, statement: Statement, sync: bool) -> EngineResult<()> {
        self.begin(statement, sync)?;
        self.commit()
    }

    /// Runs the transaction up to its commit.
    pub fn begin(&mut self, statement: Statement, sync: bool) -> EngineResult<()> {
        let options = TransactionOptions { asynchronous: !sync, ..TransactionOptions::default() };
        self.session.begin(options)?;
        self.session.start_statement()?;
        let id = self.random(ROWS - RANGE);
        match statement {
            Statement::SelectByKey => self.select(id)?,
            Statement::SelectRange => self.select_range(id)?,
            Statement::Insert => {
                self.next_id += 1;
                self.insert(self.next_id)?;
            }
            Statement::UpdateInPage => self.update(id, false)?,
            Statement::UpdateIndexed => self.update(id, true)?,
        }
        self.session.end_statement();
        Ok(())
    }

    /// Commits the transaction.
    pub fn commit(&mut self) -> EngineResult<()> {
        match self.session.commit()? {
            Commit::Done => Ok(()),
            Commit::Pending(_) => Err(internal("a commit that may wait is pending")),
        }
    }

    fn transaction(
        &mut self,
        sync: bool,
        work: impl FnOnce(&mut Self) -> EngineResult<()>,
    ) -> EngineResult<()> {
        self.session.begin(TransactionOptions { asynchronous: !sync, ..Default::default() })?;
        self.session.start_statement()?;
        work(self)?;
        self.session.end_statement();
        self.commit()
    }

    fn random(&mut self, below: i32) -> i32 {
        // xorshift64
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % below as u64) as i32
    }

    fn lookup(&mut self, id: i32, mode: LockMode) -> EngineResult<()> {
        let Self { session, table, row, .. } = self;
        session.lock_table(table, mode)?;
        let key = table.primary_key().ok_or(internal("no primary key"))?;
        match session.lookup(table, key, &[Datum::Int4(id)], row)? {
            true => Ok(()),
            false => Err(internal("a row is missing")),
        }
    }

    fn select(&mut self, id: i32) -> EngineResult<()> {
        self.lookup(id, LockMode::AccessShare)
    }

    fn select_range(&mut self, first: i32) -> EngineResult<()> {
        let Self { session, table, row, range, scan, .. } = self;
        session.lock_table(table, LockMode::AccessShare)?;
        let index = table.primary_key().ok_or(internal("no primary key"))?;
        let end = |id, inclusive| Some(RangeEnd { value: Datum::Int4(id), inclusive });
        let ids = NextColumn::Value { from: end(first, true), to: end(first + RANGE, false) };
        let bounds = index.keys.range(&[], ids, &mut range.lower, &mut range.upper);
        bounds.map_err(|_| internal("the key is not an integer"))?;
        session.start_index_scan(table, index, range, Direction::Forward, scan)?;
        while scan.next(session, row)? {}
        Ok(())
    }

    fn insert(&mut self, id: i32) -> EngineResult<()> {
        let Self { session, table, .. } = self;
        session.lock_table(table, LockMode::RowExclusive)?;
        session.insert(table, &values(id, id % BRANCHES, 0)).map(|_| ())
    }

    fn update(&mut self, id: i32, indexed: bool) -> EngineResult<()> {
        self.lookup(id, LockMode::RowExclusive)?;
        let new_branch = self.random(BRANCHES);
        let Self { session, table, row, .. } = self;
        loop {
            let number = |column| {
                let datum = row.column(table, column).map_err(|_| internal("a damaged row"))?;
                Ok::<_, EngineError>(datum.as_i64().unwrap_or_default())
            };
            let (branch, balance) = (number(1)? as i32, number(2)?);
            let branch = if indexed { new_branch } else { branch };
            match session.update(table, row, &values(id, branch, balance + 1))? {
                RowOutcome::Done(_) => return Ok(()),
                // Another session has changed the row meanwhile: try again from its new version.
                RowOutcome::Changed => {}
                RowOutcome::Gone => return Err(internal("a row is gone")),
            }
        }
    }
}

fn values<'a>(id: i32, branch: i32, balance: i64) -> [Datum<'a>; 4] {
    [Datum::Int4(id), Datum::Int4(branch), Datum::Int8(balance), Datum::Text(FILLER)]
}
