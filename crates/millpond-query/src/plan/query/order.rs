//! In which order relations are joined, and how.
//!
//! The order begins with the item that is found best, and goes on with the one that costs least
//! from the rows so far. That may be by a key in a nested loop, by a hash table, or by looking at
//! all pairs. What no condition joins to the rows so far comes last. A few beginnings are tried,
//! each also with the item that leaves the fewest rows next. Outer joins and semi-joins follow as
//! soon as there is what they need. If the best of these orders would take long, others are looked
//! for: see [`search`](super::search).

use std::rc::Rc;

use super::Planning;
use super::conditions::{Conditions, Places, Progress};
use super::method::{Cost, Joined, Method, Side};
use super::problem::{Dependent, Problem};
use super::slot_set::SlotSet;
use super::wanted::Wanted;
use crate::analyze::tree::JoinKind;
use crate::error::{Result, SqlError};
use crate::plan::SortKey;
use crate::plan::access::Conjuncts;

/// How many beginnings are tried of a join of at most [`MAX_TRIED_ITEMS`] items.
const STARTS: usize = 3;
const MAX_TRIED_ITEMS: usize = 8;

/// A decided order.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Rows come in the order of that many of the first keys that were wanted.
    pub(super) presorted: usize,
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

/// An item, what it adds to the cost, the method, and the rows then.
pub(super) type Found = (usize, Cost, Method, f64);

/// What is joined next.
#[derive(Debug, Clone, Copy)]
struct Policy {
    next: Next,
    /// Semi-joins and anti-joins wait for all items that a condition joins. They may cost a lookup
    /// for each row, and the items may leave fewer rows.
    sublinks_last: bool,
}

/// Which of the items that are left is joined next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The one that costs least.
    Cheapest,
    /// The one after which there are the fewest rows.
    Smallest,
}

const POLICIES: [Policy; 4] = [
    Policy { next: Next::Cheapest, sublinks_last: false },
    Policy { next: Next::Smallest, sublinks_last: false },
    Policy { next: Next::Cheapest, sublinks_last: true },
    Policy { next: Next::Smallest, sublinks_last: true },
];

impl Planning<'_> {
    /// The order for a problem under its conditions.
    pub(super) fn way(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Way> {
        self.check_relations(problem.items.len() + problem.dependents.len())?;
        let equal = Rc::clone(&conditions.equal);
        let around = std::mem::replace(&mut self.equal_columns, equal);
        let way = self.best_way(problem, conditions, wanted);
        self.equal_columns = around;
        way
    }

    fn best_way(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Way> {
        let mut starts = Vec::with_capacity(problem.items.len());
        let progress = Progress::new(conditions);
        for (at, item) in problem.items.iter().enumerate() {
            if !item.needs.intersects(&conditions.slots) {
                let ready = progress.ready(conditions, &item.slots);
                let cost = self.item_cost(problem, at, conditions, &ready, &[])?;
                starts.push((cost.cost + cost.rows, at));
            }
        }
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let tried = if problem.items.len() <= MAX_TRIED_ITEMS { STARTS } else { 1 };
        let mut best: Option<(f64, Way)> = None;
        let consider = |way: Option<Way>, best: &mut Option<(f64, Way)>| {
            let Some(way) = way else { return };
            let total = wanted.total(&way);
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                *best = Some((total, way));
            }
        };
        let least = |best: &Option<(f64, Way)>| best.as_ref().map(|best| best.0);
        let has_sublinks = problem.dependents.iter().any(is_sublink);
        let differs = |policy: &&Policy| {
            // Of two items there is only one next.
            (policy.next == Next::Cheapest || problem.items.len() > 2)
                && (!policy.sublinks_last || has_sublinks)
        };
        for (_, start) in starts.iter().take(tried) {
            for policy in POLICIES.iter().filter(differs) {
                let most = least(&best);
                let way = self.way_from(problem, conditions, Some(*start), &[], *policy, most)?;
                consider(way, &mut best);
            }
        }
        let [policy, ..] = POLICIES;
        if let Some((start, keys)) = self.start_of(problem, conditions, wanted) {
            let (start, sort) = (Some(start), &wanted.sort[..keys]);
            // Of rows in the wanted order perhaps only a few are read.
            let most = if wanted.limit.is_some() { None } else { least(&best) };
            consider(self.way_from(problem, conditions, start, sort, policy, most)?, &mut best);
        }
        if let Some((total, _)) = best
            && self.is_worth_search(problem, total)
        {
            for sublinks_last in if has_sublinks { [false, true].as_slice() } else { &[true] } {
                consider(self.search(problem, conditions, *sublinks_last)?, &mut best);
            }
        }
        if let Some((_, way)) = best {
            return Ok(way);
        }
        let way = self.way_from(problem, conditions, None, &[], policy, None)?;
        way.ok_or_else(|| SqlError::internal("a join without an order"))
    }

    /// The way that begins so. `None` if it costs as much as `most`, or more: each step only adds.
    fn way_from(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        start: Option<usize>,
        sort: &[SortKey],
        policy: Policy,
        most: Option<f64>,
    ) -> Result<Option<Way>> {
        let (mut way, mut progress) = self.beginning(problem, conditions, start, sort)?;
        while most.is_none_or(|most| way.cost < most) {
            if !policy.sublinks_last
                && let Some(at) = ready_sublink(problem, &progress)
            {
                self.add_dependent(problem, conditions, at, &mut progress, &mut way)?;
                continue;
            }
            let next = self.next_item(problem, conditions, &progress, &way, policy.next)?;
            let is_pairs = next.is_none_or(|next| next.2 == Method::Loop);
            if is_pairs && let Some(at) = self.ready_dependent(problem, &progress) {
                self.add_dependent(problem, conditions, at, &mut progress, &mut way)?;
                continue;
            }
            let Some(next) = next else { return Ok(Some(way)) };
            progress.add_item(&mut way, problem, conditions, next);
        }
        Ok(None)
    }

    /// A way that has an item, or nothing yet.
    pub(super) fn beginning(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        start: Option<usize>,
        sort: &[SortKey],
    ) -> Result<(Way, Progress)> {
        let mut progress = Progress::new(conditions);
        let mut way = Way {
            steps: Vec::new(),
            rows: 1.0,
            cost: 0.0,
            presorted: sort.len(),
            one_row: true,
            by_key: false,
        };
        if let Some(start) = start {
            let item = &problem.items[start];
            let ready = progress.take(conditions, &item.slots);
            let cost = self.item_cost(problem, start, conditions, &ready, sort)?;
            if !sort.is_empty() && !self.is_ordered(item, conditions, &ready, sort) {
                way.presorted = 0;
            }
            (way.rows, way.cost) = (cost.rows, cost.cost);
            (way.one_row, way.by_key) = (cost.one_row, cost.by_key);
            progress.add(&mut way, Part::Item(start), Method::First, &item.slots);
        }
        Ok((way, progress))
    }

    /// The item that costs least, or leaves the fewest rows.
    fn next_item(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        progress: &Progress,
        way: &Way,
        which: Next,
    ) -> Result<Option<Found>> {
        let mut best: Option<((bool, f64), Found)> = None;
        for at in 0..problem.items.len() {
            let next = self.candidate(problem, conditions, progress, way, at)?;
            let Some((is_apart, found)) = next else { continue };
            let (_, cost, _, rows) = &found;
            let total = match which {
                Next::Cheapest => cost.cost + rows,
                Next::Smallest => *rows,
            };
            let total = (is_apart, total);
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                best = Some((total, found));
            }
        }
        Ok(best.map(|(_, next)| next))
    }

    /// An item as the next one, and whether no condition joins it. `None` if it is there already,
    /// or needs what is not there.
    pub(super) fn candidate(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        progress: &Progress,
        way: &Way,
        at: usize,
    ) -> Result<Option<(bool, Found)>> {
        let item = &problem.items[at];
        let needed = item.needs.and(&conditions.slots);
        if progress.done.contains(&Part::Item(at))
            || !needed.is_within(&progress.bound, &progress.bound)
        {
            return Ok(None);
        }
        let ready = progress.ready(conditions, &item.slots);
        let keyed = self.item_cost(problem, at, conditions, &ready, &[])?;
        let own = &conditions.own[at];
        let alone = match conditions.alone[at].get() {
            Some(known) => known,
            None => self.item_cost(problem, at, conditions, own, &[])?,
        };
        conditions.alone[at].set(Some(alone));
        let on: Places = ready.into_iter().filter(|place| !own.contains(place)).collect();
        let on = conditions.all(&on);
        let lateral = !needed.is_empty();
        let side = Side { keyed, alone, lateral, kind: JoinKind::Inner };
        let (cost, method, rows) =
            self.method(way, side, &on, Joined { own: &item.slots, all: &conditions.slots });
        // One row beside one row is no product.
        let is_apart = on.is_empty() && !lateral && !(way.one_row && keyed.one_row);
        Ok(Some((is_apart, (at, Cost { cost, ..keyed }, method, rows))))
    }

    pub(super) fn ready_dependent(
        &self,
        problem: &Problem<'_>,
        progress: &Progress,
    ) -> Option<usize> {
        (0..problem.dependents.len()).find(|at| is_ready(problem, progress, *at))
    }

    pub(super) fn add_dependent(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        at: usize,
        progress: &mut Progress,
        way: &mut Way,
    ) -> Result<()> {
        let dependent = &problem.dependents[at];
        let side = self.dependent_side(problem, dependent)?;
        let on: Conjuncts<'_> = dependent.on.iter().collect();
        let joined = Joined { own: &dependent.slots, all: &conditions.slots };
        let (cost, method, rows) = self.method(way, side, &on, joined);
        way.cost += cost;
        way.rows = rows;
        way.one_row &= dependent.kind != JoinKind::Left || side.keyed.one_row;
        way.joined_by(method);
        progress.take(conditions, &dependent.adds);
        progress.add(way, Part::Dependent(at), method, &dependent.adds);
        Ok(())
    }
}

impl Progress {
    /// Goes on with an item.
    pub(super) fn add_item(
        &mut self,
        way: &mut Way,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        (at, cost, method, rows): Found,
    ) {
        let item = &problem.items[at];
        self.take(conditions, &item.slots);
        way.cost += cost.cost;
        way.rows = rows;
        way.one_row &= cost.one_row;
        way.joined_by(method);
        self.add(way, Part::Item(at), method, &item.slots);
    }

    fn add(&mut self, way: &mut Way, part: Part, method: Method, slots: &SlotSet) {
        way.steps.push(Step { part, method });
        self.bound.add(slots);
        self.done.push(part);
    }
}

impl Way {
    /// Rows that are hashed lose their order.
    fn joined_by(&mut self, method: Method) {
        if matches!(method, Method::Hash { .. }) {
            self.presorted = 0;
        }
    }

    pub(super) fn cost(&self) -> Cost {
        Cost { rows: self.rows, cost: self.cost, by_key: self.by_key, one_row: self.one_row }
    }
}

/// Whether it only drops rows.
fn is_sublink(dependent: &Dependent<'_>) -> bool {
    dependent.kind != JoinKind::Left
}

/// What only drops rows, as soon as it can be joined.
pub(super) fn ready_sublink(problem: &Problem<'_>, progress: &Progress) -> Option<usize> {
    let dependents = problem.dependents.iter().enumerate();
    let sublinks = dependents.filter(|(_, dependent)| is_sublink(dependent));
    sublinks.map(|(at, _)| at).find(|at| is_ready(problem, progress, *at))
}

fn is_ready(problem: &Problem<'_>, progress: &Progress, at: usize) -> bool {
    let needs = problem.dependents[at].needs.and(&problem.slots());
    !progress.done.contains(&Part::Dependent(at))
        && needs.is_within(&progress.bound, &progress.bound)
}
