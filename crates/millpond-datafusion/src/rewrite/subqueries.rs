//! Subqueries as values: `(SELECT x ..)` takes one row, and `EXISTS` in a select list is a count.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArguments, GroupByExpr, Query, Select,
    SelectItem, SetExpr, TableFactor, TableWithJoins, Value, Visit, Visitor,
};

use super::{call, folded, last_part};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;

use crate::functions::SINGLE_VALUE;

/// Bounds the rows of a subquery that stands for a value, unless it does so itself.
pub fn value(expr: &mut Expr) {
    let Expr::Subquery(subquery) = expr else { return };
    let Some(select) = plain_select(subquery) else { return };
    if asks_for_other_collation(select) {
        *expr = super::empty::text_null();
        return;
    }
    if let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] =
        select.projection.as_mut_slice()
        && !has_aggregate(expr)
        && !select.from.is_empty()
        && select.from.iter().all(|from| from.joins.is_empty())
    {
        let inner = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        *expr = call(SINGLE_VALUE, vec![inner]);
    } else {
        return;
    }
    if let Some(condition) = take_outer_conditions(select) {
        let value = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        *expr = Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen { condition, result: value }],
            else_result: None,
        };
    }
}

/// Takes the conditions out of a select's `WHERE` that speak of outer columns alone: DataFusion
/// joins on equalities only. Where they don't hold there are no rows, so the subquery is NULL.
fn take_outer_conditions(select: &mut Select) -> Option<Expr> {
    let names: Vec<String> = select.from.iter().filter_map(relation_name).collect();
    let mut kept = Vec::new();
    let mut outer = Vec::new();
    for condition in conjuncts(select.selection.take()?) {
        let list = if speaks_of_others(&condition, &names) { &mut outer } else { &mut kept };
        list.push(condition);
    }
    let all = |list: Vec<Expr>| {
        list.into_iter().reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        })
    };
    select.selection = all(kept);
    all(outer)
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut list = conjuncts(*left);
            list.extend(conjuncts(*right));
            list
        }
        other => vec![other],
    }
}

/// The name that qualifies a relation's columns; `None` for a join, whose names are not looked for.
fn relation_name(from: &TableWithJoins) -> Option<String> {
    match &from.relation {
        TableFactor::Table { alias: Some(alias), .. } => Some(folded(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => last_part(name),
        _ => None,
    }
}

/// Whether every column in `expr` is qualified by a name that is not one of `names`.
fn speaks_of_others(expr: &Expr, names: &[String]) -> bool {
    match expr {
        Expr::CompoundIdentifier(parts) => parts.len() == 2 && !names.contains(&folded(&parts[0])),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => speaks_of_others(inner, names),
        _ => false,
    }
}

/// psql asks which columns have another collation than their type: none, since all have the same.
/// The question compares with `<>`, which DataFusion does not turn into a join.
fn asks_for_other_collation(select: &Select) -> bool {
    let reads = |wanted: &str| {
        select.from.iter().any(|from| {
            matches!(&from.relation, TableFactor::Table { name, .. }
                if last_part(name).as_deref() == Some(wanted))
        })
    };
    select.from.len() == 2 && reads("pg_collation") && reads("pg_type")
}

/// `EXISTS (SELECT ..)` as `(SELECT count(*) ..) > 0`.
pub fn exists(expr: &mut Expr) {
    let Expr::Exists { subquery, negated } = expr else { return };
    let negated = *negated;
    let Some(select) = plain_select(subquery) else { return };
    select.projection = vec![SelectItem::UnnamedExpr(count_star())];
    let operator = if negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
    *expr = Expr::BinaryOp {
        left: Box::new(Expr::Subquery(subquery.clone())),
        op: operator,
        right: Box::new(Expr::Value(Value::Number("0".to_owned(), false).into())),
    };
}

fn count_star() -> Expr {
    use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr};
    let mut count = call("count", Vec::new());
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut count {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    }
    count
}

/// The select of a query that has nothing around it and no groups in it.
fn plain_select(query: &mut Query) -> Option<&mut Select> {
    let plain = query.limit_clause.is_none() && query.fetch.is_none() && query.with.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    (plain && ungrouped && select.distinct.is_none() && select.having.is_none()).then_some(select)
}

/// Whether an aggregate stands in `expr`, outside subqueries of its own.
fn has_aggregate(expr: &Expr) -> bool {
    struct Aggregates;
    impl Visitor for Aggregates {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if is_aggregate(function) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Aggregates).is_break()
}

/// Whether a call is one of an aggregate that DataFusion knows.
pub fn is_aggregate(function: &Function) -> bool {
    const AGGREGATES: &[&str] = &[
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "bool_and",
        "bool_or",
        "every",
        "string_agg",
        "array_agg",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var",
        "var_pop",
        "var_samp",
        "variance",
        "corr",
        "median",
        "covar_pop",
        "covar_samp",
        "bit_and",
        "bit_or",
        "bit_xor",
        "first_value",
        "last_value",
        "nth_value",
        "approx_distinct",
        "approx_median",
        "percentile_cont",
        SINGLE_VALUE,
    ];
    function.over.is_none()
        && last_part(&function.name).is_some_and(|name| AGGREGATES.contains(&name.as_str()))
}
