//! What a statement returns: select lists and RETURNING lists.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{self, Field, Node, ResTarget};

use super::scope::{FromScope, FromTable};
use crate::analyze::column_name;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, NoFrom, Scope, missing_from};
use crate::parse::{Name, Source};
use crate::sink::ColumnDesc;

/// Columns of a result, computed from a row.
#[derive(Debug)]
pub struct Output {
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
    pub fn new(exprs: Vec<Expr>, columns: Vec<ColumnDesc>) -> Self {
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
        targets: &[ResTarget],
        from: Option<&FromScope<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Self> {
        let scope: &dyn Scope = match from {
            Some(tables) => tables,
            None => &NoFrom,
        };
        let mut exprs = Vec::new();
        let mut columns = Vec::new();
        for target in targets {
            check_target_count(exprs.len() + 1)?;
            let Some(e) = &target.val else {
                return Err(SqlError::internal("a target without a value"));
            };
            if let Some(star) = star_of(e) {
                for from in tables_of_star(star, e.location, from, &binder.source)? {
                    exprs.extend(from.columns().map(Expr::Column));
                    let own = 0..from.table.columns.len();
                    columns.extend(own.map(|column| describe(from.table, column)));
                }
                continue;
            }
            let (expr, ty) = binder.output(e, scope)?;
            let expr = expr.without_null_calls()?;
            let stored = match (&expr, from) {
                (Expr::Column(column), Some(from)) => {
                    let of = from.table_of(*column);
                    let stored = of.map(|of| describe(of.table, column - of.first_column));
                    // A cast may have made text of a `character(n)`.
                    stored.filter(|desc| desc.ty.base() == ty.base())
                }
                (Expr::Func(func, _), _) if func.is_void() => Some(ColumnDesc::void("")),
                _ => None,
            };
            let mut desc = stored.unwrap_or_else(|| ColumnDesc::computed("", ty));
            // `+ a` is the column `a`, under another name.
            desc.name = target.name.clone().unwrap_or_else(|| column_name(e));
            exprs.push(expr);
            columns.push(desc);
        }
        check_target_count(exprs.len())?;
        Ok(Output::new(exprs, columns))
    }
}

/// How many columns a result has at most.
const MAX_TARGETS: usize = 1664;

/// Refuses a list of more columns than a result may have.
pub(crate) fn check_target_count(count: usize) -> Result<()> {
    if count <= MAX_TARGETS {
        return Ok(());
    }
    let message = format!("target lists can have at most {MAX_TARGETS} entries");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// A table's column as a result column.
pub fn describe(table: &TableDef, column: usize) -> ColumnDesc {
    let def = &table.columns[column];
    ColumnDesc {
        name: def.name.as_str().into(),
        ty: def.ty,
        type_oid: def.ty.oid(),
        table_oid: table.oid,
        attnum: i16::try_from(column + 1).unwrap_or(0),
    }
}

/// The name in front of a star, if an expression is one.
pub(super) fn star_of(e: &tree::Expr) -> Option<&[Field]> {
    match &e.node {
        Node::ColumnRef(fields) => match fields.split_last() {
            Some((Field::Star, name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The tables whose columns `*` or `name.*` stands for.
pub(super) fn tables_of_star<'t>(
    name: &[Field],
    at: u32,
    from: Option<&FromScope<'t>>,
    source: &Source<'_>,
) -> Result<&'t [FromTable<'t>]> {
    match (name, from) {
        ([], None) => {
            let what = "SELECT * with no tables specified is not valid";
            Err(source.place(SqlError::new(SqlState::SYNTAX_ERROR, what), at))
        }
        ([], Some(from)) => Ok(from.0),
        (name, from) => {
            let name = Name::of_star(name, at, source)?;
            let placed = |error| source.place(error, at);
            let Some(from) = from else { return Err(placed(missing_from(&name.name))) };
            let found = from.table(&name);
            let found = found.ok_or_else(|| placed(from.unknown_table(&name.name)))?;
            Ok(std::slice::from_ref(found))
        }
    }
}
