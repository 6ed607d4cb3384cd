//! An engine in a temporary directory, and short forms of common operations.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, IndexColumn, IndexDef, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::IndexScan;
use millpond_engine::session::{Commit, TransactionOptions};
use millpond_engine::table::{Direction, KeyRange, RowBuf, RowOutcome};
use millpond_engine::transam::Isolation;
use millpond_engine::types::key::{KeyOrder, NextColumn};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineConfig, EngineError, EngineResult, Session};

pub fn config(path: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(path);
    config.buffers = 512;
    config.max_connections = 40;
    config.autovacuum.enabled = false;
    config
}

pub fn open(path: &Path) -> Arc<Engine> {
    Engine::open(config(path)).unwrap()
}

/// An engine in a new directory, and a session. The directory comes first, so it is dropped last.
pub fn opened() -> (tempfile::TempDir, Arc<Engine>, Session) {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let session = engine.session().unwrap();
    (dir, engine, session)
}

/// The same with a table of accounts 1 to `count`, with a balance of 100 each.
pub fn bank(count: i32) -> (tempfile::TempDir, Arc<Engine>, Session, Arc<TableDef>) {
    let (dir, engine, mut session) = opened();
    let accounts = create(&mut session, accounts());
    fill(&mut session, &accounts, count);
    (dir, engine, session, accounts)
}

/// Ends a session, and shuts the engine down.
pub fn close(session: Session, engine: Arc<Engine>) {
    drop(session);
    engine.shutdown().unwrap();
}

/// Copies a directory as a kill would leave it.
pub fn copy_directory(from: &Path, to: &Path) {
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_directory(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub fn asc(column: usize) -> IndexColumn {
    IndexColumn { column, order: KeyOrder::ASC }
}

pub fn index(table: u32, columns: &[usize]) -> NewIndex {
    NewIndex {
        name: None,
        table,
        columns: columns.iter().map(|&column| asc(column)).collect(),
        unique: false,
        primary: false,
        constraint: false,
        fillfactor: 90,
    }
}

/// `accounts (id int primary key, owner text, balance bigint not null)`
pub fn accounts() -> NewTable {
    NewTable {
        name: "accounts".into(),
        columns: vec![
            ColumnDef::new("id", DataType::Int4),
            ColumnDef::new("owner", DataType::Text),
            ColumnDef::new("balance", DataType::Int8).not_null(),
        ],
        fillfactor: 100,
        indexes: vec![NewIndex { primary: true, ..index(0, &[0]) }],
    }
}

pub fn row<'a>(id: i32, owner: &'a str, balance: i64) -> [Datum<'a>; 3] {
    [Datum::Int4(id), Datum::Text(owner), Datum::Int8(balance)]
}

pub const RC: TransactionOptions = TransactionOptions {
    isolation: Isolation::ReadCommitted,
    read_only: false,
    asynchronous: false,
};
pub const RR: TransactionOptions =
    TransactionOptions { isolation: Isolation::RepeatableRead, ..RC };

/// Runs one statement in its own transaction.
pub fn run<R>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> EngineResult<R> {
    session.begin(RC)?;
    let result = session.start_statement().and_then(|()| work(session));
    session.end_statement();
    match result {
        Ok(value) => {
            assert_eq!(session.commit()?, Commit::Done);
            Ok(value)
        }
        Err(error) => {
            session.abort();
            Err(error)
        }
    }
}

pub fn create(session: &mut Session, table: NewTable) -> Arc<TableDef> {
    run(session, |s| s.ddl().create_table(table)).unwrap()
}

pub fn table(session: &Session, name: &str) -> Arc<TableDef> {
    session.catalog().table_by_name(name).cloned().unwrap()
}

/// The balance of an account, under the running statement.
pub fn balance(session: &Session, table: &Arc<TableDef>, id: i32) -> EngineResult<Option<i64>> {
    session.lock_table(table, LockMode::AccessShare)?;
    let mut row = RowBuf::new();
    let key = table.primary_key().unwrap();
    if !session.lookup(table, key, &[Datum::Int4(id)], &mut row)? {
        return Ok(None);
    }
    Ok(row.column(table, 2).unwrap().as_i64())
}

/// Locks the table for changes and finds the version of an account that the statement sees.
pub fn find(session: &Session, table: &Arc<TableDef>, id: i32) -> EngineResult<RowBuf> {
    session.lock_table(table, LockMode::RowExclusive)?;
    let (mut found, key) = (RowBuf::new(), table.primary_key().unwrap());
    assert!(session.lookup(table, key, &[Datum::Int4(id)], &mut found)?, "account {id}");
    Ok(found)
}

/// All keys of an index.
pub fn all_of(index: &IndexDef) -> KeyRange {
    let mut range = KeyRange::default();
    index.keys.range(&[], NextColumn::Any, &mut range.lower, &mut range.upper).unwrap();
    range
}

/// Adds to a balance as an UPDATE does, and retries after a conflict. False if the account does not
/// exist.
pub fn add(session: &Session, table: &Arc<TableDef>, id: i32, delta: i64) -> EngineResult<bool> {
    session.lock_table(table, LockMode::RowExclusive)?;
    let mut found = RowBuf::new();
    let key = table.primary_key().unwrap();
    if !session.lookup(table, key, &[Datum::Int4(id)], &mut found)? {
        return Ok(false);
    }
    loop {
        let owner = match found.column(table, 1).unwrap() {
            Datum::Text(owner) => owner.to_owned(),
            _ => String::new(),
        };
        let balance = found.column(table, 2).unwrap().as_i64().unwrap();
        match session.update(table, &mut found, &row(id, &owner, balance + delta))? {
            RowOutcome::Done(_) => return Ok(true),
            RowOutcome::Gone => return Ok(false),
            RowOutcome::Changed => {}
        }
    }
}

/// Sum of all balances, by a scan of the table, under the running statement.
pub fn total(session: &Session, table: &Arc<TableDef>) -> EngineResult<(u64, i64)> {
    session.lock_table(table, LockMode::AccessShare)?;
    let mut scan = session.heap_scan(table)?;
    let (mut rows, mut sum) = (0, 0);
    while scan.next_page(session, &mut |_, bytes| {
        rows += 1;
        sum += table.layout.column(bytes, 2).unwrap().as_i64().unwrap();
        Ok(())
    })? {}
    Ok((rows, sum))
}

/// Ids in key order, by a scan of the primary key.
pub fn ids(
    session: &Session,
    table: &Arc<TableDef>,
    direction: Direction,
) -> EngineResult<Vec<i64>> {
    ids_by(session, table, table.primary_key().unwrap(), &[], direction)
}

/// The ids of the rows whose key in the index begins with these values.
pub fn ids_by(
    session: &Session,
    table: &Arc<TableDef>,
    index: &Arc<IndexDef>,
    key: &[Datum<'_>],
    direction: Direction,
) -> EngineResult<Vec<i64>> {
    let mut range = KeyRange::default();
    index.keys.range(key, NextColumn::Any, &mut range.lower, &mut range.upper).unwrap();
    let mut scan = IndexScan::new();
    session.start_index_scan(table, index, &range, direction, &mut scan)?;
    let mut row = RowBuf::new();
    let mut ids = Vec::new();
    while scan.next(session, &mut row)? {
        ids.push(row.column(table, 0).unwrap().as_i64().unwrap());
    }
    Ok(ids)
}

/// Fills the table with accounts 1 to `count`, with a balance of 100 each.
pub fn fill(session: &mut Session, table: &Arc<TableDef>, count: i32) {
    run(session, |s| {
        s.lock_table(table, LockMode::RowExclusive)?;
        for id in 1..=count {
            s.insert(table, &row(id, "somebody", 100))?;
        }
        Ok(())
    })
    .unwrap();
}

/// Asserts that the consistency check has no findings.
pub fn assert_whole(engine: &Arc<Engine>) {
    let mut findings = Vec::new();
    millpond_engine::check::check_engine(engine, &mut |finding| findings.push(finding.to_string()))
        .unwrap();
    assert_eq!(findings, Vec::<String>::new());
}

pub fn is_serialization_failure(error: &EngineError) -> bool {
    matches!(error, EngineError::SerializationFailure { .. })
}
