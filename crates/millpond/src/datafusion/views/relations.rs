//! Relations and their columns: `pg_class`, `pg_attribute`, `pg_attrdef`, and the friendlier `pg_tables`.

use std::sync::Arc;

use millpond_engine::catalog::{ColumnDef, IndexDef, TableDef};

use super::Kind::{Array, Bool, Char, Float4, Int2, Int4, Name, Oid, Text};
use super::provider::told_oid;
use super::types::type_len;
use super::{Cell, Kind, Source, View};

const PG_CATALOG: u32 = 11;
/// The number of the schema that tables are in.
pub const PUBLIC: u32 = 2200;
const HEAP_AM: u32 = 2;
const BTREE_AM: u32 = 403;
const OWNER: u32 = 10;
const DEFAULT_COLLATION: u32 = 100;

/// The views of this file.
pub const VIEWS: &[View] = &[
    View { schema: "pg_catalog", name: "pg_class", oid: 1259, columns: PG_CLASS, rows: pg_class },
    View {
        schema: "pg_catalog",
        name: "pg_attribute",
        oid: 1249,
        columns: PG_ATTRIBUTE,
        rows: pg_attribute,
    },
    View {
        schema: "pg_catalog",
        name: "pg_attrdef",
        oid: 2604,
        columns: PG_ATTRDEF,
        rows: pg_attrdef,
    },
    View {
        schema: "pg_catalog",
        name: "pg_tables",
        oid: 12000,
        columns: PG_TABLES,
        rows: pg_tables,
    },
    View {
        schema: "pg_catalog",
        name: "pg_stat_user_tables",
        oid: 12002,
        columns: PG_STAT_USER_TABLES,
        rows: pg_stat_user_tables,
    },
];

const PG_CLASS: &[(&str, Kind)] = &[
    ("oid", Oid),
    ("relname", Name),
    ("relnamespace", Oid),
    ("reltype", Oid),
    ("reloftype", Oid),
    ("relowner", Oid),
    ("relam", Oid),
    ("relfilenode", Oid),
    ("reltablespace", Oid),
    ("relpages", Int4),
    ("reltuples", Float4),
    ("relallvisible", Int4),
    ("reltoastrelid", Oid),
    ("relhasindex", Bool),
    ("relisshared", Bool),
    ("relpersistence", Char),
    ("relkind", Char),
    ("relnatts", Int2),
    ("relchecks", Int2),
    ("relhasrules", Bool),
    ("relhastriggers", Bool),
    ("relhassubclass", Bool),
    ("relrowsecurity", Bool),
    ("relforcerowsecurity", Bool),
    ("relispopulated", Bool),
    ("relreplident", Char),
    ("relispartition", Bool),
    ("relrewrite", Oid),
    ("relfrozenxid", Oid),
    ("relminmxid", Oid),
    ("relacl", Array),
    ("reloptions", Array),
    ("relpartbound", Text),
];

/// What differs between rows of `pg_class`.
struct Class<'a> {
    oid: u32,
    name: &'a str,
    namespace: u32,
    am: u32,
    file: u32,
    pages: u64,
    rows: f64,
    has_index: bool,
    kind: &'a str,
    columns: usize,
    options: Cell,
}

impl Class<'_> {
    fn row(self) -> Vec<Cell> {
        let replica_identity = if self.kind == "r" { "d" } else { "n" };
        vec![
            self.oid.into(),
            self.name.into(),
            self.namespace.into(),
            0.into(),
            0.into(),
            OWNER.into(),
            self.am.into(),
            self.file.into(),
            0.into(),
            Cell::Int(self.pages as i64),
            Cell::Float(self.rows),
            0.into(),
            0.into(),
            self.has_index.into(),
            false.into(),
            "p".into(),
            self.kind.into(),
            self.columns.into(),
            0.into(),
            false.into(),
            false.into(),
            false.into(),
            false.into(),
            false.into(),
            true.into(),
            replica_identity.into(),
            false.into(),
            0.into(),
            0.into(),
            0.into(),
            Cell::Null,
            self.options,
            Cell::Null,
        ]
    }
}

fn pages(source: &Source<'_>, oid: u32) -> u64 {
    source.scanner.relation_bytes(oid) / 8192
}

fn pg_class(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in sorted_tables(source) {
        let options = if table.fillfactor == 100 {
            Cell::Null
        } else {
            format!("{{fillfactor={}}}", table.fillfactor).into()
        };
        rows.push(
            Class {
                oid: table.oid,
                name: &table.name,
                namespace: PUBLIC,
                am: HEAP_AM,
                file: table.storage.get(),
                pages: pages(source, table.oid),
                rows: table.stats.live_rows() as f64,
                has_index: !table.indexes.is_empty(),
                kind: "r",
                columns: table.columns.len(),
                options,
            }
            .row(),
        );
        for index in &table.indexes {
            rows.push(
                Class {
                    oid: index.oid,
                    name: &index.name,
                    namespace: PUBLIC,
                    am: BTREE_AM,
                    file: index.storage.get(),
                    pages: pages(source, index.oid),
                    rows: table.stats.live_rows() as f64,
                    has_index: false,
                    kind: "i",
                    columns: index.columns.len(),
                    options: Cell::Null,
                }
                .row(),
            );
        }
    }
    rows.extend(super::all().filter(|view| view.schema == "pg_catalog").map(|view| {
        Class {
            oid: view.oid,
            name: view.name,
            namespace: PG_CATALOG,
            am: 0,
            file: 0,
            pages: 0,
            rows: 0.0,
            has_index: false,
            kind: "v",
            columns: view.columns.len(),
            options: Cell::Null,
        }
        .row()
    }));
    rows
}

/// All tables, by number.
pub fn sorted_tables(source: &Source<'_>) -> Vec<Arc<TableDef>> {
    let mut tables: Vec<_> = source.catalog.tables().cloned().collect();
    tables.sort_unstable_by_key(|table| table.oid);
    tables
}

/// All indexes with their tables, by the tables' numbers.
pub fn indexes(source: &Source<'_>) -> Vec<(Arc<TableDef>, Arc<IndexDef>)> {
    let of_table = |table: &Arc<TableDef>| {
        table.indexes.iter().map(|index| (Arc::clone(table), Arc::clone(index))).collect::<Vec<_>>()
    };
    sorted_tables(source).iter().flat_map(of_table).collect()
}

const PG_ATTRIBUTE: &[(&str, Kind)] = &[
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
    ("attacl", Array),
    ("attoptions", Array),
    ("attfdwoptions", Array),
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
        let ty = told_oid(kind);
        Self {
            relation,
            number,
            name,
            ty,
            len: type_len(ty),
            typmod: -1,
            is_string: matches!(kind, Name | Text | Array),
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

fn pg_attribute(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in sorted_tables(source) {
        for (position, column) in table.columns.iter().enumerate() {
            rows.push(Attribute::of_column(table.oid, position + 1, column, false).row());
        }
    }
    for (table, index) in indexes(source) {
        for (position, key) in index.columns.iter().enumerate() {
            let column = &table.columns[key.column];
            rows.push(Attribute::of_column(index.oid, position + 1, column, true).row());
        }
    }
    for view in super::all().filter(|view| view.schema == "pg_catalog") {
        for (position, column) in view.columns.iter().enumerate() {
            rows.push(Attribute::of_view(view.oid, position + 1, column).row());
        }
    }
    rows
}

const PG_ATTRDEF: &[(&str, Kind)] =
    &[("oid", Oid), ("adrelid", Oid), ("adnum", Int2), ("adbin", Text)];

fn pg_attrdef(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in sorted_tables(source) {
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

const PG_TABLES: &[(&str, Kind)] = &[
    ("schemaname", Name),
    ("tablename", Name),
    ("tableowner", Name),
    ("tablespace", Name),
    ("hasindexes", Bool),
    ("hasrules", Bool),
    ("hastriggers", Bool),
    ("rowsecurity", Bool),
];

fn pg_tables(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |table: &Arc<TableDef>| {
        vec![
            "public".into(),
            table.name.as_str().into(),
            "postgres".into(),
            Cell::Null,
            (!table.indexes.is_empty()).into(),
            false.into(),
            false.into(),
            false.into(),
        ]
    };
    sorted_tables(source).iter().map(row).collect()
}

const PG_STAT_USER_TABLES: &[(&str, Kind)] = &[
    ("relid", Oid),
    ("schemaname", Name),
    ("relname", Name),
    ("n_live_tup", Kind::Int8),
    ("n_dead_tup", Kind::Int8),
];

fn pg_stat_user_tables(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |table: &Arc<TableDef>| {
        vec![
            table.oid.into(),
            "public".into(),
            table.name.as_str().into(),
            Cell::Int(table.stats.live_rows()),
            Cell::Int(table.stats.dead_rows()),
        ]
    };
    sorted_tables(source).iter().map(row).collect()
}
