//! Functions that return rows, in FROM and in select lists.

use std::borrow::Cow;

use millpond_syntax::tree::{self, FuncCall};
use millpond_types::other::RECORD;

use super::aggregate::{placed, refuse_clauses, refuse_variadic};
use super::level::Level;
use super::tree::{SetFunction, SetFunctionKind, column};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, RecordType, Typed, result_type};
use crate::expr::functions::fills_one_row;
use crate::expr::types::Ty;
use crate::expr::{Expr, Func, returns_rows};
use crate::system_relations::{find_function_definition, function_columns};

pub(super) const MOVE_IT: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Whether a name is that of a function that returns rows.
pub(super) fn is_set_function(name: &str) -> bool {
    returns_rows(name) || find_function_definition(name).is_some()
}

/// The columns of a function's rows. One without a name is called like the function's item.
pub(super) type Columns = Vec<(Option<Cow<'static, str>>, DataType)>;

/// Binds a call of one with these arguments, whose name without its schema is given: in FROM, or in
/// a select list.
pub(super) fn bind(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    written: &[tree::Expr],
    at: u32,
    name: &str,
    in_from: bool,
) -> Result<(SetFunction, Columns)> {
    if let Some(relation) = find_function_definition(name).filter(|_| written.is_empty()) {
        let columns: Columns =
            function_columns(relation).map(|(name, ty)| (Some(Cow::Borrowed(name)), ty)).collect();
        let kind = SetFunctionKind::System(relation.oid);
        return Ok((SetFunction { kind, args: Vec::new(), columns: columns.len() }, columns));
    }
    let Bound { func, columns, args, base } = bound(level, binder, written, at, name)?;
    let fields =
        if func.fills_rows() { fields_of_base(name, base, in_from, binder)? } else { None };
    let (kind, columns): (_, Columns) = match fields {
        Some(fields) => {
            let column = |(name, ty): &(String, DataType)| (Some(Cow::Owned(name.clone())), *ty);
            let columns = fields.iter().map(column).collect();
            (SetFunctionKind::Records(func, fields.iter().cloned().collect()), columns)
        }
        None => (SetFunctionKind::Rows(func), columns),
    };
    Ok((SetFunction { kind, args, columns: columns.len() }, columns))
}

/// A call of a function of the catalog.
struct Bound {
    func: Func,
    columns: Columns,
    args: Vec<Expr>,
    /// The type of its first argument.
    base: Option<Ty>,
}

fn bound(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    written: &[tree::Expr],
    at: u32,
    name: &str,
) -> Result<Bound> {
    let args = binder.call_arguments(name, written, at, level)?;
    let base = args.first().map(|base| base.ty);
    let (func, args, columns) = of_catalog(name, args, binder).map_err(|error| {
        let error = binder.place_literal(error, &written.iter().collect::<Vec<_>>());
        binder.source.place(error, at)
    })?;
    Ok(Bound { func, columns, args, base })
}

fn of_catalog(
    name: &str,
    args: Vec<Typed>,
    binder: &mut Binder<'_>,
) -> Result<(Func, Vec<Expr>, Columns)> {
    let (func, args, element) = binder.rows_call(name, args)?;
    let columns = func
        .columns()
        .unwrap_or_default()
        .iter()
        .map(|(name, ty)| (name.map(Cow::Borrowed), result_type(*ty, element)))
        .collect();
    Ok((func, args, columns))
}

/// The columns of the rows that a function fills, which are those of its first argument. `None`: of
/// that it is only known that it is a row. In FROM, a row that is no relation's does not say it.
fn fields_of_base(
    name: &str,
    base: Option<Ty>,
    in_from: bool,
    binder: &Binder<'_>,
) -> Result<Option<RecordType>> {
    match base {
        Some(Ty::Known(ty)) if ty.oid() == RECORD => {
            let says_it = !in_from || binder.records.is_of_relation(ty);
            Ok(binder.records.fields(ty).filter(|_| says_it))
        }
        _ => {
            let what = format!("first argument of {name} must be a row type");
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, what))
        }
    }
}

#[cold]
fn no_row_type(name: &str) -> SqlError {
    let what = format!("could not determine row type for result of {name}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what).hint(
        "Provide a non-null record argument, or call the function in the FROM clause using a \
         column definition list.",
    )
}

impl Level<'_> {
    /// Binds a call that fills a row, outside of FROM: a value.
    fn filled_row(
        &self,
        binder: &mut Binder<'_>,
        call: &FuncCall,
        at: u32,
        name: &str,
    ) -> Result<Typed> {
        let Bound { args, base, .. } = bound(self, binder, &call.args, at, name)?;
        let columns = fields_of_base(name, base, false, binder)?;
        match (columns, base) {
            (Some(columns), Some(Ty::Known(ty))) => binder.filled_record(args, &columns, ty),
            _ => Err(no_row_type(name)),
        }
    }

    /// Binds a call in a select list, or a clause that is like one. Columns of its rows stand for
    /// it.
    pub(super) fn target_function(
        &self,
        binder: &mut Binder<'_>,
        call: &FuncCall,
        at: u32,
        name: &str,
    ) -> Result<Typed> {
        refuse_clauses(name, call, at, binder)?;
        if fills_one_row(name) {
            refuse_variadic(call)?;
            return self.filled_row(binder, call, at, name);
        }
        let clause = self.clause.get();
        let refused = if self.in_aggregate.get() {
            Some("aggregate function calls cannot contain set-returning function calls".to_owned())
        } else if self.in_window.get() {
            Some("window function calls cannot contain set-returning function calls".to_owned())
        } else {
            clause.refuses_sets()
        };
        if let Some(what) = refused {
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
            let is_inside = self.in_aggregate.get() || self.in_window.get();
            let error = if is_inside { error.hint(MOVE_IT) } else { error };
            return Err(placed(error, call, at, binder));
        }
        refuse_variadic(call)?;
        let (function, columns) = bind(self, binder, &call.args, at, name, false)?;
        if let SetFunctionKind::Rows(func) = function.kind
            && func.needs_definition()
        {
            return Err(no_row_type(name));
        }
        let is_record = matches!(function.kind, SetFunctionKind::Records(..));
        let slot = self.set_call(function, at, binder)?;
        if let ([(_, ty)], false) = (columns.as_slice(), is_record) {
            return Ok(Typed::known(Expr::Column(column(slot, 0)), *ty));
        }
        // Several columns are a record. Beside a function with more rows it ends in ones of NULLs.
        let values = (0..columns.len()).map(|place| Expr::Column(column(slot, place)));
        let fields =
            columns.iter().map(|(own, ty)| (own.as_deref().unwrap_or(name).to_owned(), *ty));
        let presence = Expr::Const(crate::Value::Bool(true));
        let (row, ty) = binder.records.make(fields.collect(), presence, values)?;
        Ok(Typed::known(row, ty))
    }
}
