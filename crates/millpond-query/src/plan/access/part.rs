//! The part of an index that conditions leave, those of an OR included.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;
use smallvec::{SmallVec, smallvec};

use super::bounds::{Bounds, Places, Used, bounds};
use super::sargable::{Sargable, disjuncts, sargables};
use super::{Access, IndexRange, Lookup, conjuncts};
use crate::expr::Expr;

/// What is read of an index.
pub(crate) struct IndexPart<'c> {
    pub(crate) index: &'c Arc<IndexDef>,
    pub(crate) any_of: SmallVec<[Bounds<'c>; 1]>,
    /// The conjuncts that it is made of.
    pub(super) used: Used,
}

/// A conjunct that is an OR.
pub(super) struct Alternatives<'e> {
    /// Its place among the conjuncts.
    place: usize,
    /// The first place of the conjuncts of a side: none of the condition's has it.
    first: usize,
    /// What can be used of each side, and how many conjuncts the side has.
    sides: Vec<(SmallVec<[Sargable<'e>; 4]>, usize)>,
}

impl<'e> Alternatives<'e> {
    /// `None` if it is no OR, or if a side has nothing for any index. `is_asked`: the table is
    /// large enough for its indexes to be asked.
    pub(super) fn of(
        lookup: &Lookup<'_, '_>,
        conjunct: &'e Expr,
        place: usize,
        first: usize,
        is_asked: bool,
    ) -> Option<Alternatives<'e>> {
        let side = |side: &'e Expr| {
            let own = conjuncts(Some(side));
            let mut usable = sargables(lookup, own.iter(), first);
            usable.retain(|sargable| is_asked || !sargable.may_leave_all());
            (!usable.is_empty()).then_some((usable, own.len()))
        };
        let sides: Vec<_> = disjuncts(conjunct).into_iter().map(side).collect::<Option<_>>()?;
        (!sides.is_empty()).then_some(Alternatives { place, first, sides })
    }
}

impl<'c> IndexPart<'c> {
    pub(super) fn new(index: &'c Arc<IndexDef>, usable: &[Sargable<'c>]) -> Self {
        let (bounds, used) = bounds(index, usable, &[]);
        Self { index, any_of: smallvec![bounds], used }
    }

    /// What each side of an OR gives together with the conjuncts beside it; `None` if a side gives
    /// nothing.
    pub(super) fn of_any(
        index: &'c Arc<IndexDef>,
        usable: &[Sargable<'c>],
        alternatives: &Alternatives<'c>,
    ) -> Option<Self> {
        let Alternatives { place, first, sides } = alternatives;
        let mut any_of = SmallVec::with_capacity(sides.len());
        let all = || usable.iter().map(|sargable| sargable.place).collect();
        let mut used = Used { enforced: all(), bounded: all() };
        let (mut is_exact, mut is_bounded) = (true, true);
        for (own, count) in sides {
            // The side's come first: of two bounds on one end, the side's is taken.
            let (bounds, of_side) = bounds(index, own, usable);
            if bounds.score() == 0 {
                return None;
            }
            // What one side does not use must be looked at in all rows.
            used.enforced.retain(|place| of_side.enforced.contains(place));
            used.bounded.retain(|place| of_side.bounded.contains(place));
            let has_all =
                |places: &Places| places.iter().filter(|place| *place >= first).count() >= *count;
            is_exact &= has_all(&of_side.enforced);
            is_bounded &= has_all(&of_side.bounded);
            any_of.push(bounds);
        }
        if is_exact {
            used.enforced.push(*place);
        }
        if is_bounded {
            used.bounded.push(*place);
        }
        Some(Self { index, any_of, used })
    }

    /// Whether it has at least the bounds of `other`, a part of the same index, and leaves fewer
    /// conditions to the filter.
    pub(super) fn refines(&self, other: &IndexPart<'_>) -> bool {
        self.least_score() >= other.score() && self.used.enforced.len() > other.used.enforced.len()
    }

    fn least_score(&self) -> u32 {
        self.any_of.iter().map(Bounds::score).min().unwrap_or(0)
    }

    pub(super) fn is_point(&self) -> bool {
        let [one] = self.any_of.as_slice() else { return false };
        one.list.is_none() && one.are_keys_of(self.index)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.any_of.iter().any(Bounds::are_whole)
    }

    pub(super) fn score(&self) -> u32 {
        if self.is_point() {
            return 1000;
        }
        let least = self.least_score();
        // Several parts are worse than one that is bounded as well.
        if self.any_of.len() > 1 { least.saturating_sub(5) } else { least }
    }

    /// The expressions that its bounds are made of.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &'c Expr> {
        self.any_of.iter().flat_map(Bounds::exprs)
    }

    pub(super) fn into_access(self, table: &TableDef, direction: Direction) -> Access {
        let index = Arc::clone(self.index);
        let made = |bounds: &Bounds<'_>| bounds.made(&index, table);
        if self.is_point()
            && let Some(one) = self.any_of.first().map(made)
        {
            return Access::Point { index, key: one.equal };
        }
        let any_of = self.any_of.iter().map(made).collect();
        Access::Range(Box::new(IndexRange { index, any_of, direction }))
    }
}
