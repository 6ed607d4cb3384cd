//! EXISTS and IN as conditions of their own: semi-joins and anti-joins.
//!
//! NOT IN is none: a NULL on either side makes it unknown. It stays in its expression.

use std::cell::RefCell;

use super::Planning;
use super::conditions::Conditions;
use super::estimate::KEEP;
use super::from::{Around, item_of, plain_select};
use super::method::Joined;
use super::problem::{Dependent, Item, Problem, Relation, Unique};
use super::slot_set::SlotSet;
use super::strict::strict_columns;
use super::wanted::Wanted;
use crate::analyze::tree::{JoinKind, Query, SubqueryKind, column};
use crate::error::Result;
use crate::expr::{Compare, Expr};
use crate::plan::access::Conjuncts;

impl Planning<'_> {
    /// Makes a join of a conjunct, if it is a subquery that depends on the rows of the problem;
    /// says whether it has.
    pub(super) fn join_sublink<'q>(
        &mut self,
        conjunct: &'q Expr,
        problem: &mut Problem<'q>,
    ) -> Result<bool> {
        let (inner, kind) = match conjunct {
            Expr::Not(inner) => (&**inner, JoinKind::Anti),
            other => (other, JoinKind::Semi),
        };
        let Expr::Subquery(subquery) = inner else { return Ok(false) };
        match &subquery.kind {
            SubqueryKind::Exists => self.join_exists(&subquery.query, kind, problem),
            SubqueryKind::Any(left, Compare::Eq) if kind == JoinKind::Semi => {
                self.join_any(left, &subquery.query, problem)
            }
            _ => Ok(false),
        }
    }

    fn join_exists<'q>(
        &mut self,
        query: &'q Query,
        kind: JoinKind,
        problem: &mut Problem<'q>,
    ) -> Result<bool> {
        let Some(select) = plain_select(query) else { return Ok(false) };
        if !self.slots_around(query).intersects(&problem.slots()) {
            return Ok(false);
        }
        let mut right = Problem::default();
        let strict = select.condition.iter().flat_map(strict_columns).collect();
        for item in &select.from {
            self.flatten(
                item,
                &mut right,
                &Around { strict: Vec::clone(&strict), nullable: false },
            )?;
        }
        if let Some(condition) = &select.condition {
            self.demand(condition, &mut right)?;
        }
        let dependent = self.dependent(kind, right, Vec::new());
        problem.dependents.push(dependent);
        Ok(true)
    }

    fn join_any<'q>(
        &mut self,
        left: &[Expr],
        query: &'q Query,
        problem: &mut Problem<'q>,
    ) -> Result<bool> {
        let left = self.resolve_all(left)?;
        let of_rows = |e: &Expr| self.slots_of(e).intersects(&problem.slots());
        if !left.iter().any(of_rows) || left.iter().any(Expr::is_volatile) {
            return Ok(false);
        }
        let mut right = Problem::default();
        let plain = plain_select(query).filter(|select| {
            !select.from.is_empty() && !select.targets.iter().any(Expr::is_volatile)
        });
        let values = match plain {
            Some(select) => {
                let strict = select.condition.iter().flat_map(strict_columns).collect();
                let around = Around { strict, nullable: false };
                for item in &select.from {
                    self.flatten(item, &mut right, &around)?;
                }
                if let Some(condition) = &select.condition {
                    self.demand(condition, &mut right)?;
                }
                self.resolve_all(&select.targets)?
            }
            None => {
                let slot = self.new_slot(left.len())?;
                let needs = self.slots_around(query);
                right.items.push(item_of(Relation::Query { slot, query }, slot, needs));
                (0..left.len()).map(|place| Expr::Column(column(slot, place))).collect()
            }
        };
        let equal = |(left, right)| Expr::Compare(Compare::Eq, Box::new((left, right)));
        let on = left.into_iter().zip(values).map(equal).collect();
        let dependent = self.dependent(JoinKind::Semi, right, on);
        problem.dependents.push(dependent);
        Ok(true)
    }

    /// Turns semi-joins into inner joins with what they look for. It does so where that finds the
    /// rows of a table by key that would otherwise be read through.
    pub(super) fn drive_by_sublinks(&mut self, problem: &mut Problem<'_>) -> Result<()> {
        let mut at = 0;
        while at < problem.dependents.len() {
            let Some(keys) = self.driving_keys(problem, at)? else {
                at += 1;
                continue;
            };
            let Dependent { right, on, slots, .. } = problem.dependents.remove(at);
            problem.conjuncts.extend(on);
            // Their paths alone were planned without conditions that will be theirs here.
            right.items.iter().for_each(|item| drop(item.alone.take()));
            let relation = Relation::Unique(Box::new(Unique { problem: right, keys }));
            let (needs, alone) = (SlotSet::default(), RefCell::default());
            problem.items.push(Item { relation, slots, needs, alone });
        }
        Ok(())
    }

    /// The expressions in which the rows of a semi-join's right side must differ, if it is to drive
    /// the join.
    fn driving_keys(&mut self, problem: &Problem<'_>, at: usize) -> Result<Option<Vec<Expr>>> {
        let dependent = &problem.dependents[at];
        if dependent.kind != JoinKind::Semi || !dependent.lateral.is_empty() {
            return Ok(None);
        }
        let all = problem.slots();
        let joined = Joined { own: &dependent.slots, all: &all };
        let (mut keys, mut uses) = (Vec::new(), SlotSet::default());
        for conjunct in &dependent.on {
            let Some((outer, own)) = self.join_key(conjunct, joined) else {
                return Ok(None);
            };
            uses.add(&self.slots_of(outer));
            keys.push(own.clone());
        }
        let target = problem.items.iter().find(|item| uses.is_within(&item.slots, &item.slots));
        let Some(Item { relation: Relation::Table { slot, table, .. }, slots, .. }) = target else {
            return Ok(None);
        };
        let is_own = |e: &&Expr| self.slots_of(e).is_within(slots, slots);
        let own: Conjuncts<'_> = problem.conjuncts.iter().filter(is_own).collect();
        let with_keys: Conjuncts<'_> = own.iter().copied().chain(&dependent.on).collect();
        let alone = self.table_path(*slot, table, &own, &[]).estimate.cost;
        let keyed = self.table_path(*slot, table, &with_keys, &[]).estimate;
        if !keyed.by_key || keyed.cost >= alone {
            return Ok(None);
        }
        let conditions = Conditions::new(self, &dependent.right, &[]);
        let right = self.nested(|p| p.way(&dependent.right, &conditions, Wanted::default()))?;
        let driven = right.cost + right.rows * (KEEP + keyed.cost);
        Ok((driven < alone).then_some(keys))
    }
}
