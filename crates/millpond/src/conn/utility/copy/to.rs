//! COPY TO STDOUT, of a table's columns or of a query.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::{count, format_of};
use crate::conn::session::SqlSession;
use crate::copy::RowWriter;
use crate::{DataType, Datum};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::expr::Expr;
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::{CopyOptions, Statement};
use millpond_query::plan::{Access, Output, Plan, Planned, Results, SelectPlan, describe};
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};
use millpond_types::format::FormatOptions;

/// The plan of some columns of all rows.
fn whole(table: Arc<TableDef>, columns: &[usize]) -> Planned {
    let described: Vec<ColumnDesc> =
        columns.iter().map(|column| describe(&table, *column)).collect();
    let exprs = columns.iter().map(|column| Expr::Column(*column)).collect();
    let plan = SelectPlan {
        table: Some(table),
        access: Access::Heap,
        filter: None,
        condition: None,
        first_only: false,
        results: Results {
            aggregates: None,
            output: Output::new(exprs, described.clone()),
            limit: None,
            offset: None,
        },
        lock: None,
    };
    Planned::once(Plan::Select(plan), described.into())
}

pub(super) fn copy_table(
    session: &mut SqlSession,
    table: Arc<TableDef>,
    columns: &[usize],
    options: &CopyOptions,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    copy_out(session, &whole(Arc::clone(&table), columns), Some(&table), options, sink)
}

pub(super) fn copy_query(
    session: &mut SqlSession,
    statement: &Statement,
    sql: &str,
    options: &CopyOptions,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let mut tries = 0;
    loop {
        let planned = session.plan(statement, sql, ParamTypes::None)?;
        if planned.columns.is_none() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "COPY query must have a RETURNING clause",
            ));
        }
        match copy_out(session, &planned, None, options, sink) {
            Err(error) if session.plans_again(&error, &mut tries)? => {}
            other => return other,
        }
    }
}

fn copy_out(
    session: &mut SqlSession,
    planned: &Planned,
    table: Option<&TableDef>,
    options: &CopyOptions,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let columns: &[ColumnDesc] = planned.columns.as_deref().unwrap_or(&[]);
    let names = columns.iter().map(|column| column.name.to_string()).collect();
    let types: Vec<DataType> = columns.iter().map(|column| column.ty).collect();
    let writer = RowWriter::new(format_of(options, names, table)?);
    let options = *session.settings.format_options();
    let mut out = CopySink { sink, writer, types, options, line: Vec::new(), begun: false };
    let rows = session.run_planned(planned, &[], false, &mut out)?;
    out.begin()?;
    out.sink.copy_done()?;
    Ok(CommandTag::counted("COPY", rows))
}

/// Writes rows as lines.
struct CopySink<'a> {
    sink: &'a mut dyn RowSink,
    writer: RowWriter,
    types: Vec<DataType>,
    options: FormatOptions,
    line: Vec<u8>,
    /// The client knows that data comes: not before the first row, so that a plan can still be made
    /// again.
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
