//! Relations: `pg_class`, and the friendlier `pg_tables` and `pg_stat_user_tables`.

use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, Relation, TableDef};

use super::Kind::{AclArray, Bool, Char, Float4, Int2, Int4, Name, Oid, Text, TextArray};
use super::{Cell, Columns, Kind, Source, View, all, find, key, unique, view, view_of};

const PG_CATALOG: u32 = 11;
/// The number of the schema that tables are in.
pub(crate) const PUBLIC: u32 = 2200;
const INFORMATION_SCHEMA: u32 = 13000;
const HEAP_AM: u32 = 2;
const BTREE_AM: u32 = 403;
const OWNER: u32 = 10;

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_class", 1259, PG_CLASS, pg_class).keyed(&[
        unique("pg_class_oid_index", 2662, &["oid"]),
        unique("pg_class_relname_nsp_index", 2663, &["relname", "relnamespace"]),
    ]),
    view("pg_tables", 12000, PG_TABLES, pg_tables).keyed(&[key(
        "pg_tables_tablename_index",
        12100,
        &["tablename"],
    )]),
    view("pg_stat_user_tables", 12002, PG_STAT_USER_TABLES, pg_stat_user_tables).keyed(&[
        key("pg_stat_user_tables_relid_index", 12101, &["relid"]),
        key("pg_stat_user_tables_relname_index", 12102, &["relname"]),
    ]),
];

const PG_CLASS: Columns = &[
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
    ("relacl", AclArray),
    ("reloptions", TextArray),
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
        let is_own_table = self.kind == "r" && self.namespace == PUBLIC;
        let replica_identity = if is_own_table { "d" } else { "n" };
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
    source.host.relation_bytes(oid) / 8192
}

/// The relation of a number or of a name, or all.
fn pg_class(source: &Source<'_>) -> Vec<Vec<Cell>> {
    if let Some(oid) = source.wanted_oid("oid") {
        return class_of(source, oid).into_iter().collect();
    }
    if let Some(name) = source.wanted_name("relname") {
        let relation = match source.catalog.relation(name) {
            Some(Relation::Table(table)) => Some(table.oid),
            Some(Relation::Index(_, index)) => Some(index.oid),
            None => None,
        };
        let schemas = ["pg_catalog", "information_schema"];
        let system = schemas.iter().filter_map(|schema| find(schema, name)).map(|view| view.oid);
        return relation
            .into_iter()
            .chain(system)
            .filter_map(|oid| class_of(source, oid))
            .collect();
    }
    let mut rows = Vec::new();
    for table in sorted_tables(source) {
        rows.push(class_of_table(source, &table));
        rows.extend(table.indexes.iter().map(|index| class_of_index(source, &table, index)));
    }
    rows.extend(all().map(class_of_view));
    rows
}

fn class_of(source: &Source<'_>, oid: u32) -> Option<Vec<Cell>> {
    if let Some(table) = source.catalog.table(oid) {
        return Some(class_of_table(source, table));
    }
    if let Some((table, index)) = source.catalog.index(oid) {
        return Some(class_of_index(source, table, index));
    }
    view_of(oid).map(class_of_view)
}

fn class_of_table(source: &Source<'_>, table: &TableDef) -> Vec<Cell> {
    let options = match table.fillfactor {
        100 => Cell::Null,
        fillfactor => Cell::Texts(vec![format!("fillfactor={fillfactor}")]),
    };
    let class = Class {
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
    };
    class.row()
}

fn class_of_index(source: &Source<'_>, table: &TableDef, index: &IndexDef) -> Vec<Cell> {
    let class = Class {
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
    };
    class.row()
}

fn class_of_view(view: &View) -> Vec<Cell> {
    let class = Class {
        oid: view.oid,
        name: view.name,
        namespace: if view.schema == "pg_catalog" { PG_CATALOG } else { INFORMATION_SCHEMA },
        am: if view.is_catalog() { HEAP_AM } else { 0 },
        file: 0,
        pages: 0,
        rows: 0.0,
        has_index: false,
        kind: if view.is_catalog() { "r" } else { "v" },
        columns: view.columns.len(),
        options: Cell::Null,
    };
    class.row()
}

/// All tables, by number.
pub(crate) fn sorted_tables(source: &Source<'_>) -> Vec<Arc<TableDef>> {
    let mut tables: Vec<_> = source.catalog.tables().cloned().collect();
    tables.sort_unstable_by_key(|table| table.oid);
    tables
}

/// The table whose name a column is wanted with, or all tables.
pub(crate) fn tables_named(source: &Source<'_>, column: &str) -> Vec<Arc<TableDef>> {
    match source.wanted_name(column) {
        Some(name) => source.catalog.table_by_name(name).cloned().into_iter().collect(),
        None => sorted_tables(source),
    }
}

/// The table whose number a column is wanted with, or all tables.
pub(crate) fn tables_numbered(source: &Source<'_>, column: &str) -> Vec<Arc<TableDef>> {
    match source.wanted_oid(column) {
        Some(oid) => source.catalog.table(oid).cloned().into_iter().collect(),
        None => sorted_tables(source),
    }
}

/// The indexes of tables, with their tables.
pub(crate) fn indexes_of(tables: Vec<Arc<TableDef>>) -> Vec<(Arc<TableDef>, Arc<IndexDef>)> {
    let of_table = |table: Arc<TableDef>| {
        let indexes: Vec<_> = table.indexes.iter().map(Arc::clone).collect();
        indexes.into_iter().map(move |index| (Arc::clone(&table), index))
    };
    tables.into_iter().flat_map(of_table).collect()
}

const PG_TABLES: Columns = &[
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
    tables_named(source, "tablename").iter().map(row).collect()
}

const PG_STAT_USER_TABLES: Columns = &[
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
    let tables = match source.wanted_oid("relid") {
        Some(_) => tables_numbered(source, "relid"),
        None => tables_named(source, "relname"),
    };
    tables.iter().map(row).collect()
}
