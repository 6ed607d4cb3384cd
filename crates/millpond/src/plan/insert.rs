//! Planning of INSERT.

use millpond_engine::catalog::TableDef;
use sqlparser::ast::{self, Spanned};

use super::dml::{assigned, default_of, is_default, target_column};
use super::{InsertPlan, InsertSource, Planner};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, NoColumns, Scope, beyond};
use crate::parse::{Source, ident};

/// Which columns an INSERT gives values to.
pub(crate) struct InsertColumns {
    /// In the order of the values.
    pub(crate) columns: Vec<usize>,
    /// Where they are named, if they are.
    named: Vec<Option<usize>>,
    /// Of all columns of the table.
    pub(crate) defaults: Vec<Expr>,
}

impl InsertColumns {
    pub(crate) fn new(
        table: &TableDef,
        names: &[ast::ObjectName],
        source: &Source<'_>,
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(table.columns.len());
        let mut named = Vec::with_capacity(names.len());
        for name in names {
            let column = target_column(table, name, source)?;
            if columns.contains(&column) {
                let mut error = SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", table.columns[column].name),
                );
                error.position = position_of(name, source);
                return Err(error);
            }
            columns.push(column);
            named.push(position_of(name, source));
        }
        if named.is_empty() {
            columns.extend(0..table.columns.len());
        }
        let defaults = (0..table.columns.len()).map(|column| default_of(table, column));
        let defaults = defaults.collect::<Result<_>>()?;
        Ok(InsertColumns { columns, named, defaults })
    }

    /// Whether there are as many values as columns. `place` says where one of them is.
    pub(crate) fn check_count(
        &self,
        given: usize,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Result<()> {
        let refused = |message: &str, position| {
            let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            error.position = position;
            Err(error)
        };
        let wanted = self.columns.len();
        if given > wanted {
            return refused("INSERT has more expressions than target columns", place(wanted));
        }
        // Without a list, columns at the end may be left out.
        match self.named.get(given) {
            Some(position) => refused("INSERT has more target columns than expressions", *position),
            None => Ok(()),
        }
    }

    /// The values of all columns of the table by the rows of VALUES.
    pub(crate) fn rows(
        &self,
        values: &ast::Values,
        table: &TableDef,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Vec<Vec<Expr>>> {
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            check_width(&row.content, values, &binder.source)?;
            rows.push(self.row(&row.content, table, binder, scope)?);
        }
        Ok(rows)
    }

    fn row(
        &self,
        row: &[ast::Expr],
        table: &TableDef,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Vec<Expr>> {
        let place = |at: usize| binder.source.position_of(row.get(at)?.span().start);
        self.check_count(row.len(), place)?;
        let mut exprs = self.defaults.clone();
        for (e, column) in row.iter().zip(&self.columns) {
            if is_default(e) {
                continue;
            }
            let typed = binder.bind(e, scope)?;
            exprs[*column] = assigned(binder, table, *column, typed)
                .map_err(|error| binder.place_at(error, e))?;
        }
        Ok(exprs)
    }
}

fn position_of(name: &ast::ObjectName, source: &Source<'_>) -> Option<usize> {
    source.position_of(name.span().start)
}

/// Whether a row of VALUES has as many values as the first one.
pub(crate) fn check_width(
    row: &[ast::Expr],
    values: &ast::Values,
    source: &Source<'_>,
) -> Result<()> {
    if values.rows.first().is_none_or(|first| first.content.len() == row.len()) {
        return Ok(());
    }
    let message = "VALUES lists must all be the same length";
    let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
    error.position = row.first().and_then(|e| source.position_of(e.span().start));
    Err(error)
}

/// The name of an INSERT's table, if the statement has a form that is known here.
pub(crate) fn insert_table(insert: &ast::Insert) -> Result<&ast::ObjectName> {
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
    match &insert.table {
        ast::TableObject::TableName(name) => Ok(name),
        _ => Err(SqlError::unsupported("INSERT into anything but a table")),
    }
}

/// The VALUES that a query is, without further clauses.
pub(crate) fn plain_values(query: &ast::Query) -> Option<&ast::Values> {
    let is_plain = query.order_by.is_none() && query.limit_clause.is_none() && query.with.is_none();
    match query.body.as_ref() {
        ast::SetExpr::Values(values) if is_plain => Some(values),
        _ => None,
    }
}

impl Planner<'_> {
    /// An INSERT of rows that need no query.
    pub(super) fn insert(
        &self,
        insert: &ast::Insert,
        binder: &mut Binder<'_>,
    ) -> Result<InsertPlan> {
        let table = self.target(insert_table(insert)?)?;
        let alias = match &insert.table_alias {
            Some(alias) => ident(&alias.alias),
            None => table.name.clone(),
        };
        let columns = InsertColumns::new(&table, &insert.columns, &self.source)?;
        let rows = match &insert.source {
            // DEFAULT VALUES
            None => vec![columns.defaults],
            Some(query) => {
                let values = plain_values(query).ok_or_else(|| beyond("INSERT of a query"))?;
                columns.rows(values, &table, binder, &NoColumns)?
            }
        };
        let returning = self.returning(insert.returning.as_ref(), &table, &alias, binder)?;
        Ok(InsertPlan { table, source: InsertSource::Values(rows), returning })
    }
}
