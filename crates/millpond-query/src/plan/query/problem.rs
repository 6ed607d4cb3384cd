//! What is to be joined.

use std::cell::RefCell;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::select::Path;
use super::slot_set::SlotSet;
use crate::analyze::tree::{CteId, JoinKind, Query, SetFunction, Slot, TableSample};
use crate::expr::Expr;

/// Relations that are joined under conditions. Items can be joined in any order; dependents after
/// what they need.
#[derive(Debug, Default)]
pub(super) struct Problem<'q> {
    pub(super) items: Vec<Item<'q>>,
    pub(super) dependents: Vec<Dependent<'q>>,
    /// What must hold for all rows: of WHERE, and of inner joins.
    pub(super) conjuncts: Vec<Expr>,
    /// The conditions of which semi-joins and anti-joins have been made, if they are needed as
    /// expressions, too: for rows that have changed meanwhile.
    pub(super) sublinks: Option<Vec<Expr>>,
}

/// A relation.
#[derive(Debug)]
pub(super) struct Item<'q> {
    pub(super) relation: Relation<'q>,
    /// Where its rows are.
    pub(super) slots: SlotSet,
    /// The slots whose columns it uses, of items before it: it is lateral.
    pub(super) needs: SlotSet,
    /// Its rows without regard to the other items, once that has been planned.
    pub(super) alone: RefCell<Option<Alone>>,
}

/// A relation that has been planned by itself.
#[derive(Debug)]
pub(super) struct Alone {
    pub(super) path: Option<Path>,
    pub(super) rows: f64,
    pub(super) cost: f64,
}

#[derive(Debug)]
pub(super) enum Relation<'q> {
    Table {
        slot: Slot,
        table: Arc<TableDef>,
        alias: &'q str,
    },
    /// Some rows of a table.
    Sample {
        slot: Slot,
        table: Arc<TableDef>,
        alias: &'q str,
        sample: &'q TableSample,
    },
    /// A query whose rows are computed into a slot.
    Query {
        slot: Slot,
        query: &'q Query,
    },
    Cte {
        slot: Slot,
        cte: CteId,
    },
    WorkTable {
        slot: Slot,
        cte: CteId,
    },
    Functions {
        slot: Slot,
        functions: &'q [SetFunction],
        with_ordinality: bool,
    },
    /// FULL JOIN
    Full(Box<FullJoin<'q>>),
    /// What a semi-join looks for, once each: then it can be joined in any order.
    Unique(Box<Unique<'q>>),
}

/// The rows of a problem that differ in some expressions.
#[derive(Debug)]
pub(super) struct Unique<'q> {
    pub(super) problem: Problem<'q>,
    pub(super) keys: Vec<Expr>,
}

/// A full join.
#[derive(Debug)]
pub(super) struct FullJoin<'q> {
    pub(super) left: Problem<'q>,
    pub(super) right: Problem<'q>,
    pub(super) on: Vec<Expr>,
}

/// What is joined to rows that are there already: an outer join, a semi-join, an anti-join.
#[derive(Debug)]
pub(super) struct Dependent<'q> {
    /// Left, Semi or Anti.
    pub(super) kind: JoinKind,
    pub(super) right: Problem<'q>,
    /// What must hold for rows to match, apart from conditions on the right side alone.
    pub(super) on: Vec<Expr>,
    /// The slots that it adds to the rows: none for Semi and Anti.
    pub(super) adds: SlotSet,
    /// The slots of the right side.
    pub(super) slots: SlotSet,
    /// Those that its items use outside of conditions.
    pub(super) lateral: SlotSet,
    /// The slots whose columns it uses, apart from those of the right side.
    pub(super) needs: SlotSet,
}

impl Problem<'_> {
    /// The slots of the rows that are its solution.
    pub(super) fn slots(&self) -> SlotSet {
        let mut slots = SlotSet::default();
        self.items.iter().for_each(|item| slots.add(&item.slots));
        self.dependents.iter().for_each(|dependent| slots.add(&dependent.adds));
        slots
    }
}
