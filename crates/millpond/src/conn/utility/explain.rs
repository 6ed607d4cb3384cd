//! EXPLAIN.

use std::time::Instant;

use millpond_engine::catalog::TableDef;

use crate::conn::session::SqlSession;
use crate::conn::types::Collect;
use crate::{DataType, Datum};
use millpond_query::error::{Result, SqlError};
use millpond_query::exec::planned_workers;
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::Statement;
use millpond_query::plan::{Planned, explain as shape};
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};

/// The columns that EXPLAIN returns.
pub(in crate::conn) fn explain_columns() -> [ColumnDesc; 1] {
    [ColumnDesc::computed("QUERY PLAN", DataType::Text)]
}

pub(super) fn explain(
    session: &mut SqlSession,
    analyze: bool,
    statement: &Statement,
    sql: &str,
    columns: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    if !matches!(
        statement,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    ) {
        return Err(SqlError::unsupported("EXPLAIN of such a statement"));
    }
    session.need_transaction()?;
    let mut tries = 0;
    let lines = loop {
        let planned = session.plan(statement, sql, ParamTypes::Declared(Vec::new()))?;
        match lines_of(session, &planned, analyze) {
            Err(error) if session.plans_again(&error, &mut tries)? => {}
            other => break other?,
        }
    };
    if columns {
        sink.columns(&explain_columns())?;
    }
    for line in &lines {
        sink.row(&[Datum::Text(line)])?;
    }
    Ok(CommandTag::plain("EXPLAIN"))
}

fn lines_of(session: &mut SqlSession, planned: &Planned, analyze: bool) -> Result<Vec<String>> {
    let workers =
        |table: &TableDef| planned_workers(&session.engine, table, &session.settings).unwrap_or(0);
    let mut lines = shape::lines(planned, &workers);
    if analyze {
        session.need_wait()?;
        let mut rows = Collect::default();
        let start = Instant::now();
        let count = session.run_planned(planned, &[], false, &mut rows)?;
        let millis = start.elapsed().as_secs_f64() * 1e3;
        if let Some(first) = lines.first_mut() {
            first.push_str(&format!(" (actual rows={count} time={millis:.3} ms)"));
        }
        lines.push(format!("Execution Time: {millis:.3} ms"));
    }
    Ok(lines)
}
