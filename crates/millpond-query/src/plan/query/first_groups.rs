//! How many rows a LIMIT of groups, or of different rows, is made of.

use millpond_engine::table::Direction;

use super::Planning;
use super::problem::{Problem, Relation};
use crate::analyze::tree::slot_of;
use crate::expr::Expr;
use crate::plan::SortKey;

impl Planning<'_> {
    /// How many rows have to be read in this order for a number of groups. Their keys are what rows
    /// are ordered by. `None` if no index of the only table begins with the keys.
    pub(super) fn rows_of_first_groups(
        &self,
        problem: &Problem<'_>,
        order: &[SortKey],
        groups: Option<f64>,
    ) -> Option<f64> {
        let ([item], []) = (&*problem.items, &*problem.dependents) else { return None };
        let Relation::Table { slot, table, .. } = &item.relation else { return None };
        let groups = groups?;
        let place = |key: &SortKey| match &key.expr {
            Expr::Column(column) => Some(slot_of(*column)).filter(|(of, _)| of == slot),
            _ => None,
        };
        let places: Vec<usize> =
            order.iter().map(|key| Some(place(key)?.1)).collect::<Option<_>>()?;
        let mut indexes = self.indexes.of(table);
        let index = indexes.find(|index| {
            let columns = index.columns.iter().map(|column| column.column);
            columns.take(places.len()).eq(places.iter().copied())
        })?;
        let (_, of_index) = index.keys.columns().first()?;
        let direction = match order.first()?.descending == of_index.descending {
            true => Direction::Forward,
            false => Direction::Backward,
        };
        let live = self.indexes.live_rows(table) as f64;
        self.ranges.rows_of_groups(index, places.len(), (groups, direction), live)
    }
}
