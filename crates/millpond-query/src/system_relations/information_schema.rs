//! The standard's views of tables, columns and constraints.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};

use super::Kind::{Int4, Name, Text};
use super::relations::{indexes_of, tables_named};
use super::{Cell, Columns, Key, Source, View, all, key, view};
use crate::DataType;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    standard("schemata", 13100, SCHEMATA, schemata, &[]),
    standard("tables", 13101, TABLES, tables, &[key("tables_table_name_index", 13111, TABLE_NAME)]),
    standard(
        "columns",
        13102,
        COLUMNS,
        columns,
        &[key("columns_table_name_index", 13112, TABLE_NAME)],
    ),
    standard(
        "table_constraints",
        13103,
        TABLE_CONSTRAINTS,
        table_constraints,
        &[key("table_constraints_table_name_index", 13113, TABLE_NAME)],
    ),
    standard(
        "key_column_usage",
        13104,
        KEY_COLUMN_USAGE,
        key_column_usage,
        &[key("key_column_usage_table_name_index", 13114, TABLE_NAME)],
    ),
];

const TABLE_NAME: &[&str] = &["table_name"];

/// A relation of this schema.
const fn standard(
    name: &'static str,
    oid: u32,
    columns: Columns,
    rows: fn(&Source<'_>) -> Vec<Vec<Cell>>,
    keys: &'static [Key],
) -> View {
    View { schema: "information_schema", ..view(name, oid, columns, rows).keyed(keys) }
}

const SCHEMATA: Columns = &[("catalog_name", Name), ("schema_name", Name), ("schema_owner", Name)];

fn schemata(source: &Source<'_>) -> Vec<Vec<Cell>> {
    ["pg_catalog", "public", "information_schema"]
        .map(|name| vec![source.session().database.as_str().into(), name.into(), "postgres".into()])
        .into()
}

const TABLES: Columns = &[
    ("table_catalog", Name),
    ("table_schema", Name),
    ("table_name", Name),
    ("table_type", Text),
    ("is_insertable_into", Text),
    ("is_typed", Text),
];

fn tables(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let database = source.session().database.as_str();
    let mut rows: Vec<Vec<Cell>> = tables_named(source, "table_name")
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
    rows.extend(all().map(|view| {
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

const COLUMNS: Columns = &[
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
    for table in tables_named(source, "table_name") {
        for (position, column) in table.columns.iter().enumerate() {
            let (length, precision, scale, datetime) = modifiers(column.ty);
            rows.push(vec![
                source.session().database.as_str().into(),
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
        DataType::Char(length) => (Some(length).filter(|length| *length > 0), None, None, None),
        DataType::Int2 => (None, Some(16), Some(0), None),
        DataType::Int4 => (None, Some(32), Some(0), None),
        DataType::Int8 => (None, Some(64), Some(0), None),
        DataType::Float4 => (None, Some(24), None, None),
        DataType::Float8 => (None, Some(53), None, None),
        DataType::Numeric { precision_scale: Some((precision, scale)) } => {
            (None, Some(precision.into()), Some(scale.into()), None)
        }
        DataType::Date => (None, None, None, Some(0)),
        DataType::Timestamp(_) | DataType::Timestamptz(_) => (None, None, None, Some(6)),
        _ => (None, None, None, None),
    }
}

const TABLE_CONSTRAINTS: Columns = &[
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
    indexes_of(tables_named(source, "table_name")).into_iter().filter(|(_, index)| index.constraint)
}

/// What a constraint and its table are called, as a row begins.
fn constraint(source: &Source<'_>, table: &TableDef, index: &IndexDef) -> Vec<Cell> {
    let database = source.session().database.as_str();
    vec![
        database.into(),
        "public".into(),
        index.name.as_str().into(),
        database.into(),
        "public".into(),
        table.name.as_str().into(),
    ]
}

const KEY_COLUMN_USAGE: Columns = &[
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
