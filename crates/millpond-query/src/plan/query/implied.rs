//! Conditions that follow from others.
//!
//! `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` can be evaluated only where `a` and `b` are
//! joined. But it implies `a.x = 1 OR a.x = 3`, and the like of `b`: so fewer rows are joined.

use super::Planning;
use super::problem::Problem;
use super::slot_set::SlotSet;
use crate::error::Result;
use crate::expr::{Compare, Expr};
use crate::plan::access::{all_of, conjuncts};

impl Planning<'_> {
    /// Adds what each OR implies for single items.
    pub(super) fn add_implied(&mut self, problem: &mut Problem<'_>) -> Result<()> {
        if problem.items.len() < 2 {
            return Ok(());
        }
        let mut implied = Vec::new();
        for condition in &problem.conjuncts {
            let Expr::Or(arms) = condition else { continue };
            let uses = self.slots_of(condition);
            for item in &problem.items {
                // What is on the item alone is evaluated there anyway.
                if !uses.intersects(&item.slots) || uses.is_within(&item.slots, &item.slots) {
                    continue;
                }
                if let Some(parts) = self.parts_on(arms, &item.slots) {
                    implied.push(Expr::Or(parts));
                }
            }
        }
        for condition in implied {
            let mut parts = 0;
            condition.walk(&mut |_| parts += 1);
            self.count(parts)?;
            problem.conjuncts.push(condition);
        }
        Ok(())
    }

    /// Of each arm what it asks of some slots alone. `None` if an arm asks nothing of them.
    fn parts_on(&self, arms: &[Expr], slots: &SlotSet) -> Option<Vec<Expr>> {
        let is_own = |e: &&Expr| {
            let uses = self.slots_of(e);
            !uses.is_empty() && uses.is_within(slots, slots) && is_plain(e)
        };
        let of_arm = |arm| {
            let mut own: Vec<Expr> = conjuncts(Some(arm)).iter().filter(is_own).cloned().collect();
            own.sort_by_key(order);
            all_of(own)
        };
        arms.iter().map(of_arm).collect()
    }
}

/// Conditions that most rows fail come first, if they themselves can't fail with an error. The
/// others keep their order: one may be there so that the next does not fail.
fn order(e: &Expr) -> u8 {
    let is_given = |e: &Expr| match e {
        Expr::Column(_) | Expr::Const(_) | Expr::Param(_) => true,
        Expr::Cast(e, ..) => matches!(**e, Expr::Const(_) | Expr::Param(_)),
        _ => false,
    };
    match e {
        Expr::Compare(Compare::Eq, pair) if is_given(&pair.0) && is_given(&pair.1) => 0,
        Expr::In(value, list, false) if is_given(value) && list.iter().all(is_given) => 1,
        _ => 2,
    }
}

/// Whether it may be evaluated more often than it is written.
fn is_plain(e: &Expr) -> bool {
    let mut has_query = false;
    e.walk(&mut |part| has_query |= matches!(part, Expr::Subquery(_)));
    !has_query && !e.is_volatile() && !e.waits()
}
