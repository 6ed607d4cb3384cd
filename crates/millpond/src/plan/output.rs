//! What a statement returns: select lists and RETURNING lists.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use sqlparser::ast;

use super::scope::{FromScope, FromTable};
use crate::analyze::column_name;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, NoColumns, Scope, beyond, missing_from};
use crate::parse::{Name, Source, ident};
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

    /// Binds a list over tables, or over nothing.
    pub(super) fn of_list(
        items: &[ast::SelectItem],
        from: Option<&FromScope<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Self> {
        let scope: &dyn Scope = match from {
            Some(tables) => tables,
            None => &NoColumns,
        };
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for item in items {
            let (e, alias) = match item {
                ast::SelectItem::UnnamedExpr(e) => (e, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
                star => {
                    for from in tables_of_star(star, from, &binder.source)? {
                        exprs.extend(from.columns().map(Expr::Column));
                        let own = 0..from.table.columns.len();
                        columns.extend(own.map(|column| describe(from.table, column)));
                    }
                    continue;
                }
            };
            let (expr, ty) = binder.output(e, scope)?;
            let stored = match (&expr, from) {
                (Expr::Column(column), Some(from)) => {
                    from.table_of(*column).map(|of| describe(of.table, column - of.first_column))
                }
                (Expr::Func(func, _), _) if func.is_void() => {
                    Some(ColumnDesc::void(column_name(e)))
                }
                _ => None,
            };
            let mut desc = stored.unwrap_or_else(|| ColumnDesc::computed(column_name(e), ty));
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

/// The tables whose columns `*` or `name.*` stands for.
pub(super) fn tables_of_star<'t>(
    item: &ast::SelectItem,
    from: Option<&FromScope<'t>>,
    source: &Source<'_>,
) -> Result<&'t [FromTable<'t>]> {
    match (item, from) {
        (ast::SelectItem::Wildcard(_), None) => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "SELECT * with no tables specified is not valid",
        )),
        (ast::SelectItem::QualifiedWildcard(..), None) => Err(missing_from("*")),
        (ast::SelectItem::Wildcard(options), Some(from)) => {
            plain_star(options)?;
            Ok(from.0)
        }
        (ast::SelectItem::QualifiedWildcard(kind, options), Some(from)) => {
            plain_star(options)?;
            let ast::SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                return Err(beyond("this star"));
            };
            let name = Name::from_ast(name, source)?;
            let found = from.table(&name).ok_or_else(|| {
                let mut error = from.unknown_table(&name.name);
                error.position = name.position;
                error
            })?;
            Ok(std::slice::from_ref(found))
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
