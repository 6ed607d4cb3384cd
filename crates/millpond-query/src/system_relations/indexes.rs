//! Indexes and the constraints that they keep: `pg_index`, `pg_constraint`, and the friendlier
//! `pg_indexes`.

use std::sync::Arc;

use millpond_engine::catalog::{IndexColumn, IndexDef, TableDef};

use super::Kind::{Bool, Char, Int2, Int2Array, Int2Vector, Int4, Name, Oid, OidVector, Text};
use super::describe::constraint_oid;
use super::relations::{PUBLIC, indexes_of, tables_named, tables_numbered};
use super::{Cell, Columns, Source, View, constraint_index, index_definition, key, unique, view};
use crate::DataType;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_index", 2610, PG_INDEX, pg_index).keyed(&[
        key("pg_index_indrelid_index", 2678, &["indrelid"]),
        unique("pg_index_indexrelid_index", 2679, &["indexrelid"]),
    ]),
    view("pg_constraint", 2606, PG_CONSTRAINT, pg_constraint).keyed(&[
        unique(
            "pg_constraint_conrelid_contypid_conname_index",
            2665,
            &["conrelid", "contypid", "conname"],
        ),
        unique("pg_constraint_oid_index", 2667, &["oid"]),
    ]),
    view("pg_indexes", 12001, PG_INDEXES, pg_indexes).keyed(&[key(
        "pg_indexes_tablename_index",
        12103,
        &["tablename"],
    )]),
];

const PG_INDEX: Columns = &[
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
    ("indkey", Int2Vector),
    ("indcollation", OidVector),
    ("indclass", OidVector),
    ("indoption", Int2Vector),
    ("indexprs", Text),
    ("indpred", Text),
];

fn pg_index(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): (Arc<TableDef>, Arc<IndexDef>)| {
        let numbers = |number: &dyn Fn(&IndexColumn) -> i64| {
            Cell::Ints(index.columns.iter().map(number).collect())
        };
        let key = numbers(&|key| key.column as i64 + 1);
        let collation = numbers(&|key| {
            if table.columns[key.column].ty.is_string() { DEFAULT_COLLATION } else { 0 }
        });
        let class = numbers(&|key| operator_class(table.columns[key.column].ty));
        let options =
            numbers(&|key| i64::from(key.order.descending) | i64::from(key.order.nulls_first) << 1);
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
            key,
            collation,
            class,
            options,
            Cell::Null,
            Cell::Null,
        ]
    };
    wanted_indexes(source, "indrelid", "indexrelid").into_iter().map(row).collect()
}

/// The indexes of a table, the index of a number, or all.
fn wanted_indexes(
    source: &Source<'_>,
    table: &str,
    index: &str,
) -> Vec<(Arc<TableDef>, Arc<IndexDef>)> {
    match source.wanted_oid(index) {
        Some(oid) => {
            let found = source.catalog.index(oid);
            found.map(|(table, index)| (Arc::clone(table), Arc::clone(index))).into_iter().collect()
        }
        None => indexes_of(tables_numbered(source, table)),
    }
}

const DEFAULT_COLLATION: i64 = 100;

/// PostgreSQL's number of the class of B-tree operators of a type.
fn operator_class(ty: DataType) -> i64 {
    match ty {
        DataType::Bool => 10002,
        DataType::Char(_) => 10012,
        DataType::Bytea => 10013,
        DataType::Date => 3122,
        DataType::Float4 => 10020,
        DataType::Float8 => 3123,
        DataType::Int2 => 1979,
        DataType::Int4 => 1978,
        DataType::Int8 => 3124,
        DataType::Oid => 1981,
        DataType::Numeric { .. } => 3125,
        DataType::Text | DataType::Varchar(_) => 3126,
        DataType::Name => 10028,
        DataType::Timestamptz(_) => 3127,
        DataType::Timestamp(_) => 3128,
        DataType::Other { .. } => 0,
    }
}

const PG_CONSTRAINT: Columns = &[
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
    ("conkey", Int2Array),
    ("confkey", Int2Array),
    ("conbin", Text),
];

fn pg_constraint(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): &(Arc<TableDef>, Arc<IndexDef>)| {
        let key = index.columns.iter().map(|key| key.column as i64 + 1).collect();
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
            Cell::Ints(key),
            Cell::Null,
            Cell::Null,
        ]
    };
    let indexes = match source.wanted_oid("oid") {
        Some(oid) => {
            let found = source.catalog.index(constraint_index(oid));
            found.map(|(table, index)| (Arc::clone(table), Arc::clone(index))).into_iter().collect()
        }
        None => indexes_of(tables_numbered(source, "conrelid")),
    };
    indexes.iter().filter(|(_, index)| index.constraint).map(row).collect()
}

const PG_INDEXES: Columns = &[
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
    indexes_of(tables_named(source, "tablename")).iter().map(row).collect()
}
