//! Planning of SELECT.

use std::sync::Arc;

use sqlparser::ast;

use super::access::{Choice, Lookup};
use super::from::OnlyTable;
use super::order::{extreme_key, wanted_order};
use super::scope::{FromScope, FromTable};
use super::{
    Access, Aggregate, OnConflict, Output, Plan, Planner, Results, RowLock, SelectPlan, SortKey,
    access, aggregate,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoColumns, Scope, beyond};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::{ident, row_lock_name, row_lock_of};
use crate::sink::ColumnDesc;
use crate::{DataType, Value};

/// Adding up a whole table of at least this many rows is left to the query engine.
pub(super) const LARGE_TABLE_ROWS: i64 = 2_000;

impl Planner<'_> {
    /// Plans a query of at most one table without groups; 0A000 for any other.
    pub(super) fn select(&self, query: &ast::Query, binder: &mut Binder<'_>) -> Result<Plan> {
        check_query(query)?;
        let plain = query.order_by.is_none() && query.locks.is_empty();
        match query.body.as_ref() {
            ast::SetExpr::Select(select) => {
                check_clauses(select)?;
                let from = self.from(&select.from)?;
                Ok(Plan::Select(match from {
                    None => self.without_table(query, select, binder)?,
                    Some(one) => self.one_table(query, select, &one, binder)?,
                }))
            }
            ast::SetExpr::Query(inner)
                if plain && query.limit_clause.is_none() && query.fetch.is_none() =>
            {
                self.select(inner, binder)
            }
            ast::SetExpr::Values(values) if values.rows.len() == 1 && plain => {
                self.values(query, &values.rows[0].content, binder).map(Plan::Select)
            }
            ast::SetExpr::SetOperation { op, .. } => Err(beyond(&op.to_string())),
            ast::SetExpr::Values(_) => Err(beyond("VALUES as a query")),
            _ => Err(beyond("this form of query")),
        }
    }

    fn one_table(
        &self,
        query: &ast::Query,
        select: &ast::Select,
        from: &OnlyTable,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        let table = Arc::clone(&from.table);
        let tables = [FromTable::only(&table, &from.alias)];
        let scope = FromScope(&tables);
        let condition = self.where_clause(select.selection.as_ref(), binder, &scope)?;
        let (results, sort) = self.results(query, select, &scope, binder)?;
        let extreme = results.aggregates.as_ref().and_then(|list| extreme_key(&table, list));
        let lookup = Lookup::only(&table);
        let wanted = wanted_order(
            &lookup,
            self.indexes,
            extreme.as_ref().unwrap_or(&sort),
            condition.as_ref(),
        );
        let Choice { access, filter, is_ordered, .. } =
            access::choose(&lookup, self.indexes, condition.as_ref(), wanted.as_ref());
        if !sort.is_empty() && !is_ordered && !matches!(access, Access::Point { .. }) {
            return Err(beyond("an order that no index has"));
        }
        if self.external.is_some()
            && query.locks.is_empty()
            && matches!(access, Access::Heap)
            && results.aggregates.is_some()
            && self.indexes.live_rows(&table) >= LARGE_TABLE_ROWS
        {
            return Err(beyond("a scan of a large table"));
        }
        let first_only = extreme.is_some() && is_ordered;
        let table = Some(table);
        Ok(SelectPlan { table, access, filter, condition, first_only, results, lock: None })
    }

    /// The select list and LIMIT over the tables of FROM, and the keys of ORDER BY.
    pub(super) fn results(
        &self,
        query: &ast::Query,
        select: &ast::Select,
        scope: &FromScope<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<(Results, Vec<SortKey>)> {
        let order_by = query.order_by.as_ref();
        let (aggregates, sort, output) = match self.aggregates(select, binder, scope)? {
            Some(_) if order_by.is_some() => return Err(beyond("ORDER BY with aggregates")),
            Some((aggregates, output)) => (Some(aggregates), Vec::new(), output),
            None => {
                let sort = self.sort_keys(order_by, &select.projection, binder, scope)?;
                (None, sort, Output::of_list(&select.projection, Some(scope), binder)?)
            }
        };
        let (limit, offset) = limits(query, binder)?;
        Ok((Results { aggregates, output, limit, offset }, sort))
    }

    /// How a query of one table, for which there is a plan, locks its rows. What is wrong with that
    /// no query engine knows better.
    pub(super) fn row_lock(
        &self,
        query: &ast::Query,
        plan: &SelectPlan,
    ) -> Result<Option<RowLock>> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
        match self.from(&select.from)? {
            Some(one) => lock_of(&query.locks, &one.alias, plan.results.aggregates.is_some()),
            None => Ok(None),
        }
    }

    fn without_table(
        &self,
        query: &ast::Query,
        select: &ast::Select,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        if !query.locks.is_empty() || query.order_by.is_some() {
            return Err(beyond("this clause without FROM"));
        }
        let condition = self.where_clause(select.selection.as_ref(), binder, &NoColumns)?;
        let output = Output::of_list(&select.projection, None, binder)?;
        Ok(one_row(output, condition, limits(query, binder)?))
    }

    fn values(
        &self,
        query: &ast::Query,
        row: &[ast::Expr],
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        let mut exprs = Vec::with_capacity(row.len());
        let mut columns = Vec::with_capacity(row.len());
        for (i, e) in row.iter().enumerate() {
            let (expr, ty) = binder.output(e, &NoColumns)?;
            exprs.push(expr);
            columns.push(ColumnDesc::computed(format!("column{}", i + 1), ty));
        }
        Ok(one_row(Output::new(exprs, columns), None, limits(query, binder)?))
    }

    pub(super) fn where_clause(
        &self,
        selection: Option<&ast::Expr>,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Option<Expr>> {
        selection.map(|e| binder.condition(e, "WHERE", scope)).transpose()
    }

    /// The aggregates of a select list that consists of nothing else.
    fn aggregates(
        &self,
        select: &ast::Select,
        binder: &mut Binder<'_>,
        scope: &FromScope<'_>,
    ) -> Result<Option<(Vec<Aggregate>, Output)>> {
        let mut found = Vec::new();
        let mut columns = Vec::new();
        for item in &select.projection {
            let (e, alias) = match item {
                ast::SelectItem::UnnamedExpr(e) => (e, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
                _ if found.is_empty() => return Ok(None),
                _ => return Err(beyond("columns beside aggregates")),
            };
            match aggregate::bind(e, binder, scope)? {
                Some(aggregate) => {
                    let name = alias.unwrap_or_else(|| aggregate.name.to_owned());
                    columns.push(ColumnDesc::computed(name, aggregate.ty));
                    found.push(aggregate);
                }
                None if found.is_empty() => return Ok(None),
                None => return Err(beyond("columns beside aggregates")),
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        let exprs = (0..found.len()).map(Expr::Column).collect();
        Ok(Some((found, Output::new(exprs, columns))))
    }
}

/// A plan that computes its output once, without a table.
fn one_row(
    output: Output,
    condition: Option<Expr>,
    (limit, offset): (Option<Expr>, Option<Expr>),
) -> SelectPlan {
    SelectPlan {
        table: None,
        access: Access::Nothing,
        filter: condition.clone(),
        condition,
        first_only: false,
        results: Results { aggregates: None, output, limit, offset },
        lock: None,
    }
}

/// Refuses clauses around a SELECT that plans have no place for. All are named, so that a new one
/// is seen here.
fn check_query(query: &ast::Query) -> Result<()> {
    let ast::Query {
        with,
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
    if with.is_some() {
        return Err(beyond("WITH"));
    }
    if for_clause.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || !pipe_operators.is_empty()
    {
        return Err(beyond("this clause of a query"));
    }
    Ok(())
}

fn check_clauses(select: &ast::Select) -> Result<()> {
    let grouped = match &select.group_by {
        ast::GroupByExpr::All(_) => true,
        ast::GroupByExpr::Expressions(list, modifiers) => !list.is_empty() || !modifiers.is_empty(),
    };
    let what = if select.distinct.is_some() {
        "DISTINCT"
    } else if select.into.is_some() {
        "SELECT INTO"
    } else if grouped {
        "GROUP BY"
    } else if select.having.is_some() {
        "HAVING"
    } else if !select.named_window.is_empty() {
        "WINDOW"
    } else if select.top.is_some()
        || select.exclude.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || select.select_modifiers.is_some()
        || select.flavor != ast::SelectFlavor::Standard
    {
        "this clause of SELECT"
    } else {
        return Ok(());
    };
    Err(beyond(what))
}

/// LIMIT and OFFSET, or FETCH FIRST.
fn limits(query: &ast::Query, binder: &mut Binder<'_>) -> Result<(Option<Expr>, Option<Expr>)> {
    let (mut limit, mut offset) = (None, None);
    match &query.limit_clause {
        None => {}
        Some(ast::LimitClause::LimitOffset { limit_by, .. }) if !limit_by.is_empty() => {
            return Err(beyond("LIMIT BY"));
        }
        Some(ast::LimitClause::LimitOffset { limit: rows, offset: skipped, .. }) => {
            limit = rows.as_ref().map(|e| row_count(e, "LIMIT", binder)).transpose()?;
            offset = skipped.as_ref().map(|o| row_count(&o.value, "OFFSET", binder)).transpose()?;
        }
        Some(ast::LimitClause::OffsetCommaLimit { .. }) => return Err(beyond("LIMIT #,#")),
    }
    if let Some(fetch) = &query.fetch {
        if fetch.with_ties || fetch.percent {
            return Err(beyond("FETCH FIRST ... WITH TIES"));
        }
        limit = Some(match &fetch.quantity {
            Some(e) => row_count(e, "LIMIT", binder)?,
            None => Expr::Const(Value::Int8(1)),
        });
    }
    Ok((limit, offset))
}

/// A number of rows, which no row has a say in.
fn row_count(e: &ast::Expr, what: &str, binder: &mut Binder<'_>) -> Result<Expr> {
    let typed = binder.bind(e, &NoColumns).map_err(|error| match error.sqlstate {
        SqlState::UNDEFINED_COLUMN => SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("argument of {what} must not contain variables"),
        ),
        _ => error,
    })?;
    if let Ty::Known(ty) = typed.ty
        && !is_assignable(ty, DataType::Int8)
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("argument of {what} must be type bigint, not type {ty}"),
        ));
    }
    binder.coerce(typed, DataType::Int8, Coercion::Assignment)
}

/// `FOR UPDATE` and its kin. Of several clauses the strongest counts, and the one that waits least.
fn lock_of(locks: &[ast::LockClause], alias: &str, aggregated: bool) -> Result<Option<RowLock>> {
    let mut all: Option<RowLock> = None;
    for clause in locks {
        let (strength, of) = row_lock_of(clause);
        let name = row_lock_name(strength);
        if aggregated {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{name} is not allowed with aggregate functions"),
            ));
        }
        if let Some(of) = of {
            check_locked(&of, alias, name)?;
        }
        let conflict = match clause.nonblock {
            None => OnConflict::Wait,
            Some(ast::NonBlock::SkipLocked) => OnConflict::Skip,
            Some(ast::NonBlock::Nowait) => OnConflict::Fail,
        };
        let so_far = all.unwrap_or(RowLock { strength, conflict });
        all = Some(RowLock {
            strength: strength.max(so_far.strength),
            conflict: conflict.max(so_far.conflict),
        });
    }
    Ok(all)
}

/// The only table there is must be the one named behind OF.
fn check_locked(of: &ast::ObjectName, alias: &str, clause: &str) -> Result<()> {
    let [ast::ObjectNamePart::Identifier(named)] = of.0.as_slice() else {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("{clause} must specify unqualified relation names"),
        ));
    };
    let named = ident(named);
    if named == alias {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{named}\" in {clause} clause not found in FROM clause"),
    ))
}
