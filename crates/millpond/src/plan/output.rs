//! What a statement returns: select lists and RETURNING lists over at most one table.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use sqlparser::ast;

use super::scope::TableScope;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, NoColumns, Scope, beyond, missing_from};
use crate::parse::{data_type, ident};
use crate::sink::ColumnDesc;

/// Columns of a result, computed from a row.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) exprs: Vec<Expr>,
    /// Whether computing them may take long by itself.
    pub(crate) waits: bool,
    /// Whether all that is computed is one call of a function that locks or unlocks.
    pub(crate) only_locks: bool,
    /// When all are plain columns: which.
    pub(crate) plain: Option<Vec<usize>>,
    pub(crate) columns: Arc<[ColumnDesc]>,
}

impl Output {
    pub(crate) fn new(exprs: Vec<Expr>, columns: Vec<ColumnDesc>) -> Self {
        let plain = exprs
            .iter()
            .map(|e| match e {
                Expr::Column(column) => Some(*column),
                _ => None,
            })
            .collect();
        let waits = exprs.iter().any(Expr::waits);
        let only_locks = matches!(exprs.as_slice(), [call] if call.only_locks());
        Output { exprs, waits, only_locks, plain, columns: columns.into() }
    }

    /// Binds a list over a table, or over nothing.
    pub(super) fn of_list(
        items: &[ast::SelectItem],
        from: Option<&TableScope<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Self> {
        let scope: &dyn Scope = match from {
            Some(table) => table,
            None => &NoColumns,
        };
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for item in items {
            let (e, alias) = match item {
                ast::SelectItem::UnnamedExpr(e) => (e, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
                star => {
                    let table = table_of_star(star, from)?;
                    exprs.extend((0..table.columns.len()).map(Expr::Column));
                    columns.extend((0..table.columns.len()).map(|column| describe(table, column)));
                    continue;
                }
            };
            let (expr, ty) = binder.output(e, scope)?;
            let mut desc = match (&expr, from) {
                (Expr::Column(column), Some(from)) => describe(from.table, *column),
                (Expr::Func(func, _), _) if func.is_void() => ColumnDesc::void(column_name(e)),
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

/// The table whose columns `*` or `name.*` stands for.
fn table_of_star<'t>(
    item: &ast::SelectItem,
    from: Option<&TableScope<'t>>,
) -> Result<&'t TableDef> {
    match (item, from) {
        (ast::SelectItem::Wildcard(_), None) => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "SELECT * with no tables specified is not valid",
        )),
        (ast::SelectItem::QualifiedWildcard(..), None) => Err(missing_from("*")),
        (ast::SelectItem::Wildcard(options), Some(from)) => {
            plain_star(options)?;
            Ok(from.table)
        }
        (ast::SelectItem::QualifiedWildcard(kind, options), Some(from)) => {
            plain_star(options)?;
            let ast::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                return Err(beyond("this star"));
            };
            match name.0.last() {
                Some(ast::ObjectNamePart::Identifier(name)) if ident(name) == from.alias => {
                    Ok(from.table)
                }
                Some(ast::ObjectNamePart::Identifier(name)) => Err(missing_from(&ident(name))),
                _ => Err(beyond("this star")),
            }
        }
        (other, _) => Err(beyond(&format!("the select item {other}"))),
    }
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
fn column_name(e: &ast::Expr) -> String {
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
        ast::Expr::Cast { expr, data_type: ty, .. } => {
            let inner = column_name(expr);
            if inner != "?column?" {
                return inner;
            }
            return data_type(ty).map_or(inner, |ty| ty.type_name().to_owned());
        }
        ast::Expr::TypedString(typed) => {
            return data_type(&typed.data_type)
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
