//! Aggregates and window functions: `pg_aggregate`, and what `pg_proc` says of them.
//!
//! `aggregates.txt` has a line for each: number, name, kind, whether it is strict, the type of
//! variadic arguments, the result's type and the arguments' types. The last three words are those
//! of `pg_aggregate`: kind, number of direct arguments, and the operator that sorts as it chooses.

use std::sync::LazyLock;

use super::Kind::{Bool, Char, Int2, Int4, Oid, Text};
use super::{Cell, Columns, Source, View, unique, view};

/// The view of this file.
pub(crate) const VIEWS: &[View] = &[view("pg_aggregate", 2600, PG_AGGREGATE, pg_aggregate)
    .keyed(&[unique("pg_aggregate_fnoid_index", 2650, &["aggfnoid"])])];

const PG_AGGREGATE: Columns = &[
    ("aggfnoid", Oid),
    ("aggkind", Char),
    ("aggnumdirectargs", Int2),
    ("aggtransfn", Oid),
    ("aggfinalfn", Oid),
    ("aggcombinefn", Oid),
    ("aggserialfn", Oid),
    ("aggdeserialfn", Oid),
    ("aggmtransfn", Oid),
    ("aggminvtransfn", Oid),
    ("aggmfinalfn", Oid),
    ("aggfinalextra", Bool),
    ("aggmfinalextra", Bool),
    ("aggfinalmodify", Char),
    ("aggmfinalmodify", Char),
    ("aggsortop", Oid),
    ("aggtranstype", Oid),
    ("aggtransspace", Int4),
    ("aggmtranstype", Oid),
    ("aggmtransspace", Int4),
    ("agginitval", Text),
    ("aggminitval", Text),
];

/// An aggregate for arguments of certain types, or a window function.
pub struct Aggregate {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    /// As in `pg_proc.prokind`.
    pub(super) kind: &'static str,
    pub(super) strict: bool,
    pub(super) variadic: u32,
    pub(super) result: u32,
    pub(super) args: Vec<u32>,
    /// As in `pg_aggregate.aggkind`.
    aggregate_kind: &'static str,
    direct_args: u32,
    sort_operator: u32,
}

impl Aggregate {
    pub(super) fn is_window(&self) -> bool {
        self.kind == "w"
    }
}

/// All of them, by their numbers.
pub(super) fn aggregates() -> &'static [Aggregate] {
    static ALL: LazyLock<Vec<Aggregate>> =
        LazyLock::new(|| include_str!("aggregates.txt").lines().filter_map(parsed).collect());
    &ALL
}

fn parsed(line: &'static str) -> Option<Aggregate> {
    let mut words = line.split(' ');
    let mut word = || words.next();
    Some(Aggregate {
        oid: word()?.parse().ok()?,
        name: word()?,
        kind: word()?,
        strict: word()? == "t",
        variadic: word()?.parse().ok()?,
        result: word()?.parse().ok()?,
        args: match word()? {
            "-" => Vec::new(),
            types => types.split(',').map(|ty| ty.parse().ok()).collect::<Option<_>>()?,
        },
        aggregate_kind: word()?,
        direct_args: word()?.parse().ok()?,
        sort_operator: word()?.parse().ok()?,
    })
}

/// How an aggregate computes is not told in functions and states, so those columns are 0.
fn pg_aggregate(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |aggregate: &Aggregate| {
        let cell = |(column, kind): &(&str, super::Kind)| match *column {
            "aggfnoid" => aggregate.oid.into(),
            "aggkind" => aggregate.aggregate_kind.into(),
            "aggnumdirectargs" => aggregate.direct_args.into(),
            "aggsortop" => aggregate.sort_operator.into(),
            // It may be called again after its result was computed.
            "aggfinalmodify" | "aggmfinalmodify" => "r".into(),
            _ => match kind {
                Bool => false.into(),
                Text => Cell::Null,
                _ => 0.into(),
            },
        };
        PG_AGGREGATE.iter().map(cell).collect()
    };
    aggregates().iter().filter(|aggregate| !aggregate.is_window()).map(row).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_is_read() {
        assert_eq!(super::aggregates().len(), include_str!("aggregates.txt").lines().count());
        assert!(super::aggregates().is_sorted_by_key(|aggregate| aggregate.oid));
    }
}
