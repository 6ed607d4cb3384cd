//! INSERT as a query that gives the rows to be inserted.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{InsertStmt, SelectStmt};

use super::Analyzer;
use super::level::{Clause, Level};
use super::modification::Parts;
use super::query::plain;
use super::set_operation::target_location;
use super::set_step::Clauses;
use super::tree::{Body, Cte, FromItem, Modification, ModificationKind, Query, Values, column};
use crate::DataType;
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::bind::{Binder, Typed};
use crate::expr::types::Ty;
use crate::plan::query::node::SlotKind;
use crate::plan::{InsertColumns, assigned, insert_table, plain_values};

impl Analyzer<'_> {
    pub(super) fn insert(
        &self,
        insert: &InsertStmt,
        ctes: Vec<Arc<Cte>>,
        binder: &mut Binder<'_>,
    ) -> Result<Modification> {
        let level = Level::new(self, None, &[]);
        let target = level.target_table(insert_table(insert)?)?;
        let columns = InsertColumns::new(&target.table, &insert.cols, &self.source)?;
        let (from, values) = self.insert_source(insert, &target.table, columns, binder)?;
        level.visible.replace(target.visible.clone());
        let returning = level.returning(&insert.returning_list, binder)?;
        let columns = (0..target.table.columns.len()).collect();
        let parts = Parts { from, condition: None, values, columns, returning };
        Ok(self.modification(ModificationKind::Insert, target, parts, ctes))
    }

    /// The query that gives the rows, if there is one, and of each column its value.
    fn insert_source(
        &self,
        insert: &InsertStmt,
        table: &TableDef,
        columns: InsertColumns,
        binder: &mut Binder<'_>,
    ) -> Result<(Vec<FromItem>, Vec<Expr>)> {
        let Some(source) = &insert.select_stmt else { return Ok((Vec::new(), columns.defaults)) };
        let Some(values) = plain_values(source) else {
            return self.insert_query(source, table, columns, binder);
        };
        let level = Level::new(self, None, &[]);
        level.clause.set(if values.len() == 1 { Clause::Row } else { Clause::Values });
        let mut rows = columns.rows(values, table, binder, &level)?;
        if rows.len() == 1 {
            let (mut from, mut row) = (Vec::new(), rows.remove(0));
            let mut clauses = Clauses { values: &mut row, ..Clauses::default() };
            level.set_steps(&mut clauses, &mut from)?;
            return Ok((from, row));
        }
        let described: Vec<_> =
            (0..table.columns.len()).map(|column| crate::plan::describe(table, column)).collect();
        let kind = SlotKind::Computed(described.len());
        let slot = self.item_slot(kind, "*VALUES*", &described)?;
        let query = plain(Body::Values(Values { slot, rows }), described);
        let (item, exprs) = self.source_item(query)?;
        Ok((vec![item], exprs))
    }

    fn insert_query(
        &self,
        source: &SelectStmt,
        table: &TableDef,
        columns: InsertColumns,
        binder: &mut Binder<'_>,
    ) -> Result<(Vec<FromItem>, Vec<Expr>)> {
        let typing = self.typing(source, None, false, binder)?;
        let place = |at| self.target_position(source, at);
        columns.check_count(typing.query.columns.len(), place)?;
        // A literal without a type takes the column's.
        let described = typing.query.columns.iter().zip(&typing.unknown);
        let types: Vec<DataType> = described
            .zip(&columns.columns)
            .map(|((desc, unknown), column)| match unknown {
                true => table.columns[*column].ty.base(),
                false => desc.ty,
            })
            .collect();
        let query = self.converted(typing, &types, Some(source), binder)?;
        let (item, found) = self.source_item(query)?;
        let mut exprs = columns.defaults;
        for (at, (expr, column)) in found.into_iter().zip(&columns.columns).enumerate() {
            let typed = Typed { expr, ty: Ty::Known(types[at]) };
            exprs[*column] = assigned(binder, table, *column, typed).map_err(|mut error| {
                error.position = error.position.or_else(|| place(at));
                error
            })?;
        }
        Ok((vec![item], exprs))
    }

    /// Where a column of a query is in the text.
    fn target_position(&self, query: &SelectStmt, at: usize) -> Option<usize> {
        Some(self.source.position(target_location(query, at)?))
    }

    /// A query as an item of FROM, and its columns.
    fn source_item(&self, query: Query) -> Result<(FromItem, Vec<Expr>)> {
        let width = query.columns.len();
        let alias = "*SELECT*".to_owned();
        let slot = self.item_slot(SlotKind::Computed(width), &alias, &query.columns)?;
        let exprs = (0..width).map(|place| Expr::Column(column(slot, place))).collect();
        let query = Box::new(query);
        Ok((FromItem::Subquery { slot, query, alias }, exprs))
    }
}
