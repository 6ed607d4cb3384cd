//! Conditions on a subquery's columns, told inside of the subquery.

use super::Planning;
use crate::analyze::tree::{Body, Distinct, Grouping, Query, Select, Slot, slot_of};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::access::conjuncts;

impl Planning<'_> {
    /// Whether a condition on a query's columns holds for the same rows when it is told inside.
    pub(super) fn can_push(&self, query: &Query, slot: Slot, condition: &Expr) -> bool {
        let (mut places, mut has_query) = (Vec::new(), condition.is_volatile());
        condition.walk(&mut |e| match e {
            Expr::Column(column) if slot_of(*column).0 == slot => places.push(slot_of(*column).1),
            Expr::Subquery(_) => has_query = true,
            _ => {}
        });
        !has_query && !places.is_empty() && takes(query, &places)
    }
}

fn takes(query: &Query, places: &[usize]) -> bool {
    if query.limit.is_some() || query.offset.is_some() || !query.locks.is_empty() {
        return false;
    }
    match &query.body {
        Body::Select(select) => places
            .iter()
            .all(|place| select.targets.get(*place).is_some_and(|e| takes_on(select, e))),
        Body::SetOperation(operation) => {
            takes(&operation.left, places) && takes(&operation.right, places)
        }
        Body::Values(_) => false,
    }
}

/// Whether rows that are equal in a target are kept or dropped together by all that a SELECT does.
fn takes_on(select: &Select, target: &Expr) -> bool {
    if !is_simple(target) {
        return false;
    }
    let is_set = |slot| {
        let mut steps = select.sets_before_windows.iter().chain(&select.sets);
        steps.any(|step| step.slot == slot)
    };
    let mut of_set = false;
    target.walk(&mut |e| of_set |= matches!(e, Expr::Column(c) if is_set(slot_of(*c).0)));
    if of_set {
        return false;
    }
    if let Distinct::On(list) = &select.distinct
        && !list.contains(target)
    {
        return false;
    }
    if !select.windows.iter().all(|window| window.partition_by.contains(target)) {
        return false;
    }
    let Some(grouping) = &select.grouping else { return true };
    !grouping.keys.is_empty() && keys_read(target, grouping).is_some()
}

/// Whether it is computed of the row alone, and always the same.
fn is_simple(e: &Expr) -> bool {
    !e.is_volatile() && !e.has_subquery()
}

/// How often an expression reads keys of groups. `None` if it reads something else of groups, or
/// if not all groups have all keys.
fn keys_read(e: &Expr, grouping: &Grouping) -> Option<usize> {
    let (mut read, mut only_keys) = (0, grouping.sets.is_none());
    e.walk(&mut |e| {
        if let Expr::Column(column) = e
            && let (of, place) = slot_of(*column)
            && of == grouping.slot
        {
            read += 1;
            only_keys &= grouping.keys.get(place).is_some_and(is_simple);
        }
    });
    only_keys.then_some(read)
}

/// The conditions of a HAVING, parted. Those on keys of groups alone hold for all rows of a group
/// or for none, so they are conditions on rows, and given as such. The others stay as they are.
pub(super) fn parted_having(select: &Select) -> Result<(Vec<Expr>, Vec<&Expr>)> {
    let (mut of_rows, mut others) = (Vec::new(), Vec::new());
    for condition in conjuncts(select.having.as_ref()) {
        let read = select.grouping.as_ref().and_then(|grouping| keys_read(condition, grouping));
        match is_simple(condition) && read.is_some_and(|read| read > 0) {
            true => of_rows.push(before_grouping(select, condition.clone())?),
            false => others.push(condition),
        }
    }
    Ok((of_rows, others))
}

/// The condition, in terms of what a SELECT's targets are computed from.
pub(super) fn pushed_inside(select: &Select, slot: Slot, condition: Expr) -> Result<Expr> {
    if let Expr::Column(column) = &condition {
        let (of, place) = slot_of(*column);
        if of == slot
            && let Some(target) = select.targets.get(place)
        {
            return before_grouping(select, target.clone());
        }
        return Ok(condition);
    }
    condition.map_parts(&mut |part| pushed_inside(select, slot, part))
}

fn before_grouping(select: &Select, target: Expr) -> Result<Expr> {
    let Some(grouping) = &select.grouping else { return Ok(target) };
    if let Expr::Column(column) = &target {
        let (of, place) = slot_of(*column);
        if of == grouping.slot
            && let Some(key) = grouping.keys.get(place)
        {
            return Ok(key.clone());
        }
        return Ok(target);
    }
    target.map_parts(&mut |part| before_grouping(select, part))
}
