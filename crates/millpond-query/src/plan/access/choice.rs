//! The choice of an access for a condition.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use super::sargable::{Op, Sargable, disjuncts, sargables};
use super::{Access, IndexRange, KeyBounds, KeyList, KeyPart, Lookup, all_of, conjuncts};
use crate::expr::{Compare, Expr};
use crate::plan::{Ordered, UsableIndexes};

/// The access for a condition.
pub(crate) struct Choice {
    pub(crate) access: Access,
    /// What it leaves to be filtered.
    pub(crate) filter: Option<Expr>,
    /// Whether it gives the order that was wanted, or no more than one row.
    pub(crate) is_ordered: bool,
}

/// The best access for a condition, in the wanted order if an index that serves the condition as
/// well gives it. `wanted` are the indexes that give the order.
pub(crate) fn choose(
    lookup: &Lookup<'_>,
    indexes: &UsableIndexes<'_>,
    condition: Option<&Expr>,
    wanted: &[Ordered],
) -> Choice {
    let (table, conjuncts) = (lookup.table, conjuncts(condition));
    let usable = sargables(lookup, conjuncts, 0);
    let ors: Vec<Alternatives<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(place, conjunct)| Alternatives::of(lookup, conjunct, place, conjuncts.len()))
        .collect();
    let order_of = |index: &IndexDef| wanted.iter().find(|ordered| ordered.index.oid == index.oid);
    let mut best: Option<(u32, Candidate)> = None;
    for index in indexes.of(table) {
        let mut candidate = Candidate::new(index, table, &usable);
        for alternatives in &ors {
            if let Some(other) = Candidate::of_any(index, table, &usable, alternatives)
                && other.score() > candidate.score()
            {
                candidate = other;
            }
        }
        let mut score = candidate.score();
        if order_of(index).is_some() {
            // Reading in order saves a sort, which counts as much as a range.
            score += 15;
        }
        if score > 0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, candidate));
        }
    }
    let Some((_, candidate)) = best else {
        let filter = condition.cloned();
        return Choice { access: Access::Heap, filter, is_ordered: false };
    };
    let rest = conjuncts
        .iter()
        .enumerate()
        .filter(|(place, _)| !candidate.taken.contains(place))
        .map(|(_, conjunct)| conjunct.clone())
        .collect();
    let filter = all_of(rest);
    let ordered = order_of(&candidate.index);
    let direction = ordered.map_or(Direction::Forward, |ordered| ordered.direction);
    let is_ordered = candidate.is_point() || ordered.is_some();
    Choice { access: candidate.into_access(direction), filter, is_ordered }
}

/// A conjunct that is an OR.
struct Alternatives<'e> {
    /// Its place among the conjuncts.
    place: usize,
    /// The first place of the conjuncts of a side: none of the condition's has it.
    first: usize,
    /// What can be used of each side, and how many conjuncts the side has.
    sides: Vec<(Vec<Sargable<'e>>, usize)>,
}

impl<'e> Alternatives<'e> {
    /// `None` if it is no OR, or if a side has nothing for any index.
    fn of(
        lookup: &Lookup<'_>,
        conjunct: &'e Expr,
        place: usize,
        first: usize,
    ) -> Option<Alternatives<'e>> {
        let side = |side: &'e Expr| {
            let own = conjuncts(Some(side));
            let usable = sargables(lookup, own, first);
            (!usable.is_empty()).then_some((usable, own.len()))
        };
        let sides: Vec<_> = disjuncts(conjunct).into_iter().map(side).collect::<Option<_>>()?;
        (!sides.is_empty()).then_some(Alternatives { place, first, sides })
    }
}

/// What could be read of an index.
struct Candidate {
    index: Arc<IndexDef>,
    any_of: Vec<KeyBounds>,
    /// The places of the conjuncts that need not be looked at again.
    taken: Vec<usize>,
}

impl Candidate {
    fn new(index: &Arc<IndexDef>, table: &TableDef, usable: &[Sargable<'_>]) -> Self {
        let (bounds, taken) = bounds(index, table, &mut usable.iter());
        Self { index: Arc::clone(index), any_of: vec![bounds], taken }
    }

    /// What each side of an OR gives together with the conjuncts beside it; `None` if a side gives
    /// nothing.
    fn of_any(
        index: &Arc<IndexDef>,
        table: &TableDef,
        usable: &[Sargable<'_>],
        alternatives: &Alternatives<'_>,
    ) -> Option<Self> {
        let Alternatives { place, first, sides } = alternatives;
        let mut any_of = Vec::with_capacity(sides.len());
        let mut taken: Vec<usize> = usable.iter().map(|sargable| sargable.place).collect();
        let mut is_exact = true;
        for (own, count) in sides {
            // The side's come first: of two bounds on one end, the side's is taken.
            let (bounds, used) = bounds(index, table, &mut own.iter().chain(usable));
            if score(&bounds) == 0 {
                return None;
            }
            // What one side does not use must be looked at in all rows.
            taken.retain(|place| used.contains(place));
            is_exact &= used.iter().filter(|place| *place >= first).count() == *count;
            any_of.push(bounds);
        }
        if is_exact {
            taken.push(*place);
        }
        Some(Self { index: Arc::clone(index), any_of, taken })
    }

    fn is_point(&self) -> bool {
        let [one] = self.any_of.as_slice() else { return false };
        self.index.unique && one.equal.len() == self.index.columns.len()
    }

    fn score(&self) -> u32 {
        if self.is_point() {
            return 1000;
        }
        let least = self.any_of.iter().map(score).min().unwrap_or(0);
        // Several parts are worse than one that is bounded as well.
        if self.any_of.len() > 1 { least.saturating_sub(5) } else { least }
    }

    fn into_access(mut self, direction: Direction) -> Access {
        if self.is_point()
            && let Some(one) = self.any_of.pop()
        {
            return Access::Point { index: self.index, key: one.equal };
        }
        let (index, any_of) = (self.index, self.any_of);
        Access::Range(Box::new(IndexRange { index, any_of, direction }))
    }
}

/// How much bounds promise to leave out; 0 if nothing.
fn score(bounds: &KeyBounds) -> u32 {
    let ends = u32::from(bounds.from.is_some()) + u32::from(bounds.to.is_some());
    40 * bounds.equal.len() as u32 + 30 * u32::from(bounds.list.is_some()) + 10 * ends
}

/// The bounds that conditions give the keys of an index, and the places of those that are in them.
fn bounds<'e: 's, 's>(
    index: &IndexDef,
    table: &TableDef,
    usable: &mut (dyn Iterator<Item = &'s Sargable<'e>> + '_),
) -> (KeyBounds, Vec<usize>) {
    let usable: Vec<&Sargable<'_>> = usable.collect();
    let (mut found, mut taken) = (KeyBounds::default(), Vec::new());
    for column in index.columns.iter().map(|column| column.column) {
        let ty = table.columns[column].ty;
        let part = |expr: &Expr| KeyPart { expr: expr.clone(), ty };
        let here = || usable.iter().filter(move |s| s.column == column);
        let equality = here().find_map(|s| match s.op {
            Op::Compare(Compare::Eq, expr) => Some((s, expr)),
            _ => None,
        });
        if let Some((sargable, expr)) = equality {
            found.equal.push(part(expr));
            taken.push(sargable.place);
            continue;
        }
        let list = here().find_map(|s| match s.op {
            Op::In(list) => Some((s, KeyList::Items(list.iter().map(part).collect()))),
            Op::Any(array) => Some((s, KeyList::Array(part(array)))),
            Op::Compare(..) => None,
        });
        if let Some((sargable, list)) = list {
            found.list = Some(list);
            taken.push(sargable.place);
            break;
        }
        for sargable in here() {
            let Op::Compare(op, expr) = sargable.op else { continue };
            let (end, inclusive) = match op {
                Compare::Gt => (&mut found.from, false),
                Compare::Ge => (&mut found.from, true),
                Compare::Lt => (&mut found.to, false),
                Compare::Le => (&mut found.to, true),
                _ => continue,
            };
            // Of several bounds on one side the first is used; the others stay in the filter.
            if end.is_none() {
                *end = Some((part(expr), inclusive));
                taken.push(sargable.place);
            }
        }
        break;
    }
    (found, taken)
}
