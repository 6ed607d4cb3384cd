//! Portals: a prepared statement with its parameters, in execution.

use std::sync::Arc;

use parking_lot::Mutex;

use super::in_use::Reads;
use super::prepared::{Body, Prepared};
use super::session::{Block, SqlSession};
use super::types::{Executed, Params};
use crate::{Datum, Value};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::expr::bind::ParamTypes;
use millpond_query::memory::{Rows, Tuplestore};
use millpond_query::plan::Planned;
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};

/// A prepared statement with its parameters, ready to run or in the middle of it.
#[derive(Debug)]
pub struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Params,
    pub(super) state: PortalState,
    /// What it reads, once it has been executed.
    reads: Option<Reads>,
    /// What its tag says. Not asked of the plan at the end: another connection may hold that.
    verb: &'static str,
}

#[derive(Debug)]
pub(super) enum PortalState {
    Ready,
    /// It has begun, and is to be repeated where it may wait.
    Blocked,
    /// Rows that have been computed but not been asked for yet.
    Holding(Box<Held>),
    Done,
}

/// Rows that a portal has computed, and the tag that comes with the last of them. Few portals hold
/// any, so this is elsewhere: a portal is moved several times until it runs.
#[derive(Debug)]
pub(super) struct Held {
    rows: Rows,
    pub(super) tag: CommandTag,
}

impl Portal {
    #[inline]
    pub(super) fn new(prepared: Arc<Prepared>, params: Params) -> Self {
        Portal { prepared, params, state: PortalState::Ready, reads: None, verb: "SELECT" }
    }

    /// The statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// Runs the plan of its statement, which is kept in `slot`.
    pub(super) fn run(
        &mut self,
        session: &mut SqlSession,
        prepared: &Prepared,
        slot: &Mutex<Arc<Planned>>,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        // Estimates may depend on when the transaction began.
        session.need_transaction()?;
        let mut tries = 0;
        // Kept while the plan runs: to count one more pointer to it would write to memory that is
        // shared with other connections. An embedder may have given the statement to two of them:
        // one does not wait for the other here, where no deadlock would be found.
        let mut kept = slot.try_lock();
        let mut own = None;
        let planned = match kept.as_deref_mut() {
            Some(planned) => planned,
            None => own.insert(plan_again(session, prepared, &self.params)?),
        };
        self.verb = planned.verb();
        loop {
            if planned.generation != session.engine.catalog_generation()
                || planned.passing
                || tries > 0
            {
                *planned = plan_again(session, prepared, &self.params)?;
            }
            if !session.suits(planned, &self.params)? {
                *planned = plan_again(session, prepared, &self.params)?;
            }
            let result = if max_rows == 0 {
                let result = session.planned(planned, &self.params, false, sink);
                let may_outlast = session.block == Block::Explicit && planned.columns.is_some();
                if may_outlast && result.is_ok() {
                    self.reads = session.in_use.note(planned);
                }
                result
            } else {
                let mut kept = Keep(Tuplestore::new(&session.resources, "Portal"));
                let mut result = session.planned(planned, &self.params, false, &mut kept);
                if planned.columns.is_some() && result.is_ok() {
                    self.reads = session.in_use.note(planned);
                    match kept.0.into_rows() {
                        Ok(rows) => {
                            let tag = CommandTag::plain(planned.verb());
                            self.state = PortalState::Holding(Box::new(Held { rows, tag }));
                        }
                        Err(error) => result = Err(error),
                    }
                }
                result
            };
            match result {
                Err(error) if session.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Gives at most `max_rows` (0: all) of the rows that it holds, and the tag with the last.
    pub(super) fn give_held(
        &mut self,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Option<CommandTag>> {
        let PortalState::Holding(held) = &mut self.state else {
            return Err(SqlError::internal("a portal holds no rows"));
        };
        let Held { rows, tag } = &mut **held;
        let mut now = 0;
        while max_rows == 0 || now < max_rows {
            let Some(row) = rows.next()? else { break };
            sink.row(&row)?;
            now += 1;
        }
        // PostgreSQL, too, says "suspended" when exactly as many rows were left as were asked for.
        if max_rows > 0 && now == max_rows {
            return Ok(None);
        }
        let tag = CommandTag::counted(tag.verb(), now);
        self.state = PortalState::Done;
        Ok(Some(tag))
    }

    /// A portal that has run to its end has no rows left; it is not run again.
    pub(super) fn done_again(&self, sink: &mut dyn RowSink) -> Result<Executed> {
        if let Body::Empty = self.prepared.body {
            sink.empty()?;
            return Ok(Executed::Complete);
        }
        if self.prepared.columns().is_none() {
            return Err(SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the portal has been run to completion and cannot be run again",
            ));
        }
        sink.complete(CommandTag::counted(self.verb, 0))?;
        Ok(Executed::Complete)
    }
}

/// Plans a prepared statement for the catalog as it is now, and for values of its parameters.
pub(super) fn plan_again(
    session: &SqlSession,
    prepared: &Prepared,
    values: &[Value],
) -> Result<Arc<Planned>> {
    let mut parsed = session.parse_again(&prepared.sql, prepared.standard_strings)?;
    if parsed.len() != 1 {
        return Err(SqlError::internal("a prepared statement has changed"));
    }
    let types = prepared.params().iter().copied().map(Some).collect();
    let types = ParamTypes::Declared(types);
    let planned = session.plan_for(&parsed.remove(0), &prepared.sql, types, Some(values))?;
    let same = match (&planned.columns, prepared.columns()) {
        (None, None) => true,
        (Some(now), Some(then)) => {
            now.len() == then.len()
                && now.iter().zip(then.iter()).all(|(a, b)| a.ty == b.ty && a.name == b.name)
        }
        _ => false,
    };
    if !same {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cached plan must not change result type",
        ));
    }
    if planned.passing {
        // The statement is planned again where the session may wait for the page.
        session.need_wait()?;
    }
    Ok(Arc::new(planned))
}

/// Keeps the rows of a portal that the client takes in parts.
struct Keep(Tuplestore);

impl RowSink for Keep {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.0.push(row)
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        self.0.clear();
    }
}
