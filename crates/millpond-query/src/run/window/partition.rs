//! What functions see of a partition's rows.

use std::ops::Range;

use crate::Value;
use crate::analyze::tree::Window;
use crate::error::Result;
use crate::expr::Expr;
use crate::memory::bytes_of;
use crate::run::{Context, Work};

/// Cells in rows of one length.
#[derive(Default)]
pub(super) struct Grid<T> {
    width: usize,
    cells: Vec<T>,
}

impl<T> Grid<T> {
    /// A row's cells; none if there is no such row.
    pub(super) fn row(&self, row: usize) -> &[T] {
        let start = row * self.width;
        self.cells.get(start..start + self.width).unwrap_or_default()
    }
}

impl Grid<Value> {
    /// Adds the values of some expressions as a row. Says about how many bytes it takes.
    fn add<'e>(
        &mut self,
        exprs: impl Iterator<Item = &'e Expr>,
        cx: &Context<'_>,
    ) -> Result<usize> {
        let start = self.cells.len();
        cx.values(exprs, &mut self.cells)?;
        let row = self.cells.get(start..).unwrap_or_default();
        self.width = row.len();
        Ok(bytes_of(row))
    }
}

/// A partition's rows.
#[derive(Default)]
pub(super) struct Partition {
    count: usize,
    /// Each row's values of the window's order.
    pub(super) order: Grid<Value>,
    /// Each row's arguments of all calls, one call's behind the other's.
    pub(super) args: Grid<Value>,
    /// Whether each call's FILTER lets a row through; empty if no call has one.
    pub(super) passes: Grid<bool>,
    /// The number of each row's peer group, and the groups.
    pub(super) group_of: Vec<usize>,
    pub(super) groups: Vec<Range<usize>>,
}

impl Partition {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Takes all rows out. Memory is kept for others.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.order.cells.clear();
        self.args.cells.clear();
        self.passes.cells.clear();
        self.group_of.clear();
        self.groups.clear();
    }

    /// Adds the current row. Says about how many bytes it takes.
    pub(super) fn add(&mut self, window: &Window, cx: &Context<'_>) -> Result<usize> {
        if self.order.cells.capacity() == 0 {
            self.make_room(window);
        }
        let mut grown = size_of::<usize>() + size_of::<Range<usize>>();
        grown += self.order.add(window.order_by.iter().map(|key| &key.expr), cx)?;
        grown += self.args.add(window.calls.iter().flat_map(|call| &call.args), cx)?;
        if window.calls.iter().any(|call| call.filter.is_some()) {
            self.passes.width = window.calls.len();
            for call in &window.calls {
                self.passes.cells.push(cx.holds(call.filter.as_ref())?);
            }
            grown += window.calls.len();
        }
        self.count += 1;
        Ok(grown)
    }

    /// Makes room for the rows of a small partition at once.
    fn make_room(&mut self, window: &Window) {
        const ROWS: usize = 16;
        let arguments = window.calls.iter().map(|call| call.args.len()).sum::<usize>();
        self.order.cells.reserve(ROWS * window.order_by.len().max(1));
        self.args.cells.reserve(ROWS * arguments);
        self.group_of.reserve(ROWS);
        self.groups.reserve(ROWS);
    }

    /// Finds out which rows are peers. Without an order all are. An error if the statement was told
    /// to stop.
    pub(super) fn find_peers(&mut self, window: &Window, work: &Work<'_>) -> Result<()> {
        let is_ordered = !window.order_by.is_empty();
        let mut last: Option<&[Value]> = None;
        for row in 0..self.count {
            work.tick()?;
            let order = self.order.row(row);
            let is_peer = last.is_some_and(|last| {
                let mut pairs = last.iter().zip(order);
                !is_ordered || pairs.all(|(a, b)| a.as_datum().sort_cmp(&b.as_datum()).is_eq())
            });
            match self.groups.last_mut() {
                Some(group) if is_peer => group.end = row + 1,
                _ => self.groups.push(row..row + 1),
            }
            self.group_of.push(self.groups.len() - 1);
            last = Some(order);
        }
        Ok(())
    }

    /// A row's peers, itself among them.
    pub(super) fn peers(&self, row: usize) -> Range<usize> {
        let group = self.group_of.get(row).and_then(|group| self.groups.get(*group));
        group.cloned().unwrap_or(row..row + 1)
    }

    /// A row's group by its number, or an empty one before or behind all rows.
    pub(super) fn group(&self, number: i128) -> Range<usize> {
        let found = usize::try_from(number).ok().and_then(|number| self.groups.get(number));
        match found {
            Some(group) => group.clone(),
            None if number < 0 => 0..0,
            None => self.len()..self.len(),
        }
    }
}
