//! The extended protocol: statements are prepared, portals run, batches end with Sync.

use std::sync::Arc;

use super::portal::{Portal, PortalState};
use super::prepared::{Body, Prepared};
use super::session::Block;
use super::statement::{Item, Step};
use super::transaction::{Pending, in_failed_transaction};
use super::{Connection, Executed, Params};
use crate::DataType;
use millpond_query::convert::is_would_block;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::sink::{CommandTag, RowSink};

impl Connection {
    /// Prepares one statement, however long planning it takes. Parameters whose type is not given
    /// get it from where they stand.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        if let Some(known) = self.prepared.known(&self.session, sql, param_types) {
            return Ok(known);
        }
        // Planning is work of its own: it has its time, and what stopped the statement before it
        // does not stop it.
        let begun = self.session.begin_statement(sql, 0);
        let prepared = begun.and_then(|()| self.prepared.prepare(&self.session, sql, param_types));
        self.session.end_planning();
        prepared.inspect_err(|_| self.fail())
    }

    /// Binds parameters: one value for each of [`Prepared::params`], of that type or NULL.
    #[inline]
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
        Ok(Portal::new(Arc::clone(prepared), params))
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
            PortalState::Holding(_) => return self.go_on_giving(portal, max_rows, sink),
            PortalState::Done => {
                let done = match self.session.block {
                    Block::Failed => Err(in_failed_transaction()),
                    _ => portal.done_again(sink),
                };
                return done.map_err(|error| self.statement_failed(error, sink));
            }
            PortalState::Ready => {
                let prepared = &portal.prepared;
                if let Err(error) = self.session.begin_statement(&prepared.sql, prepared.number) {
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
                self.session.finish_statement(sink);
                portal.state = PortalState::Done;
                return Ok(Executed::Complete);
            }
            Body::Planned(slot) => {
                if self.session.block == Block::Failed {
                    Err(in_failed_transaction())
                } else {
                    portal.run(&mut self.session, &prepared, slot, max_rows, sink).map(Step::Done)
                }
            }
            Body::Utility(statement) => {
                let types = Arc::clone(&prepared.description.params);
                let item = Item::Bound(Arc::clone(statement), types, portal.params.clone());
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
                let PortalState::Holding(held) = &mut portal.state else {
                    portal.state = PortalState::Done;
                    return self.portal_ended(Some(tag), sink);
                };
                held.tag = tag;
                match portal.give_held(max_rows, sink) {
                    Ok(tag) => self.portal_ended(tag, sink),
                    Err(error) => Err(self.statement_failed(error, sink)),
                }
            }
            Step::Ended => {
                let executed = self.settle(sink)?;
                self.session.finish_statement(sink);
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

    /// The statement of a portal has ended well, with its tag unless the portal has more rows.
    /// Outside of a pipeline its implicit transaction ends with it.
    pub(super) fn portal_ended(
        &mut self,
        tag: Option<CommandTag>,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        if self.session.block == Block::Implicit && !self.pipelined {
            self.pending = Some(Pending { suspended: tag.is_none(), ..Pending::commit(tag) });
            let executed = self.settle(sink)?;
            if let Executed::Complete | Executed::Suspended = executed {
                self.session.finish_statement(sink);
            }
            return Ok(executed);
        }
        self.session.finish_statement(sink);
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
        if self.session.block == Block::Failed {
            return Err(in_failed_transaction());
        }
        let given =
            self.session.cancel().check_end().and_then(|()| portal.give_held(max_rows, sink));
        match given {
            Ok(None) => Ok(Executed::Suspended),
            Ok(Some(tag)) => {
                sink.complete(tag)?;
                Ok(Executed::Complete)
            }
            Err(error) => Err(self.statement_failed(error, sink)),
        }
    }

    /// Ends a batch of the extended protocol: an implicit transaction commits. See
    /// [`Connection::set_pipelined`].
    pub fn sync(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        if self.session.block == Block::Implicit
            && let Err(error) = self.session.cancel().check_end()
        {
            return Err(self.statement_failed(error, sink));
        }
        self.end_pipeline();
        let executed = self.settle(sink)?;
        if self.session.settings.has_reports() {
            self.session.finish_statement(sink);
        } else if self.session.block == Block::Idle {
            // An implicit transaction has ended.
            self.session.show_state();
        }
        Ok(executed)
    }
}
