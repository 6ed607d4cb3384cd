//! The extended protocol: portals, batches that end with Sync. (Parse is in prepared.rs.)

use std::collections::VecDeque;
use std::sync::Arc;

use super::prepared::{Body, Portal, PortalState, Prepared};
use super::script::Item;
use super::statement::Step;
use super::transaction::{Block, in_failed_transaction};
use super::{Connection, Executed, Params, Pending};
use crate::convert::is_would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::ParamTypes;
use crate::memory::Tuplestore;
use crate::plan::Planned;
use crate::sink::{ColumnDesc, CommandTag, RowSink};
use crate::{Datum, Value};

impl Connection {
    /// Binds parameters: one value for each of [`Prepared::params`], of that type or NULL.
    pub fn bind(&mut self, prepared: &Arc<Prepared>, params: Params) -> Result<Portal> {
        if params.len() != prepared.params().len() {
            self.fail();
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"\" requires {}",
                    params.len(),
                    prepared.params().len()
                ),
            ));
        }
        Ok(Portal {
            prepared: Arc::clone(prepared),
            params,
            state: PortalState::Ready,
            reads: None,
        })
    }

    /// Runs a portal for at most `max_rows` rows (0: all). On [`Executed::WouldBlock`] call it
    /// again where waiting is allowed. The sink's `columns` is not called.
    pub fn execute_portal(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.pending.is_some() {
            // A COMMIT that would have blocked.
            let executed = self.settle(sink)?;
            if executed == Executed::Complete {
                portal.state = PortalState::Done;
            }
            return Ok(executed);
        }
        match portal.state {
            PortalState::Holding { .. } => return self.go_on_giving(portal, max_rows, sink),
            PortalState::Done => return done_again(portal, sink),
            PortalState::Ready => {
                let prepared = &portal.prepared;
                if let Err(error) = self.begin_statement(&prepared.sql, prepared.number) {
                    return Err(self.statement_failed(error, sink));
                }
            }
            // It has begun: a request to cancel it that came in between is not forgotten.
            PortalState::Blocked => portal.state = PortalState::Ready,
        }
        let prepared = Arc::clone(&portal.prepared);
        let result = match &prepared.body {
            Body::Empty => {
                sink.empty()?;
                self.finish_statement(sink);
                portal.state = PortalState::Done;
                return Ok(Executed::Complete);
            }
            Body::Planned(slot) => {
                if self.block == Block::Failed {
                    Err(in_failed_transaction())
                } else {
                    self.execute_planned(&prepared, slot, portal, max_rows, sink)
                }
            }
            Body::Utility(statement) => {
                let item = Item::Parsed(Arc::clone(statement));
                self.step(&item, &prepared.sql, false, sink)
            }
        };
        self.executed(result, portal, max_rows, sink)
    }

    /// What has come of running a portal's statement.
    fn executed(
        &mut self,
        result: Result<Step>,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        let step = match result {
            Ok(step) => step,
            Err(error) if is_would_block(&error) => Step::WouldBlock,
            Err(error) => return Err(self.statement_failed(error, sink)),
        };
        match step {
            Step::Done(tag) => {
                let PortalState::Holding { tag: held, .. } = &mut portal.state else {
                    portal.state = PortalState::Done;
                    return self.portal_ended(Some(tag), sink);
                };
                *held = tag;
                match give_held(portal, max_rows, sink) {
                    Ok(tag) => self.portal_ended(tag, sink),
                    Err(error) => Err(self.statement_failed(error, sink)),
                }
            }
            Step::Ended => {
                let executed = self.settle(sink)?;
                self.finish_statement(sink);
                portal.state = PortalState::Done;
                Ok(executed)
            }
            Step::WouldBlock => {
                sink.discard();
                portal.state = PortalState::Blocked;
                Ok(Executed::WouldBlock)
            }
            Step::CopyIn(format) => Ok(Executed::CopyIn(format)),
        }
    }

    pub(super) fn execute_planned(
        &mut self,
        prepared: &Prepared,
        slot: &parking_lot::Mutex<Arc<Planned>>,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let mut tries = 0;
        // Kept while the plan runs: to count one more pointer to it would write to memory that is
        // shared with other connections. An embedder may have given the statement to two of them:
        // one does not wait for the other here, where no deadlock would be found.
        let mut kept = slot.try_lock();
        let mut own = None;
        let planned = match kept.as_deref_mut() {
            Some(planned) => planned,
            None => own.insert(self.plan_again(prepared)?),
        };
        loop {
            if planned.generation != self.session.catalog_generation()
                || planned.passing
                || planned.zone.is_some_and(|zone| zone != self.settings.format_options().zone)
                || tries > 0
            {
                *planned = self.plan_again(prepared)?;
            }
            let result = if max_rows == 0 {
                let result = self.planned(planned, &portal.params, false, sink);
                let may_outlast = self.block == Block::Explicit && planned.columns.is_some();
                if may_outlast && matches!(result, Ok(Step::Done(_))) {
                    portal.reads = self.in_use.note(planned);
                }
                result
            } else {
                let mut kept = Keep(Tuplestore::new(&self.resources, "Portal"));
                let mut result = self.planned(planned, &portal.params, false, &mut kept);
                if planned.columns.is_some() && result.is_ok() {
                    portal.reads = self.in_use.note(planned);
                    match kept.0.into_rows() {
                        Ok(rows) => {
                            let tag = CommandTag::plain(planned.verb());
                            portal.state = PortalState::Holding { rows, tag };
                        }
                        Err(error) => result = Err(error),
                    }
                }
                result
            };
            match result {
                Err(error) if self.plans_again(&error, &mut tries)? => sink.discard(),
                other => return other,
            }
        }
    }

    /// Plans a prepared statement for the catalog as it is now.
    fn plan_again(&mut self, prepared: &Prepared) -> Result<Arc<Planned>> {
        let mut parsed = self.parse(&prepared.sql)?;
        if parsed.len() != 1 {
            return Err(SqlError::internal("a prepared statement has changed"));
        }
        let types = prepared.params().iter().copied().map(Some).collect();
        let types = ParamTypes::Declared(types);
        let planned = self.plan(&parsed.remove(0), &prepared.sql, types)?;
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
        Ok(Arc::new(planned))
    }

    /// The statement of a portal has ended well, with its tag unless the portal has more rows.
    /// Outside of a pipeline its implicit transaction ends with it.
    pub(super) fn portal_ended(
        &mut self,
        tag: Option<CommandTag>,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.block == Block::Implicit && !self.pipelined {
            self.pending = Some(Pending { suspended: tag.is_none(), ..Pending::commit(tag) });
            let executed = self.settle(sink)?;
            if let Executed::Complete | Executed::Suspended = executed {
                self.finish_statement(sink);
            }
            return Ok(executed);
        }
        self.finish_statement(sink);
        let Some(tag) = tag else { return Ok(Executed::Suspended) };
        sink.complete(tag)?;
        Ok(Executed::Complete)
    }

    /// Gives rows that an earlier call has computed.
    fn go_on_giving(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.block == Block::Failed {
            return Err(in_failed_transaction());
        }
        let given = self.cancel.check_end().and_then(|()| give_held(portal, max_rows, sink));
        match given {
            Ok(None) => Ok(Executed::Suspended),
            Ok(Some(tag)) => {
                sink.complete(tag)?;
                Ok(Executed::Complete)
            }
            Err(error) => Err(self.statement_failed(error, sink)),
        }
    }

    /// Has an implicit transaction commit next.
    pub(super) fn end_pipeline(&mut self) {
        if self.block == Block::Implicit && self.pending.is_none() {
            self.pending = Some(Pending::commit(None));
        }
    }

    /// Ends a batch of the extended protocol: an implicit transaction commits. See
    /// [`Connection::set_pipelined`].
    pub fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        if self.block == Block::Implicit
            && let Err(error) = self.cancel.check_end()
        {
            return Err(self.statement_failed(error, sink));
        }
        self.end_pipeline();
        let executed = self.settle(sink)?;
        if self.settings.has_reports() {
            self.finish_statement(sink);
        } else if self.block == Block::Idle {
            // An implicit transaction has ended.
            self.show_state();
        }
        Ok(executed)
    }
}

/// Keeps rows.
#[derive(Debug, Default)]
pub(super) struct Collect {
    pub(super) rows: VecDeque<Vec<Value>>,
}

impl RowSink for Collect {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows.push_back(row.iter().map(Datum::to_value).collect());
        Ok(())
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        self.rows.clear();
    }
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

/// Gives at most `max_rows` (0: all) of the rows that a portal holds; its tag when those were the
/// last.
fn give_held(
    portal: &mut Portal,
    max_rows: u64,
    sink: &mut dyn RowSink,
) -> Result<Option<CommandTag>> {
    let PortalState::Holding { rows, tag } = &mut portal.state else {
        return Err(SqlError::internal("a portal holds no rows"));
    };
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
    portal.state = PortalState::Done;
    Ok(Some(tag))
}

/// A portal that has run to its end has no rows left; it is not run again.
fn done_again(portal: &Portal, sink: &mut dyn RowSink) -> Result<Executed> {
    if let Body::Empty = portal.prepared.body {
        sink.empty()?;
        return Ok(Executed::Complete);
    }
    if portal.prepared.columns().is_none() {
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the portal has been run to completion and cannot be run again",
        ));
    }
    sink.complete(CommandTag::counted("SELECT", 0))?;
    Ok(Executed::Complete)
}
