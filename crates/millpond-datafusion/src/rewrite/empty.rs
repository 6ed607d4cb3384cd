//! Replaces selects whose result must be empty by ones that read nothing.
//!
//! psql's questions about the catalog join system relations that are always empty here. Such a
//! select may contain what the query engine cannot plan, so only its columns' names are kept.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinOperator, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, Value,
};

use super::{folded, last_part};
use millpond_query::system_relations::is_always_empty;

/// Empties every branch of `query` that reads an always-empty relation.
pub fn query(query: &mut Query) {
    if body(&mut query.body) {
        // The order of nothing; its expressions may be among those that cannot be planned.
        query.order_by = None;
    }
}

/// True if the whole of `expr` was emptied.
fn body(expr: &mut SetExpr) -> bool {
    match expr {
        SetExpr::Select(select) if reads_nothing(select) => {
            hollow(select);
            true
        }
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (body(left), body(right));
            left && right
        }
        _ => false,
    }
}

/// True if the rows of `select` must be none. An aggregate over nothing still has a row, so a
/// select with one is left alone (psql asks none of empty relations).
pub fn reads_nothing(select: &Select) -> bool {
    let grouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty());
    select.from.iter().any(joins_empty)
        && (grouped || !select.projection.iter().any(is_aggregate_item))
}

fn is_aggregate_item(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return false;
    };
    matches!(expr, Expr::Function(function) if super::subqueries::is_aggregate(function))
}

/// True if an empty relation stands where its emptiness empties the join.
fn joins_empty(from: &TableWithJoins) -> bool {
    let mut empty = is_empty(&from.relation);
    for join in &from.joins {
        match join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {
                empty |= is_empty(&join.relation);
            }
            // What is on the left of a left join decides alone.
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {}
            _ => return false,
        }
    }
    empty
}

fn is_empty(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { name, args: None, .. }
        if last_part(name).is_some_and(|name| is_always_empty(&name)))
}

/// Keeps the columns' names and nothing else.
fn hollow(select: &mut Select) {
    for item in &mut select.projection {
        let name = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            SelectItem::UnnamedExpr(expr) => Ident::with_quote('"', output_name(expr)),
            // A star over an empty view is planned as it stands, so the select is not hollowed.
            _ => continue,
        };
        *item = SelectItem::ExprWithAlias { expr: text_null(), alias: name };
    }
    if select.projection.iter().any(|item| !matches!(item, SelectItem::ExprWithAlias { .. })) {
        select.selection = Some(falsehood());
        return;
    }
    select.from.clear();
    select.distinct = None;
    select.having = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    select.selection = Some(falsehood());
}

fn falsehood() -> Expr {
    Expr::Value(Value::Boolean(false).into())
}

pub fn text_null() -> Expr {
    use datafusion::sql::sqlparser::ast::{CastKind, DataType};
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Value(Value::Null.into())),
        data_type: DataType::Text,
        array: false,
        format: None,
    }
}

/// The name that PostgreSQL gives to an unnamed output column.
pub fn output_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => folded(ident),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded).unwrap_or_default(),
        Expr::Function(function) => last_part(&function.name).unwrap_or_default(),
        Expr::Cast { expr, data_type, .. } => match output_name(expr) {
            name if name == UNNAMED => {
                let text = data_type.to_string().to_lowercase();
                text.rsplit('.').next().unwrap_or(UNNAMED).to_owned()
            }
            name => name,
        },
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => output_name(inner),
        Expr::TypedString(typed) => {
            let name = typed.data_type.to_string().to_lowercase();
            name.split([' ', '(']).next().unwrap_or(UNNAMED).to_owned()
        }
        Expr::Subquery(subquery) => match subquery.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::ExprWithAlias { alias, .. }) => folded(alias),
                Some(SelectItem::UnnamedExpr(expr)) => output_name(expr),
                _ => UNNAMED.to_owned(),
            },
            _ => UNNAMED.to_owned(),
        },
        Expr::Case { .. } => "case".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        _ => UNNAMED.to_owned(),
    }
}

const UNNAMED: &str = "?column?";
