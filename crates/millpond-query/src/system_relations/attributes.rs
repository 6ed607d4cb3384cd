//! Columns of relations and their defaults: `pg_attribute`, `pg_attrdef`.

use millpond_engine::catalog::{ColumnDef, IndexDef, TableDef};

use super::Kind::{AclArray, Bool, Char, Int2, Int4, Name, Oid, Text, TextArray};
use super::relations::{sorted_tables, tables_numbered};
use super::types::type_len;
use super::{Cell, Columns, Kind, Source, View, all, unique, view, view_of};

const DEFAULT_COLLATION: u32 = 100;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_attribute", 1249, PG_ATTRIBUTE, pg_attribute).keyed(&[
        unique("pg_attribute_relid_attnam_index", 2658, &["attrelid", "attname"]),
        unique("pg_attribute_relid_attnum_index", 2659, &["attrelid", "attnum"]),
    ]),
    view("pg_attrdef", 2604, PG_ATTRDEF, pg_attrdef).keyed(&[unique(
        "pg_attrdef_adrelid_adnum_index",
        2656,
        &["adrelid", "adnum"],
    )]),
];

const PG_ATTRIBUTE: Columns = &[
    ("attrelid", Oid),
    ("attname", Name),
    ("atttypid", Oid),
    ("attstattarget", Int4),
    ("attlen", Int2),
    ("attnum", Int2),
    ("attndims", Int4),
    ("attcacheoff", Int4),
    ("atttypmod", Int4),
    ("attbyval", Bool),
    ("attstorage", Char),
    ("attalign", Char),
    ("attcompression", Char),
    ("attnotnull", Bool),
    ("atthasdef", Bool),
    ("atthasmissing", Bool),
    ("attidentity", Char),
    ("attgenerated", Char),
    ("attisdropped", Bool),
    ("attislocal", Bool),
    ("attinhcount", Int4),
    ("attcollation", Oid),
    ("attacl", AclArray),
    ("attoptions", TextArray),
    ("attfdwoptions", TextArray),
];

/// What differs between rows of `pg_attribute`.
struct Attribute<'a> {
    relation: u32,
    number: usize,
    name: &'a str,
    ty: u32,
    len: i64,
    typmod: i32,
    is_string: bool,
    not_null: bool,
    has_default: bool,
}

impl<'a> Attribute<'a> {
    fn of_column(relation: u32, number: usize, column: &'a ColumnDef, of_index: bool) -> Self {
        Self {
            relation,
            number,
            name: &column.name,
            ty: column.ty.oid(),
            len: column.ty.typlen().into(),
            typmod: column.ty.typmod(),
            is_string: column.ty.is_string(),
            not_null: !of_index && column.not_null,
            has_default: !of_index && column.default.is_some(),
        }
    }

    fn of_view(relation: u32, number: usize, &(name, kind): &(&'a str, Kind)) -> Self {
        let ty = kind.told_oid();
        Self {
            relation,
            number,
            name,
            ty,
            len: type_len(ty),
            typmod: -1,
            is_string: matches!(kind, Name | Text | TextArray),
            not_null: false,
            has_default: false,
        }
    }

    fn row(self) -> Vec<Cell> {
        vec![
            self.relation.into(),
            self.name.into(),
            self.ty.into(),
            (-1).into(),
            self.len.into(),
            self.number.into(),
            0.into(),
            (-1).into(),
            self.typmod.into(),
            (self.len > 0 && self.len <= 8).into(),
            if self.len > 0 { "p" } else { "x" }.into(),
            "i".into(),
            "".into(),
            self.not_null.into(),
            self.has_default.into(),
            false.into(),
            "".into(),
            "".into(),
            false.into(),
            true.into(),
            0.into(),
            if self.is_string { DEFAULT_COLLATION } else { 0 }.into(),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    }
}

/// The columns of the relation of a number, or of all relations.
fn pg_attribute(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    if let Some(oid) = source.wanted_oid("attrelid") {
        if let Some(table) = source.catalog.table(oid) {
            attributes_of_table(table, &mut rows);
        } else if let Some((table, index)) = source.catalog.index(oid) {
            attributes_of_index(table, index, &mut rows);
        } else if let Some(view) = view_of(oid) {
            attributes_of_view(view, &mut rows);
        }
        return rows;
    }
    for table in sorted_tables(source) {
        attributes_of_table(&table, &mut rows);
        table.indexes.iter().for_each(|index| attributes_of_index(&table, index, &mut rows));
    }
    all().for_each(|view| attributes_of_view(view, &mut rows));
    rows
}

fn attributes_of_table(table: &TableDef, rows: &mut Vec<Vec<Cell>>) {
    for (position, column) in table.columns.iter().enumerate() {
        rows.push(Attribute::of_column(table.oid, position + 1, column, false).row());
    }
}

fn attributes_of_index(table: &TableDef, index: &IndexDef, rows: &mut Vec<Vec<Cell>>) {
    for (position, key) in index.columns.iter().enumerate() {
        let column = &table.columns[key.column];
        rows.push(Attribute::of_column(index.oid, position + 1, column, true).row());
    }
}

fn attributes_of_view(view: &View, rows: &mut Vec<Vec<Cell>>) {
    for (position, column) in view.columns.iter().enumerate() {
        rows.push(Attribute::of_view(view.oid, position + 1, column).row());
    }
}

const PG_ATTRDEF: Columns = &[("oid", Oid), ("adrelid", Oid), ("adnum", Int2), ("adbin", Text)];

fn pg_attrdef(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in tables_numbered(source, "adrelid") {
        for (position, column) in table.columns.iter().enumerate() {
            if let Some(default) = &column.default {
                // Its own number is not stored; nothing refers to it.
                rows.push(vec![
                    0.into(),
                    table.oid.into(),
                    (position + 1).into(),
                    default.as_str().into(),
                ]);
            }
        }
    }
    rows
}
