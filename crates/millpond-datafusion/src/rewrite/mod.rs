//! What PostgreSQL's clients write and DataFusion does not plan, put into words that it does.
//!
//! The rewrites are of the syntax tree and none depends on data, so they hold for prepared
//! statements too. Six kinds:
//!
//! * **Spelling** ([`spelling`]): `OPERATOR(pg_catalog.~)`, `COLLATE`, `pg_catalog.function(..)`,
//!   casts to `regclass` and its like, `= ANY (..)`.
//! * **Emptiness** ([`empty`]): psql asks about policies, publications and other things that
//!   Millpond has none of. An inner join with an empty relation is empty. So such a `SELECT`
//!   becomes one without `FROM` that is false. That keeps its column names and drops the
//!   expressions that could not be planned.
//! * **Subqueries** ([`subqueries`]): as values they take one row; `EXISTS` in a select list is a
//!   count.
//! * **Names** ([`naming`]): output columns are called what PostgreSQL calls them.
//! * **Laterals** ([`lateral`]): `CROSS JOIN LATERAL (SELECT e) AS o(n)` without a `FROM` names an
//!   expression; the name is replaced by it.
//! * **Functions in `FROM`** ([`functions`]): without `pg_catalog.`; those of an argument are a
//!   condition on a view.

mod empty;
mod functions;
mod lateral;
pub mod naming;
mod spelling;
mod subqueries;
#[cfg(test)]
mod tests;

pub use functions::returns_rows;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, Select, SelectItem, TableFactor, Value, VisitMut,
    VisitorMut,
};

/// Rewrites `query` in place; see the module's text.
pub fn adapt(query: &mut Query) {
    let _ = query.visit(&mut Adapter);
    let _ = query.visit(&mut ScalarSubqueries);
}

struct Adapter;

impl VisitorMut for Adapter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        empty::query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        naming::select(select);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                let _ = expr.visit(&mut Existences);
            }
        }
        lateral::select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        spelling::expr(expr);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        functions::table(factor);
        naming::series(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        strip_schema(relation, &["public"]);
        ControlFlow::Continue(())
    }
}

/// Subqueries as values: after [`Adapter`], which makes conditions of some that look like values.
struct ScalarSubqueries;

impl VisitorMut for ScalarSubqueries {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        subqueries::value(expr);
        ControlFlow::Continue(())
    }
}

/// Existence as a value, where DataFusion knows it only as a condition.
struct Existences;

impl VisitorMut for Existences {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        subqueries::exists(expr);
        ControlFlow::Continue(())
    }
}

/// The last part of a name, folded as PostgreSQL folds: quoted names keep their case.
fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(ObjectNamePart::as_ident).map(folded)
}

fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// Drops a leading schema that is one of `schemas`.
fn strip_schema(name: &mut ObjectName, schemas: &[&str]) {
    let leading = name.0.first().and_then(ObjectNamePart::as_ident).map(folded);
    if name.0.len() == 2 && leading.is_some_and(|schema| schemas.contains(&schema.as_str())) {
        name.0.remove(0);
    }
}

/// `name(args)` without any of a call's clauses.
fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args
                .into_iter()
                .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn literal(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).into())
}
