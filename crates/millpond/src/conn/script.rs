//! The simple protocol: a text of statements, run one after the other, able to stop and go on at
//! any of them.

use std::sync::Arc;

use super::session::Block;
use super::statement::{Item, Step};
use super::texts::Known;
use super::transaction::Pending;
use super::{Connection, Executed};
use crate::shared_plans::Compiled;
use millpond_query::convert::{STALE, is_would_block};
use millpond_query::error::{Result, SqlError};
use millpond_query::parse::Statement;
use millpond_query::plan::Planned;
use millpond_query::sink::{CommandTag, RowSink};
use millpond_types::format::FormatOptions;

/// A text in execution.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) sql: Arc<str>,
    items: Vec<Item>,
    at: usize,
}

/// How the fast path went.
enum Fast {
    /// It is not for this text.
    Miss,
    Done(Executed),
    /// It knows the text's parse, and has run nothing.
    Parsed(Statement),
}

impl Connection {
    /// Runs a text of any number of statements, as the simple protocol does: without an explicit
    /// transaction, all of them are one.
    pub fn simple_query(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        self.end_script();
        if let Err(error) = self.session.begin_statement(sql, 0) {
            return Err(self.statement_failed(error, sink));
        }
        let items = match self.fast(sql, sink) {
            Ok(Fast::Done(executed)) => {
                if executed == Executed::Complete {
                    self.session.finish_statement(sink);
                }
                return Ok(executed);
            }
            Ok(Fast::Parsed(statement)) => vec![Item::Parsed(Arc::new(statement))],
            Ok(Fast::Miss) => match self.session.parse(sql) {
                Ok(parsed) => {
                    self.session.warn_of_escapes(sink);
                    parsed.into_iter().map(|statement| Item::Parsed(Arc::new(statement))).collect()
                }
                Err(error) => return Err(self.statement_failed(error, sink)),
            },
            Err(error) => return Err(self.statement_failed(error, sink)),
        };
        if items.is_empty() {
            sink.empty()?;
            self.end_pipeline();
            return match self.settle(sink)? {
                Executed::Complete => self.run_script(sink),
                other => Ok(other),
            };
        }
        self.session.in_script = items.len() > 1;
        self.script = Some(Script { sql: sql.into(), items, at: 0 });
        self.run_script(sink)
    }

    /// Carries on where [`Executed::WouldBlock`] was the answer, whatever the call was. For
    /// `execute_portal` call that one again instead; this is for `simple_query`, `sync` and
    /// `finish_commit`.
    pub fn resume(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        if self.committing.is_some() {
            return self.finish_commit(sink);
        }
        match self.settle(sink) {
            Ok(Executed::Complete) => self.run_script(sink),
            other => other,
        }
    }

    /// Carries on after [`Executed::CommitPending`].
    pub fn finish_commit(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        if let Some(ticket) = self.committing {
            match self.session.engine.finish_commit(ticket) {
                Ok(()) => {
                    self.committing = None;
                    self.session.ended(true);
                }
                Err(error) => {
                    let error = SqlError::from(error);
                    if is_would_block(&error) {
                        return Ok(Executed::WouldBlock);
                    }
                    self.committing = None;
                    // Whatever has become of it, the transaction is over.
                    self.session.engine.abort();
                    self.session.ended(false);
                    return Err(self.statement_failed(error, sink));
                }
            }
        }
        match self.settle(sink) {
            Ok(Executed::Complete) => self.run_script(sink),
            other => other,
        }
    }

    /// Runs what is left of the text.
    pub(super) fn run_script(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        while let Some(script) = &self.script {
            let Some(item) = script.items.get(script.at).cloned() else { break };
            let sql = Arc::clone(&script.sql);
            sink.formats(self.session.settings.format_options());
            match self.step(&item, &sql, true, sink) {
                Ok(Step::Done(tag)) => {
                    if let Some(executed) = self.statement_done(tag, sink)? {
                        return Ok(executed);
                    }
                }
                Ok(Step::Ended) => {
                    self.advance_script();
                    match self.settle(sink)? {
                        Executed::Complete => {}
                        other => return Ok(other),
                    }
                }
                Ok(Step::WouldBlock) => {
                    sink.discard();
                    return Ok(Executed::WouldBlock);
                }
                Ok(Step::CopyIn(format)) => return Ok(Executed::CopyIn(format)),
                Err(error) => return Err(self.statement_failed(error, sink)),
            }
        }
        self.end_script();
        self.session.finish_statement(sink);
        Ok(Executed::Complete)
    }

    /// Nothing is left to do of the text.
    pub(super) fn end_script(&mut self) {
        self.script = None;
        self.session.in_script = false;
    }

    /// Goes on to the next statement. `true`: there is none.
    fn advance_script(&mut self) -> bool {
        let Some(script) = &mut self.script else { return true };
        script.at += 1;
        script.at >= script.items.len()
    }

    /// A statement of the text has ended well: the last one's implicit transaction commits before
    /// its tag goes out.
    pub(super) fn statement_done(
        &mut self,
        tag: CommandTag,
        sink: &mut dyn RowSink,
    ) -> Result<Option<Executed>> {
        let is_last = self.advance_script();
        if self.session.block == Block::Implicit && is_last {
            self.pending = Some(Pending::commit(Some(tag)));
            return match self.settle(sink)? {
                Executed::Complete => Ok(None),
                other => Ok(Some(other)),
            };
        }
        sink.complete(tag)?;
        Ok(None)
    }

    /// Tries a text through the lexer and its cache.
    fn fast(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Fast> {
        // Behind the lexer, strings are standard.
        let is_fit =
            self.session.block != Block::Failed && self.session.settings.standard_strings();
        if !is_fit || !self.texts.scan(sql) {
            return Ok(Fast::Miss);
        }
        match self.texts.known(&self.session, sql) {
            Known::Lasting(at, text) => {
                let result = self.run_compiled(&text.compiled, sql, sink);
                self.texts.put_back(at, text, &self.session);
                result
            }
            Known::Passing(compiled) => self.run_compiled(&compiled, sql, sink),
            Known::Nothing => Ok(Fast::Miss),
        }
    }

    /// Runs what the text was compiled to, unless that takes the whole of `simple_query`.
    #[inline]
    fn run_compiled(
        &mut self,
        compiled: &Compiled,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<Fast> {
        match compiled {
            Compiled::Plan(planned) => self.run_fast(planned, sql, sink),
            // A copy: one more pointer to it would write to memory that connections share.
            Compiled::Statement(statement) => Ok(Fast::Parsed(statement.clone())),
            Compiled::Nothing => Ok(Fast::Miss),
        }
    }

    /// Runs a plan with the literals of a text.
    fn run_fast(
        &mut self,
        planned: &Arc<Planned>,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<Fast> {
        self.session.need_transaction()?;
        let session = &self.session;
        let options =
            || FormatOptions { now: Some(session.now), ..*session.settings.format_options() };
        let params = self.texts.literal_values(sql, &planned.params, options)?;
        let renewed;
        let suits = self.session.suits(planned, &params);
        let planned = match &suits {
            Ok(false) => {
                renewed = self.texts.renew(&self.session, sql, &params);
                renewed.as_ref().unwrap_or(planned)
            }
            Ok(true) | Err(_) => planned,
        };
        let result = match suits {
            Ok(_) => self.session.run_planned(planned, &params, true, sink),
            // It would have to wait for a page.
            Err(error) => Err(error),
        };
        match result {
            Ok(rows) => {
                let tag = CommandTag::counted(planned.verb(), rows);
                if self.session.block != Block::Implicit {
                    sink.complete(tag)?;
                    return Ok(Fast::Done(Executed::Complete));
                }
                self.pending = Some(Pending::commit(Some(tag)));
                self.settle(sink).map(Fast::Done)
            }
            Err(error) if is_would_block(&error) => {
                sink.discard();
                let items = vec![Item::Planned(Arc::clone(planned), params)];
                self.script = Some(Script { sql: sql.into(), items, at: 0 });
                Ok(Fast::Done(Executed::WouldBlock))
            }
            Err(error) if error.sqlstate == STALE => {
                sink.discard();
                Ok(Fast::Miss)
            }
            Err(mut error) => {
                // Positions of a plan's errors would be those of another text.
                error.position = None;
                Err(error)
            }
        }
    }
}
