//! The standard's views of tables, columns and constraints.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};

use super::Kind::{Int4, Name, Text};
use super::relations::{indexes, sorted_tables};
use super::{Cell, Kind, Source, View};
use crate::DataType;

/// The views of this file.
pub const VIEWS: &[View] = &[
    View {
        schema: "information_schema",
        name: "schemata",
        oid: 0,
        columns: SCHEMATA,
        rows: schemata,
    },
    View { schema: "information_schema", name: "tables", oid: 0, columns: TABLES, rows: tables },
    View { schema: "information_schema", name: "columns", oid: 0, columns: COLUMNS, rows: columns },
    View {
        schema: "information_schema",
        name: "table_constraints",
        oid: 0,
        columns: TABLE_CONSTRAINTS,
        rows: table_constraints,
    },
    View {
        schema: "information_schema",
        name: "key_column_usage",
        oid: 0,
        columns: KEY_COLUMN_USAGE,
        rows: key_column_usage,
    },
];

const SCHEMATA: &[(&str, Kind)] =
    &[("catalog_name", Name), ("schema_name", Name), ("schema_owner", Name)];

fn schemata(source: &Source<'_>) -> Vec<Vec<Cell>> {
    ["pg_catalog", "public", "information_schema"]
        .map(|name| vec![source.session.database.as_str().into(), name.into(), "postgres".into()])
        .into()
}

const TABLES: &[(&str, Kind)] = &[
    ("table_catalog", Name),
    ("table_schema", Name),
    ("table_name", Name),
    ("table_type", Text),
    ("is_insertable_into", Text),
    ("is_typed", Text),
];

fn tables(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let database = source.session.database.as_str();
    let mut rows: Vec<Vec<Cell>> = sorted_tables(source)
        .iter()
        .map(|table| {
            vec![
                database.into(),
                "public".into(),
                table.name.as_str().into(),
                "BASE TABLE".into(),
                "YES".into(),
                "NO".into(),
            ]
        })
        .collect();
    rows.extend(super::all().map(|view| {
        vec![
            database.into(),
            view.schema.into(),
            view.name.into(),
            "VIEW".into(),
            "NO".into(),
            "NO".into(),
        ]
    }));
    rows
}

const COLUMNS: &[(&str, Kind)] = &[
    ("table_catalog", Name),
    ("table_schema", Name),
    ("table_name", Name),
    ("column_name", Name),
    ("ordinal_position", Int4),
    ("column_default", Text),
    ("is_nullable", Text),
    ("data_type", Text),
    ("character_maximum_length", Int4),
    ("numeric_precision", Int4),
    ("numeric_scale", Int4),
    ("datetime_precision", Int4),
    ("udt_schema", Name),
    ("udt_name", Name),
    ("is_identity", Text),
    ("is_generated", Text),
    ("is_updatable", Text),
];

fn columns(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in sorted_tables(source) {
        for (position, column) in table.columns.iter().enumerate() {
            let (length, precision, scale, datetime) = modifiers(column.ty);
            rows.push(vec![
                source.session.database.as_str().into(),
                "public".into(),
                table.name.as_str().into(),
                column.name.as_str().into(),
                (position + 1).into(),
                column.default.as_deref().into(),
                if column.not_null { "NO" } else { "YES" }.into(),
                plain_name(column.ty).into(),
                length.into(),
                precision.into(),
                scale.into(),
                datetime.into(),
                "pg_catalog".into(),
                column.ty.type_name().into(),
                "NO".into(),
                "NEVER".into(),
                "YES".into(),
            ]);
        }
    }
    rows
}

/// The type's name without its modifier.
fn plain_name(ty: DataType) -> String {
    match ty {
        DataType::Char(_) => "character".to_owned(),
        other => other.base().to_string(),
    }
}

/// Length in characters, precision and scale of numbers, digits of a second.
fn modifiers(ty: DataType) -> (Option<u32>, Option<i32>, Option<i32>, Option<i32>) {
    match ty {
        DataType::Varchar(length) => (length, None, None, None),
        DataType::Char(length) => (Some(length), None, None, None),
        DataType::Int2 => (None, Some(16), Some(0), None),
        DataType::Int4 => (None, Some(32), Some(0), None),
        DataType::Int8 => (None, Some(64), Some(0), None),
        DataType::Float4 => (None, Some(24), None, None),
        DataType::Float8 => (None, Some(53), None, None),
        DataType::Numeric { precision_scale: Some((precision, scale)) } => {
            (None, Some(precision.into()), Some(scale.into()), None)
        }
        DataType::Date => (None, None, None, Some(0)),
        DataType::Timestamp | DataType::Timestamptz => (None, None, None, Some(6)),
        _ => (None, None, None, None),
    }
}

const TABLE_CONSTRAINTS: &[(&str, Kind)] = &[
    ("constraint_catalog", Name),
    ("constraint_schema", Name),
    ("constraint_name", Name),
    ("table_catalog", Name),
    ("table_schema", Name),
    ("table_name", Name),
    ("constraint_type", Text),
    ("is_deferrable", Text),
    ("initially_deferred", Text),
];

fn table_constraints(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |(table, index): (Arc<TableDef>, Arc<IndexDef>)| {
        let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
        let mut row = constraint(source, &table, &index);
        row.extend([kind.into(), "NO".into(), "NO".into()]);
        row
    };
    constraints(source).map(row).collect()
}

/// The indexes that are constraints, with their tables.
fn constraints(source: &Source<'_>) -> impl Iterator<Item = (Arc<TableDef>, Arc<IndexDef>)> {
    indexes(source).into_iter().filter(|(_, index)| index.constraint)
}

/// What a constraint and its table are called, as a row begins.
fn constraint(source: &Source<'_>, table: &TableDef, index: &IndexDef) -> Vec<Cell> {
    let database = source.session.database.as_str();
    vec![
        database.into(),
        "public".into(),
        index.name.as_str().into(),
        database.into(),
        "public".into(),
        table.name.as_str().into(),
    ]
}

const KEY_COLUMN_USAGE: &[(&str, Kind)] = &[
    ("constraint_catalog", Name),
    ("constraint_schema", Name),
    ("constraint_name", Name),
    ("table_catalog", Name),
    ("table_schema", Name),
    ("table_name", Name),
    ("column_name", Name),
    ("ordinal_position", Int4),
];

fn key_column_usage(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for (table, index) in constraints(source) {
        for (position, key) in index.columns.iter().enumerate() {
            let mut row = constraint(source, &table, &index);
            row.extend([table.columns[key.column].name.as_str().into(), (position + 1).into()]);
            rows.push(row);
        }
    }
    rows
}
