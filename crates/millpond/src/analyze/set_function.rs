//! Functions that return rows, in FROM and in select lists.

use millpond_syntax::tree::{self, FuncCall};

use super::aggregate::{placed, refuse_variadic};
use super::level::{Clause, Level};
use super::tree::{FromItem, SetFunction, SetFunctionKind, column};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Typed, beyond, result_type};
use crate::expr::{Expr, returns_rows};

const MOVE_IT: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Whether a name is that of a function that returns rows.
pub(super) fn is_set_function(name: &str) -> bool {
    returns_rows(name)
}

/// The columns of a function's rows. One without a name is called like the function's item.
pub(super) type Columns = Vec<(Option<&'static str>, DataType)>;

/// Binds a call of one with these arguments, whose name without its schema is given.
pub(super) fn bind(
    level: &Level<'_>,
    binder: &mut Binder<'_>,
    written: &[tree::Expr],
    at: u32,
    name: &str,
) -> Result<(SetFunction, Columns)> {
    let args = written.iter().map(|arg| binder.bind(arg, level)).collect::<Result<Vec<_>>>()?;
    of_catalog(name, args, binder).map_err(|error| {
        let error = binder.place_literal(error, &written.iter().collect::<Vec<_>>());
        binder.source.place(error, at)
    })
}

fn of_catalog(
    name: &str,
    args: Vec<Typed>,
    binder: &mut Binder<'_>,
) -> Result<(SetFunction, Columns)> {
    let (func, args, element) = binder.rows_call(name, args)?;
    let columns: Columns = func
        .columns()
        .unwrap_or_default()
        .iter()
        .map(|(name, ty)| (*name, result_type(*ty, element)))
        .collect();
    let function = SetFunction { kind: SetFunctionKind::Rows(func), args, columns: columns.len() };
    Ok((function, columns))
}

impl Level<'_> {
    /// Binds a call in a select list. All calls of a list give their rows side by side, as
    /// functions in FROM would; a column of those stands for the call.
    pub(super) fn target_function(
        &self,
        binder: &mut Binder<'_>,
        call: &FuncCall,
        at: u32,
        name: &str,
    ) -> Result<Typed> {
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
        if clause != Clause::Targets {
            return Err(beyond(&format!("a set-returning function in {}", clause.name())));
        }
        refuse_variadic(call)?;
        let (function, columns) = bind(self, binder, &call.args, at, name)?;
        let slot = match self.function_slot.get() {
            Some(slot) => slot,
            None => {
                let slot = self.analyzer.new_slot()?;
                self.function_slot.set(Some(slot));
                slot
            }
        };
        if self.function_at.get().is_none() {
            self.function_at.set(Some(at));
        }
        let mut functions = self.set_functions.borrow_mut();
        let is_nested = function.args.iter().any(|arg| self.has_set_function(arg));
        if is_nested {
            return Err(beyond("a set-returning function of another one"));
        }
        let first: usize = functions.iter().map(|function| function.columns).sum();
        functions.push(function);
        if let [(_, ty)] = columns.as_slice() {
            return Ok(Typed::known(Expr::Column(column(slot, first)), *ty));
        }
        // Several columns are a record. Beside a function with more rows it ends in ones of NULLs.
        let values = (first..first + columns.len()).map(|place| Expr::Column(column(slot, place)));
        let fields = columns.iter().map(|(own, ty)| (own.unwrap_or(name).to_owned(), *ty));
        let presence = Expr::Const(crate::Value::Bool(true));
        let (row, ty) = binder.records.make(fields.collect(), presence, values)?;
        Ok(Typed::known(row, ty))
    }

    fn has_set_function(&self, e: &Expr) -> bool {
        let mut found = false;
        e.walk(&mut |part| {
            found |= matches!(part, Expr::Column(c)
                if self.function_slot.get() == Some(super::tree::slot_of(*c).0));
        });
        found
    }

    /// Makes the functions of a select list an item of FROM.
    pub(super) fn add_set_functions(
        &self,
        targets: &[super::targets::Target],
        from: &mut Vec<FromItem>,
        is_plain: bool,
    ) -> Result<()> {
        let functions = self.set_functions.take();
        let Some(slot) = self.function_slot.get() else { return Ok(()) };
        if !is_plain {
            return Err(beyond("a set-returning function beside groups or windows"));
        }
        for target in targets {
            let mut conditional = None;
            target.expr.walk(&mut |part| match part {
                Expr::Case(..) if self.has_set_function(part) => conditional = Some("CASE"),
                Expr::Coalesce(..) if self.has_set_function(part) => conditional = Some("COALESCE"),
                _ => {}
            });
            if let Some(word) = conditional {
                let what = format!("set-returning functions are not allowed in {word}");
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what).hint(MOVE_IT);
                return Err(self.analyzer.source.place(error, self.function_at.get()));
            }
        }
        let width = functions.iter().map(|function| function.columns).sum();
        self.analyzer.set_width(slot, width);
        let alias = "*SELECT*".to_owned();
        from.push(FromItem::Functions { slot, functions, with_ordinality: false, alias });
        Ok(())
    }
}
