//! From FROM and WHERE to what is to be joined.
//!
//! Inner joins and simple subqueries are flattened into one list of items. A join that keeps rows
//! without a match becomes an inner one where a condition drops those rows anyway.

use std::cell::RefCell;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::Planning;
use super::problem::{Dependent, FullJoin, Item, Problem, Relation};
use super::slot_set::SlotSet;
use super::strict::{Strict, strict_columns};
use crate::analyze::tree::{
    Body, Cte, CteQuery, Distinct, FromItem, Join, JoinKind, Query, Select, Slot, slot_of,
};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::access::conjuncts;
use crate::system_relations::is_system;

/// A subquery's targets may have this many parts for it to become a part of the query around it.
/// What they stand for is copied to each place that uses them.
const MAX_TARGET_PARTS: usize = 64;

/// What is known around an item.
#[derive(Clone)]
pub(super) struct Around {
    /// What conditions need to be not NULL.
    pub(super) strict: Vec<Strict>,
    /// The item's columns are NULL where an outer join finds no match. What a subquery computes
    /// from NULLs later is not NULL, so it has to be computed before.
    pub(super) nullable: bool,
}

impl Planning<'_> {
    /// What FROM and WHERE of a query ask for, with further conditions.
    pub(super) fn problem<'q>(
        &mut self,
        select: &'q Select,
        more: Vec<Expr>,
    ) -> Result<Problem<'q>> {
        let mut problem = Problem::default();
        self.fill(&mut problem, select, more)?;
        self.drive_by_sublinks(&mut problem)?;
        Ok(problem)
    }

    /// The same before it is decided which semi-joins drive the join.
    pub(super) fn fill<'q>(
        &mut self,
        problem: &mut Problem<'q>,
        select: &'q Select,
        more: Vec<Expr>,
    ) -> Result<()> {
        let mut strict: Vec<Strict> = select.condition.iter().flat_map(strict_columns).collect();
        strict.extend(more.iter().flat_map(strict_columns));
        let around = Around { strict, nullable: false };
        for item in &select.from {
            self.flatten(item, problem, &around)?;
        }
        if let Some(condition) = &select.condition {
            self.demand(condition, problem)?;
        }
        for condition in &more {
            problem.conjuncts.extend(self.resolved_conjuncts(Some(condition))?);
        }
        self.add_implied(problem)
    }

    /// Adds a condition's conjuncts.
    pub(super) fn demand<'q>(
        &mut self,
        condition: &'q Expr,
        problem: &mut Problem<'q>,
    ) -> Result<()> {
        for conjunct in conjuncts(Some(condition)) {
            let is_joined = self.join_sublink(conjunct, problem)?;
            let resolved = match (is_joined, &mut problem.sublinks) {
                (true, None) => continue,
                (true, Some(sublinks)) => sublinks,
                (false, _) => &mut problem.conjuncts,
            };
            resolved.extend(self.resolved_conjuncts(Some(conjunct))?);
        }
        Ok(())
    }

    pub(super) fn resolved_conjuncts(&mut self, condition: Option<&Expr>) -> Result<Vec<Expr>> {
        let mut resolved = Vec::new();
        for conjunct in conjuncts(condition) {
            // What it stands for may be a conjunction itself.
            match self.resolve(conjunct)? {
                Expr::And(list) => resolved.extend(list),
                other => resolved.push(other),
            }
        }
        Ok(resolved)
    }

    pub(super) fn flatten<'q>(
        &mut self,
        item: &'q FromItem,
        into: &mut Problem<'q>,
        around: &Around,
    ) -> Result<()> {
        self.nested(|planning| planning.flatten_item(item, into, around))
    }

    fn flatten_item<'q>(
        &mut self,
        item: &'q FromItem,
        into: &mut Problem<'q>,
        around: &Around,
    ) -> Result<()> {
        let none = SlotSet::default();
        let item = match item {
            FromItem::Join(join) => return self.flatten_join(join, into, around),
            FromItem::Subquery { slot, query, .. } => {
                return self.flatten_query(*slot, query, into, around);
            }
            FromItem::Cte { slot, cte, .. } => match self.inlined(cte) {
                Some(query) => return self.flatten_query(*slot, query, into, around),
                None => item_of(Relation::Cte { slot: *slot, cte: cte.id }, *slot, none),
            },
            FromItem::Table { slot, table, alias } => {
                self.note_table(table);
                let table = Arc::clone(table);
                item_of(Relation::Table { slot: *slot, table, alias }, *slot, none)
            }
            FromItem::Sample { slot, table, alias, sample } => {
                self.note_table(table);
                let mut needs = none;
                for number in std::iter::once(&sample.percent).chain(&sample.seed) {
                    needs.add(&self.slots_of(number));
                }
                let table = Arc::clone(table);
                item_of(Relation::Sample { slot: *slot, table, alias, sample }, *slot, needs)
            }
            FromItem::WorkTable { slot, cte, .. } => {
                item_of(Relation::WorkTable { slot: *slot, cte: *cte }, *slot, none)
            }
            FromItem::Functions { slot, functions, with_ordinality, .. } => {
                let mut needs = none;
                for arg in functions.iter().flat_map(|function| &function.args) {
                    needs.add(&self.slots_of(arg));
                }
                let (slot, with_ordinality) = (*slot, *with_ordinality);
                item_of(Relation::Functions { slot, functions, with_ordinality }, slot, needs)
            }
        };
        into.items.push(item);
        Ok(())
    }

    fn flatten_query<'q>(
        &mut self,
        slot: Slot,
        query: &'q Query,
        into: &mut Problem<'q>,
        around: &Around,
    ) -> Result<()> {
        if let Some(select) = simple(query, around.nullable) {
            return self.pull_up(slot, select, into, around);
        }
        // A subquery that is not lateral may be in one that was and has become a part of this.
        let needs = self.slots_around(query);
        into.items.push(item_of(Relation::Query { slot, query }, slot, needs));
        Ok(())
    }

    /// Makes a subquery's items and conditions those of the query around it.
    fn pull_up<'q>(
        &mut self,
        slot: Slot,
        select: &'q Select,
        into: &mut Problem<'q>,
        around: &Around,
    ) -> Result<()> {
        let mut strict: Vec<Strict> = select.condition.iter().flat_map(strict_columns).collect();
        let own = |outer: &usize| match (slot_of(*outer), select.targets.get(slot_of(*outer).1)) {
            ((of, _), Some(Expr::Column(own))) if of == slot => Some(*own),
            _ => None,
        };
        strict.extend(around.strict.iter().filter_map(|outer| outer.iter().map(own).collect()));
        let inner = Around { strict, nullable: around.nullable };
        for item in &select.from {
            self.flatten(item, into, &inner)?;
        }
        if let Some(condition) = &select.condition {
            self.demand(condition, into)?;
        }
        let targets = self.resolve_all(&select.targets)?;
        self.substituted.insert(slot, targets);
        Ok(())
    }

    fn flatten_join<'q>(
        &mut self,
        join: &'q Join,
        into: &mut Problem<'q>,
        around: &Around,
    ) -> Result<()> {
        let (kind, left, right) = reduced(join, &around.strict);
        let on: Vec<Strict> = join.on.iter().flat_map(strict_columns).collect();
        match kind {
            JoinKind::Inner => {
                let mut around = around.clone();
                around.strict.extend(on);
                self.flatten(left, into, &around)?;
                self.flatten(right, into, &around)?;
                join.on.iter().try_for_each(|on| self.demand(on, into))
            }
            JoinKind::Full => self.full_join(join, into),
            _ => {
                self.flatten(left, into, around)?;
                let mut inner = Problem::default();
                self.flatten(right, &mut inner, &Around { strict: on, nullable: true })?;
                let on = self.resolved_conjuncts(join.on.as_ref())?;
                into.dependents.push(self.dependent(kind, inner, on));
                Ok(())
            }
        }
    }

    fn full_join<'q>(&mut self, join: &'q Join, into: &mut Problem<'q>) -> Result<()> {
        let around = Around { strict: Vec::new(), nullable: true };
        let (mut left, mut right) = (Problem::default(), Problem::default());
        self.flatten(&join.left, &mut left, &around)?;
        self.flatten(&join.right, &mut right, &around)?;
        let on = self.resolved_conjuncts(join.on.as_ref())?;
        let mut slots = left.slots();
        slots.add(&right.slots());
        let mut needs = lateral_needs(&left);
        needs.add(&lateral_needs(&right));
        for e in left.conjuncts.iter().chain(&right.conjuncts).chain(&on) {
            needs.add(&self.slots_of(e));
        }
        let needs = needs.without(&slots);
        let relation = Relation::Full(Box::new(FullJoin { left, right, on }));
        into.items.push(Item { relation, slots, needs, alone: RefCell::default() });
        Ok(())
    }

    /// What is joined to rows that are there already, under conditions. Those on the right side
    /// alone become its own, and its own on the left side become the join's.
    pub(super) fn dependent<'q>(
        &self,
        kind: JoinKind,
        mut right: Problem<'q>,
        mut on: Vec<Expr>,
    ) -> Dependent<'q> {
        let slots = right.slots();
        let lateral = lateral_needs(&right).without(&slots);
        let mut needs = lateral.clone();
        on.append(&mut right.conjuncts);
        for conjunct in std::mem::take(&mut on) {
            let uses = self.slots_of(&conjunct);
            let is_own = uses.is_within(&slots, &SlotSet::default()) && !conjunct.is_volatile();
            if is_own {
                right.conjuncts.push(conjunct);
            } else {
                needs.add(&uses);
                on.push(conjunct);
            }
        }
        let adds = if kind == JoinKind::Left { slots.clone() } else { SlotSet::default() };
        let needs = needs.without(&slots);
        Dependent { kind, right, on, adds, slots, lateral, needs }
    }

    /// The query of a query of WITH that is used once: it is planned where it is used.
    pub(super) fn inlined<'q>(&self, cte: &'q Cte) -> Option<&'q Query> {
        let CteQuery::Plain(query) = &cte.query else { return None };
        let once = self.cte_uses.get(&cte.id).is_none_or(|uses| *uses <= 1);
        (once && cte.materialized != Some(true) && !is_volatile(query)).then_some(query)
    }

    /// A table that the statement reads.
    fn note_table(&mut self, table: &Arc<TableDef>) {
        if !is_system(table) && !self.tables.iter().any(|(other, _)| other.oid == table.oid) {
            let live = self.indexes.live_rows(table);
            self.tables.push((Arc::clone(table), live));
            self.largest_table = self.largest_table.max(live);
        }
    }
}

/// The slots that the parts of a problem use outside of its conditions.
fn lateral_needs(problem: &Problem<'_>) -> SlotSet {
    let mut needs = SlotSet::default();
    problem.items.iter().for_each(|item| needs.add(&item.needs));
    problem.dependents.iter().for_each(|dependent| needs.add(&dependent.needs));
    needs
}

/// The SELECT of a query that can become a part of the query around it.
fn simple(query: &Query, nullable: bool) -> Option<&Select> {
    let select = plain_select(query)?;
    if !query.order_by.is_empty() || select.from.is_empty() {
        return None;
    }
    let mut own = SlotSet::default();
    select.from.iter().for_each(|item| own.add(&slots_of_item(item)));
    let fits = |target: &Expr| {
        let (mut parts, mut has_query) = (0, false);
        target.walk(&mut |e| {
            parts += 1;
            has_query |= matches!(e, Expr::Subquery(_));
        });
        let is_small = parts <= MAX_TARGET_PARTS && !has_query && !target.is_volatile();
        // A column of an item beside the subquery does not become NULL with its rows.
        let is_own = matches!(target, Expr::Column(column) if own.contains(slot_of(*column).0));
        is_own || is_small && !nullable
    };
    select.targets.iter().all(fits).then_some(select)
}

/// A join's kind, where rows without a match are dropped by a condition around it, and its sides.
/// Of a left join the left side is kept.
fn reduced<'q>(join: &'q Join, strict: &[Strict]) -> (JoinKind, &'q FromItem, &'q FromItem) {
    let drops = |item: &FromItem| {
        let slots = slots_of_item(item);
        strict.iter().any(|columns| columns.iter().all(|column| slots.contains(slot_of(*column).0)))
    };
    let (left, right) = (&join.left, &join.right);
    match join.kind {
        JoinKind::Left if drops(right) => (JoinKind::Inner, left, right),
        JoinKind::Right if drops(left) => (JoinKind::Inner, left, right),
        JoinKind::Right => (JoinKind::Left, right, left),
        JoinKind::Full => match (drops(left), drops(right)) {
            (true, true) => (JoinKind::Inner, left, right),
            (true, false) => (JoinKind::Left, left, right),
            (false, true) => (JoinKind::Left, right, left),
            (false, false) => (JoinKind::Full, left, right),
        },
        kind => (kind, left, right),
    }
}

/// Whether some expression in a query may have another value each time.
pub(super) fn is_volatile(query: &Query) -> bool {
    let mut volatile = !query.locks.is_empty();
    query.walk(&mut |e| volatile |= matches!(e, Expr::Func(func, _) if func.is_volatile()));
    volatile
}

/// The SELECT of a query that is nothing but FROM, WHERE, a list, and perhaps ORDER BY.
pub(super) fn plain_select(query: &Query) -> Option<&Select> {
    let Body::Select(select) = &query.body else { return None };
    let plain = query.ctes.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locks.is_empty()
        && select.grouping.is_none()
        && select.having.is_none()
        && select.windows.is_empty()
        && select.sets.is_empty()
        && matches!(select.distinct, Distinct::No);
    plain.then_some(select)
}

pub(super) fn item_of(relation: Relation<'_>, slot: Slot, needs: SlotSet) -> Item<'_> {
    Item { relation, slots: SlotSet::one(slot), needs, alone: RefCell::default() }
}

/// The slots of an item's columns, as the query around it names them.
pub(super) fn slots_of_item(item: &FromItem) -> SlotSet {
    match item {
        FromItem::Table { slot, .. }
        | FromItem::Sample { slot, .. }
        | FromItem::Subquery { slot, .. }
        | FromItem::Cte { slot, .. }
        | FromItem::WorkTable { slot, .. }
        | FromItem::Functions { slot, .. } => SlotSet::one(*slot),
        FromItem::Join(join) => {
            let mut slots = slots_of_item(&join.left);
            slots.add(&slots_of_item(&join.right));
            slots
        }
    }
}
