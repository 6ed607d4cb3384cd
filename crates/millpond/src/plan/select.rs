//! Planning of SELECT.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::table::{Direction, LockStrength};
use sqlparser::ast;

use super::scope::{TableScope, find_table};
use super::{Access, Aggregate, Ordered, Output, Planner, SelectPlan, SortKey, access, aggregate};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoColumns, Scope, missing_from};
use crate::expr::types::Ty;
use crate::parse::{Name, ident};
use crate::sink::ColumnDesc;

fn beyond(what: &str) -> SqlError {
    SqlError::unsupported(what)
}

impl Planner<'_> {
    /// Plans a query of at most one table; 0A000 for what takes a query engine.
    pub(super) fn select(&self, query: &ast::Query, binder: &mut Binder<'_>) -> Result<SelectPlan> {
        let ast::Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
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
        let select = match body.as_ref() {
            ast::SetExpr::Select(select) => select,
            ast::SetExpr::Query(inner)
                if order_by.is_none() && limit_clause.is_none() && locks.is_empty() =>
            {
                return self.select(inner, binder);
            }
            ast::SetExpr::Values(values) if values.rows.len() == 1 && order_by.is_none() => {
                return self.values(&values.rows[0].content, limit_clause.as_ref(), binder);
            }
            ast::SetExpr::SetOperation { op, .. } => return Err(beyond(&op.to_string())),
            ast::SetExpr::Values(_) => return Err(beyond("VALUES as a query")),
            _ => return Err(beyond("this form of query")),
        };
        check_clauses(select)?;
        let Some((table, alias)) = self.from(&select.from)? else {
            return self.without_table(
                select,
                order_by.as_ref(),
                limit_clause.as_ref(),
                fetch.as_ref(),
                !locks.is_empty(),
                binder,
            );
        };
        let scope = TableScope { table: &table, alias: &alias };
        let condition = match &select.selection {
            Some(e) => Some(binder.condition(e, "WHERE", &scope)?),
            None => None,
        };
        let aggregates = self.aggregates(select, binder, &scope)?;
        let (output, sort) = match &aggregates {
            Some((_, output)) if order_by.is_none() => (Some(output), Vec::new()),
            Some(_) => return Err(beyond("ORDER BY with aggregates")),
            None => (None, self.sort_keys(order_by.as_ref(), &select.projection, binder, &scope)?),
        };
        let output = match output {
            Some(_) => None,
            None => Some(output_of(&select.projection, &table, binder, &scope)?),
        };
        let extreme = aggregates.as_ref().and_then(|(list, _)| extreme_key(&table, list));
        let wanted =
            wanted_order(&table, extreme.as_ref().map_or(&sort, |key| key), condition.as_ref());
        let (access, filter, ordered) = access::choose(&table, condition.as_ref(), wanted.as_ref());
        let first_only = extreme.is_some() && ordered;
        let sort =
            if ordered || matches!(access, Access::Point { .. }) { Vec::new() } else { sort };
        let (limit, offset) = limits(limit_clause.as_ref(), fetch.as_ref(), binder)?;
        let lock = lock_of(locks, &alias, aggregates.is_some())?;
        if self.external.is_some() && lock.is_none() && matches!(access, Access::Heap) {
            // A whole table to be sorted or added up is the query engine's trade.
            let small = table.stats.live_rows() < 2_000;
            if (aggregates.is_some() || !sort.is_empty()) && !small {
                return Err(beyond("a scan of a large table"));
            }
        }
        let (aggregates, output) = match (aggregates, output) {
            (Some((aggregates, output)), _) => (Some(aggregates), output),
            (None, Some(output)) => (None, output),
            (None, None) => return Err(SqlError::internal("a query without output")),
        };
        Ok(SelectPlan {
            table: Some(table),
            access,
            filter,
            condition,
            aggregates,
            first_only,
            output,
            sort,
            limit,
            offset,
            lock,
        })
    }

    /// The one table of a FROM clause with its alias; `None` without a clause.
    fn from(&self, from: &[ast::TableWithJoins]) -> Result<Option<(Arc<TableDef>, String)>> {
        match from {
            [] => Ok(None),
            [one] if one.joins.is_empty() => self.table_factor(&one.relation).map(Some),
            _ => Err(beyond("a join")),
        }
    }

    /// A plain table with its alias.
    pub(super) fn table_factor(
        &self,
        factor: &ast::TableFactor,
    ) -> Result<(Arc<TableDef>, String)> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = factor
        else {
            return Err(beyond("this form of FROM"));
        };
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(beyond("this form of FROM"));
        }
        let name = Name::from_ast(name, &self.source)?;
        let table = find_table(self.catalog, &name)?;
        let alias = match alias {
            Some(alias) if alias.columns.is_empty() => ident(&alias.name),
            Some(_) => return Err(beyond("column aliases")),
            None => table.name.clone(),
        };
        Ok((table, alias))
    }

    fn values(
        &self,
        row: &[ast::Expr],
        limit: Option<&ast::LimitClause>,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        let mut exprs = Vec::with_capacity(row.len());
        let mut columns = Vec::with_capacity(row.len());
        for (i, e) in row.iter().enumerate() {
            let (expr, ty) = binder.output(e, &NoColumns)?;
            exprs.push(expr);
            columns.push(ColumnDesc::computed(format!("column{}", i + 1), ty));
        }
        let (limit, offset) = limits(limit, None, binder)?;
        Ok(nothing(Output::new(exprs, columns), None, limit, offset))
    }

    fn without_table(
        &self,
        select: &ast::Select,
        order_by: Option<&ast::OrderBy>,
        limit_clause: Option<&ast::LimitClause>,
        fetch: Option<&ast::Fetch>,
        locked: bool,
        binder: &mut Binder<'_>,
    ) -> Result<SelectPlan> {
        if locked || order_by.is_some() {
            return Err(beyond("this clause without FROM"));
        }
        let condition = match &select.selection {
            Some(e) => Some(binder.condition(e, "WHERE", &NoColumns)?),
            None => None,
        };
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for item in &select.projection {
            let (e, alias) = match item {
                ast::SelectItem::UnnamedExpr(e) => (e, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
                ast::SelectItem::Wildcard(_) => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                    ));
                }
                ast::SelectItem::QualifiedWildcard(..) => return Err(missing_from("*")),
                other => return Err(beyond(&format!("the select item {other}"))),
            };
            let (expr, ty) = binder.output(e, &NoColumns)?;
            exprs.push(expr);
            columns.push(ColumnDesc::computed(alias.unwrap_or_else(|| column_name(e)), ty));
        }
        let (limit, offset) = limits(limit_clause, fetch, binder)?;
        Ok(nothing(Output::new(exprs, columns), condition, limit, offset))
    }

    /// The aggregates of a select list that consists of nothing else.
    fn aggregates(
        &self,
        select: &ast::Select,
        binder: &mut Binder<'_>,
        scope: &TableScope<'_>,
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

    fn sort_keys(
        &self,
        order_by: Option<&ast::OrderBy>,
        projection: &[ast::SelectItem],
        binder: &mut Binder<'_>,
        scope: &TableScope<'_>,
    ) -> Result<Vec<SortKey>> {
        let Some(order_by) = order_by else { return Ok(Vec::new()) };
        let ast::OrderByKind::Expressions(list) = &order_by.kind else {
            return Err(beyond("ORDER BY ALL"));
        };
        let mut keys = Vec::with_capacity(list.len());
        for item in list {
            if item.with_fill.is_some() {
                return Err(beyond("WITH FILL"));
            }
            let expr = self.sort_expression(&item.expr, projection, binder, scope)?;
            let descending = item.options.asc == Some(false);
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            // A constant orders nothing.
            if !matches!(expr, Expr::Const(_)) {
                keys.push(SortKey { expr, descending, nulls_first });
            }
        }
        Ok(keys)
    }

    /// A sort key: a number is an item's place, a name first an item's alias, all else an expression over the table.
    fn sort_expression(
        &self,
        e: &ast::Expr,
        projection: &[ast::SelectItem],
        binder: &mut Binder<'_>,
        scope: &TableScope<'_>,
    ) -> Result<Expr> {
        match e {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(_) if binder.is_lifted() => {
                    return Err(beyond("a literal in ORDER BY"));
                }
                ast::Value::Number(number, _) => {
                    let out = || {
                        let error = SqlError::new(
                            SqlState::INVALID_COLUMN_REFERENCE,
                            format!("ORDER BY position {number} is not in select list"),
                        );
                        self.source.place(error, value.span)
                    };
                    let place: usize = number.parse().map_err(|_| out())?;
                    return nth_item(projection, place, scope.table, binder, scope)
                        .transpose()
                        .unwrap_or_else(|| Err(out()));
                }
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "non-integer constant in ORDER BY",
                    ));
                }
            },
            ast::Expr::Identifier(name) => {
                let name = ident(name);
                for item in projection {
                    if let ast::SelectItem::ExprWithAlias { expr, alias } = item
                        && ident(alias) == name
                    {
                        return Ok(binder.output(expr, scope)?.0);
                    }
                }
            }
            _ => {}
        }
        Ok(binder.output(e, scope)?.0)
    }
}

/// The expression of the n-th output column, counted from 1, with stars spread out.
fn nth_item(
    projection: &[ast::SelectItem],
    place: usize,
    table: &TableDef,
    binder: &mut Binder<'_>,
    scope: &TableScope<'_>,
) -> Result<Option<Expr>> {
    let mut at = 1;
    for item in projection {
        match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                if place >= at && place < at + table.columns.len() {
                    return Ok(Some(Expr::Column(place - at)));
                }
                at += table.columns.len();
            }
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => {
                if at == place {
                    return Ok(Some(binder.output(e, scope)?.0));
                }
                at += 1;
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn nothing(
    output: Output,
    condition: Option<Expr>,
    limit: Option<Expr>,
    offset: Option<Expr>,
) -> SelectPlan {
    SelectPlan {
        table: None,
        access: Access::Nothing,
        filter: condition.clone(),
        condition,
        aggregates: None,
        first_only: false,
        output,
        sort: Vec::new(),
        limit,
        offset,
        lock: None,
    }
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

/// What to order by so that the first row has the only value asked for: `min` or `max` of a column without NULLs.
fn extreme_key(table: &TableDef, aggregates: &[Aggregate]) -> Option<Vec<SortKey>> {
    let [one] = aggregates else { return None };
    let (column, descending) = one.extreme_of_column()?;
    table.columns.get(column).filter(|def| def.not_null)?;
    Some(vec![SortKey { expr: Expr::Column(column), descending, nulls_first: descending }])
}

/// The index whose order serves the sort keys: they are its leading columns, all one way. Columns that the
/// condition makes equal to one value order nothing, in the index as among the keys.
fn wanted_order(table: &TableDef, sort: &[SortKey], condition: Option<&Expr>) -> Option<Ordered> {
    if sort.is_empty() {
        return None;
    }
    let fixed = access::fixed_columns(condition);
    let is_fixed = |expr: &Expr| matches!(expr, Expr::Column(column) if fixed.contains(column));
    let keys: Vec<&SortKey> = sort.iter().filter(|key| !is_fixed(&key.expr)).collect();
    table.indexes.iter().find_map(|index| {
        let mut direction = None;
        let mut columns = index.columns.iter().filter(|column| !fixed.contains(&column.column));
        for key in &keys {
            let Some(column) = columns.next() else {
                // Beyond a whole unique key nothing is left to order.
                if index.unique && no_nulls(table, index) {
                    break;
                }
                return None;
            };
            if key.expr != Expr::Column(column.column) {
                return None;
            }
            let same = key.descending == column.order.descending;
            let nullable = !table.columns[column.column].not_null;
            if nullable && (key.nulls_first == column.order.nulls_first) != same {
                return None;
            }
            let way = if same { Direction::Forward } else { Direction::Backward };
            if *direction.get_or_insert(way) != way {
                return None;
            }
        }
        direction.map(|direction| Ordered { index: Arc::clone(index), direction })
    })
}

fn no_nulls(table: &TableDef, index: &millpond_engine::catalog::IndexDef) -> bool {
    index.columns.iter().all(|column| table.columns[column.column].not_null)
}

/// A table's column as a result column.
pub(crate) fn describe(table: &TableDef, column: usize) -> ColumnDesc {
    let def = &table.columns[column];
    ColumnDesc {
        name: def.name.clone(),
        ty: def.ty,
        type_oid: def.ty.oid(),
        table_oid: table.oid,
        attnum: i16::try_from(column + 1).unwrap_or(0),
    }
}

/// A select list or RETURNING list over one table.
pub(super) fn output_of(
    items: &[ast::SelectItem],
    table: &TableDef,
    binder: &mut Binder<'_>,
    scope: &TableScope<'_>,
) -> Result<Output> {
    let mut exprs = Vec::new();
    let mut columns = Vec::new();
    for item in items {
        let (e, alias) = match item {
            ast::SelectItem::Wildcard(options) => {
                plain_star(options)?;
                for column in 0..table.columns.len() {
                    exprs.push(Expr::Column(column));
                    columns.push(describe(table, column));
                }
                continue;
            }
            ast::SelectItem::QualifiedWildcard(kind, options) => {
                plain_star(options)?;
                let ast::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                    return Err(beyond("this star"));
                };
                let name = name.0.last().and_then(|part| match part {
                    ast::ObjectNamePart::Identifier(name) => Some(ident(name)),
                    _ => None,
                });
                match name {
                    Some(name) if name == scope.alias => {}
                    Some(name) => return Err(missing_from(&name)),
                    None => return Err(beyond("this star")),
                }
                for column in 0..table.columns.len() {
                    exprs.push(Expr::Column(column));
                    columns.push(describe(table, column));
                }
                continue;
            }
            ast::SelectItem::UnnamedExpr(e) => (e, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
            other => return Err(beyond(&format!("the select item {other}"))),
        };
        let (expr, ty) = binder.output(e, scope)?;
        let mut desc = match &expr {
            Expr::Column(column) => describe(table, *column),
            _ => ColumnDesc::computed(column_name(e), ty),
        };
        if let Some(alias) = alias {
            desc.name = alias;
        }
        exprs.push(expr);
        columns.push(desc);
    }
    Ok(Output::new(exprs, columns))
}

fn plain_star(options: &ast::WildcardAdditionalOptions) -> Result<()> {
    if options.opt_ilike.is_some()
        || options.opt_exclude.is_some()
        || options.opt_except.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
    {
        return Err(beyond("a star with options"));
    }
    Ok(())
}

/// The name that PostgreSQL gives to a column without an alias.
pub(super) fn column_name(e: &ast::Expr) -> String {
    let fixed = match e {
        ast::Expr::Identifier(name) => return ident(name),
        ast::Expr::CompoundIdentifier(parts) => {
            return parts.last().map_or_else(|| "?column?".to_owned(), ident);
        }
        ast::Expr::Nested(inner) => return column_name(inner),
        ast::Expr::Function(function) => {
            return match function.name.0.last() {
                Some(ast::ObjectNamePart::Identifier(name)) => ident(name),
                _ => "?column?".to_owned(),
            };
        }
        ast::Expr::Cast { expr, data_type, .. } => {
            let inner = column_name(expr);
            if inner != "?column?" {
                return inner;
            }
            return crate::expr::bind::data_type(data_type)
                .map_or(inner, |ty| ty.type_name().to_owned());
        }
        ast::Expr::TypedString(typed) => {
            return crate::expr::bind::data_type(&typed.data_type)
                .map_or_else(|_| "?column?".to_owned(), |ty| ty.type_name().to_owned());
        }
        ast::Expr::Case { else_result, .. } => {
            return match else_result.as_deref().map(column_name) {
                Some(name) if name != "?column?" => name,
                _ => "case".to_owned(),
            };
        }
        ast::Expr::Value(value) if matches!(value.value, ast::Value::Boolean(_)) => "bool",
        ast::Expr::Substring { .. } => "substring",
        ast::Expr::Trim { trim_where, .. } => match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        },
        ast::Expr::Position { .. } => "position",
        ast::Expr::Ceil { .. } => "ceil",
        ast::Expr::Floor { .. } => "floor",
        _ => "?column?",
    };
    fixed.to_owned()
}

/// LIMIT and OFFSET, or FETCH FIRST.
fn limits(
    clause: Option<&ast::LimitClause>,
    fetch: Option<&ast::Fetch>,
    binder: &mut Binder<'_>,
) -> Result<(Option<Expr>, Option<Expr>)> {
    let mut bind = |e: &ast::Expr, what: &str| -> Result<Expr> {
        let typed =
            binder.bind(e, &NoColumns as &dyn Scope).map_err(|error| match error.sqlstate {
                SqlState::UNDEFINED_COLUMN => SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("argument of {what} must not contain variables"),
                ),
                _ => error,
            })?;
        if let Ty::Known(ty) = typed.ty
            && !crate::expr::types::is_assignable(ty, DataType::Int8)
        {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type bigint, not type {ty}"),
            ));
        }
        binder.coerce(typed, DataType::Int8, Coercion::Assignment)
    };
    let mut found = (None, None);
    match clause {
        None => {}
        Some(ast::LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                return Err(beyond("LIMIT BY"));
            }
            if let Some(limit) = limit {
                found.0 = Some(bind(limit, "LIMIT")?);
            }
            if let Some(offset) = offset {
                found.1 = Some(bind(&offset.value, "OFFSET")?);
            }
        }
        Some(ast::LimitClause::OffsetCommaLimit { .. }) => return Err(beyond("LIMIT #,#")),
    }
    if let Some(fetch) = fetch {
        if fetch.with_ties || fetch.percent {
            return Err(beyond("FETCH FIRST ... WITH TIES"));
        }
        found.0 = Some(match &fetch.quantity {
            Some(e) => bind(e, "LIMIT")?,
            None => Expr::Const(crate::Value::Int8(1)),
        });
    }
    Ok(found)
}

/// `FOR UPDATE` and its kin; the flag says NOWAIT.
fn lock_of(
    locks: &[ast::LockClause],
    alias: &str,
    aggregated: bool,
) -> Result<Option<(LockStrength, bool)>> {
    let Some(lock) = locks.first() else { return Ok(None) };
    if aggregated {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "FOR UPDATE is not allowed with aggregate functions",
        ));
    }
    if let Some(of) = &lock.of
        && of.to_string() != alias
    {
        return Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{of}\" in FOR UPDATE clause not found in FROM clause"),
        ));
    }
    let nowait = match lock.nonblock {
        None => false,
        Some(ast::NonBlock::Nowait) => true,
        Some(ast::NonBlock::SkipLocked) => return Err(beyond("SKIP LOCKED")),
    };
    let strength = match lock.lock_type {
        ast::LockType::Update => LockStrength::Update,
        ast::LockType::Share => LockStrength::Share,
        #[allow(unreachable_patterns, reason = "the parser may learn more kinds")]
        _ => return Err(beyond("this kind of row lock")),
    };
    Ok(Some((strength, nowait)))
}
