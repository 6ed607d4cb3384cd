//! SQL's own prepared statements: PREPARE, EXECUTE, DEALLOCATE.

use std::sync::Arc;

use millpond_syntax::tree;

use super::portal::{Portal, plan_again};
use super::prepared::{Body, Prepared, PreparedStatements};
use super::session::SqlSession;
use super::types::Params;
use super::utility::explain::explain_plan;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::expr::bind::{Binder, Coercion, NoColumns, ParamTypes};
use millpond_query::expr::{Env, Row};
use millpond_query::parse::{Explain, Prepare, Source, Which, data_type};
use millpond_query::query::PreparedInfo;
use millpond_query::sink::{CommandTag, RowSink};

impl PreparedStatements {
    /// PREPARE.
    pub(super) fn prepare_named(
        &mut self,
        session: &mut SqlSession,
        prepare: &Prepare,
        sql: &str,
    ) -> Result<CommandTag> {
        let Prepare { name, types, location, length } = prepare;
        if self.named.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let source = Source::new(sql);
        let types = types.iter().map(|ty| {
            let found = data_type(ty).map(Some);
            found.map_err(|error| source.place(error, ty.location))
        });
        let types = types.collect::<Result<Vec<_>>>()?;
        let text = source.piece(*location, *length);
        let prepared = self.prepare(session, text, &types).map_err(|mut error| {
            // The place is one of the piece.
            let before = source.position(*location) - 1;
            error.position = error.position.map(|position| before + position);
            error
        })?;
        session.named.push(PreparedInfo {
            name: name.clone(),
            statement: sql.to_owned(),
            began: session.activity.began,
            params: prepared.params().to_vec(),
            executions: 0,
        });
        self.named.insert(name.clone(), prepared);
        Ok(CommandTag::plain("PREPARE"))
    }

    /// EXECUTE.
    pub(super) fn execute_named(
        &self,
        session: &mut SqlSession,
        name: &str,
        args: &[tree::Expr],
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let (prepared, params) = self.called(session, name, args, sql)?;
        match &prepared.body {
            Body::Planned(slot) => {
                let described = match prepared.columns() {
                    Some(found) if columns => sink.columns(found),
                    _ => Ok(()),
                };
                described?;
                let mut portal = Portal::new(Arc::clone(&prepared), params);
                let tag = portal.run(session, &prepared, slot, 0, sink)?;
                count_execution(session, name);
                Ok(tag)
            }
            _ => Err(SqlError::unsupported("EXECUTE of such a statement")),
        }
    }

    /// The statement that EXECUTE names, and the values of its parameters.
    fn called(
        &self,
        session: &SqlSession,
        name: &str,
        args: &[tree::Expr],
        sql: &str,
    ) -> Result<(Arc<Prepared>, Params)> {
        let prepared = Arc::clone(self.find(name)?);
        if args.len() != prepared.params().len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!(
                "Expected {} parameters but got {}.",
                prepared.params().len(),
                args.len()
            )));
        }
        let mut params = Params::new();
        let mut binder = Binder::new(Source::new(sql), ParamTypes::None);
        let facts = session.facts();
        let env = Env { row: Row::None, params: &[], facts: &facts, subplans: None };
        for (arg, ty) in args.iter().zip(prepared.params()) {
            let expr = binder.bind_as(arg, *ty, Coercion::Assignment, &NoColumns)?;
            params.push(expr.eval(&env)?.into_value());
        }
        Ok((prepared, params))
    }

    /// EXPLAIN EXECUTE.
    pub(super) fn explain_named(
        &self,
        session: &mut SqlSession,
        explain: &Explain,
        (name, args): (&str, &[tree::Expr]),
        sql: &str,
        columns: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let (prepared, params) = self.called(session, name, args, sql)?;
        let plan = |session: &SqlSession| plan_again(session, &prepared, &params);
        let tag = explain_plan(session, explain, &plan, &params, columns, sink)?;
        count_execution(session, name);
        Ok(tag)
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(
        &mut self,
        session: &mut SqlSession,
        which: &Which,
    ) -> Result<CommandTag> {
        match which {
            Which::All => {
                self.clear_named(session);
                Ok(CommandTag::plain("DEALLOCATE ALL"))
            }
            Which::Named(name) => {
                self.find(name)?;
                self.named.remove(name);
                session.named.retain(|named| named.name != *name);
                Ok(CommandTag::plain("DEALLOCATE"))
            }
        }
    }
}

fn count_execution(session: &mut SqlSession, name: &str) {
    if let Some(named) = session.named.iter_mut().find(|named| named.name == name) {
        named.executions += 1;
    }
}
