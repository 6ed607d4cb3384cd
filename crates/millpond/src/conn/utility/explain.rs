//! EXPLAIN.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_engine::catalog::TableDef;

use crate::conn::session::SqlSession;
use crate::conn::types::{Collect, Given};
use crate::{DataType, Datum, Value};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::exec::planned_workers;
use millpond_query::expr::bind::ParamTypes;
use millpond_query::parse::{Creates, Explain, Statement};
use millpond_query::plan::{Planned, explain as shape};
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};

/// The columns that EXPLAIN returns.
pub(in crate::conn) fn explain_columns() -> [ColumnDesc; 1] {
    [ColumnDesc::computed("QUERY PLAN", DataType::Text)]
}

/// EXPLAIN of a statement that is planned now.
pub(in crate::conn) fn explain(
    session: &mut SqlSession,
    explain: &Explain,
    given: &Given<'_>,
    sql: &str,
    columns: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let statement = &explain.statement;
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_) => {}
        Statement::Unsupported(what) => return Err(SqlError::unsupported(what)),
        _ => return Err(SqlError::unsupported("EXPLAIN of such a statement")),
    }
    let plan = |session: &SqlSession| {
        let types = match given.types {
            [] => ParamTypes::None,
            types => ParamTypes::Declared(types.iter().copied().map(Some).collect()),
        };
        session.plan_for(statement, sql, types, Some(given.values)).map(Arc::new)
    };
    explain_plan(session, explain, &plan, given.values, columns, sink)
}

/// EXPLAIN of what `plan` makes.
pub(in crate::conn) fn explain_plan(
    session: &mut SqlSession,
    explain: &Explain,
    plan: &dyn Fn(&SqlSession) -> Result<Arc<Planned>>,
    params: &[Value],
    columns: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    session.need_transaction()?;
    let mut tries = 0;
    let lines = loop {
        let start = Instant::now();
        let planned = plan(session)?;
        let planning = start.elapsed();
        if let Some(creates) = &explain.creates
            && exists(session, creates, sink)?
        {
            break Vec::new();
        }
        if explain.analyze && explain.creates.is_some() {
            return Err(SqlError::unsupported("CREATE TABLE AS"));
        }
        match lines_of(session, &planned, (explain, planning), params) {
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

/// Whether there is a relation of that name already.
fn exists(session: &SqlSession, creates: &Creates, sink: &mut dyn RowSink) -> Result<bool> {
    let name = &creates.name.name;
    if session.catalog().relation(name).is_none() {
        return Ok(false);
    }
    if !creates.if_not_exists {
        let message = format!("relation \"{name}\" already exists");
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    let message = format!("relation \"{name}\" already exists, skipping");
    sink.notice(&SqlError::notice(SqlState::DUPLICATE_TABLE, message));
    Ok(true)
}

fn lines_of(
    session: &mut SqlSession,
    planned: &Planned,
    (explain, planning): (&Explain, Duration),
    params: &[Value],
) -> Result<Vec<String>> {
    let workers =
        |table: &TableDef| planned_workers(&session.engine, table, &session.settings).unwrap_or(0);
    let mut lines = shape::lines(planned, &workers, session.settings.text("accelerator"));
    if explain.summary {
        lines.push(format!("Planning Time: {:.3} ms", millis(planning)));
    }
    if explain.analyze {
        session.need_wait()?;
        let mut rows = Collect::default();
        let start = Instant::now();
        let count = session.run_planned(planned, params, false, &mut rows)?;
        let execution = millis(start.elapsed());
        if let Some(first) = lines.first_mut() {
            first.push_str(&format!(" (actual rows={count} time={execution:.3} ms)"));
        }
        if explain.summary {
            lines.push(format!("Execution Time: {execution:.3} ms"));
        }
    }
    Ok(lines)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
