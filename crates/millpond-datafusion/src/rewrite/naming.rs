//! Output columns get the names that PostgreSQL gives them.
//!
//! DataFusion wants the names of a select's columns to be distinct; PostgreSQL does not care. From
//! its second use on, a name is followed by [`REPEATED`] and a number, which [`shown`] takes off
//! again.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, TableAlias, TableAliasColumnDef, TableFactor,
};

use super::empty::output_name;
use super::{folded, last_part};

/// Separates a name from the number that makes it distinct: a character that no client types.
const REPEATED: char = '\u{1f}';

/// Names the unnamed columns of `select`, and tells repeated names apart.
pub fn select(select: &mut Select) {
    let mut used = HashSet::new();
    for item in &mut select.projection {
        let (name, expr, plain) = match item {
            SelectItem::ExprWithAlias { alias, expr } => (folded(alias), expr, true),
            SelectItem::UnnamedExpr(expr) => {
                let plain = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                (output_name(expr), expr, plain)
            }
            _ => continue,
        };
        let repeated = !used.insert(name.clone());
        if plain && !repeated {
            continue;
        }
        let name = if repeated { format!("{name}{REPEATED}{}", used.len()) } else { name };
        used.insert(name.clone());
        let expr = expr.clone();
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
    }
}

/// The column of `generate_series(..)` in FROM is called what the function is called there: its
/// alias, or its name.
pub fn series(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, args: Some(_), .. } = factor else { return };
    if last_part(name).as_deref() != Some("generate_series") {
        return;
    }
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new("generate_series"),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
    }
}

/// The name that clients see.
pub fn shown(name: &str) -> &str {
    name.split(REPEATED).next().unwrap_or(name)
}
