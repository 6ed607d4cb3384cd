//! Equalities of columns that follow from others, and those that say nothing more.
//!
//! `a = b AND b = c` implies `a = c`, so `a` and `c` can be joined first. Of all equalities of such
//! columns only as many are evaluated as tie each column to those that are there already.
//! `a = b AND a = 3` implies `b = 3`, by which an index may find rows. Then `a = b` says nothing
//! more.

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

/// The equalities `column = value` that follow for the other columns of a group, and for each group
/// whether all of its columns have the value.
pub(super) fn valued(
    groups: &[Vec<usize>],
    written: &[impl Borrow<Expr>],
    slots: &SlotSet,
) -> (Vec<Expr>, Vec<bool>) {
    let mut found = Vec::new();
    let value_of = |column: usize| {
        let mut values = written.iter().filter_map(|e| column_and_value(e.borrow()));
        values.find(|(of, _)| *of == column).map(|(_, value)| value)
    };
    let has_value = |group: &Vec<usize>| {
        let small = group.len() <= MAX_COLUMNS;
        let Some(value) = group.iter().filter(|_| small).find_map(|column| value_of(*column))
        else {
            return false;
        };
        let is_own = |column: &&usize| slots.contains(slot_of(**column).0);
        for column in group.iter().filter(is_own) {
            if value_of(*column) != Some(value) {
                let pair = Box::new((Expr::Column(*column), value.clone()));
                found.push(Expr::Compare(Compare::Eq, pair));
            }
        }
        group.iter().all(|column| is_own(&column))
    };
    let have_value = groups.iter().map(has_value).collect();
    (found, have_value)
}

/// A column and what it is equal to, which is the same for all rows.
fn column_and_value(e: &Expr) -> Option<(usize, &Expr)> {
    let Expr::Compare(Compare::Eq, pair) = e else { return None };
    match (&pair.0, &pair.1) {
        (Expr::Column(column), value) | (value, Expr::Column(column))
            if matches!(value, Expr::Const(_) | Expr::Param(_)) =>
        {
            Some((*column, value))
        }
        _ => None,
    }
}

/// The conditions without equalities that follow from those before them. The columns of a group in
/// `bound` slots are equal already: each pair of them has had its equality. That is not so for a
/// group that is too large. `have_value` says which groups are equal to a value.
pub(super) fn without_redundant(
    mut places: Places,
    exprs: &[impl Borrow<Expr>],
    (groups, have_value): (&[Vec<usize>], &[bool]),
    bound: &SlotSet,
) -> Places {
    if places.len() < 2 || groups.is_empty() {
        return places;
    }
    // Of each column the columns that it is known to be equal to: 0 are those in bound slots, and
    // those that have a value.
    let of_group = |(group, has_value): (&Vec<usize>, &bool)| {
        let own = |(place, column): (usize, &usize)| {
            if *has_value || bound.contains(slot_of(*column).0) { 0 } else { place + 1 }
        };
        group.iter().enumerate().map(own).collect()
    };
    let mut known: Vec<Vec<usize>> = groups.iter().zip(have_value).map(of_group).collect();
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
            without_redundant(Places::from_slice(places), &exprs, (&group, &[false]), &set).to_vec()
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
        assert_eq!(without_redundant(both.clone(), &exprs, (&[large], &[false]), &set), both);
        // That a column is not NULL follows from nothing.
        let exprs = [equal(c, c), equal(c, d)];
        let none = SlotSet::default();
        assert_eq!(
            without_redundant(both.clone(), &exprs, (&[vec![c, d], vec![b]], &[false; 2]), &none),
            both
        );
    }

    #[test]
    fn a_value_is_that_of_all_equal_columns() {
        let [a, b, c] = [0, 1, 2].map(|slot| column(Slot(slot), 0));
        let is = |column, value| {
            let pair = (Expr::Column(column), Expr::Const(crate::Value::Int4(value)));
            Expr::Compare(Compare::Eq, Box::new(pair))
        };
        let groups = vec![vec![a, b, c]];
        let mut all = SlotSet::default();
        (0..3).for_each(|slot| all.insert(Slot(slot)));
        let written = [equal(a, b), equal(b, c), is(b, 3)];
        let (more, have_value) = valued(&groups, &written, &all);
        assert_eq!((more, &*have_value), (vec![is(a, 3), is(c, 3)], &[true][..]));
        let none = SlotSet::default();
        let places = Places::from_slice(&[0, 1, 2]);
        let left = without_redundant(places, &written, (&groups, &have_value), &none);
        assert_eq!(left.to_vec(), [2]);
        // One column is of a query around: nothing else checks its value.
        let mut own = SlotSet::default();
        own.insert(Slot(1));
        own.insert(Slot(2));
        assert_eq!(valued(&groups, &written, &own), (vec![is(c, 3)], vec![false]));
        // Two values: both are asked for.
        let written = [equal(a, b), is(a, 3), is(b, 4)];
        assert_eq!(valued(&[vec![a, b]], &written, &all), (vec![is(b, 3)], vec![true]));
        assert_eq!(valued(&[vec![a, b]], &written[..1], &all), (Vec::new(), vec![false]));
    }
}
