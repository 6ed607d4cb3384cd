//! Guesses at rows and costs, as there are no statistics of columns.
//!
//! The unit of cost is what it takes to look at a row of a table that is read page by page.

use std::borrow::Borrow;
use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};

use super::Planning;
use super::node::SlotKind;
use crate::DataType;
use crate::analyze::tree::{self, slot_of};
use crate::expr::{Compare, Expr};
use crate::plan::access::{Bounds, List};
use crate::types::array::array_of;

/// To find the first row of a key.
pub(super) const LOOKUP: f64 = 5.0;
/// A row that an index leads to.
pub(super) const INDEXED_ROW: f64 = 1.5;
/// The same, when a whole index is read: the rows are all over the table.
pub(super) const SCATTERED_ROW: f64 = 3.0;
/// To keep a row in a hash table or another store.
pub(super) const KEEP: f64 = 1.0;
/// To look for a row in a hash table, or to look at a kept one.
pub(super) const PROBE: f64 = 0.5;
/// To put a row of a join together and give it on.
pub(super) const GIVE: f64 = 0.1;
/// One comparison of a sort.
const COMPARE: f64 = 0.2;
/// The rows of a small table. A plan is kept, and the table may grow.
const FEWEST_ROWS: i64 = 1_000;
/// The same beside a table of at least [`LARGE_ROWS`], which shows that the data is there already.
const FEWEST_ROWS_BESIDE_LARGE: i64 = 10;
const LARGE_ROWS: i64 = 100_000;
/// The part of rows that have one of the few values of a column.
const OF_FEW_VALUES: f64 = 0.5;
/// Rows of a relation of which nothing is known.
pub(super) const UNKNOWN_ROWS: f64 = 100.0;

impl Planning<'_> {
    /// The rows of a table, as far as known.
    pub(super) fn live(&self, table: &TableDef) -> f64 {
        let beside_large = self.largest_table >= LARGE_ROWS;
        let fewest = if beside_large { FEWEST_ROWS_BESIDE_LARGE } else { FEWEST_ROWS };
        self.live_rows(table).max(fewest) as f64
    }

    /// The same, without a guess at what may become of it.
    pub(super) fn live_rows(&self, table: &TableDef) -> i64 {
        let noted = self.tables.iter().find(|(noted, _)| noted.oid == table.oid);
        noted.map_or_else(|| self.indexes.live_rows(table), |(_, live)| *live)
    }

    /// The rows of the table of a column, if it is a table's.
    pub(super) fn live_of(&self, column: usize) -> Option<f64> {
        self.table_of(column).map(|table| self.live(table))
    }

    fn table_of(&self, column: usize) -> Option<&Arc<TableDef>> {
        match self.kinds.get(slot_of(column).0.index()) {
            Some(SlotKind::Stored(table)) => Some(table),
            _ => None,
        }
    }

    /// Which part of all pairs of rows an equality of two expressions leaves.
    pub(super) fn equality(&self, a: &Expr, b: &Expr) -> f64 {
        let values = |e: &Expr| match e {
            Expr::Column(column) => self.distinct_values(*column),
            _ => UNKNOWN_ROWS,
        };
        1.0 / values(a).max(values(b))
    }

    /// How many values a column has. A key has as many as its table has rows. What must be equal to
    /// a key has as many as the key. Of others nothing is known.
    pub(super) fn distinct_values(&self, column: usize) -> f64 {
        let Some(live) = self.live_of(column) else { return UNKNOWN_ROWS };
        let equal = self.equal_columns.iter().find(|columns| columns.contains(&column));
        let columns = equal.map_or(std::slice::from_ref(&column), Vec::as_slice);
        let keys = columns.iter().filter(|column| self.is_key(**column));
        let fewest = keys.filter_map(|key| self.live_of(*key)).reduce(f64::min);
        fewest.map_or_else(|| live.sqrt(), |fewest| fewest.min(live))
    }

    /// Whether no two rows have the same value in a column.
    fn is_key(&self, column: usize) -> bool {
        self.rows_if_unique(column, &[column]).is_some()
    }

    /// The rows of a column's table, if it has a unique index of which all columns are among these.
    pub(super) fn rows_if_unique(&self, column: usize, among: &[usize]) -> Option<f64> {
        let slot = slot_of(column).0;
        let table = self.table_of(column)?;
        let is_among = |place: usize| among.contains(&tree::column(slot, place));
        let mut unique = table.indexes.iter().filter(|index| index.unique);
        unique
            .any(|index| index.columns.iter().all(|key| is_among(key.column)))
            .then(|| self.live(table))
    }

    /// Groups of columns that are equal in all rows that meet some conditions.
    pub(super) fn columns_made_equal(conditions: &[impl Borrow<Expr>]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for condition in conditions {
            let Expr::Compare(Compare::Eq, pair) = condition.borrow() else { continue };
            let (Expr::Column(a), Expr::Column(b)) = (&pair.0, &pair.1) else { continue };
            if a == b {
                continue;
            }
            let mut joined = vec![*a, *b];
            groups.retain_mut(|group| {
                let is_of_both = group.contains(a) || group.contains(b);
                if is_of_both {
                    group.retain(|column| column != a && column != b);
                    joined.append(group);
                }
                !is_of_both
            });
            groups.push(joined);
        }
        groups
    }
}

/// The rows within bounds, and how often a first row is looked for: guesses. `rows_of_key` says how
/// many rows have a value in one column.
pub(in crate::plan) fn bounds_rows(
    index: &IndexDef,
    bounds: &Bounds<'_>,
    live: f64,
    rows_of_key: impl Fn(&Expr) -> f64,
) -> (f64, f64) {
    let mut equal = bounds.equal.len();
    let mut rows = live;
    for value in &bounds.equal {
        rows = rows.min(value.value().map_or_else(|| live.sqrt(), &rows_of_key));
    }
    if equal > 1 {
        rows = rows.min(live.powf(1.0 / (equal as f64 + 1.0)));
    }
    let mut lookups = 1.0;
    if let Some(list) = &bounds.list {
        lookups = match list {
            List::Items(items) => items.len() as f64,
            List::Array(array) => elements(array),
        };
        equal += 1 + bounds.then.len();
    }
    let is_key = bounds.are_keys_of(index);
    if bounds.list.is_some() || is_key {
        let each = if is_key { 1.0 } else { live.powf(1.0 / (equal as f64 + 1.0)) };
        rows = rows.min(each * lookups);
    }
    rows /= GUESSED_ENDS[ends_of(bounds)];
    (rows.max(1.0), lookups)
}

/// How many times fewer rows one or two bounds of a range are taken to leave.
pub(super) const GUESSED_ENDS: [f64; 3] = [1.0, 3.0, 200.0];

pub(super) fn ends_of(bounds: &Bounds<'_>) -> usize {
    if bounds.like.is_some() {
        return 2;
    }
    usize::from(bounds.from.is_some()) + usize::from(bounds.to.is_some())
}

impl Planning<'_> {
    /// The part of rows that meet some conditions.
    pub(super) fn selectivity<'e>(&self, conjuncts: impl Iterator<Item = &'e Expr>) -> f64 {
        let part = |conjunct: &Expr| match self.has_few_values(conjunct) {
            true => OF_FEW_VALUES,
            false => one(conjunct),
        };
        conjuncts.map(part).product::<f64>().max(1e-9)
    }

    /// Whether it is an equality with a column whose type says that it has few values: one
    /// character is a code, most often.
    fn has_few_values(&self, conjunct: &Expr) -> bool {
        let Expr::Compare(Compare::Eq, pair) = conjunct else { return false };
        self.is_code(&pair.0) != self.is_code(&pair.1)
    }

    /// Whether it is such a column.
    pub(super) fn is_code(&self, expr: &Expr) -> bool {
        let Expr::Column(column) = expr else { return false };
        let (slot, place) = slot_of(*column);
        let Some(SlotKind::Stored(table)) = self.kinds.get(slot.index()) else { return false };
        matches!(table.layout.types().get(place), Some(DataType::Char(1) | DataType::Bool))
    }
}

fn one(conjunct: &Expr) -> f64 {
    match conjunct {
        Expr::Const(_) => 1.0,
        Expr::Compare(Compare::Eq, _) | Expr::IsNull(_, false) => 0.05,
        Expr::Compare(Compare::Ne, _) | Expr::IsNull(_, true) => 0.95,
        Expr::Compare(..) => 0.33,
        Expr::In(_, list, negated) => {
            let found = (0.05 * list.len() as f64).min(0.5);
            if *negated { 1.0 - found } else { found }
        }
        Expr::Like(like) if like.negated => 0.9,
        Expr::Like(_) => 0.1,
        Expr::Not(inner) => 1.0 - one(inner),
        Expr::And(list) => list.iter().map(one).product(),
        Expr::Or(list) => 1.0 - list.iter().map(|arm| 1.0 - one(arm)).product::<f64>(),
        other => match other.as_equal_any() {
            Some((_, array)) => (0.05 * elements(array)).min(0.5),
            None => 0.5,
        },
    }
}

/// How many elements an array has. One that is not known yet has as many as PostgreSQL assumes.
pub(super) fn elements(array: &Expr) -> f64 {
    const UNKNOWN: f64 = 10.0;
    match array {
        Expr::Const(value) => array_of(&value.as_datum()).map_or(0.0, |a| a.iter().count() as f64),
        other => other.as_array_of().map_or(UNKNOWN, |elements| elements.len() as f64),
    }
}

/// What it costs to sort rows.
pub(super) fn sort_cost(rows: f64) -> f64 {
    rows * (KEEP + COMPARE * rows.max(2.0).log2())
}
