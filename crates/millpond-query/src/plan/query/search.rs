//! The search for the order of an expensive join.
//!
//! Orders grow by one item at a time, all of one length together. Of the orders of the same items
//! only the best goes on. That is the search of System R without bushy trees. It takes some
//! milliseconds where a join has eight items. So it is only for joins that take far longer.

use super::Planning;
use super::conditions::{Conditions, Progress};
use super::order::{Found, Way, ready_sublink};
use super::problem::Problem;
use crate::error::Result;

/// A join that costs less is not worth the search. (In the unit of `estimate`, some 50 ms.)
const EXPENSIVE: f64 = 500_000.0;
/// How many items a join may have, to be searched.
const MOST_ITEMS: usize = 8;
/// How many orders of one length go on.
const MOST_ORDERS: usize = 16;

/// An order so far.
struct Partial {
    /// A bit for each item.
    items: u32,
    way: Way,
    progress: Progress,
}

impl Partial {
    fn total(&self) -> f64 {
        self.way.cost + self.way.rows
    }
}

impl Planning<'_> {
    /// Whether to search, where the best order that is known costs that much.
    pub(super) fn is_worth_search(&self, problem: &Problem<'_>, cost: f64) -> bool {
        cost >= EXPENSIVE && (3..=MOST_ITEMS).contains(&problem.items.len())
    }

    /// The best order. `None` if none was found in which conditions join all items.
    pub(super) fn search(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        sublinks_last: bool,
    ) -> Result<Option<Way>> {
        let mut orders = Vec::new();
        for (at, item) in problem.items.iter().enumerate() {
            if !item.needs.intersects(&problem.slots()) {
                let (way, progress) = self.beginning(problem, conditions, Some(at), &[])?;
                orders.push(Partial { items: 1 << at, way, progress });
            }
        }
        for _ in 1..problem.items.len() {
            let mut longer: Vec<Partial> = Vec::new();
            for mut order in orders {
                self.indexes.session.check_cancel()?;
                if !sublinks_last {
                    self.add_sublinks(problem, conditions, &mut order)?;
                }
                self.extend(problem, conditions, &order, &mut longer)?;
            }
            longer.sort_by(|a, b| a.total().total_cmp(&b.total()));
            longer.truncate(MOST_ORDERS);
            orders = longer;
        }
        let mut best: Option<Partial> = None;
        for mut order in orders {
            while let Some(at) = self.ready_dependent(problem, &order.progress) {
                let Partial { way, progress, .. } = &mut order;
                self.add_dependent(problem, conditions, at, progress, way)?;
            }
            if best.as_ref().is_none_or(|best| order.way.cost < best.way.cost) {
                best = Some(order);
            }
        }
        Ok(best.map(|best| best.way))
    }

    fn add_sublinks(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        order: &mut Partial,
    ) -> Result<()> {
        while let Some(at) = ready_sublink(problem, &order.progress) {
            self.add_dependent(problem, conditions, at, &mut order.progress, &mut order.way)?;
        }
        Ok(())
    }

    /// Adds the orders with one item more that conditions join. An order of the same items that
    /// costs more gives its place.
    fn extend(
        &mut self,
        problem: &Problem<'_>,
        conditions: &Conditions<'_>,
        order: &Partial,
        longer: &mut Vec<Partial>,
    ) -> Result<()> {
        for at in 0..problem.items.len() {
            let next = self.candidate(problem, conditions, &order.progress, &order.way, at)?;
            let Some((false, found)) = next else { continue };
            let items = order.items | 1 << at;
            let known = longer.iter_mut().find(|known| known.items == items);
            if known.as_ref().is_some_and(|known| known.total() <= total_with(order, &found)) {
                continue;
            }
            let (mut way, mut progress) = (order.way.clone(), order.progress.clone());
            progress.add_item(&mut way, problem, conditions, found);
            let better = Partial { items, way, progress };
            match known {
                Some(known) => *known = better,
                None => longer.push(better),
            }
        }
        Ok(())
    }
}

fn total_with(order: &Partial, (_, cost, _, rows): &Found) -> f64 {
    order.way.cost + cost.cost + rows
}
