//! The tables of a run, and short forms of common operations.

use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::{Commit, TransactionOptions};
use millpond_engine::table::{RowBuf, RowOutcome};
use millpond_engine::transam::Isolation;
use millpond_engine::types::key::KeyOrder;
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{EngineError, EngineResult, Session};

pub(super) const ACCOUNTS: i32 = 60;
pub(super) const BALANCE: i64 = 100;

pub(super) const READ_COMMITTED: TransactionOptions = TransactionOptions {
    isolation: Isolation::ReadCommitted,
    read_only: false,
    asynchronous: false,
};
pub(super) const REPEATABLE_READ: TransactionOptions =
    TransactionOptions { isolation: Isolation::RepeatableRead, ..READ_COMMITTED };

/// READ COMMITTED with `synchronous_commit = off`.
pub(super) const ASYNCHRONOUS: TransactionOptions =
    TransactionOptions { asynchronous: true, ..READ_COMMITTED };

/// How a transaction failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// It was rolled back.
    RolledBack,
    /// Only a restart can tell.
    InDoubt,
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::InDoubt { .. } => Self::InDoubt,
            EngineError::Internal { what } => panic!("internal error: {what}"),
            _ => Self::RolledBack,
        }
    }
}

/// Runs one statement in its own transaction.
pub(super) fn transact<R>(
    session: &mut Session,
    options: TransactionOptions,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> EngineResult<R> {
    session.begin(options)?;
    let result = session.start_statement().and_then(|()| work(session));
    session.end_statement();
    match result {
        Ok(value) => match session.commit()? {
            Commit::Done => Ok(value),
            Commit::Pending(_) => Err(EngineError::Internal { what: "a commit did not wait" }),
        },
        Err(error) => {
            session.abort();
            Err(error)
        }
    }
}

pub(super) fn run<R>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> EngineResult<R>,
) -> EngineResult<R> {
    transact(session, READ_COMMITTED, work)
}

pub(super) fn index(table: u32, columns: &[usize]) -> NewIndex {
    let column = |&column: &usize| IndexColumn { column, order: KeyOrder::ASC };
    NewIndex {
        name: None,
        table,
        columns: columns.iter().map(column).collect(),
        unique: false,
        primary: false,
        constraint: false,
        fillfactor: 90,
    }
}

/// `(id int primary key, owner text, balance bigint not null)`
pub(super) fn accounts(name: &str, has_key: bool) -> NewTable {
    let key = NewIndex { primary: true, ..index(0, &[0]) };
    NewTable {
        name: name.to_owned(),
        columns: vec![
            ColumnDef::new("id", DataType::Int4),
            ColumnDef::new("owner", DataType::Text),
            ColumnDef::new("balance", DataType::Int8).not_null(),
        ],
        fillfactor: 100,
        indexes: if has_key { vec![key] } else { vec![] },
    }
}

/// `(writer int, number bigint, account int, delta bigint, primary key (writer, number))`
pub(super) fn history() -> NewTable {
    let columns = [
        ("writer", DataType::Int4),
        ("number", DataType::Int8),
        ("account", DataType::Int4),
        ("delta", DataType::Int8),
    ];
    NewTable {
        name: "history".into(),
        columns: columns.map(|(name, ty)| ColumnDef::new(name, ty).not_null()).into(),
        fillfactor: 100,
        indexes: vec![NewIndex { primary: true, ..index(0, &[0, 1]) }],
    }
}

pub(super) fn row<'a>(id: i32, owner: &'a str, balance: i64) -> [Datum<'a>; 3] {
    [Datum::Int4(id), Datum::Text(owner), Datum::Int8(balance)]
}

pub(super) fn named(session: &Session, name: &str) -> Option<Arc<TableDef>> {
    session.catalog().table_by_name(name).cloned()
}

fn whole_number(table: &TableDef, bytes: &[u8], column: usize) -> i64 {
    let column = table.layout.column(bytes, column);
    column.ok().and_then(|datum| datum.as_i64()).unwrap_or_else(|| panic!("not a number"))
}

/// Adds to a balance as an UPDATE does, and retries after a conflict.
pub(super) fn add(
    session: &Session,
    table: &Arc<TableDef>,
    id: i32,
    delta: i64,
) -> EngineResult<()> {
    session.lock_table(table, LockMode::RowExclusive)?;
    let mut found = RowBuf::new();
    let key = table.primary_key().unwrap_or_else(|| panic!("no key"));
    assert!(session.lookup(table, key, &[Datum::Int4(id)], &mut found)?, "account {id} is lost");
    loop {
        let balance = found.column(table, 2).ok().and_then(|datum| datum.as_i64());
        let balance = balance.unwrap_or_else(|| panic!("no balance"));
        match session.update(table, &mut found, &row(id, "somebody", balance + delta))? {
            RowOutcome::Done(_) => return Ok(()),
            RowOutcome::Changed => {}
            RowOutcome::Gone => panic!("account {id} is gone"),
        }
    }
}

/// The number of visible rows, and the sum of a column.
pub(super) fn sums(
    session: &Session,
    table: &Arc<TableDef>,
    column: usize,
) -> EngineResult<(u64, i64)> {
    let (mut rows, mut sum) = (0, 0);
    each_row(session, table, |bytes| {
        rows += 1;
        sum += whole_number(table, bytes, column);
    })?;
    Ok((rows, sum))
}

/// The numbers that each writer has recorded.
pub(super) fn recorded(
    session: &Session,
    table: &Arc<TableDef>,
    writers: usize,
) -> EngineResult<Vec<Vec<i64>>> {
    let mut numbers = vec![Vec::new(); writers];
    each_row(session, table, |bytes| {
        numbers[whole_number(table, bytes, 0) as usize].push(whole_number(table, bytes, 1));
    })?;
    Ok(numbers)
}

fn each_row(
    session: &Session,
    table: &Arc<TableDef>,
    mut see: impl FnMut(&[u8]),
) -> EngineResult<()> {
    session.lock_table(table, LockMode::AccessShare)?;
    let mut scan = session.heap_scan(table)?;
    while scan.next_page(session, &mut |_, bytes| {
        see(bytes);
        Ok(())
    })? {}
    Ok(())
}
