//! A query with the clauses around its body: WITH, ORDER BY, LIMIT, FOR UPDATE.

use millpond_syntax::tree::{self, LimitCount, SelectBody, SelectStmt};

use super::level::{Clause, Level};
use super::namespace::Visible;
use super::presence::Marked;
use super::tree::{Body, Query};
use super::{Analyzer, lock};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion};
use crate::expr::types::{Ty, is_assignable};
use crate::sink::ColumnDesc;

/// A query's result: its columns, of which a literal may not have a type yet.
pub(super) struct Typing {
    pub(super) query: Query,
    /// What the query's own expressions can name.
    pub(super) visible: Vec<Visible>,
    /// Whether each column is a literal whose type is up to the query around it.
    pub(super) unknown: Vec<bool>,
    /// Its items that get a further column.
    pub(super) marked: Vec<Marked>,
}

impl Analyzer<'_> {
    /// Analyzes a query in the scope of another one.
    pub(super) fn query(
        &self,
        query: &SelectStmt,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Query> {
        self.typing(query, outer, true, binder).map(|typing| typing.query)
    }

    /// The same; unless `settle`, literals without a type are left to the query around it.
    pub(super) fn typing(
        &self,
        query: &SelectStmt,
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
        query: &SelectStmt,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let ctes = match &query.with_clause {
            Some(with) => self.with(with, outer, binder)?,
            None => Vec::new(),
        };
        let written = query;
        let mut typing = self.body(written, outer, settle, binder)?;
        let query = &mut typing.query;
        query.ctes = ctes;
        // Their expressions see the queries around only through subqueries, which see all.
        let level = Level::new(self, outer, &[]);
        level.visible.replace(std::mem::take(&mut typing.visible));
        let row_count = |e, clause, binder: &mut Binder<'_>| {
            level.within(clause, || row_count(&level, e, clause, binder))
        };
        let offset = written.limit_offset.as_ref();
        query.offset = offset.map(|e| row_count(e, Clause::Offset, binder)).transpose()?;
        if let Some(LimitCount { count, with_ties }) = &written.limit_count {
            let count = count.as_ref().map(|e| row_count(e, Clause::Limit, binder));
            (query.limit, query.with_ties) = (count.transpose()?, *with_ties);
        }
        lock::add(query, &written.locking_clause, &self.source)?;
        self.mark_rows(query, &std::mem::take(&mut typing.marked))?;
        Ok(typing)
    }

    fn body(
        &self,
        query: &SelectStmt,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let order_by = &query.sort_clause;
        match &query.body {
            SelectBody::Select(select) => self.select(select, order_by, outer, settle, binder),
            SelectBody::Values(rows) => self.values(rows, order_by, outer, settle, binder),
            SelectBody::SetOp { .. } => self.set_operation(query, outer, settle, binder),
        }
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

/// A number of rows, which no row has a say in.
fn row_count(
    level: &Level<'_>,
    e: &tree::Expr,
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
        return Err(binder.source.place(error, reference.at));
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
