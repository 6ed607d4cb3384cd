//! Definitions of relations, as statements see them. A definition never changes: DDL makes a new
//! one.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use millpond_buffer::{RelHandle, RelationId};

use crate::ids::Oid;

use crate::types::DataType;
use crate::types::key::{KeyLayout, KeyOrder};
use crate::types::tuple::TupleLayout;

use super::stats::TableStats;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// Its name, as stored (unquoted identifiers are lower case).
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The text of its DEFAULT expression.
    pub default: Option<String>,
}

impl ColumnDef {
    /// A column without constraints.
    pub fn new(name: impl Into<String>, ty: DataType) -> Self {
        Self { name: name.into(), ty, not_null: false, default: None }
    }

    /// The same column, refusing NULL.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.not_null = true;
        self
    }
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// The table's column, counted from 0.
    pub column: usize,
    /// Its order in the index.
    pub order: KeyOrder,
}

/// An index.
pub struct IndexDef {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// The table it belongs to.
    pub table: Oid,
    /// Its file.
    pub storage: RelationId,
    /// Its columns, in order.
    pub columns: Box<[IndexColumn]>,
    /// Whether two rows may not have the same key (NULLs are never the same).
    pub unique: bool,
    /// Whether this is the primary key.
    pub primary: bool,
    /// Whether it came with a UNIQUE or PRIMARY KEY constraint.
    pub constraint: bool,
    /// How full pages are left when the index is built.
    pub fillfactor: u8,
    /// How keys are encoded.
    pub keys: KeyLayout,
    /// Its open file.
    pub(crate) tree: OnceLock<RelHandle>,
    /// Snapshots with a lower commit number may see rows that the index does not have.
    pub(crate) valid_from: AtomicU64,
    /// The transaction that made the index after it had itself replaced or deleted rows. The index
    /// lacks those rows, but snapshots that don't see this transaction's commit may see them. Zero:
    /// there were none.
    pub(crate) valid_after: AtomicU64,
}

impl std::fmt::Debug for IndexDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexDef")
            .field("oid", &self.oid)
            .field("name", &self.name)
            .field("table", &self.table)
            .field("storage", &self.storage)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

/// A table.
#[derive(Debug)]
pub struct TableDef {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Its file.
    pub storage: RelationId,
    /// Its columns.
    pub columns: Box<[ColumnDef]>,
    /// Its indexes, the primary key first.
    pub indexes: Box<[Arc<IndexDef>]>,
    /// How full INSERT fills pages, in percent; the rest is left for updates.
    pub fillfactor: u8,
    /// How rows are encoded.
    pub layout: TupleLayout,
    /// What is known about its contents; shared by all definitions of the same table.
    pub stats: Arc<TableStats>,
}

impl TableDef {
    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The primary key.
    pub fn primary_key(&self) -> Option<&Arc<IndexDef>> {
        self.indexes.iter().find(|index| index.primary)
    }

    /// The index with this oid.
    pub fn index(&self, oid: Oid) -> Option<&Arc<IndexDef>> {
        self.indexes.iter().find(|index| index.oid == oid)
    }
}

/// A table to be created.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// Its name; must be free.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnDef>,
    /// Its fill factor in percent, 10 to 100.
    pub fillfactor: u8,
    /// Its primary key and unique constraints (their `table` is ignored).
    pub indexes: Vec<NewIndex>,
}

/// An index to be created.
#[derive(Clone, Debug)]
pub struct NewIndex {
    /// Its name; `None` makes one up as PostgreSQL does (`t_pkey`, `t_a_b_key`, `t_a_idx`).
    pub name: Option<String>,
    /// Its table.
    pub table: Oid,
    /// Its columns.
    pub columns: Vec<IndexColumn>,
    /// Refuse equal keys.
    pub unique: bool,
    /// Make it the primary key (its columns become NOT NULL).
    pub primary: bool,
    /// It belongs to a constraint.
    pub constraint: bool,
    /// Its fill factor in percent.
    pub fillfactor: u8,
}
