//! COPY FROM STDIN.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::Session;
use millpond_engine::table::RowBatch;

use super::{columns_of, count, format_of};
use crate::conn::statement::Step;
use crate::conn::transaction::in_failed_transaction;
use crate::conn::{Connection, Executed};
use crate::convert::is_would_block;
use crate::copy::{CopyRow, RowReader};
use crate::error::{Result, SqlError, SqlState};
use crate::exec::{Datums, with_row_detail};
use crate::expr::{Env, Expr, Row, Val};
use crate::memory::Held;
use crate::parse::{CopyOptions, Name};
use crate::plan::{default_of, find_table};
use crate::sink::{CommandTag, RowSink};
use crate::types::{FormatOptions, text};
use crate::{Datum, Value};

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
}

impl Connection {
    pub(super) fn copy_from(
        &mut self,
        name: &Name,
        columns: Option<&Vec<String>>,
        options: &CopyOptions,
    ) -> Result<Step> {
        self.check_writable("COPY FROM")?;
        let mut tries = 0;
        loop {
            let table = find_table(&self.catalog(), name)?;
            match self.copy_in(table, columns, options) {
                Err(error) if self.plans_again(&error, &mut tries)? => {}
                other => return other,
            }
        }
    }

    fn copy_in(
        &mut self,
        table: Arc<TableDef>,
        names: Option<&Vec<String>>,
        options: &CopyOptions,
    ) -> Result<Step> {
        let columns = columns_of(&table, names)?;
        let names = columns.iter().map(|column| table.columns[*column].name.clone()).collect();
        let reader = RowReader::new(format_of(options, names)?);
        let defaults =
            (0..table.columns.len()).map(|c| default_of(&table, c)).collect::<Result<Vec<_>>>()?;
        self.session.lock_table(&table, LockMode::RowExclusive)?;
        self.session.start_statement()?;
        let fields = columns.len();
        let mut batch = RowBatch::new();
        if options.freeze {
            batch.freeze();
        }
        let holds = vec![Value::Null; fields];
        let held = Held::new(&self.resources.memory, "Copy");
        let into = Target { table, columns, defaults, batch, rows: 0, holds };
        self.copy = Some(Box::new(CopyIn { reader, into, ended: false, held }));
        Ok(Step::CopyIn(count(fields)))
    }

    /// Data of a `COPY FROM STDIN`, cut anywhere.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        let Some(mut copy) = self.copy.take() else { return Err(not_copying()) };
        match self.copy_piece(&mut copy, Some(data)) {
            Ok(()) => {
                self.copy = Some(copy);
                Ok(())
            }
            Err(error) => Err(self.copy_failed(&copy, error)),
        }
    }

    /// The end of the data. Carries on with what follows in a simple query.
    pub fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let Some(mut copy) = self.copy.take() else { return Err(not_copying()) };
        let result = self.copy_piece(&mut copy, None);
        if let Err(error) = result {
            return Err(self.copy_failed(&copy, error));
        }
        self.session.end_statement();
        self.statements_run = self.statements_run.saturating_add(1);
        let tag = CommandTag::counted("COPY", copy.into.rows);
        if self.script.is_none() {
            return self.portal_ended(Some(tag), sink);
        }
        let last = self.is_last_of_script();
        match self.statement_done(tag, last, sink)? {
            Some(executed) => Ok(executed),
            None => self.run_script(sink),
        }
    }

    /// The client gives up: returns the error to send.
    pub fn copy_fail(&mut self, reason: &str) -> SqlError {
        let error =
            SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {reason}"));
        match self.copy.take() {
            Some(copy) => self.copy_failed(&copy, error),
            None => error,
        }
    }

    fn copy_failed(&mut self, copy: &CopyIn, mut error: SqlError) -> SqlError {
        if error.context.is_none() {
            error.context =
                Some(format!("COPY {}, line {}", copy.into.table.name, copy.reader.line()));
        }
        if is_would_block(&error) {
            error = SqlError::internal("a COPY must be run where it may wait");
        }
        if error.sqlstate == SqlState::QUERY_CANCELED && self.cancel.is_raised() {
            error = self.cancel.error();
        }
        self.session.end_statement();
        self.fail();
        self.watch = None;
        self.cancel.session().end();
        error
    }

    /// Reads rows out of a piece of data; without one, what is left at the end.
    fn copy_piece(&mut self, copy: &mut CopyIn, data: Option<&[u8]>) -> Result<()> {
        if !self.session.in_transaction() {
            return Err(in_failed_transaction());
        }
        self.session.check_cancel()?;
        let session = &self.session;
        let facts = self.facts();
        let env = Env { row: Row::None, params: &[], facts: &facts, subplans: None };
        let CopyIn { reader, into, ended, held } = copy;
        if *ended {
            return Ok(());
        }
        let mut each = |fields: &CopyRow<'_>| into.add(session, &env, fields);
        match data {
            Some(data) => {
                reader.feed(data, &mut each)?;
                held.resize(reader.pending_bytes())?;
            }
            None => {
                reader.finish(&mut each)?;
                if !into.batch.is_empty() {
                    session.insert_batch(&into.table, &mut into.batch)?;
                }
                *ended = true;
            }
        }
        Ok(())
    }
}

impl Target {
    fn add(&mut self, session: &Session, env: &Env<'_>, fields: &CopyRow<'_>) -> Result<()> {
        let Self { table, columns, defaults, batch, rows, holds } = self;
        let bad = |message: String| SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message);
        if fields.len() < columns.len() {
            let missing = &table.columns[columns[fields.len()]].name;
            return Err(bad(format!("missing data for column \"{missing}\"")));
        }
        if fields.len() > columns.len() {
            return Err(bad("extra data after last expected column".to_owned()));
        }
        let mut computed: smallvec::SmallVec<[(usize, Val<'_>); 4]> = Default::default();
        let mut row = Datums::new();
        if columns.len() < defaults.len() {
            for (column, default) in defaults.iter().enumerate() {
                if !columns.contains(&column) {
                    computed.push((column, default.eval(env)?));
                }
            }
        }
        row.resize(table.columns.len(), Datum::Null);
        for (column, value) in &computed {
            row[*column] = value.datum();
        }
        let options = env.facts.settings.format_options();
        let options = &FormatOptions { now: Some(env.facts.now), ..*options };
        for ((column, field), hold) in columns.iter().zip(fields).zip(holds) {
            let Some(field) = field else { continue };
            let def = &table.columns[*column];
            row[*column] = text::parse_borrowed(def.ty, field, options, hold).map_err(|error| {
                let shown: String = field.chars().take(100).collect();
                let context = format!("COPY {}, column {}: \"{shown}\"", table.name, def.name);
                error.context(context)
            })?;
        }
        session.add_to_batch(table, &row, batch).map_err(|error| with_row_detail(error, &row))?;
        if batch.byte_len() >= BATCH_BYTES {
            session.insert_batch(table, batch)?;
        }
        *rows += 1;
        Ok(())
    }
}

fn not_copying() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "there is no COPY in progress")
}
