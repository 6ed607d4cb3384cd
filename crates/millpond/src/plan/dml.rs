//! Planning of INSERT, UPDATE and DELETE.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use sqlparser::ast;

use super::scope::{TableScope, find_table, undefined_table};
use super::{ChangePlan, InsertPlan, InsertSource, Output, Planner, Target, access};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, NoColumns, ParamTypes, Typed, undefined_column};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::{Name, Source, ident, parse_expression};

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
fn assign(binder: &mut Binder<'_>, table: &TableDef, column: usize, typed: Typed) -> Result<Expr> {
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

fn is_default(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

impl Planner<'_> {
    fn target(&self, name: &ast::ObjectName) -> Result<Arc<TableDef>> {
        let name = Name::from_ast(name, &self.source)?;
        find_table(self.catalog, &name).map_err(|error| match error.sqlstate {
            SqlState::UNDEFINED_TABLE if name.schema.is_some() => {
                undefined_table(self.catalog, &name)
            }
            _ => error,
        })
    }

    pub(super) fn target_column(&self, table: &TableDef, name: &ast::ObjectName) -> Result<usize> {
        let parts = Name::from_ast(name, &self.source)?;
        table.column(&parts.name).ok_or_else(|| {
            let known = table.columns.iter().map(|column| column.name.as_str());
            let mut error = undefined_column(&parts.name, None, known);
            error.message =
                format!("column \"{}\" of relation \"{}\" does not exist", parts.name, table.name);
            error.position = parts.position;
            error
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
                Output::of_list(items, Some(&TableScope { table, alias }), binder).map(Some)
            }
        }
    }

    pub(super) fn insert(
        &self,
        insert: &ast::Insert,
        binder: &mut Binder<'_>,
        given: &[Option<DataType>],
    ) -> Result<InsertPlan> {
        if insert.on.is_some() || insert.or.is_some() || insert.ignore || insert.replace_into {
            return Err(SqlError::unsupported("INSERT ... ON CONFLICT"));
        }
        if insert.overwrite
            || !insert.assignments.is_empty()
            || insert.partitioned.is_some()
            || !insert.after_columns.is_empty()
            || insert.output.is_some()
        {
            return Err(SqlError::unsupported("this form of INSERT"));
        }
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into anything but a table"));
        };
        let table = self.target(name)?;
        let alias = match &insert.table_alias {
            Some(alias) => ident(&alias.alias),
            None => table.name.clone(),
        };
        let mut columns = Vec::with_capacity(table.columns.len());
        for name in &insert.columns {
            let column = self.target_column(&table, name)?;
            if columns.contains(&column) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", table.columns[column].name),
                ));
            }
            columns.push(column);
        }
        let listed = !columns.is_empty();
        if !listed {
            columns.extend(0..table.columns.len());
        }
        let defaults = (0..table.columns.len())
            .map(|column| default_of(&table, column))
            .collect::<Result<Vec<_>>>()?;
        let source = match &insert.source {
            // DEFAULT VALUES
            None => InsertSource::Values(vec![defaults]),
            Some(query) => match query.body.as_ref() {
                ast::SetExpr::Values(values)
                    if query.order_by.is_none()
                        && query.limit_clause.is_none()
                        && query.with.is_none() =>
                {
                    let mut rows = Vec::with_capacity(values.rows.len());
                    for row in &values.rows {
                        rows.push(self.values_row(
                            &row.content,
                            &table,
                            &columns,
                            listed,
                            &defaults,
                            binder,
                        )?);
                    }
                    InsertSource::Values(rows)
                }
                _ => self.insert_query(query, &table, &columns, listed, defaults, binder, given)?,
            },
        };
        let returning = self.returning(insert.returning.as_ref(), &table, &alias, binder)?;
        Ok(InsertPlan { table, source, returning })
    }

    fn values_row(
        &self,
        row: &[ast::Expr],
        table: &TableDef,
        columns: &[usize],
        listed: bool,
        defaults: &[Expr],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Expr>> {
        check_count(row.len(), columns.len(), listed)?;
        let mut exprs = defaults.to_vec();
        for (e, column) in row.iter().zip(columns) {
            if is_default(e) {
                continue;
            }
            let typed = binder.bind(e, &NoColumns)?;
            exprs[*column] = assign(binder, table, *column, typed)?;
        }
        Ok(exprs)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn insert_query(
        &self,
        query: &ast::Query,
        table: &TableDef,
        columns: &[usize],
        listed: bool,
        defaults: Vec<Expr>,
        binder: &mut Binder<'_>,
        given: &[Option<DataType>],
    ) -> Result<InsertSource> {
        if binder.is_lifted() {
            return Err(SqlError::unsupported("INSERT ... SELECT without its literals"));
        }
        let inner = Binder::new(self.source, ParamTypes::Declared(given.to_vec()));
        let planned = self.plan_query(query, inner, given)?;
        if let ParamTypes::Declared(types) = &mut binder.params {
            // What the query has found out about the parameters.
            for (i, ty) in planned.params.iter().enumerate() {
                if types.len() <= i {
                    types.resize(i + 1, None);
                }
                types[i].get_or_insert(*ty);
            }
        }
        let found = planned.columns.clone().unwrap_or_else(|| Arc::new([]));
        check_count(found.len(), columns.len(), listed)?;
        let mut exprs = defaults;
        for (place, (desc, column)) in found.iter().zip(columns).enumerate() {
            let typed = Typed { expr: Expr::Column(place), ty: Ty::Known(desc.ty) };
            exprs[*column] = assign(binder, table, *column, typed)?;
        }
        Ok(InsertSource::Query(Arc::new(planned), exprs))
    }

    pub(super) fn update(
        &self,
        update: &ast::Update,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if update.from.is_some() || !update.table.joins.is_empty() {
            return Err(SqlError::unsupported("UPDATE ... FROM"));
        }
        if update.or.is_some()
            || update.limit.is_some()
            || update.output.is_some()
            || !update.order_by.is_empty()
        {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
        let (table, alias) = self.table_factor(&update.table.relation)?;
        let scope = TableScope { table: &table, alias: &alias };
        let mut set: Vec<(usize, Expr)> = Vec::with_capacity(update.assignments.len());
        for assignment in &update.assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::unsupported("assignment to several columns at once"));
            };
            let column = self.target_column(&table, name)?;
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
                assign(binder, &table, column, typed)?
            };
            set.push((column, value));
        }
        let condition = self.where_clause(update.selection.as_ref(), binder, &scope)?;
        let (access, filter, _) = access::choose(&table, self.indexes, condition.as_ref(), None);
        let returning = self.returning(update.returning.as_ref(), &table, &alias, binder)?;
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: Some(set), returning })
    }

    pub(super) fn delete(
        &self,
        delete: &ast::Delete,
        binder: &mut Binder<'_>,
    ) -> Result<ChangePlan> {
        if delete.using.is_some() || !delete.tables.is_empty() {
            return Err(SqlError::unsupported("DELETE ... USING"));
        }
        if delete.limit.is_some() || !delete.order_by.is_empty() || delete.output.is_some() {
            return Err(SqlError::unsupported("this form of DELETE"));
        }
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &delete.from;
        let [one] = from.as_slice() else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        if !one.joins.is_empty() {
            return Err(SqlError::unsupported("DELETE from a join"));
        }
        let (table, alias) = self.table_factor(&one.relation)?;
        let scope = TableScope { table: &table, alias: &alias };
        let condition = self.where_clause(delete.selection.as_ref(), binder, &scope)?;
        let (access, filter, _) = access::choose(&table, self.indexes, condition.as_ref(), None);
        let returning = self.returning(delete.returning.as_ref(), &table, &alias, binder)?;
        let rows = Target::Accessed { access, filter, condition };
        Ok(ChangePlan { table, rows, set: None, returning })
    }
}

fn check_count(given: usize, wanted: usize, listed: bool) -> Result<()> {
    if given > wanted {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "INSERT has more expressions than target columns",
        ));
    }
    // Without a list, columns at the end may be left out.
    if given < wanted && listed {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "INSERT has more target columns than expressions",
        ));
    }
    Ok(())
}
