//! An OR whose sides are found by indexes, each by its own.
//!
//! A row is given by the first of the sides that it meets: where a later one finds it, the
//! conditions of those before leave it out. So no place of a row has to be kept.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::table::Direction;

use super::choice::{Choice, KnownRows, WantedOrder, choose};
use super::part::IndexPart;
use super::sargable::{Conjuncts, conjuncts, disjuncts};
use super::{Access, IndexRange, Lookup, all_of};
use crate::expr::{Expr, one_of};
use crate::plan::UsableIndexes;

/// The sides of an OR, each with the conjuncts beside the OR.
pub(crate) struct Sides<'c> {
    /// The sides themselves.
    sides: Vec<&'c Expr>,
    conditions: Vec<Conjuncts<'c>>,
    /// The conjuncts beside the OR.
    beside: Conjuncts<'c>,
}

impl<'c> Sides<'c> {
    /// Those of one of some conjuncts, if it is an OR. A side that is another when it is computed
    /// again can't say which rows have been given.
    pub(crate) fn of(all: &[&'c Expr], place: usize) -> Option<Self> {
        let or = *all.get(place)?;
        let sides = disjuncts(or);
        if sides.is_empty() || or.is_volatile() {
            return None;
        }
        let others = all.iter().enumerate().filter(|(other, _)| *other != place);
        let beside: Conjuncts<'_> = others.map(|(_, conjunct)| *conjunct).collect();
        let with_others = |side: &&'c Expr| {
            let own = conjuncts(Some(*side)).iter();
            own.chain(beside.iter().copied()).collect()
        };
        Some(Self { conditions: sides.iter().map(with_others).collect(), sides, beside })
    }

    /// What is read for each side. `None` if an index finds no rows for one of them.
    pub(crate) fn choices<'s>(
        &'s self,
        lookup: &Lookup<'s, '_>,
        indexes: &'s UsableIndexes<'_>,
        known: KnownRows<'_>,
    ) -> Option<Vec<Choice<'s>>> {
        let of_side = |conditions: &'s Conjuncts<'c>| {
            let choice = choose(lookup, indexes, conditions, WantedOrder::NONE, known);
            choice.part.is_some().then_some(choice)
        };
        self.conditions.iter().map(of_side).collect()
    }

    /// The accesses that give each row once, one for each index, and what each leaves to be
    /// filtered.
    pub(crate) fn made(&self, table: &TableDef, choices: &[Choice<'_>]) -> Vec<Found> {
        let parts = choices.iter().filter_map(|choice| Some(&choice.part.as_ref()?.0));
        let parts: Vec<&IndexPart<'_>> = parts.collect();
        let (mut made, mut before): (Vec<Found>, Vec<Expr>) = Default::default();
        for (place, part) in parts.iter().enumerate() {
            let is_same = |other: &IndexPart<'_>| other.index.oid == part.index.oid;
            if parts[..place].iter().any(|other| is_same(other)) {
                continue;
            }
            let sides = self.sides.iter().zip(&parts).filter(|(_, other)| is_same(other));
            let sides: Vec<(&Expr, &IndexPart<'_>)> = sides.map(|(e, part)| (*e, *part)).collect();
            let bounds = sides.iter().flat_map(|(_, part)| &part.any_of);
            let any_of = bounds.map(|bounds| bounds.made(part.index, table)).collect();
            let index = Arc::clone(part.index);
            let range = IndexRange { index, any_of, direction: Direction::Forward };
            let own: Vec<Expr> = sides.iter().map(|(side, _)| (*side).clone()).collect();
            // First: of a row that has been given nothing else is computed, which might fail.
            let mut filter = Vec::new();
            if !before.is_empty() {
                let given = Box::new(one_of(before.clone()));
                filter.push(Expr::IsBool(given, Some(true), true));
            }
            filter.extend(self.left(&sides));
            before.extend(own);
            made.push((Access::Range(Box::new(range)), all_of(filter)));
        }
        made
    }

    /// What is left to be filtered of the rows that an index finds for some sides.
    fn left(&self, sides: &[(&Expr, &IndexPart<'_>)]) -> Vec<Expr> {
        let is_taken = |beside: usize| {
            let place = |side: &Expr| conjuncts(Some(side)).len() + beside;
            sides.iter().all(|(side, part)| part.used.enforced.contains(&place(side)))
        };
        let beside = self.beside.iter().enumerate().filter(|(place, _)| !is_taken(*place));
        let mut left: Vec<Expr> = beside.map(|(_, conjunct)| (*conjunct).clone()).collect();
        let is_exact = |(side, part): &(&Expr, &IndexPart<'_>)| {
            (0..conjuncts(Some(*side)).len()).all(|place| part.used.enforced.contains(&place))
        };
        if !sides.iter().all(is_exact) {
            left.push(one_of(sides.iter().map(|(side, _)| (*side).clone()).collect()));
        }
        left
    }
}

/// An access, and the condition that it leaves to be filtered.
pub(crate) type Found = (Access, Option<Expr>);
