//! Planning of INSERT.

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{self, InsertStmt, RangeVar, ResTarget, SelectBody, SelectStmt};

use super::dml::{assigned, default_of, is_default, target_column};
use super::{InsertPlan, InsertSource, Planner};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, NoFrom, Scope, beyond, start_of};
use crate::parse::Source;

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
    pub(crate) fn new(table: &TableDef, names: &[ResTarget], source: &Source<'_>) -> Result<Self> {
        let mut columns = Vec::with_capacity(table.columns.len());
        let mut named = Vec::with_capacity(names.len());
        for name in names {
            let column = target_column(table, name, source)?;
            if columns.contains(&column) {
                let what =
                    format!("column \"{}\" specified more than once", table.columns[column].name);
                let error = SqlError::new(SqlState::DUPLICATE_COLUMN, what);
                return Err(source.place(error, name.location));
            }
            columns.push(column);
            named.push(Some(source.position(name.location)));
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
        values: &[Vec<tree::Expr>],
        table: &TableDef,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Vec<Vec<Expr>>> {
        let mut rows = Vec::with_capacity(values.len());
        for row in values {
            check_width(row, values, &binder.source)?;
            rows.push(self.row(row, table, binder, scope)?);
        }
        Ok(rows)
    }

    fn row(
        &self,
        row: &[tree::Expr],
        table: &TableDef,
        binder: &mut Binder<'_>,
        scope: &dyn Scope,
    ) -> Result<Vec<Expr>> {
        let place = |at: usize| Some(binder.source.position(start_of(row.get(at)?)));
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

/// Whether a row of VALUES has as many values as the first one.
pub(crate) fn check_width(
    row: &[tree::Expr],
    values: &[Vec<tree::Expr>],
    source: &Source<'_>,
) -> Result<()> {
    if values.first().is_none_or(|first| first.len() == row.len()) {
        return Ok(());
    }
    let message = "VALUES lists must all be the same length";
    let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
    Err(source.place(error, row.first().map(start_of)))
}

/// An INSERT's table, if the statement has a form that is known here.
pub(crate) fn insert_table(insert: &InsertStmt) -> Result<&RangeVar> {
    if insert.on_conflict_clause.is_some() {
        return Err(SqlError::unsupported("INSERT ... ON CONFLICT"));
    }
    Ok(&insert.relation)
}

/// The VALUES that a query is, without further clauses.
pub(crate) fn plain_values(query: &SelectStmt) -> Option<&[Vec<tree::Expr>]> {
    let is_plain = query.sort_clause.is_empty()
        && query.limit_count.is_none()
        && query.limit_offset.is_none()
        && query.locking_clause.is_empty()
        && query.with_clause.is_none();
    match &query.body {
        SelectBody::Values(values) if is_plain => Some(values),
        _ => None,
    }
}

impl Planner<'_> {
    /// An INSERT of rows that need no query.
    pub(super) fn insert(
        &self,
        insert: &InsertStmt,
        binder: &mut Binder<'_>,
    ) -> Result<InsertPlan> {
        let relation = insert_table(insert)?;
        let table = self.target(relation)?;
        let alias = match &relation.alias {
            Some(alias) => (*alias.aliasname).to_owned(),
            None => table.name.clone(),
        };
        let columns = InsertColumns::new(&table, &insert.cols, &self.source)?;
        let rows = match &insert.select_stmt {
            // DEFAULT VALUES
            None => vec![columns.defaults],
            Some(query) => {
                let values = plain_values(query).ok_or_else(|| beyond("INSERT of a query"))?;
                columns.rows(values, &table, binder, &NoFrom)?
            }
        };
        let returning = self.returning(&insert.returning_list, &table, &alias, binder)?;
        Ok(InsertPlan { table, source: InsertSource::Values(rows), returning })
    }
}
