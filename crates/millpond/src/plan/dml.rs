//! Planning of UPDATE and DELETE, and what INSERT has in common with them.

use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, TableDef};
use sqlparser::ast;

use super::access::{Choice, Lookup};
use super::scope::{FromScope, FromTable, find_table, undefined_table};
use super::{ChangePlan, Output, Planner, Target, access};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoColumns, ParamTypes, Typed, beyond, undefined_column};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::{Name, Source, parse_expression};

/// Binds the text of a column's DEFAULT.
pub(crate) fn default_of(table: &TableDef, column: usize) -> Result<Expr> {
    let def = &table.columns[column];
    match &def.default {
        None => Ok(Expr::NULL),
        Some(text) => default_expression(text, &def.name, def.ty),
    }
}

/// Binds a DEFAULT for a column of some type.
pub(crate) fn default_expression(text: &str, column: &str, ty: DataType) -> Result<Expr> {
    let ast = parse_expression(text)?;
    let mut binder = Binder::new(Source::new(text), ParamTypes::None);
    let typed = binder.bind(&ast, &NoColumns).map_err(|mut error| {
        error.position = None;
        if error.sqlstate == SqlState::UNDEFINED_COLUMN {
            return SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
            );
        }
        error
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
pub(crate) fn assigned(
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
pub(crate) fn is_default(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The column that a statement names of the table that it changes. A name with points begins with
/// the column: what follows would be a part of it.
pub(crate) fn target_column(
    table: &TableDef,
    name: &ast::ObjectName,
    source: &Source<'_>,
) -> Result<usize> {
    let parts = Name::from_ast(name, source)?;
    let column = parts.schema.as_deref().unwrap_or(&parts.name);
    let mut error = match table.column(column) {
        Some(found) if parts.schema.is_none() => return Ok(found),
        Some(found) => not_composite(&parts.name, &table.columns[found]),
        None => {
            let known = table.columns.iter().map(|column| column.name.as_str());
            let mut error = undefined_column(column, None, known);
            error.message =
                format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            error
        }
    };
    error.position = parts.position;
    Err(error)
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

/// The items of an UPDATE's FROM, if the statement has a form that is known here.
pub(crate) fn check_update_form(update: &ast::Update) -> Result<&[ast::TableWithJoins]> {
    let is_foreign = update.or.is_some()
        || update.limit.is_some()
        || update.output.is_some()
        || !update.order_by.is_empty()
        || !update.table.joins.is_empty();
    match &update.from {
        _ if is_foreign => Err(SqlError::unsupported("this form of UPDATE")),
        None => Ok(&[]),
        Some(ast::UpdateTableFromKind::AfterSet(from)) => Ok(from),
        Some(ast::UpdateTableFromKind::BeforeSet(_)) => {
            Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"FROM\""))
        }
    }
}

/// A DELETE's table, if the statement has a form that is known here.
pub(crate) fn delete_table(delete: &ast::Delete) -> Result<&ast::TableFactor> {
    let is_foreign = delete.limit.is_some()
        || delete.output.is_some()
        || !delete.order_by.is_empty()
        || !delete.tables.is_empty();
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
        &delete.from;
    match from.as_slice() {
        [one] if one.joins.is_empty() && !is_foreign => Ok(&one.relation),
        _ => Err(SqlError::unsupported("this form of DELETE")),
    }
}

impl Planner<'_> {
    pub(super) fn target(&self, name: &ast::ObjectName) -> Result<Arc<TableDef>> {
        let name = Name::from_ast(name, &self.source)?;
        find_table(self.catalog, &name).map_err(|error| match error.sqlstate {
            SqlState::UNDEFINED_TABLE if name.schema.is_some() => {
                undefined_table(self.catalog, &name)
            }
            _ => error,
        })
    }

    pub(super) fn returning(
        &self,
        items: Option<&Vec<ast::SelectItem>>,
        table: &TableDef,
        alias: &str,
        binder: &mut Binder<'_>,
    ) -> Result<Option<Output>> {
        match items {
            None => Ok(None),
            Some(items) => {
                let tables = [FromTable::only(table, alias)];
                Output::of_list(items, Some(&FromScope(&tables)), binder).map(Some)
            }
        }
    }

    pub(super) fn update(
        &self,
        update: &ast::Update,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if !check_update_form(update)?.is_empty() {
            return Err(beyond("UPDATE ... FROM"));
        }
        let (table, alias) = self.table_factor(&update.table.relation)?;
        let tables = [FromTable::only(&table, &alias)];
        let scope = FromScope(&tables);
        let mut set: Vec<(usize, Expr)> = Vec::with_capacity(update.assignments.len());
        for assignment in &update.assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(beyond("assignment to several columns at once"));
            };
            let column = target_column(&table, name, &self.source)?;
            if set.iter().any(|(other, _)| *other == column) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "multiple assignments to same column \"{}\"",
                        table.columns[column].name
                    ),
                ));
            }
            let value = if is_default(&assignment.value) {
                default_of(&table, column)?
            } else {
                let typed = binder.bind(&assignment.value, &scope)?;
                assigned(binder, &table, column, typed)?
            };
            set.push((column, value));
        }
        let condition = self.where_clause(update.selection.as_ref(), binder, &scope)?;
        let lookup = Lookup::only(&table);
        let Choice { access, filter, .. } =
            access::choose(&lookup, self.indexes, condition.as_ref(), None);
        let returning = self.returning(update.returning.as_ref(), &table, &alias, binder)?;
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: Some(set), returning })
    }

    pub(super) fn delete(
        &self,
        delete: &ast::Delete,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if delete.using.is_some() {
            return Err(beyond("DELETE ... USING"));
        }
        let (table, alias) = self.table_factor(delete_table(delete)?)?;
        let tables = [FromTable::only(&table, &alias)];
        let scope = FromScope(&tables);
        let condition = self.where_clause(delete.selection.as_ref(), binder, &scope)?;
        let lookup = Lookup::only(&table);
        let Choice { access, filter, .. } =
            access::choose(&lookup, self.indexes, condition.as_ref(), None);
        let returning = self.returning(delete.returning.as_ref(), &table, &alias, binder)?;
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: None, returning })
    }
}
