//! COPY FROM STDIN and COPY TO STDOUT.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::RowBatch;

use super::statement::Step;
use super::transaction::in_failed_transaction;
use super::{Connection, Executed};
use crate::convert::is_would_block;
use crate::copy::{RowFormat, RowReader, RowWriter};
use crate::error::{Result, SqlError, SqlState};
use crate::exec::with_row_detail;
use crate::expr::bind::{ParamTypes, undefined_column};
use crate::expr::{Env, Expr, Row};
use crate::parse::{Copy, CopyOptions, CopySource, ForceQuote};
use crate::plan::{Access, Output, Plan, Planned, SelectPlan, default_of, describe, find_table};
use crate::sink::{ColumnDesc, CommandTag, CopyFormat, RowSink};
use crate::types::{FormatOptions, text};
use crate::{DataType, Datum, Value};

/// A good size for a batch of rows.
const BATCH_BYTES: usize = 64 << 10;

/// A COPY FROM STDIN in progress.
#[derive(Debug)]
pub(super) struct CopyIn {
    table: Arc<TableDef>,
    /// For each field of a row, its column.
    columns: Vec<usize>,
    /// For each column of the table, its default (used where no field is).
    defaults: Vec<Expr>,
    reader: RowReader,
    batch: RowBatch,
    rows: u64,
    /// Values that fields were parsed into, one per field, used again.
    holds: Vec<Value>,
    ended: bool,
}

fn format_of(options: &CopyOptions, names: Vec<String>) -> Result<RowFormat> {
    let flags = |list: &[String], what: &str| -> Result<Vec<bool>> {
        let mut flags = vec![false; names.len()];
        for name in list {
            match names.iter().position(|known| known == name) {
                Some(place) => flags[place] = true,
                None => {
                    return Err(SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{what} column \"{name}\" not referenced by COPY"),
                    ));
                }
            }
        }
        Ok(flags)
    };
    Ok(RowFormat {
        csv: options.csv,
        delimiter: options.delimiter,
        null: options.null.clone(),
        header: options.header,
        header_match: options.header_match,
        quote: options.quote,
        escape: options.escape,
        force_quote: match &options.force_quote {
            ForceQuote::None => Vec::new(),
            ForceQuote::All => vec![true; names.len()],
            ForceQuote::Columns(list) => flags(list, "FORCE_QUOTE")?,
        },
        force_not_null: flags(&options.force_not_null, "FORCE_NOT_NULL")?,
        force_null: flags(&options.force_null, "FORCE_NULL")?,
        columns: names,
    })
}

/// The columns that a COPY names, or all.
fn columns_of(table: &TableDef, names: Option<&Vec<String>>) -> Result<Vec<usize>> {
    let Some(names) = names else { return Ok((0..table.columns.len()).collect()) };
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = table.column(name).ok_or_else(|| {
            let known = table.columns.iter().map(|column| column.name.as_str());
            let mut error = undefined_column(name, None, known);
            error.message =
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            error
        })?;
        if columns.contains(&column) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn count(columns: usize) -> CopyFormat {
    CopyFormat { columns: u16::try_from(columns).unwrap_or(u16::MAX) }
}

impl Connection {
    pub(super) fn copy(&mut self, copy: &Copy, sql: &str, sink: &mut dyn RowSink) -> Result<Step> {
        self.need_wait()?;
        self.need_transaction()?;
        match &copy.source {
            CopySource::Table { name, columns } if !copy.to => {
                self.check_writable("COPY FROM")?;
                let mut tries = 0;
                loop {
                    let table = find_table(&self.catalog(), name)?;
                    match self.copy_in(table, columns.as_ref(), &copy.options) {
                        Err(error) if self.plans_again(&error, &mut tries)? => {}
                        other => return other,
                    }
                }
            }
            CopySource::Table { name, columns } => {
                // Before the client is told that rows come.
                let table = self.lock_named(name, LockMode::AccessShare, false)?;
                let columns = columns_of(&table, columns.as_ref())?;
                let described: Vec<ColumnDesc> =
                    columns.iter().map(|column| describe(&table, *column)).collect();
                let exprs = columns.iter().map(|column| Expr::Column(*column)).collect();
                let plan = SelectPlan {
                    table: Some(table),
                    access: Access::Heap,
                    filter: None,
                    condition: None,
                    aggregates: None,
                    first_only: false,
                    output: Output::new(exprs, described.clone()),
                    sort: Vec::new(),
                    limit: None,
                    offset: None,
                    lock: None,
                };
                let planned = Planned {
                    plan: Plan::Select(plan),
                    params: Arc::new([]),
                    columns: Some(described.into()),
                    generation: 0,
                    zone: None,
                    passing: false,
                };
                self.copy_out(&planned, &copy.options, sink)
            }
            CopySource::Query(statement) => {
                let mut tries = 0;
                loop {
                    let planned = self.plan(statement, sql, ParamTypes::None)?;
                    if planned.columns.is_none() {
                        return Err(SqlError::new(
                            SqlState::FEATURE_NOT_SUPPORTED,
                            "COPY query must have a RETURNING clause",
                        ));
                    }
                    match self.copy_out(&planned, &copy.options, sink) {
                        Err(error) if self.plans_again(&error, &mut tries)? => {}
                        other => return other,
                    }
                }
            }
        }
    }

    fn copy_out(
        &mut self,
        planned: &Planned,
        options: &CopyOptions,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let columns: &[ColumnDesc] = planned.columns.as_deref().unwrap_or(&[]);
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let types: Vec<DataType> = columns.iter().map(|column| column.ty).collect();
        let writer = RowWriter::new(format_of(options, names)?);
        let options = self.format_options();
        let mut out = CopySink { sink, writer, types, options, line: Vec::new(), begun: false };
        let rows = self.run_planned(planned, &[], false, &mut out)?;
        out.begin()?;
        out.sink.copy_done()?;
        Ok(Step::Done(CommandTag::counted("COPY", rows)))
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
        self.copy = Some(Box::new(CopyIn {
            table,
            columns,
            defaults,
            reader,
            batch,
            rows: 0,
            holds: vec![Value::Null; fields],
            ended: false,
        }));
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
        let tag = CommandTag::counted("COPY", copy.rows);
        if self.script.is_none() {
            // The extended protocol: Sync commits.
            self.finish_statement(sink);
            sink.complete(tag)?;
            return Ok(Executed::Complete);
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
            error.context = Some(format!("COPY {}, line {}", copy.table.name, copy.reader.line()));
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
        self.cancel.end();
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
        let env = Env { row: Row::None, params: &[], facts: &facts };
        let CopyIn { table, columns, defaults, reader, batch, rows, holds, ended } = copy;
        if *ended {
            return Ok(());
        }
        let mut each = |fields: &crate::copy::CopyRow<'_>| -> Result<()> {
            add_row(session, table, columns, defaults, &env, holds, fields, batch)?;
            *rows += 1;
            Ok(())
        };
        match data {
            Some(data) => reader.feed(data, &mut each)?,
            None => {
                reader.finish(&mut each)?;
                if !batch.is_empty() {
                    session.insert_batch(table, batch)?;
                }
                *ended = true;
            }
        }
        Ok(())
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of one copy")]
fn add_row(
    session: &millpond_engine::session::Session,
    table: &TableDef,
    columns: &[usize],
    defaults: &[Expr],
    env: &Env<'_>,
    holds: &mut [Value],
    fields: &crate::copy::CopyRow<'_>,
    batch: &mut RowBatch,
) -> Result<()> {
    let bad = |message: String| SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message);
    if fields.len() < columns.len() {
        let missing = &table.columns[columns[fields.len()]].name;
        return Err(bad(format!("missing data for column \"{missing}\"")));
    }
    if fields.len() > columns.len() {
        return Err(bad("extra data after last expected column".to_owned()));
    }
    let mut computed: smallvec::SmallVec<[(usize, crate::expr::Val<'_>); 4]> = Default::default();
    let mut row = crate::exec::Datums::new();
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
    Ok(())
}

fn not_copying() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "there is no COPY in progress")
}

/// Writes rows as lines.
struct CopySink<'a> {
    sink: &'a mut dyn RowSink,
    writer: RowWriter,
    types: Vec<DataType>,
    options: FormatOptions,
    line: Vec<u8>,
    /// The client knows that data comes: not before the first row, so that a plan can still be made again.
    begun: bool,
}

impl CopySink<'_> {
    fn begin(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.sink.copy_out(count(self.types.len()))?;
        self.line.clear();
        self.writer.header(&mut self.line);
        if self.line.is_empty() { Ok(()) } else { self.sink.copy_data(&self.line) }
    }
}

impl RowSink for CopySink<'_> {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.begin()?;
        self.line.clear();
        self.writer.row(&self.types, row, &self.options, &mut self.line);
        self.sink.copy_data(&self.line)
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {}
}
