//! In which order relations are joined, and how.
//!
//! The order begins with the item that is found best, and goes on with the one that costs least
//! from the rows so far: by a key in a nested loop, by a hash table, or by looking at all pairs. A
//! few beginnings are tried. Outer joins and semi-joins follow as soon as there is what they need.

use super::Planning;
use super::estimate::{KEEP, PROBE, selectivity, sort_cost};
use super::problem::{Dependent, Item, Problem, Relation};
use super::slot_set::SlotSet;
use crate::analyze::tree::JoinKind;
use crate::error::Result;
use crate::expr::{Compare, Expr};
use crate::plan::access::all_of;
use crate::plan::{Access, SortKey};

/// How many beginnings are tried of a join of at most [`MAX_TRIED_ITEMS`] items.
const STARTS: usize = 3;
const MAX_TRIED_ITEMS: usize = 8;

/// Conditions and what they need.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) exprs: Vec<Expr>,
    /// Slots of the problem: all, if a condition is volatile.
    needs: Vec<SlotSet>,
    /// Whether it uses slots outside of the problem, too.
    outside: Vec<bool>,
}

/// A decided order.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Rows come in the order that was wanted.
    pub(super) ordered: bool,
    /// There is no more than one row.
    pub(super) one_row: bool,
    /// The first rows are found by values from outside of the problem.
    by_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Item(usize),
    Dependent(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) part: Part,
    pub(super) method: Method,
}

/// How a relation is joined to the rows so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// It is the first.
    First,
    /// It is run for each row, and may use the row.
    Inner,
    /// It is hashed; or, swapped, the rows so far are.
    Hash { swapped: bool },
    /// It is kept, and all of it is looked at for each row.
    Loop,
}

/// An order in which rows are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'s> {
    pub(super) sort: &'s [SortKey],
    /// How many rows are wanted of them: a guess.
    pub(super) limit: Option<f64>,
    /// Without the order rows are hashed, not sorted.
    pub(super) or_hashed: bool,
}

/// What a relation costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    rows: f64,
    cost: f64,
    by_key: bool,
    one_row: bool,
}

/// A join that has been planned up to some relation.
pub(super) struct Progress {
    pub(super) bound: SlotSet,
    /// Which conditions have a place.
    placed: Vec<bool>,
    pub(super) done: Vec<Part>,
}

impl Conditions {
    pub(super) fn new(planning: &Planning<'_>, problem: &Problem<'_>, more: &[Expr]) -> Self {
        let all = problem.slots();
        let exprs: Vec<Expr> = problem.conjuncts.iter().chain(more).cloned().collect();
        let (mut needs, mut outside) = (Vec::new(), Vec::new());
        for e in &exprs {
            let uses = planning.slots_of(e);
            needs.push(if e.is_volatile() { all.clone() } else { uses.and(&all) });
            outside.push(!uses.is_within(&all, &all));
        }
        Self { exprs, needs, outside }
    }

    /// Those on one item alone. Of what is planned once and kept, those that use nothing outside.
    pub(super) fn of(&self, item: &Item<'_>) -> Vec<Expr> {
        let is_table = matches!(item.relation, Relation::Table { .. });
        let slots = &item.slots;
        let is_own = |place: &usize| {
            let needs = &self.needs[*place];
            !needs.is_empty()
                && needs.is_within(slots, slots)
                && (is_table || !self.outside[*place])
        };
        (0..self.exprs.len()).filter(is_own).map(|place| self.exprs[place].clone()).collect()
    }

    fn all(&self, places: &[usize]) -> Vec<Expr> {
        places.iter().map(|place| self.exprs[*place].clone()).collect()
    }
}

impl Progress {
    pub(super) fn new(conditions: &Conditions) -> Self {
        let placed = vec![false; conditions.exprs.len()];
        Self { bound: SlotSet::default(), placed, done: Vec::new() }
    }

    /// The places of the conditions that can be told once these slots are there, too.
    fn ready(&self, conditions: &Conditions, slots: &SlotSet) -> Vec<usize> {
        (0..self.placed.len())
            .filter(|place| {
                !self.placed[*place] && conditions.needs[*place].is_within(&self.bound, slots)
            })
            .collect()
    }

    /// The same, which then have their place.
    pub(super) fn take(&mut self, conditions: &Conditions, slots: &SlotSet) -> Vec<Expr> {
        let ready = self.ready(conditions, slots);
        ready.iter().for_each(|place| self.placed[*place] = true);
        conditions.all(&ready)
    }
}

impl Planning<'_> {
    /// The order for a problem under its conditions.
    pub(super) fn way(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions,
        wanted: Wanted<'_>,
    ) -> Result<Way> {
        self.check_relations(problem.items.len() + problem.dependents.len())?;
        let all = problem.slots();
        let mut starts = Vec::new();
        for (at, item) in problem.items.iter().enumerate() {
            if !item.needs.intersects(&all) {
                let progress = Progress::new(conditions);
                let ready = conditions.all(&progress.ready(conditions, &item.slots));
                let cost = self.item_cost(item, conditions, &ready, &[])?;
                starts.push((cost.cost + cost.rows, at));
            }
        }
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let tried = if problem.items.len() <= MAX_TRIED_ITEMS { STARTS } else { 1 };
        let mut best: Option<(f64, Way)> = None;
        let mut consider = |way: Way| {
            let total = wanted.total(&way);
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                best = Some((total, way));
            }
        };
        for (_, start) in starts.iter().take(tried) {
            consider(self.way_from(problem, conditions, Some(*start), &[])?);
        }
        if let Some(start) = self.start_of(problem, wanted.sort) {
            consider(self.way_from(problem, conditions, Some(start), wanted.sort)?);
        }
        match best {
            Some((_, way)) => Ok(way),
            None => self.way_from(problem, conditions, None, &[]),
        }
    }

    /// The item whose columns are all that rows are to be ordered by.
    fn start_of(&self, problem: &Problem<'_>, sort: &[SortKey]) -> Option<usize> {
        let mut slots = SlotSet::default();
        sort.iter().for_each(|key| slots.add(&self.slots_of(&key.expr)));
        if slots.is_empty() {
            return None;
        }
        problem.items.iter().position(|item| {
            matches!(item.relation, Relation::Table { .. })
                && slots.is_within(&item.slots, &item.slots)
        })
    }

    fn way_from(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions,
        start: Option<usize>,
        sort: &[SortKey],
    ) -> Result<Way> {
        let mut progress = Progress::new(conditions);
        let mut way = Way {
            steps: Vec::new(),
            rows: 1.0,
            cost: 0.0,
            ordered: !sort.is_empty(),
            one_row: true,
            by_key: false,
        };
        if let Some(start) = start {
            let item = &problem.items[start];
            let ready = progress.take(conditions, &item.slots);
            let cost = self.item_cost(item, conditions, &ready, sort)?;
            if !sort.is_empty() {
                way.ordered = self.is_ordered(item, &ready, sort);
            }
            (way.rows, way.cost) = (cost.rows, cost.cost);
            (way.one_row, way.by_key) = (cost.one_row, cost.by_key);
            progress.add(&mut way, Part::Item(start), Method::First, &item.slots);
        }
        loop {
            self.add_sublinks(problem, conditions, &mut progress, &mut way)?;
            let next = self.next_item(problem, conditions, &progress, &way)?;
            let is_pairs = next.is_none_or(|next| next.2 == Method::Loop);
            if is_pairs && let Some(at) = self.ready_dependent(problem, &progress) {
                self.add_dependent(problem, conditions, at, &mut progress, &mut way)?;
                continue;
            }
            let Some((at, cost, method, rows)) = next else { break };
            let item = &problem.items[at];
            progress.take(conditions, &item.slots);
            way.cost += cost.cost;
            way.rows = rows;
            way.one_row &= cost.one_row;
            way.ordered &= !matches!(method, Method::Hash { .. });
            progress.add(&mut way, Part::Item(at), method, &item.slots);
        }
        Ok(way)
    }

    /// The item that costs least: with what it adds to the cost, the method, and the rows then.
    fn next_item(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions,
        progress: &Progress,
        way: &Way,
    ) -> Result<Option<(usize, Cost, Method, f64)>> {
        let mut best: Option<(f64, (usize, Cost, Method, f64))> = None;
        let all = problem.slots();
        for (at, item) in problem.items.iter().enumerate() {
            let needed = item.needs.and(&all);
            if progress.done.contains(&Part::Item(at))
                || !needed.is_within(&progress.bound, &progress.bound)
            {
                continue;
            }
            let ready = conditions.all(&progress.ready(conditions, &item.slots));
            let keyed = self.item_cost(item, conditions, &ready, &[])?;
            let own = conditions.of(item);
            let alone = self.item_cost(item, conditions, &own, &[])?;
            let on = ready.iter().filter(|e| !own.contains(e)).cloned().collect();
            let side = Side { keyed, alone, lateral: !needed.is_empty(), kind: JoinKind::Inner };
            let (cost, method, rows) = self.method(way, side, &on, &item.slots);
            let total = cost + rows;
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                let cost = Cost { cost, ..keyed };
                best = Some((total, (at, cost, method, rows)));
            }
        }
        Ok(best.map(|(_, next)| next))
    }

    /// Joins what only drops rows, as soon as it can be.
    fn add_sublinks(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions,
        progress: &mut Progress,
        way: &mut Way,
    ) -> Result<()> {
        for (at, dependent) in problem.dependents.iter().enumerate() {
            if dependent.kind != JoinKind::Left && is_ready(problem, progress, at) {
                self.add_dependent(problem, conditions, at, progress, way)?;
            }
        }
        Ok(())
    }

    fn ready_dependent(&self, problem: &Problem<'_>, progress: &Progress) -> Option<usize> {
        (0..problem.dependents.len()).find(|at| is_ready(problem, progress, *at))
    }

    fn add_dependent(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions,
        at: usize,
        progress: &mut Progress,
        way: &mut Way,
    ) -> Result<()> {
        let dependent = &problem.dependents[at];
        let side = self.dependent_side(problem, dependent)?;
        let (cost, method, rows) = self.method(way, side, &dependent.on, &dependent.slots);
        way.cost += cost;
        way.rows = rows;
        way.one_row &= dependent.kind != JoinKind::Left || side.keyed.one_row;
        way.ordered &= !matches!(method, Method::Hash { .. });
        progress.take(conditions, &dependent.adds);
        progress.add(way, Part::Dependent(at), method, &dependent.adds);
        Ok(())
    }

    fn dependent_side(&mut self, problem: &Problem<'_>, dependent: &Dependent<'_>) -> Result<Side> {
        let kind = dependent.kind;
        let lateral = dependent.lateral.intersects(&problem.slots());
        let right = &dependent.right;
        let keyed = Conditions::new(self, right, &dependent.on);
        let keyed = self.nested(|p| p.way(right, &keyed, Wanted::default()))?.cost();
        if lateral {
            return Ok(Side { keyed, alone: keyed, lateral, kind });
        }
        let alone = Conditions::new(self, right, &[]);
        let alone = self.nested(|p| p.way(right, &alone, Wanted::default()))?.cost();
        Ok(Side { keyed, alone, lateral, kind })
    }

    /// How to join a relation, what it costs, and how many rows there are then.
    fn method(&self, way: &Way, side: Side, on: &Vec<Expr>, slots: &SlotSet) -> (f64, Method, f64) {
        let Side { keyed, alone, lateral, kind } = side;
        let keeps_order = way.ordered && keyed.by_key;
        let outer = way.rows.max(1.0);
        let mut pairs = outer * alone.rows;
        let mut has_keys = false;
        for conjunct in on {
            pairs *= match self.join_key(conjunct, slots) {
                Some((a, b)) => {
                    has_keys = true;
                    self.equality(a, b)
                }
                None => selectivity(Some(conjunct)),
            };
        }
        let found = if keyed.by_key || lateral { outer * keyed.rows } else { pairs };
        let rows = match kind {
            JoinKind::Left => found.max(outer),
            JoinKind::Semi | JoinKind::Anti => outer * 0.5,
            _ => found,
        };
        let rows = rows.max(1.0);
        let inner = (outer * keyed.cost, Method::Inner, rows);
        if lateral || on.is_empty() && way.one_row {
            return inner;
        }
        let may_swap = matches!(kind, JoinKind::Inner | JoinKind::Left);
        let swapped = may_swap && outer < alone.rows;
        let (built, probed) = if swapped { (outer, alone.rows) } else { (alone.rows, outer) };
        let hash = alone.cost + built * KEEP + probed * PROBE;
        let hash = (hash, Method::Hash { swapped }, rows);
        let all_pairs = alone.cost + alone.rows * KEEP + outer * alone.rows * PROBE;
        let kept = (all_pairs, Method::Loop, rows);
        match (keyed.by_key || way.one_row, has_keys) {
            (true, true) if hash.0 < inner.0 && !keeps_order => hash,
            (true, false) if kept.0 < inner.0 => kept,
            (true, _) => inner,
            (false, true) => hash,
            (false, false) => kept,
        }
    }

    /// The two sides of an equality between the rows so far and a relation's.
    pub(super) fn join_key<'e>(
        &self,
        conjunct: &'e Expr,
        slots: &SlotSet,
    ) -> Option<(&'e Expr, &'e Expr)> {
        let Expr::Compare(Compare::Eq, pair) = conjunct else { return None };
        let (a, b) = (&pair.0, &pair.1);
        if a.is_volatile() || b.is_volatile() {
            return None;
        }
        let (uses_a, uses_b) = (self.slots_of(a), self.slots_of(b));
        let is_own = |uses: &SlotSet| !uses.is_empty() && uses.is_within(slots, slots);
        let is_other = |uses: &SlotSet| !uses.is_empty() && !uses.intersects(slots);
        if is_other(&uses_a) && is_own(&uses_b) {
            Some((a, b))
        } else if is_own(&uses_a) && is_other(&uses_b) {
            Some((b, a))
        } else {
            None
        }
    }

    /// What an item costs under conditions on it and on rows that are there already.
    fn item_cost(
        &mut self,
        item: &Item<'_>,
        conditions: &Conditions,
        ready: &[Expr],
        sort: &[SortKey],
    ) -> Result<Cost> {
        if let Relation::Table { slot, table, .. } = &item.relation {
            let condition = all_of(ready.to_vec());
            let path = self.table_path(*slot, table, condition.as_ref(), sort);
            let one_row = matches!(path.choice.access, Access::Point { .. });
            let (rows, cost, by_key) = (path.rows, path.cost, path.by_key);
            return Ok(Cost { rows, cost, by_key, one_row });
        }
        let own = conditions.of(item);
        let (rows, cost) = self.alone(item, own.clone())?;
        let more: Vec<Expr> = ready.iter().filter(|e| !own.contains(e)).cloned().collect();
        if !more.is_empty()
            && let Relation::Query { slot, query } = &item.relation
            && let Some(path) = self.try_keyed(*slot, query, &own, &more)?
            && path.1 < cost
        {
            let (rows, cost) = path;
            return Ok(Cost { rows, cost, by_key: true, one_row: false });
        }
        let rows = (rows * selectivity(all_of(more).as_ref())).max(1.0);
        Ok(Cost { rows, cost, by_key: false, one_row: false })
    }

    fn is_ordered(&self, item: &Item<'_>, ready: &[Expr], sort: &[SortKey]) -> bool {
        let Relation::Table { slot, table, .. } = &item.relation else { return false };
        let condition = all_of(ready.to_vec());
        self.table_path(*slot, table, condition.as_ref(), sort).choice.is_ordered
    }
}

/// The two ways to have a relation's rows.
#[derive(Clone, Copy)]
struct Side {
    /// For a row that is there.
    keyed: Cost,
    /// All of them.
    alone: Cost,
    lateral: bool,
    kind: JoinKind,
}

impl Progress {
    fn add(&mut self, way: &mut Way, part: Part, method: Method, slots: &SlotSet) {
        way.steps.push(Step { part, method });
        self.bound.add(slots);
        self.done.push(part);
    }
}

impl Way {
    fn cost(&self) -> Cost {
        Cost { rows: self.rows, cost: self.cost, by_key: self.by_key, one_row: self.one_row }
    }
}

impl Wanted<'_> {
    /// What a way costs together with what makes the order of it.
    fn total(&self, way: &Way) -> f64 {
        if self.sort.is_empty() {
            return way.cost;
        }
        match (way.ordered || way.one_row, self.limit) {
            (true, Some(limit)) => way.cost * (limit / way.rows).min(1.0),
            (true, None) => way.cost,
            (false, _) if self.or_hashed => way.cost + way.rows * KEEP,
            (false, _) => way.cost + sort_cost(way.rows),
        }
    }
}

fn is_ready(problem: &Problem<'_>, progress: &Progress, at: usize) -> bool {
    let needs = problem.dependents[at].needs.and(&problem.slots());
    !progress.done.contains(&Part::Dependent(at))
        && needs.is_within(&progress.bound, &progress.bound)
}
