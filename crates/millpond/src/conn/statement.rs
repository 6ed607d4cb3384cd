//! One statement: which kind it is, and what running it takes.

use std::sync::Arc;

use super::session::Block;
use super::transaction::in_failed_transaction;
use super::types::Given;
use super::utility::copy::Copied;
use super::{Connection, Params, utility};
use crate::DataType;
use millpond_query::convert::{STALE, is_would_block, unsuited};
use millpond_query::error::{Result, SqlError};
use millpond_query::parse::Statement;
use millpond_query::plan::Planned;
use millpond_query::sink::{CommandTag, CopyFormat, RowSink};

/// A statement that is to run.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Parsed(Arc<Statement>),
    /// Of a portal, with its parameters and their types.
    Bound(Arc<Statement>, Arc<[DataType]>, Params),
    /// Found behind the lexer, with its literals.
    Planned(Arc<Planned>, Params),
}

/// How far a statement got.
pub(super) enum Step {
    /// It has ended well.
    Done(CommandTag),
    /// It has ended the transaction, or is about to: see `pending`.
    Ended,
    /// Nothing has happened.
    WouldBlock,
    /// The client is to send rows.
    CopyIn(CopyFormat),
}

impl Connection {
    /// Runs one statement. `columns`: the sink wants to know the columns.
    pub(super) fn step(
        &mut self,
        item: &Item,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        let result = match item {
            Item::Parsed(statement) => {
                self.statement(statement, &Given::default(), sql, columns, sink)
            }
            Item::Bound(statement, types, values) => {
                self.statement(statement, &Given { types, values }, sql, columns, sink)
            }
            Item::Planned(planned, params) => match self.session.suits(planned, params) {
                Ok(true) => self.session.planned(planned, params, columns, sink).map(Step::Done),
                Ok(false) => Err(unsuited()),
                Err(error) => Err(error),
            },
        };
        match result {
            Err(error) if is_would_block(&error) => Ok(Step::WouldBlock),
            Err(error) if error.sqlstate == STALE && matches!(item, Item::Planned(..)) => {
                // The definition has changed since the text was found behind the lexer, or other
                // values were expected: parse it.
                sink.discard();
                let parsed = self.session.parse(sql)?;
                match parsed.into_iter().next() {
                    Some(statement) => {
                        let item = Item::Parsed(Arc::new(statement));
                        self.step(&item, sql, columns, sink)
                    }
                    None => Err(SqlError::internal("a text without statements")),
                }
            }
            other => other,
        }
    }

    /// Runs a parsed statement.
    fn statement(
        &mut self,
        statement: &Statement,
        given: &Given<'_>,
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<Step> {
        use Statement as S;
        let session = &mut self.session;
        if session.block == Block::Failed
            && !matches!(statement, S::Commit { .. } | S::Rollback { .. })
        {
            return Err(in_failed_transaction());
        }
        Ok(Step::Done(match statement {
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) => {
                session.plan_and_run(statement, sql, columns, sink)?
            }
            S::Commit { chain } => {
                self.pending = Some(session.commit_statement(*chain, sink)?);
                return Ok(Step::Ended);
            }
            S::Rollback { chain } => {
                self.pending = Some(session.rollback_statement(*chain, sink)?);
                return Ok(Step::Ended);
            }
            S::Discard { all } => self.discard(*all)?,
            S::Copy(copy) => match utility::copy::copy(session, copy, sql, sink)? {
                Copied::Out(tag) => tag,
                Copied::In(copy) => {
                    let format = copy.format();
                    self.copy = Some(copy);
                    return Ok(Step::CopyIn(format));
                }
            },
            S::Prepare(prepare) => self.prepared.prepare_named(session, prepare, sql)?,
            S::Execute { name, args } => {
                self.prepared.execute_named(session, name, args, sql, columns, sink)?
            }
            S::Explain(explain) => match &explain.statement {
                S::Execute { name, args } => self.prepared.explain_named(
                    session,
                    explain,
                    (name, args),
                    sql,
                    columns,
                    sink,
                )?,
                _ => utility::explain::explain(session, explain, given, sql, columns, sink)?,
            },
            S::Deallocate(which) => self.prepared.deallocate(session, which)?,
            _ => utility::run(session, statement, sql, columns, sink)?,
        }))
    }

    /// DISCARD.
    fn discard(&mut self, all: bool) -> Result<CommandTag> {
        self.texts.clear();
        if !all {
            return Ok(CommandTag::plain("DISCARD PLANS"));
        }
        let session = &mut self.session;
        session.check_alone("DISCARD ALL")?;
        self.prepared.clear_named(session);
        session.engine.locks().release_all();
        session.settings.reset_all();
        session.settings.end_transaction(true);
        Ok(CommandTag::plain("DISCARD ALL"))
    }
}
