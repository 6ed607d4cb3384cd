//! A query with the clauses around its body: WITH, ORDER BY, LIMIT, FOR UPDATE.

use sqlparser::ast::{self, Spanned};
use sqlparser::tokenizer::Span;

use super::level::{Clause, Level};
use super::namespace::Visible;
use super::tree::{Body, Query};
use super::{Analyzer, lock};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, beyond};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::Source;
use crate::sink::ColumnDesc;
use crate::{DataType, Value};

/// The clauses around a body, also those outside of parentheses around it.
#[derive(Default)]
pub(super) struct Clauses<'q> {
    pub(super) order_by: Option<&'q ast::OrderBy>,
    limit: Option<&'q ast::Expr>,
    offset: Option<&'q ast::Expr>,
    fetch: Option<&'q ast::Fetch>,
    pub(super) locks: Vec<&'q ast::LockClause>,
}

/// A query's result: its columns, of which a literal may not have a type yet.
pub(super) struct Typing {
    pub(super) query: Query,
    /// What the query's own expressions can name.
    pub(super) visible: Vec<Visible>,
    /// Whether each column is a literal whose type is up to the query around it.
    pub(super) unknown: Vec<bool>,
}

impl Analyzer<'_> {
    /// Analyzes a query in the scope of another one.
    pub(super) fn query(
        &self,
        query: &ast::Query,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Query> {
        self.typing(query, outer, true, binder).map(|typing| typing.query)
    }

    /// The same; unless `settle`, literals without a type are left to the query around it.
    pub(super) fn typing(
        &self,
        query: &ast::Query,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        self.deeper(|| {
            let visible = self.ctes.borrow().len();
            let typing = self.with_clauses(query, outer, settle, binder);
            self.ctes.borrow_mut().truncate(visible);
            typing
        })
    }

    fn with_clauses(
        &self,
        query: &ast::Query,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let mut clauses = Clauses::default();
        let mut ctes = Vec::new();
        let mut has_with = false;
        let mut inner = query;
        let body = loop {
            check(inner)?;
            if let Some(with) = &inner.with {
                if std::mem::replace(&mut has_with, true) {
                    return Err(multiple("WITH"));
                }
                ctes = self.with(with, outer, binder)?;
            }
            clauses.add(inner, &self.source)?;
            match inner.body.as_ref() {
                ast::SetExpr::Query(parenthesized) => inner = parenthesized,
                body => break body,
            }
        };
        let mut typing = self.body(body, &clauses, outer, settle, binder)?;
        let query = &mut typing.query;
        query.ctes = ctes;
        // Their expressions see the queries around only through subqueries, which see all.
        let level = Level::new(self, outer, &[]);
        level.visible.replace(std::mem::take(&mut typing.visible));
        let row_count = |e, clause, binder: &mut Binder<'_>| {
            level.within(clause, || row_count(&level, e, clause, binder))
        };
        query.offset = clauses.offset.map(|e| row_count(e, Clause::Offset, binder)).transpose()?;
        query.limit = clauses.limit.map(|e| row_count(e, Clause::Limit, binder)).transpose()?;
        if let Some(fetch) = clauses.fetch {
            query.limit = Some(match &fetch.quantity {
                Some(e) => row_count(e, Clause::Limit, binder)?,
                None => Expr::Const(Value::Int8(1)),
            });
            query.with_ties = fetch.with_ties;
            if fetch.with_ties && clauses.order_by.is_none() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "WITH TIES cannot be specified without ORDER BY clause",
                ));
            }
        }
        if !clauses.locks.is_empty() {
            let skips = clauses
                .locks
                .iter()
                .any(|clause| matches!(clause.nonblock, Some(ast::NonBlock::SkipLocked)));
            if query.with_ties && skips {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "SKIP LOCKED and WITH TIES options cannot be used together",
                ));
            }
            lock::add(query, &clauses.locks, &self.source)?;
        }
        Ok(typing)
    }

    fn body(
        &self,
        body: &ast::SetExpr,
        clauses: &Clauses<'_>,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        match body {
            ast::SetExpr::Select(select) => self.select(select, clauses, outer, settle, binder),
            ast::SetExpr::Values(values) => self.values(values, clauses, outer, settle, binder),
            ast::SetExpr::SetOperation { .. } => {
                self.set_operation(body, clauses, outer, settle, binder)
            }
            ast::SetExpr::Table(table) => self.table_command(table, clauses, outer, settle, binder),
            ast::SetExpr::Query(query) => self.typing(query, outer, settle, binder),
            ast::SetExpr::Insert(_)
            | ast::SetExpr::Update(_)
            | ast::SetExpr::Delete(_)
            | ast::SetExpr::Merge(_) => Err(beyond("WITH that changes rows")),
        }
    }
}

impl<'q> Clauses<'q> {
    fn add(&mut self, query: &'q ast::Query, source: &Source<'_>) -> Result<()> {
        if let Some(order_by) = &query.order_by
            && let Some(outer) = self.order_by.replace(order_by)
        {
            return Err(source.place(multiple("ORDER BY"), outer.span()));
        }
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset { limit: rows, offset: skipped, limit_by })
                if limit_by.is_empty() =>
            {
                limit = rows.as_ref();
                offset = skipped.as_ref().map(|offset| &offset.value);
            }
            Some(_) => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "LIMIT #,# syntax is not supported",
                )
                .hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        let fetch = query.fetch.as_ref();
        if let Some(offset) = offset
            && let Some(outer) = self.offset.replace(offset)
        {
            return Err(source.place(multiple("OFFSET"), outer.span()));
        }
        if limit.is_some() || fetch.is_some() {
            let twice = limit.is_some() && fetch.is_some();
            if self.limit.is_some() || self.fetch.is_some() || twice {
                let outer = self.limit.or(self.fetch.and_then(|fetch| fetch.quantity.as_ref()));
                let span = outer.map_or_else(Span::empty, Spanned::span);
                return Err(source.place(multiple("LIMIT"), span));
            }
            (self.limit, self.fetch) = (limit, fetch);
        }
        if fetch.is_some_and(|fetch| fetch.percent) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "syntax error at or near \"PERCENT\"",
            ));
        }
        self.locks.extend(&query.locks);
        Ok(())
    }
}

/// A query whose columns all have a type.
pub(super) fn plain(body: Body, columns: Vec<ColumnDesc>) -> Query {
    Query {
        ctes: Vec::new(),
        body,
        order_by: Vec::new(),
        limit: None,
        offset: None,
        with_ties: false,
        locks: Vec::new(),
        columns,
    }
}

fn multiple(what: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("multiple {what} clauses not allowed"))
}

/// Refuses clauses that PostgreSQL does not have. All are named, so that a new one is seen here.
fn check(query: &ast::Query) -> Result<()> {
    let ast::Query {
        with: _,
        body: _,
        order_by: _,
        limit_clause: _,
        fetch: _,
        locks: _,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if for_clause.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || !pipe_operators.is_empty()
    {
        return Err(beyond("this clause of a query"));
    }
    Ok(())
}

/// A number of rows, which no row has a say in.
fn row_count(
    level: &Level<'_>,
    e: &ast::Expr,
    clause: Clause,
    binder: &mut Binder<'_>,
) -> Result<Expr> {
    let what = if clause == Clause::Offset { "OFFSET" } else { "LIMIT" };
    let typed = binder.bind(e, level)?;
    if let Some(reference) = level.collected.borrow().references.first() {
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {what} must not contain variables"),
        );
        return Err(binder.source.place(error, reference.span));
    }
    if let Ty::Known(own) = typed.ty
        && !is_assignable(own, DataType::Int8)
    {
        let error = SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("argument of {what} must be type bigint, not type {own}"),
        );
        return Err(binder.place_at(error, e));
    }
    binder
        .coerce(typed, DataType::Int8, Coercion::Assignment)
        .map_err(|error| binder.place_literal(error, &[e]))
}
