//! Equalities of columns that follow from others, and those that say nothing more.
//!
//! `a = b AND b = c` implies `a = c`, so `a` and `c` can be joined first. Of all equalities of such
//! columns only as many are evaluated as tie each column to those that are there already.

use std::borrow::Borrow;

use super::conditions::Places;
use super::slot_set::SlotSet;
use crate::analyze::tree::slot_of;
use crate::expr::{Compare, Expr};

/// Larger groups of equal columns stay as they are written: the pairs would be many.
const MAX_COLUMNS: usize = 8;

/// The equalities of columns that groups of equal columns imply, without those that are written.
/// At least one of the columns is in one of `slots`.
pub(super) fn implied(
    groups: &[Vec<usize>],
    written: &[impl Borrow<Expr>],
    slots: &SlotSet,
) -> Vec<Expr> {
    let mut found = Vec::new();
    for group in groups.iter().filter(|group| group.len() <= MAX_COLUMNS) {
        for (place, a) in group.iter().enumerate() {
            for b in group.iter().skip(place + 1) {
                let (of_a, of_b) = (slot_of(*a).0, slot_of(*b).0);
                let is_useful = slots.contains(of_a) || slots.contains(of_b);
                let is_it = |e: &Expr| columns(e).is_some_and(|c| c == (*a, *b) || c == (*b, *a));
                if is_useful && !written.iter().any(|e| is_it(e.borrow())) {
                    let pair = Box::new((Expr::Column(*a), Expr::Column(*b)));
                    found.push(Expr::Compare(Compare::Eq, pair));
                }
            }
        }
    }
    found
}

/// The conditions without equalities that follow from those before them. The columns of a group in
/// `bound` slots are equal already: each pair of them has had its equality. That is not so for a
/// group that is too large.
pub(super) fn without_redundant(
    mut places: Places,
    exprs: &[impl Borrow<Expr>],
    groups: &[Vec<usize>],
    bound: &SlotSet,
) -> Places {
    if places.len() < 2 || groups.is_empty() {
        return places;
    }
    // Of each column the columns that it is known to be equal to: 0 are those in bound slots.
    let own = |(place, column): (usize, &usize)| match bound.contains(slot_of(*column).0) {
        true => 0,
        false => place + 1,
    };
    let mut known: Vec<Vec<usize>> =
        groups.iter().map(|group| group.iter().enumerate().map(own).collect()).collect();
    let mut says_more = |place: &usize| {
        let Some((a, b)) = exprs.get(*place).and_then(|e| columns(e.borrow())) else { return true };
        let small = groups.iter().zip(&mut known).filter(|(g, _)| g.len() <= MAX_COLUMNS);
        let with_both = small.into_iter().find_map(|(group, known)| {
            let at = |column| group.iter().position(|other| *other == column);
            Some((at(a)?, at(b)?, known))
        });
        let Some((a, b, known)) = with_both else { return true };
        let (a, b) = (known[a], known[b]);
        known.iter_mut().filter(|label| **label == b).for_each(|label| *label = a);
        a != b
    };
    places.retain(|place| says_more(place));
    places
}

/// The sides of an equality of two columns. `a = a` is none: it says that `a` is not NULL.
fn columns(e: &Expr) -> Option<(usize, usize)> {
    let Expr::Compare(Compare::Eq, pair) = e else { return None };
    match (&pair.0, &pair.1) {
        (Expr::Column(a), Expr::Column(b)) if a != b => Some((*a, *b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::tree::{Slot, column};

    fn equal(a: usize, b: usize) -> Expr {
        Expr::Compare(Compare::Eq, Box::new((Expr::Column(a), Expr::Column(b))))
    }

    #[test]
    fn each_column_is_tied_once_to_those_that_are_there() {
        let [a, b, c] = [0, 1, 2].map(|slot| column(Slot(slot), 0));
        let d = column(Slot(2), 1);
        let group = vec![vec![a, b, c, d]];
        let mut all = SlotSet::default();
        (0..3).for_each(|slot| all.insert(Slot(slot)));
        let mut exprs = vec![equal(a, b), equal(b, c), equal(c, d)];
        let more = implied(&group, &exprs, &all);
        assert_eq!(more, [equal(a, c), equal(a, d), equal(b, d)]);
        exprs.extend(more);
        let needed = |places: &[usize], bound: &[u16]| {
            let mut set = SlotSet::default();
            bound.iter().for_each(|slot| set.insert(Slot(*slot)));
            without_redundant(Places::from_slice(places), &exprs, &group, &set).to_vec()
        };
        // With a there, c and d come: one of them is tied to it, and they to each other.
        assert_eq!(needed(&[2, 3, 4], &[0]), [2, 3]);
        // With c and d there, b comes.
        assert_eq!(needed(&[1, 5], &[2]), [1]);
        assert_eq!(needed(&[0, 1, 5], &[0, 2]), [0]);
        // Columns of one relation are equal only if that has been asked of it.
        let group = vec![vec![a, c, d]];
        let written = [equal(a, c), equal(a, d)];
        assert_eq!(implied(&group, &written, &all), [equal(c, d)]);
        // Nothing has made the columns of a large group equal.
        let large: Vec<usize> = (0..9).map(|place| column(Slot(2), place)).chain([a]).collect();
        let (exprs, both) = ([equal(a, c), equal(a, d)], Places::from_slice(&[0, 1]));
        let mut set = SlotSet::default();
        set.insert(Slot(2));
        assert_eq!(without_redundant(both.clone(), &exprs, &[large], &set), both);
        // That a column is not NULL follows from nothing.
        let exprs = [equal(c, c), equal(c, d)];
        let none = SlotSet::default();
        assert_eq!(without_redundant(both.clone(), &exprs, &[vec![c, d], vec![b]], &none), both);
    }
}
