//! The simple protocol: a text of statements, run one after the other, able to stop and go on at
//! any of them.

use std::sync::Arc;

use super::compile::Known;
use super::shared::Compiled;
use super::statement::Step;
use super::transaction::{Block, Ended};
use super::{Connection, Executed, Params, Pending};
use crate::convert::{STALE, is_would_block};
use crate::error::Result;
use crate::expr::types::NUMERIC;
use crate::lex::{self, LiteralKind};
use crate::parse::Statement;
use crate::plan::Planned;
use crate::sink::{CommandTag, RowSink};
use crate::types::{FormatOptions, text};
use crate::{SqlError, Value};

/// A text in execution.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) sql: Arc<str>,
    items: Vec<Item>,
    at: usize,
}

/// One statement of a text.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Parsed(Arc<Statement>),
    /// Found behind the lexer, with its literals.
    Planned(Arc<Planned>, Params),
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
        self.script = None;
        if let Err(error) = self.begin_statement(sql, 0) {
            return Err(self.statement_failed(error, sink));
        }
        let items = match self.fast(sql, sink) {
            Ok(Fast::Done(executed)) => {
                if executed == Executed::Complete {
                    self.finish_statement(sink);
                }
                return Ok(executed);
            }
            Ok(Fast::Parsed(statement)) => vec![Item::Parsed(Arc::new(statement))],
            Ok(Fast::Miss) => match self.parse(sql) {
                Ok(parsed) => {
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
            match self.session.finish_commit(ticket) {
                Ok(()) => {
                    self.committing = None;
                    self.ended(true);
                }
                Err(error) => {
                    let error = SqlError::from(error);
                    if is_would_block(&error) {
                        return Ok(Executed::WouldBlock);
                    }
                    self.committing = None;
                    // Whatever has become of it, the transaction is over.
                    self.session.abort();
                    self.ended(false);
                    return Err(self.statement_failed(error, sink));
                }
            }
        }
        match self.settle(sink) {
            Ok(Executed::Complete) => self.run_script(sink),
            other => other,
        }
    }

    /// Ends the transaction if that is due, and says what is due when it has ended.
    pub(super) fn settle(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let Some(pending) = self.pending else { return Ok(Executed::Complete) };
        if pending.commit {
            match self.commit_now() {
                Ok(Ended::Done) => {}
                Ok(Ended::WouldBlock) => return Ok(Executed::WouldBlock),
                Ok(Ended::Pending(ticket)) => {
                    self.pending = Some(Pending { commit: false, ..pending });
                    return Ok(Executed::CommitPending(ticket));
                }
                Err(error) => return Err(self.statement_failed(error, sink)),
            }
        }
        self.pending = None;
        if let Some(options) = pending.chain {
            self.hand_on_settings();
            self.session.begin(options)?;
            self.began = millpond_engine::types::current_timestamp();
            self.transaction_began(Block::Explicit);
        }
        if let Some(tag) = pending.tag
            && let Err(error) = sink.complete(tag)
        {
            return Err(self.statement_failed(error, sink));
        }
        Ok(if pending.suspended { Executed::Suspended } else { Executed::Complete })
    }

    /// Runs what is left of the text.
    pub(super) fn run_script(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        while let Some(script) = &self.script {
            let Some(item) = script.items.get(script.at).cloned() else { break };
            let last = script.at + 1 == script.items.len();
            let sql = Arc::clone(&script.sql);
            sink.formats(self.settings.format_options());
            match self.step(&item, &sql, true, sink) {
                Ok(Step::Done(tag)) => {
                    if let Some(executed) = self.statement_done(tag, last, sink)? {
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
        self.script = None;
        self.finish_statement(sink);
        Ok(Executed::Complete)
    }

    fn advance_script(&mut self) {
        if let Some(script) = &mut self.script {
            script.at += 1;
        }
    }

    /// A statement of the text has ended well: the last one's implicit transaction commits before
    /// its tag goes out.
    pub(super) fn statement_done(
        &mut self,
        tag: CommandTag,
        last: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Option<Executed>> {
        self.advance_script();
        if self.block == Block::Implicit && last {
            self.pending = Some(Pending::commit(Some(tag)));
            return match self.settle(sink)? {
                Executed::Complete => Ok(None),
                other => Ok(Some(other)),
            };
        }
        sink.complete(tag)?;
        Ok(None)
    }

    /// Whether the statement that is running is one of several of a text.
    pub(super) fn is_part_of_script(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.items.len() > 1)
    }

    /// Whether the statement that is running is the last of its text.
    pub(super) fn is_last_of_script(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.at + 1 >= script.items.len())
    }

    /// Tries a text through the lexer and its cache.
    fn fast(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Fast> {
        if self.block == Block::Failed
            || lex::scan(sql, &mut self.key, &mut self.literals).is_none()
        {
            return Ok(Fast::Miss);
        }
        let generation = self.session.catalog_generation();
        let (at, text) = match self.cache.take(&self.key) {
            Some((at, text)) if text.generation == generation => (at, text),
            _ => {
                let text = match self.known_or_compiled(sql, generation) {
                    Known::Lasting(text) => text,
                    Known::Passing(compiled) => return self.run_compiled(&compiled, sql, sink),
                };
                self.cache.put(text);
                match self.cache.take(&self.key) {
                    Some(taken) => taken,
                    None => return Ok(Fast::Miss),
                }
            }
        };
        let result = self.run_compiled(&text.compiled, sql, sink);
        self.cache.put_back(at, text);
        result
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
        let params = self.literal_values(sql)?;
        self.need_transaction()?;
        match self.run_planned(planned, &params, true, sink) {
            Ok(rows) => {
                let tag = CommandTag::counted(planned.verb(), rows);
                if self.block != Block::Implicit {
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

    /// The lifted literals as values.
    fn literal_values(&self, sql: &str) -> Result<Params> {
        let mut values = Params::with_capacity(self.literals.len());
        for literal in &self.literals {
            values.push(match literal.kind {
                LiteralKind::Int4(int) => Value::Int4(int),
                LiteralKind::Int8(int) => Value::Int8(int),
                LiteralKind::Numeric => {
                    text::parse(NUMERIC, literal.text(sql), &FormatOptions::default())?
                }
                LiteralKind::String(false) => Value::Text(literal.text(sql).to_owned()),
                LiteralKind::String(true) => Value::Text(literal.text(sql).replace("''", "'")),
            });
        }
        Ok(values)
    }

    /// Forgets plans (DISCARD).
    pub(super) fn forget_plans(&mut self) {
        self.cache.clear();
    }
}
