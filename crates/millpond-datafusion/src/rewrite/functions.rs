//! Functions in `FROM`: their schema, and those of an argument that are a view's rows under a
//! condition.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Query, SetExpr, Statement,
    TableAlias, TableAliasColumnDef, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{last_part, strip_schema};
use millpond_query::system_relations::{Kind, PG_STAT_IO, find_function};

const BACKEND_IO: &str = "pg_stat_get_backend_io";

/// What the process id is called that a row is of: as nothing is that an argument may name.
const OF_PID: &str = "of pid";

/// Whether it is one of these, that are known in `FROM` only.
pub fn returns_rows(function: &str) -> bool {
    function == BACKEND_IO || find_function(function).is_some()
}

/// Drops `pg_catalog.` from a function's name. `pg_stat_get_backend_io(pid)` becomes a selection
/// from `millpond_stat_backend_io`. With an alias that names only some columns, the others keep
/// their names.
pub fn table(factor: &mut TableFactor) {
    let (name, alias, args, with_ordinality) = match factor {
        TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
            (name, alias, args.args.as_slice(), *with_ordinality)
        }
        // After LATERAL.
        TableFactor::Function { name, alias, args, with_ordinality, .. } => {
            (name, alias, args.as_slice(), *with_ordinality)
        }
        _ => return,
    };
    strip_schema(name, &["pg_catalog"]);
    let Some(function) = last_part(name).filter(|_| name.0.len() == 1 && !with_ordinality) else {
        return;
    };
    if let Some(found) = find_function(&function).filter(|_| args.is_empty()) {
        return name_the_others(alias.as_mut(), found.columns);
    }
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(pid))] = args else { return };
    if function != BACKEND_IO {
        return;
    }
    let Some(subquery) = backend_io(pid) else { return };
    name_the_others(alias.as_mut(), PG_STAT_IO);
    let name = Ident::new(BACKEND_IO);
    let plain = || TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let alias = Some(alias.take().unwrap_or_else(plain));
    let lateral = names_columns(pid);
    *factor = TableFactor::Derived { lateral, subquery, alias, sample: None };
}

/// Adds to an alias that names columns those that it does not name, of all that there are.
fn name_the_others(alias: Option<&mut TableAlias>, columns: &[(&str, Kind)]) {
    let Some(alias) = alias.filter(|alias| !alias.columns.is_empty()) else { return };
    let others = columns.iter().skip(alias.columns.len());
    alias.columns.extend(
        others.map(|column| TableAliasColumnDef { name: Ident::new(column.0), data_type: None }),
    );
}

fn backend_io(pid: &Expr) -> Option<Box<Query>> {
    let columns: Vec<_> = PG_STAT_IO.iter().map(|column| column.0).collect();
    let columns = columns.join(", ");
    let sql = format!(
        "SELECT {columns} FROM (SELECT pid AS \"{OF_PID}\", {columns} FROM pg_catalog.millpond_stat_backend_io) AS io"
    );
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, &sql).ok()?.pop()?;
    let Statement::Query(mut query) = statement else { return None };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.selection = Some(Expr::BinaryOp {
            left: Box::new(Expr::Identifier(Ident::with_quote('"', OF_PID))),
            op: BinaryOperator::Eq,
            right: Box::new(pid.clone()),
        });
    }
    Some(query)
}

/// Whether an expression depends on the tables before it.
fn names_columns(expr: &Expr) -> bool {
    struct Names;
    impl Visitor for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Names).is_break()
}
