//! What a column of a result is called that has no alias.

use sqlparser::ast;

use crate::parse::{ast_data_type as data_type, ident};

/// The name that PostgreSQL gives to a column without an alias.
pub(crate) fn column_name(e: &ast::Expr) -> String {
    match named(e) {
        Some((name, _)) => name,
        None => "?column?".to_owned(),
    }
}

/// A name, and whether it is better than that of a type.
fn named(e: &ast::Expr) -> Option<(String, bool)> {
    use ast::Expr as E;
    let good = |name: &str| Some((name.to_owned(), true));
    match e {
        E::Identifier(name) => Some((ident(name), true)),
        E::CompoundIdentifier(parts) => parts.last().map(|name| (ident(name), true)),
        E::Nested(inner) | E::Collate { expr: inner, .. } => named(inner),
        E::CompoundFieldAccess { root, access_chain } => {
            let last = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(E::Identifier(name)) => Some((ident(name), true)),
                _ => None,
            });
            last.or_else(|| named(root))
        }
        E::Function(function) => match function.name.0.last() {
            Some(ast::ObjectNamePart::Identifier(name)) => Some((ident(name), true)),
            _ => None,
        },
        E::Cast { expr, data_type: ty, .. } => match named(expr) {
            found @ Some((_, true)) => found,
            other => data_type(ty).map_or(other, |ty| Some((ty.type_name().to_owned(), false))),
        },
        E::TypedString(typed) => {
            data_type(&typed.data_type).ok().map(|ty| (ty.type_name().to_owned(), false))
        }
        E::Interval(_) => Some(("interval".to_owned(), false)),
        E::Case { else_result, .. } => match else_result.as_deref().and_then(named) {
            found @ Some((_, true)) => found,
            _ => Some(("case".to_owned(), false)),
        },
        E::Subquery(query) => of_query(query),
        E::Exists { negated: false, .. } => good("exists"),
        E::Array(_) => good("array"),
        E::Tuple(_) => good("row"),
        E::Extract { .. } => good("extract"),
        E::AtTimeZone { .. } => good("timezone"),
        E::Overlay { .. } => good("overlay"),
        E::IsNormalized { .. } => good("is_normalized"),
        E::Substring { shorthand, .. } => good(if *shorthand { "substr" } else { "substring" }),
        E::Trim { trim_where, .. } => match trim_where {
            Some(ast::TrimWhereField::Leading) => good("ltrim"),
            Some(ast::TrimWhereField::Trailing) => good("rtrim"),
            _ => good("btrim"),
        },
        E::Position { .. } => good("position"),
        E::Ceil { .. } => good("ceil"),
        E::Floor { .. } => good("floor"),
        _ => None,
    }
}

/// A subquery is called like its only column.
fn of_query(query: &ast::Query) -> Option<(String, bool)> {
    let mut body = query.body.as_ref();
    loop {
        match body {
            ast::SetExpr::Query(inner) => body = inner.body.as_ref(),
            ast::SetExpr::SetOperation { left, .. } => body = left,
            ast::SetExpr::Values(_) => return Some(("column1".to_owned(), true)),
            ast::SetExpr::Select(select) => {
                return match select.projection.first()? {
                    ast::SelectItem::UnnamedExpr(e) => Some((column_name(e), true)),
                    ast::SelectItem::ExprWithAlias { alias, .. } => Some((ident(alias), true)),
                    _ => None,
                };
            }
            _ => return None,
        }
    }
}
