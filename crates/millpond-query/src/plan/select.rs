//! Planning of SELECT.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{
    self, Distinct, Indirection, LimitCount, LockingClause, Node, RangeVar, SelectBody, SelectStmt,
    SimpleSelect,
};

use super::access::{Conjuncts, IndexPart, Lookup, Sides, WantedOrder, conjuncts};
use super::from::OnlyTable;
use super::order::{extreme_key, orders_of_indexes};
use super::range_estimates::Use;
use super::scope::{FromScope, FromTable};
use super::{
    Access, Aggregate, Output, Plan, Planner, Results, RowLock, SelectPlan, SortKey, access,
    aggregate, check_target_count,
};
use crate::DataType;
use crate::analyze::{row_lock, row_lock_name};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoFrom, Scope, beyond};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::Source;
use crate::sink::ColumnDesc;

/// Adding up a whole table of at least this many rows may be left to a second executor.
pub(super) const LARGE_TABLE_ROWS: i64 = 2_000;
/// From how many blocks on several threads may scan a table: what `min_parallel_table_scan_size` is
/// by default.
const SCANNED_TOGETHER_BLOCKS: u32 = 1024;

impl Planner<'_> {
    /// Plans a query of at most one table without groups; 0A000 for any other.
    pub(super) fn select(&self, query: &SelectStmt, binder: &mut Binder<'_>) -> Result<Plan> {
        if query.with_clause.is_some() {
            return Err(beyond("WITH"));
        }
        match &query.body {
            SelectBody::Select(select) => {
                check_clauses(select)?;
                let from = self.from(&select.from_clause)?;
                Ok(Plan::Select(match from {
                    None => self.without_table(query, select, binder)?,
                    Some(one) => self.one_table(query, select, &one, binder)?,
                }))
            }
            SelectBody::Values(rows) => match rows.as_slice() {
                [row] if query.sort_clause.is_empty() && query.locking_clause.is_empty() => {
                    self.values(query, row, binder).map(Plan::Select)
                }
                _ => Err(beyond("VALUES as a query")),
            },
            SelectBody::SetOp { .. } => Err(beyond("a set operation")),
        }
    }

    fn one_table(
        &self,
        query: &SelectStmt,
        select: &SimpleSelect,
        from: &OnlyTable,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        let table = Arc::clone(&from.table);
        let tables = [FromTable::only(&table, &from.alias)];
        let scope = FromScope(&tables);
        let condition = self.where_clause(select.where_clause.as_ref(), binder, &scope)?;
        let (results, sort) = self.results(query, select, &scope, binder)?;
        let extreme = match &results.aggregates {
            Some(list) => extreme_key(&table, list)?,
            None => None,
        };
        let order = extreme.as_ref().unwrap_or(&sort);
        // The first rows of an index are those that are wanted; the table's may come late.
        let is_all = results.limit.is_none() || results.aggregates.is_some();
        let (access, filter, is_ordered) =
            self.access(&table, condition.as_ref(), order, is_all)?;
        if !sort.is_empty() && !is_ordered && !matches!(access, Access::Point { .. }) {
            return Err(beyond("an order that no index has"));
        }
        if query.locking_clause.is_empty()
            && matches!(access, Access::Heap)
            && (self.is_accelerated(&table, &results)
                || self.is_scanned_together(&table, filter.as_ref(), &results)?)
        {
            return Err(beyond("a scan of a large table"));
        }
        let first_only = extreme.is_some() && is_ordered;
        let table = Some(table);
        let filter = filter.map(access::in_order);
        Ok(SelectPlan { table, access, filter, condition, first_only, results, lock: None })
    }

    /// How the rows of the only table are found, what that leaves to be filtered, and whether they
    /// come in the wanted order. `is_all`: all of them are wanted. An error if a plan of nodes may
    /// find them faster.
    pub(super) fn access(
        &self,
        table: &TableDef,
        condition: Option<&Expr>,
        order: &[SortKey],
        is_all: bool,
    ) -> Result<(Access, Option<Expr>, bool)> {
        let lookup = Lookup::only(table);
        let conjuncts: Conjuncts<'_> = conjuncts(condition).iter().collect();
        let given_by = orders_of_indexes(&lookup, self.indexes, order, &conjuncts);
        let wanted = WantedOrder { given_by: &given_by, is_weighed: false };
        let live = || self.indexes.live_rows(table) as f64;
        let known =
            |part: &IndexPart<'_>| self.ranges.known_rows_of_part(table, part, live(), Use::Rows);
        let mut choice = access::choose(&lookup, self.indexes, &conjuncts, wanted, &known);
        if is_all
            && (order.is_empty() || !choice.is_ordered)
            && let Some(range) = choice.range()
            && self.ranges.is_read_whole(table, range, live(), Use::Whole)
        {
            choice = choice.without_index();
        }
        let is_ordered = choice.is_ordered;
        let finds_sides = |place| {
            let Some(sides) = Sides::of(&conjuncts, place) else { return false };
            let choices = sides.choices(&lookup, self.indexes, &known).unwrap_or_default();
            let mut indexes = choices.iter().filter_map(|choice| Some(choice.index()?.oid));
            // One index alone has been looked at.
            indexes.next().is_some_and(|first| indexes.any(|other| other != first))
        };
        if choice.is_contested {
            return Err(beyond("an order that may cost more than a sort"));
        }
        let is_settled = choice.is_point() || is_ordered && !choice.is_whole_index();
        if !is_settled && choice.places_left().any(finds_sides) {
            return Err(beyond("an OR that several indexes serve"));
        }
        let (access, filter) = choice.made();
        Ok((access, filter, is_ordered))
    }

    fn is_accelerated(&self, table: &TableDef, results: &Results) -> bool {
        self.accelerated
            && results.aggregates.is_some()
            && self.indexes.live_rows(table) >= LARGE_TABLE_ROWS
    }

    /// Whether a plan of nodes may have threads that help to scan the table.
    fn is_scanned_together(
        &self,
        table: &TableDef,
        filter: Option<&Expr>,
        results: &Results,
    ) -> Result<bool> {
        let aggregates = results.aggregates.iter().flatten();
        Ok((filter.is_some() || aggregates.into_iter().any(Aggregate::computes))
            && results.limit.is_none()
            && self.indexes.session.block_count(table)? >= SCANNED_TOGETHER_BLOCKS)
    }

    /// The select list and LIMIT over the tables of FROM, and the keys of ORDER BY.
    pub(super) fn results(
        &self,
        query: &SelectStmt,
        select: &SimpleSelect,
        scope: &FromScope<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<(Results, Vec<SortKey>)> {
        let order_by = &query.sort_clause;
        let (aggregates, sort, output) = match self.aggregates(select, binder, scope)? {
            Some(_) if !order_by.is_empty() => return Err(beyond("ORDER BY with aggregates")),
            Some((aggregates, output)) => (Some(aggregates), Vec::new(), output),
            None => {
                let sort = self.sort_keys(order_by, &select.target_list, binder, scope)?;
                (None, sort, Output::of_list(&select.target_list, Some(scope), binder)?)
            }
        };
        let (limit, offset) = limits(query, binder)?;
        Ok((Results { aggregates, output, limit, offset }, sort))
    }

    /// How a query of one table, for which there is a plan, locks its rows.
    pub(super) fn row_lock(
        &self,
        query: &SelectStmt,
        plan: &SelectPlan,
    ) -> Result<Option<RowLock>> {
        let SelectBody::Select(select) = &query.body else { return Ok(None) };
        match self.from(&select.from_clause)? {
            Some(one) => lock_of(
                &query.locking_clause,
                &one.alias,
                plan.results.aggregates.is_some(),
                &self.source,
            ),
            None => Ok(None),
        }
    }

    fn without_table(
        &self,
        query: &SelectStmt,
        select: &SimpleSelect,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        if !query.locking_clause.is_empty() || !query.sort_clause.is_empty() {
            return Err(beyond("this clause without FROM"));
        }
        let condition = self.where_clause(select.where_clause.as_ref(), binder, &NoFrom)?;
        let output = Output::of_list(&select.target_list, None, binder)?;
        Ok(one_row(output, condition, limits(query, binder)?))
    }

    fn values(
        &self,
        query: &SelectStmt,
        row: &[tree::Expr],
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        check_target_count(row.len())?;
        let mut exprs = Vec::with_capacity(row.len());
        let mut columns = Vec::with_capacity(row.len());
        for (i, e) in row.iter().enumerate() {
            let (expr, ty) = binder.output(e, &NoFrom)?;
            exprs.push(expr);
            columns.push(ColumnDesc::computed(format!("column{}", i + 1), ty));
        }
        Ok(one_row(Output::new(exprs, columns), None, limits(query, binder)?))
    }

    pub(super) fn where_clause(
        &self,
        selection: Option<&tree::Expr>,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Option<Expr>> {
        let condition = selection.map(|e| binder.condition(e, "WHERE", scope)).transpose()?;
        condition.map(Expr::without_null_calls).transpose()
    }

    /// The aggregates of a select list that consists of nothing else.
    fn aggregates(
        &self,
        select: &SimpleSelect,
        binder: &mut Binder<'_>,
        scope: &FromScope<'_>,
    ) -> Result<Option<(Vec<Aggregate>, Output)>> {
        check_target_count(select.target_list.len())?;
        let mut found = Vec::new();
        let mut columns = Vec::new();
        for target in &select.target_list {
            let aggregate = match &target.val {
                Some(e) => aggregate::bind(e, binder, scope)?,
                None => None,
            };
            match aggregate {
                Some(aggregate) => {
                    let name = target.name.as_deref().unwrap_or(aggregate.name).to_owned();
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

/// Refuses clauses of a SELECT that plans have no place for.
fn check_clauses(select: &SimpleSelect) -> Result<()> {
    let what = if select.distinct_clause != Distinct::All {
        "DISTINCT"
    } else if select.target_list.iter().any(is_spread) {
        "the columns of a row value"
    } else if select.into_clause.is_some() {
        "SELECT INTO"
    } else if !select.group_clause.is_empty() {
        "GROUP BY"
    } else if select.having_clause.is_some() {
        "HAVING"
    } else if !select.window_clause.is_empty() {
        "WINDOW"
    } else {
        return Ok(());
    };
    Err(beyond(what))
}

/// `(record).*`, which is several columns.
fn is_spread(target: &tree::ResTarget) -> bool {
    let value = target.val.as_ref().map(|e| &e.node);
    matches!(value, Some(Node::AIndirection(_, parts)) if parts.last() == Some(&Indirection::Star))
}

/// LIMIT and OFFSET, or FETCH FIRST.
fn limits(query: &SelectStmt, binder: &mut Binder<'_>) -> Result<(Option<Expr>, Option<Expr>)> {
    let offset = query.limit_offset.as_ref();
    let offset = offset.map(|e| row_count(e, "OFFSET", binder)).transpose()?;
    let limit = match &query.limit_count {
        Some(LimitCount { with_ties: true, .. }) => {
            return Err(beyond("FETCH FIRST ... WITH TIES"));
        }
        Some(LimitCount { count, .. }) => {
            count.as_ref().map(|e| row_count(e, "LIMIT", binder)).transpose()?
        }
        None => None,
    };
    Ok((limit, offset))
}

/// A number of rows, which no row has a say in.
fn row_count(e: &tree::Expr, what: &str, binder: &mut Binder<'_>) -> Result<Expr> {
    let typed = binder.bind(e, &NoFrom).map_err(|error| match error.sqlstate {
        SqlState::UNDEFINED_COLUMN => {
            let mut refused = SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("argument of {what} must not contain variables"),
            );
            refused.position = error.position;
            refused
        }
        _ => error,
    })?;
    if let Ty::Known(ty) = typed.ty
        && !is_assignable(ty, DataType::Int8)
    {
        let what = format!("argument of {what} must be type bigint, not type {ty}");
        return Err(binder.place_at(SqlError::new(SqlState::DATATYPE_MISMATCH, what), e));
    }
    binder
        .coerce(typed, DataType::Int8, Coercion::Assignment)
        .map_err(|error| binder.place_literal(error, &[e]))
}

/// `FOR UPDATE` and the like. Of several clauses the strongest counts, and the one that waits
/// least.
fn lock_of(
    locks: &[LockingClause],
    alias: &str,
    aggregated: bool,
    source: &Source<'_>,
) -> Result<Option<RowLock>> {
    let mut all: Option<RowLock> = None;
    for clause in locks {
        let lock = row_lock(clause);
        let name = row_lock_name(lock.strength);
        if aggregated {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{name} is not allowed with aggregate functions"),
            ));
        }
        for of in &clause.locked_rels {
            check_locked(of, alias, name).map_err(|error| source.place(error, of.location))?;
        }
        let so_far = all.unwrap_or(lock);
        all = Some(RowLock {
            strength: lock.strength.max(so_far.strength),
            conflict: lock.conflict.max(so_far.conflict),
        });
    }
    Ok(all)
}

/// The only table there is must be the one named behind OF.
fn check_locked(of: &RangeVar, alias: &str, clause: &str) -> Result<()> {
    if of.schemaname.is_some() || of.catalogname.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("{clause} must specify unqualified relation names"),
        ));
    }
    if *of.relname == *alias {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{}\" in {clause} clause not found in FROM clause", of.relname),
    ))
}
