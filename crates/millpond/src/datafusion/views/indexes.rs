//! Indexes and the constraints that they keep: `pg_index`, `pg_constraint`, and the friendlier `pg_indexes`.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};

use super::Kind::{Array, Bool, Char, Int2, Int4, Name, Oid, Text};
use super::relations::{PUBLIC, indexes};
use super::{Cell, Kind, Source, View};
use crate::datafusion::functions::{constraint_oid, index_definition};

/// The views of this file.
pub const VIEWS: &[View] = &[
    View { schema: "pg_catalog", name: "pg_index", oid: 2610, columns: PG_INDEX, rows: pg_index },
    View {
        schema: "pg_catalog",
        name: "pg_constraint",
        oid: 2606,
        columns: PG_CONSTRAINT,
        rows: pg_constraint,
    },
    View {
        schema: "pg_catalog",
        name: "pg_indexes",
        oid: 12001,
        columns: PG_INDEXES,
        rows: pg_indexes,
    },
];

const PG_INDEX: &[(&str, Kind)] = &[
    ("indexrelid", Oid),
    ("indrelid", Oid),
    ("indnatts", Int2),
    ("indnkeyatts", Int2),
    ("indisunique", Bool),
    ("indnullsnotdistinct", Bool),
    ("indisprimary", Bool),
    ("indisexclusion", Bool),
    ("indimmediate", Bool),
    ("indisclustered", Bool),
    ("indisvalid", Bool),
    ("indcheckxmin", Bool),
    ("indisready", Bool),
    ("indislive", Bool),
    ("indisreplident", Bool),
    ("indkey", Array),
    ("indcollation", Array),
    ("indclass", Array),
    ("indoption", Array),
    ("indexprs", Text),
    ("indpred", Text),
];

fn pg_index(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): (Arc<TableDef>, Arc<IndexDef>)| {
        let words = |word: &dyn Fn(usize) -> String| {
            let words: Vec<String> = (0..index.columns.len()).map(word).collect();
            words.join(" ")
        };
        let key = words(&|at| (index.columns[at].column + 1).to_string());
        let zeros = words(&|_| "0".to_owned());
        let options = words(&|at| {
            if index.columns[at].order.descending { "3".to_owned() } else { "0".to_owned() }
        });
        vec![
            index.oid.into(),
            table.oid.into(),
            index.columns.len().into(),
            index.columns.len().into(),
            index.unique.into(),
            false.into(),
            index.primary.into(),
            false.into(),
            true.into(),
            false.into(),
            true.into(),
            false.into(),
            true.into(),
            true.into(),
            false.into(),
            key.into(),
            zeros.clone().into(),
            zeros.into(),
            options.into(),
            Cell::Null,
            Cell::Null,
        ]
    };
    indexes(source).into_iter().map(row).collect()
}

const PG_CONSTRAINT: &[(&str, Kind)] = &[
    ("oid", Oid),
    ("conname", Name),
    ("connamespace", Oid),
    ("contype", Char),
    ("condeferrable", Bool),
    ("condeferred", Bool),
    ("convalidated", Bool),
    ("conrelid", Oid),
    ("contypid", Oid),
    ("conindid", Oid),
    ("conparentid", Oid),
    ("confrelid", Oid),
    ("confupdtype", Char),
    ("confdeltype", Char),
    ("confmatchtype", Char),
    ("conislocal", Bool),
    ("coninhcount", Int4),
    ("connoinherit", Bool),
    ("conkey", Array),
    ("confkey", Array),
    ("conbin", Text),
];

fn pg_constraint(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): &(Arc<TableDef>, Arc<IndexDef>)| {
        let key: Vec<String> =
            index.columns.iter().map(|column| (column.column + 1).to_string()).collect();
        vec![
            constraint_oid(index.oid).into(),
            index.name.as_str().into(),
            PUBLIC.into(),
            if index.primary { "p" } else { "u" }.into(),
            false.into(),
            false.into(),
            true.into(),
            table.oid.into(),
            0.into(),
            index.oid.into(),
            0.into(),
            0.into(),
            " ".into(),
            " ".into(),
            " ".into(),
            true.into(),
            0.into(),
            true.into(),
            format!("{{{}}}", key.join(",")).into(),
            Cell::Null,
            Cell::Null,
        ]
    };
    indexes(source).iter().filter(|(_, index)| index.constraint).map(row).collect()
}

const PG_INDEXES: &[(&str, Kind)] = &[
    ("schemaname", Name),
    ("tablename", Name),
    ("indexname", Name),
    ("tablespace", Name),
    ("indexdef", Text),
];

fn pg_indexes(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): &(Arc<TableDef>, Arc<IndexDef>)| {
        vec![
            "public".into(),
            table.name.as_str().into(),
            index.name.as_str().into(),
            Cell::Null,
            index_definition(table, index, 0).into(),
        ]
    };
    indexes(source).iter().map(row).collect()
}
