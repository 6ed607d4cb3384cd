//! How rows are found: which index, which part of it.
//!
//! The condition is split at its ANDs. A conjunct `column op value`, where the value is the same for all rows,
//! can become part of a key. For each index the leading columns that have an equality are
//! taken, then an IN list or a range on the next. What is taken this way is exact and leaves the filter: a
//! value beyond the range of the column's type gives no rows, or an open end, when the key is made.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use super::{Ordered, UsableIndexes};
use crate::DataType;
use crate::expr::{Compare, Expr};

/// A value for a key column: an expression that is the same for all rows, and the column's type.
#[derive(Debug, Clone)]
pub(crate) struct KeyPart {
    pub(crate) expr: Expr,
    pub(crate) ty: DataType,
}

/// How rows are found.
#[derive(Debug)]
pub(crate) enum Access {
    /// There is no table: one row of nothing.
    Nothing,
    /// All rows, page by page.
    Heap,
    /// At most one row: a whole key of a unique index.
    Point { index: Arc<IndexDef>, key: Vec<KeyPart> },
    /// A part of an index.
    Range(Box<IndexRange>),
}

/// A part of an index: equal leading columns, then a list or a range.
#[derive(Debug)]
pub(crate) struct IndexRange {
    pub(crate) index: Arc<IndexDef>,
    pub(crate) equal: Vec<KeyPart>,
    /// Values of the next column, if it is one of a list.
    pub(crate) list: Option<Vec<KeyPart>>,
    /// Bounds of the next column; the flag says inclusive.
    pub(crate) from: Option<(KeyPart, bool)>,
    pub(crate) to: Option<(KeyPart, bool)>,
    pub(crate) direction: Direction,
}

/// A conjunct that can serve as part of a key.
struct Sargable<'e> {
    column: usize,
    op: Op<'e>,
    /// Its place among the conjuncts.
    place: usize,
}

enum Op<'e> {
    Compare(Compare, &'e Expr),
    In(&'e [Expr]),
}

/// The best access for a condition, with what is left to filter, and the order that it gives if one was wanted.
pub(crate) fn choose(
    table: &TableDef,
    indexes: &UsableIndexes<'_>,
    condition: Option<&Expr>,
    wanted: Option<&Ordered>,
) -> (Access, Option<Expr>, bool) {
    let conjuncts: Vec<&Expr> = match condition {
        None => Vec::new(),
        Some(Expr::And(list)) => list.iter().collect(),
        Some(one) => vec![one],
    };
    let usable: Vec<Sargable<'_>> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(place, conjunct)| sargable(conjunct, place))
        .collect();
    let mut best: Option<(u32, Candidate)> = None;
    for index in indexes.of(table) {
        let candidate = candidate(index, table, &usable);
        let mut score = candidate.score();
        let ordered = wanted.is_some_and(|wanted| wanted.index.oid == index.oid);
        if ordered {
            // Reading in order saves a sort, which counts as much as a range.
            score += 15;
        }
        if score > 0 && best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, candidate));
        }
    }
    let Some((_, candidate)) = best else {
        return (Access::Heap, condition.cloned(), false);
    };
    let rest: Vec<Expr> = conjuncts
        .iter()
        .enumerate()
        .filter(|(place, _)| !candidate.taken.contains(place))
        .map(|(_, conjunct)| (*conjunct).clone())
        .collect();
    let filter = match rest.len() {
        0 => None,
        1 => rest.into_iter().next(),
        _ => Some(Expr::And(rest)),
    };
    let ordered = wanted.filter(|wanted| wanted.index.oid == candidate.index.oid);
    let direction = ordered.map_or(Direction::Forward, |wanted| wanted.direction);
    let is_ordered = candidate.is_point() || ordered.is_some() && candidate.list.is_none();
    (candidate.into_access(direction), filter, is_ordered)
}

/// The columns that a condition makes equal to one value.
pub(super) fn fixed_columns(condition: Option<&Expr>) -> Vec<usize> {
    let conjuncts = match condition {
        None => &[][..],
        Some(Expr::And(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    conjuncts
        .iter()
        .filter_map(|conjunct| match sargable(conjunct, 0) {
            Some(Sargable { column, op: Op::Compare(Compare::Eq, _), .. }) => Some(column),
            _ => None,
        })
        .collect()
}

struct Candidate {
    index: Arc<IndexDef>,
    equal: Vec<KeyPart>,
    list: Option<Vec<KeyPart>>,
    from: Option<(KeyPart, bool)>,
    to: Option<(KeyPart, bool)>,
    taken: Vec<usize>,
}

impl Candidate {
    fn is_point(&self) -> bool {
        self.index.unique && self.equal.len() == self.index.columns.len()
    }

    fn score(&self) -> u32 {
        if self.is_point() {
            return 1000;
        }
        let ends = u32::from(self.from.is_some()) + u32::from(self.to.is_some());
        40 * self.equal.len() as u32 + 30 * u32::from(self.list.is_some()) + 10 * ends
    }

    fn into_access(self, direction: Direction) -> Access {
        if self.is_point() {
            return Access::Point { index: self.index, key: self.equal };
        }
        Access::Range(Box::new(IndexRange {
            index: self.index,
            equal: self.equal,
            list: self.list,
            from: self.from,
            to: self.to,
            direction,
        }))
    }
}

fn candidate(index: &Arc<IndexDef>, table: &TableDef, usable: &[Sargable<'_>]) -> Candidate {
    let mut found = Candidate {
        index: Arc::clone(index),
        equal: Vec::new(),
        list: None,
        from: None,
        to: None,
        taken: Vec::new(),
    };
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
            found.taken.push(sargable.place);
            continue;
        }
        let list = here().find_map(|s| match s.op {
            Op::In(list) => Some((s, list)),
            _ => None,
        });
        if let Some((sargable, list)) = list {
            found.list = Some(list.iter().map(part).collect());
            found.taken.push(sargable.place);
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
                found.taken.push(sargable.place);
            }
        }
        break;
    }
    found
}

fn sargable<'e>(conjunct: &'e Expr, place: usize) -> Option<Sargable<'e>> {
    match conjunct {
        Expr::Compare(op, pair) => {
            let (column, op, value) = match (&pair.0, &pair.1) {
                (Expr::Column(column), value) if value.is_fixed() => (*column, *op, value),
                (value, Expr::Column(column)) if value.is_fixed() => (*column, op.flipped(), value),
                _ => return None,
            };
            if op == Compare::Ne {
                return None;
            }
            Some(Sargable { column, op: Op::Compare(op, value), place })
        }
        Expr::In(value, list, false) => match value.as_ref() {
            Expr::Column(column) if list.iter().all(Expr::is_fixed) => {
                Some(Sargable { column: *column, op: Op::In(list), place })
            }
            _ => None,
        },
        _ => None,
    }
}
