//! Planning of UPDATE and DELETE, and what INSERT has in common with them.

use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, TableDef};
use millpond_syntax::tree::{
    self, DeleteStmt, Indirection, Node, RangeVar, ResTarget, SetClause, UpdateStmt,
};

use super::access;
use super::scope::{FromScope, FromTable, find_table, undefined_table};
use super::{ChangePlan, Output, Planner, Target};
use crate::DataType;
use crate::analyze::tree::is_system_column;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoColumns, ParamTypes, Typed, beyond, undefined_column};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::{Name, Source, parse_expression};

/// Binds the text of a column's DEFAULT.
pub fn default_of(table: &TableDef, column: usize) -> Result<Expr> {
    let def = &table.columns[column];
    match &def.default {
        None => Ok(Expr::NULL),
        Some(text) => default_expression(text, &def.name, def.ty),
    }
}

/// Binds the text of a DEFAULT for a column of some type.
fn default_expression(text: &str, column: &str, ty: DataType) -> Result<Expr> {
    let expr = parse_expression(text)?;
    default_value(&expr, Source::new(text), column, ty).map_err(|mut error| {
        error.position = None;
        error
    })
}

/// Binds a DEFAULT for a column of some type.
pub fn default_value(
    expr: &tree::Expr,
    source: Source<'_>,
    column: &str,
    ty: DataType,
) -> Result<Expr> {
    let mut binder = Binder::new(source, ParamTypes::None);
    let typed = binder.bind(expr, &NoColumns).map_err(|error| {
        if error.sqlstate != SqlState::UNDEFINED_COLUMN {
            return error;
        }
        let what = "cannot use column reference in DEFAULT expression";
        let mut refused = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
        refused.position = error.position;
        refused
    })?;
    if let Ty::Known(own) = typed.ty
        && !is_assignable(own, ty)
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("column \"{column}\" is of type {ty} but default expression is of type {own}"),
        )
        .hint("You will need to rewrite or cast the expression."));
    }
    binder.coerce(typed, ty, Coercion::Assignment)
}

/// Converts a value for a column.
pub fn assigned(
    binder: &mut Binder<'_>,
    table: &TableDef,
    column: usize,
    typed: Typed,
) -> Result<Expr> {
    let def = &table.columns[column];
    if let Ty::Known(own) = typed.ty
        && !is_assignable(own, def.ty)
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "column \"{}\" is of type {} but expression is of type {own}",
                def.name, def.ty
            ),
        )
        .hint("You will need to rewrite or cast the expression."));
    }
    binder.coerce(typed, def.ty, Coercion::Assignment)
}

/// Whether a value is the word DEFAULT.
pub fn is_default(e: &tree::Expr) -> bool {
    matches!(e.node, Node::SetToDefault)
}

/// The column that a statement names of the table that it changes. What stands behind the name
/// would be a part of the column's value.
pub fn target_column(table: &TableDef, target: &ResTarget, source: &Source<'_>) -> Result<usize> {
    let name = target.name.as_deref().unwrap_or_default();
    let error = match (table.column(name), target.indirection.first()) {
        (Some(found), None) => return Ok(found),
        (Some(found), Some(Indirection::Field(field))) => {
            not_composite(field, &table.columns[found])
        }
        (Some(_), Some(_)) => SqlError::unsupported("assignment to a part of a column"),
        (None, _) if is_system_column(name) => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot assign to system column \"{name}\""),
        ),
        (None, _) => {
            let known = table.columns.iter().map(|column| column.name.as_str());
            let mut error = undefined_column(name, None, known);
            error.message =
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            error
        }
    };
    Err(source.place(error, target.location))
}

fn not_composite(field: &str, column: &ColumnDef) -> SqlError {
    let (name, ty) = (&column.name, column.ty);
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "cannot assign to field \"{field}\" of column \"{name}\" because its type {ty} is not a \
             composite type"
        ),
    )
}

impl Planner<'_> {
    pub(super) fn target(&self, relation: &RangeVar) -> Result<Arc<TableDef>> {
        let name = Name::of_relation(relation, &self.source)?;
        let found = find_table(self.catalog, &name).map_err(|error| match error.sqlstate {
            SqlState::UNDEFINED_TABLE if name.schema.is_some() => {
                undefined_table(self.catalog, &name)
            }
            _ => error,
        });
        found.map_err(|error| self.source.place(error, name.location))
    }

    pub(super) fn returning(
        &self,
        items: &[ResTarget],
        table: &TableDef,
        alias: &str,
        binder: &mut Binder<'_>,
    ) -> Result<Option<Output>> {
        if items.is_empty() {
            return Ok(None);
        }
        let tables = [FromTable::only(table, alias)];
        let mut output = Output::of_list(items, Some(&FromScope(&tables)), binder)?;
        output.waits |= output.exprs.iter().any(Expr::may_take_long);
        Ok(Some(output))
    }

    pub(super) fn update(
        &self,
        update: &UpdateStmt,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if !update.from_clause.is_empty() {
            return Err(beyond("UPDATE ... FROM"));
        }
        let (table, alias) = self.relation(&update.relation)?;
        let tables = [FromTable::only(&table, &alias)];
        let scope = FromScope(&tables);
        let mut set: Vec<(usize, Expr)> = Vec::with_capacity(update.target_list.len());
        for clause in &update.target_list {
            let SetClause::One(target) = clause else {
                return Err(beyond("assignment to several columns at once"));
            };
            let column = target_column(&table, target, &self.source)?;
            let Some(value) = &target.val else {
                return Err(SqlError::internal("SET without a value"));
            };
            if set.iter().any(|(other, _)| *other == column) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "multiple assignments to same column \"{}\"",
                        table.columns[column].name
                    ),
                ));
            }
            let value = if is_default(value) {
                default_of(&table, column)?
            } else {
                let typed = binder.bind(value, &scope)?;
                assigned(binder, &table, column, typed)
                    .map_err(|error| binder.place_at(error, value))?
            };
            set.push((column, value));
        }
        let condition = self.where_clause(update.where_clause.as_ref(), binder, &scope)?;
        let (access, filter, _) = self.access(&table, condition.as_ref(), &[], true)?;
        let returning = self.returning(&update.returning_list, &table, &alias, binder)?;
        let filter = filter.map(access::in_order);
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: Some(set), returning })
    }

    pub(super) fn delete(
        &self,
        delete: &DeleteStmt,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if !delete.using_clause.is_empty() {
            return Err(beyond("DELETE ... USING"));
        }
        let (table, alias) = self.relation(&delete.relation)?;
        let tables = [FromTable::only(&table, &alias)];
        let scope = FromScope(&tables);
        let condition = self.where_clause(delete.where_clause.as_ref(), binder, &scope)?;
        let (access, filter, _) = self.access(&table, condition.as_ref(), &[], true)?;
        let returning = self.returning(&delete.returning_list, &table, &alias, binder)?;
        let filter = filter.map(access::in_order);
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: None, returning })
    }
}
