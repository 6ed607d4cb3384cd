//! What functions see of a partition's rows.

use std::ops::Range;

use crate::Value;
use crate::analyze::tree::Window;
use crate::error::Result;
use crate::memory::bytes_of;
use crate::run::Context;

/// A partition's rows.
#[derive(Default)]
pub(super) struct Partition {
    /// Each row's values of the window's order.
    pub(super) order: Vec<Vec<Value>>,
    /// Each row's arguments of all calls, one call's behind the other's.
    pub(super) args: Vec<Vec<Value>>,
    /// Whether each call's FILTER lets a row through; empty if no call has one.
    pub(super) passes: Vec<Vec<bool>>,
    /// The number of each row's peer group, and the groups.
    pub(super) group_of: Vec<usize>,
    pub(super) groups: Vec<Range<usize>>,
}

impl Partition {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Adds the current row. Says about how many bytes it takes.
    pub(super) fn add(&mut self, window: &Window, cx: &Context<'_>) -> Result<usize> {
        let mut order = Vec::with_capacity(window.order_by.len());
        cx.values(window.order_by.iter().map(|key| &key.expr), &mut order)?;
        let mut args = Vec::new();
        cx.values(window.calls.iter().flat_map(|call| &call.args), &mut args)?;
        let mut grown = bytes_of(&order) + bytes_of(&args) + size_of::<usize>();
        if window.calls.iter().any(|call| call.filter.is_some()) {
            let mut passes = Vec::with_capacity(window.calls.len());
            for call in &window.calls {
                passes.push(cx.holds(call.filter.as_ref())?);
            }
            grown += passes.len() + size_of::<Vec<bool>>();
            self.passes.push(passes);
        }
        self.order.push(order);
        self.args.push(args);
        Ok(grown)
    }

    /// Finds out which rows are peers. Without an order all are.
    pub(super) fn find_peers(&mut self, window: &Window) {
        let is_ordered = !window.order_by.is_empty();
        let mut last: Option<&Vec<Value>> = None;
        for (row, order) in self.order.iter().enumerate() {
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
