//! COPY FROM STDIN.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Session;
use millpond_engine::table::RowBatch;

use super::{columns_of, count, format_of};
use crate::conn::session::SqlSession;
use crate::conn::transaction::in_failed_transaction;
use crate::copy::{CopyRow, RowReader, shown};
use crate::{Datum, Value};
use millpond_query::convert::is_would_block;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::exec::{Datums, with_row_detail};
use millpond_query::expr::{Env, Expr, Row, Val};
use millpond_query::memory::Held;
use millpond_query::parse::{CopyOptions, Name};
use millpond_query::plan::{default_of, find_table};
use millpond_query::sink::{CommandTag, CopyFormat};
use millpond_types::format::{FormatOptions, text};

/// A good size for a batch of rows.
const BATCH_BYTES: usize = 64 << 10;

/// A COPY FROM STDIN in progress.
#[derive(Debug)]
pub(in crate::conn) struct CopyIn {
    reader: RowReader,
    into: Target,
    ended: bool,
    /// The row whose end has not come yet.
    held: Held,
}

/// Where its rows go.
#[derive(Debug)]
struct Target {
    table: Arc<TableDef>,
    /// For each field of a row, its column.
    columns: Vec<usize>,
    /// For each column of the table, its default (used where no field is).
    defaults: Vec<Expr>,
    batch: RowBatch,
    rows: u64,
    /// Values that fields were parsed into, one per field, used again.
    holds: Vec<Value>,
    failed: Failed,
}

/// Where a row failed.
#[derive(Debug)]
enum Failed {
    Line,
    Column {
        column: usize,
        value: String,
    },
    /// Its line is not known: rows are inserted together.
    Insert,
}

/// Begins a COPY FROM: its table is locked, the data may come.
pub(super) fn begin(
    session: &mut SqlSession,
    name: &Name,
    columns: Option<&[String]>,
    options: &CopyOptions,
) -> Result<Box<CopyIn>> {
    session.check_writable("COPY FROM")?;
    let mut tries = 0;
    loop {
        let table = find_table(&session.catalog(), name)?;
        match begin_into(session, table, columns, options) {
            Err(error) if session.plans_again(&error, &mut tries)? => {}
            other => return other,
        }
    }
}

fn begin_into(
    session: &mut SqlSession,
    table: Arc<TableDef>,
    names: Option<&[String]>,
    options: &CopyOptions,
) -> Result<Box<CopyIn>> {
    let columns = columns_of(&table, names)?;
    let names = columns.iter().map(|column| table.columns[*column].name.clone()).collect();
    let reader = RowReader::new(format_of(options, names, Some(&table))?);
    let defaults =
        (0..table.columns.len()).map(|c| default_of(&table, c)).collect::<Result<Vec<_>>>()?;
    session.engine.lock_table(&table, LockMode::RowExclusive)?;
    session.engine.start_statement()?;
    let mut batch = RowBatch::new();
    if options.freeze {
        if !session.engine.is_new(&table) {
            return Err(not_new());
        }
        batch.freeze();
    }
    let holds = vec![Value::Null; columns.len()];
    let held = Held::new(&session.resources.memory, "Copy");
    let into = Target { table, columns, defaults, batch, rows: 0, holds, failed: Failed::Line };
    Ok(Box::new(CopyIn { reader, into, ended: false, held }))
}

/// Frozen rows are visible to all, and so no other transaction may see the table.
#[cold]
fn not_new() -> SqlError {
    let message = "cannot perform COPY FREEZE because the table was not created or truncated in the \
                   current subtransaction";
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

#[cold]
fn missing(column: &str) -> SqlError {
    let message = format!("missing data for column \"{column}\"");
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

impl CopyIn {
    /// What the client is to send.
    pub(in crate::conn) fn format(&self) -> CopyFormat {
        count(self.into.columns.len())
    }

    /// Reads rows out of a piece of data; without one, what is left at the end.
    pub(in crate::conn) fn read(
        &mut self,
        session: &SqlSession,
        data: Option<&[u8]>,
    ) -> Result<()> {
        let engine = &session.engine;
        if !engine.in_transaction() {
            return Err(in_failed_transaction());
        }
        engine.check_cancel()?;
        let facts = session.facts();
        let env = Env { row: Row::None, params: &[], facts: &facts, subplans: None };
        let CopyIn { reader, into, ended, held } = self;
        if *ended {
            return Ok(());
        }
        let mut each = |fields: &CopyRow<'_>| into.add(engine, &env, fields);
        match data {
            Some(data) => {
                reader.feed(data, &mut each)?;
                held.resize(reader.pending_bytes())?;
            }
            None => {
                reader.finish(&mut each)?;
                if !into.batch.is_empty() {
                    into.insert(engine)?;
                }
                *ended = true;
            }
        }
        Ok(())
    }

    /// The copy has ended well.
    pub(in crate::conn) fn end(self, session: &mut SqlSession) -> CommandTag {
        session.engine.end_statement();
        session.statements_run = session.statements_run.saturating_add(1);
        CommandTag::counted("COPY", self.into.rows)
    }

    /// The copy has failed: the error as the client gets it.
    pub(in crate::conn) fn failed(self, session: &mut SqlSession, mut error: SqlError) -> SqlError {
        let outer = self.context();
        error.context = Some(match error.context.take() {
            Some(inner) => format!("{inner}\n{outer}"),
            None => outer,
        });
        if is_would_block(&error) {
            error = SqlError::internal("a COPY must be run where it may wait");
        }
        error = session.named_stop(error);
        session.engine.end_statement();
        error
    }

    /// The place of an error.
    fn context(&self) -> String {
        let Target { table, failed, .. } = &self.into;
        let line = match failed {
            Failed::Insert => self.reader.row_line(),
            Failed::Line | Failed::Column { .. } => self.reader.line(),
        };
        let place = format!("COPY {}, line {line}", table.name);
        match (failed, self.reader.failed_line()) {
            (Failed::Column { column, value }, _) => {
                format!("{place}, column {}: \"{value}\"", table.columns[*column].name)
            }
            (Failed::Line, Some(text)) => format!("{place}: \"{text}\""),
            _ => place,
        }
    }
}

impl Target {
    fn add(&mut self, session: &Session, env: &Env<'_>, fields: &CopyRow<'_>) -> Result<()> {
        self.add_to_batch(session, env, fields)?;
        self.rows += 1;
        if self.batch.byte_len() >= BATCH_BYTES { self.insert(session) } else { Ok(()) }
    }

    fn add_to_batch(
        &mut self,
        session: &Session,
        env: &Env<'_>,
        fields: &CopyRow<'_>,
    ) -> Result<()> {
        let Self { table, columns, defaults, batch, holds, failed, .. } = self;
        let mut computed: smallvec::SmallVec<[(usize, Val<'_>); 4]> = Default::default();
        let mut row = Datums::new();
        row.resize(table.columns.len(), Datum::Null);
        let options = env.facts.settings.format_options();
        let options = &FormatOptions { now: Some(env.facts.now), ..*options };
        for ((column, field), hold) in columns.iter().zip(fields).zip(holds) {
            let Some(field) = field else { continue };
            let ty = table.columns[*column].ty;
            row[*column] = text::parse_borrowed(ty, field, options, hold).map_err(|error| {
                *failed = Failed::Column { column: *column, value: shown(field) };
                SqlError::from(error)
            })?;
        }
        if let Some(column) = columns.get(fields.len()) {
            return Err(missing(&table.columns[*column].name));
        }
        if columns.len() < defaults.len() {
            for (column, default) in defaults.iter().enumerate() {
                if !columns.contains(&column) {
                    computed.push((column, default.eval(env)?));
                }
            }
        }
        for (column, value) in &computed {
            row[*column] = value.datum();
        }
        session.add_to_batch(table, &row, batch).map_err(|error| with_row_detail(error, &row))
    }

    /// Inserts the rows of the batch.
    fn insert(&mut self, session: &Session) -> Result<()> {
        self.failed = Failed::Insert;
        session.insert_batch(&self.table, &mut self.batch)?;
        self.failed = Failed::Line;
        Ok(())
    }
}
