//! One state of the catalog: which relations exist, and how they are defined.
//!
//! A state never changes. When a transaction with DDL commits, its session publishes a new state
//! with the next generation. Until then only that session sees its changes, in a private state.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::def::{IndexDef, TableDef};
use crate::ids::Oid;

/// The object that a name refers to.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<TableDef>),
    /// An index, and its table.
    Index(Arc<TableDef>, Arc<IndexDef>),
}

/// All relations at one moment.
#[derive(Clone, Debug, Default)]
pub struct CatalogState {
    pub(crate) generation: u64,
    tables: BTreeMap<Oid, Arc<TableDef>>,
    /// Tables and indexes share one name space. The second oid is that of the index.
    names: HashMap<String, (Oid, Option<Oid>)>,
}

impl CatalogState {
    /// The number of this state: a later one has a higher number.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The table with this name.
    pub fn table_by_name(&self, name: &str) -> Option<&Arc<TableDef>> {
        match self.names.get(name)? {
            (oid, None) => self.tables.get(oid),
            (_, Some(_)) => None,
        }
    }

    /// The table with this oid.
    pub fn table(&self, oid: Oid) -> Option<&Arc<TableDef>> {
        self.tables.get(&oid)
    }

    /// The table or index with this name.
    pub fn relation(&self, name: &str) -> Option<Relation> {
        let (oid, index) = self.names.get(name)?;
        let table = self.tables.get(oid)?;
        Some(match index {
            None => Relation::Table(Arc::clone(table)),
            Some(index) => Relation::Index(Arc::clone(table), Arc::clone(table.index(*index)?)),
        })
    }

    /// The index with this oid, and its table.
    pub fn index(&self, oid: Oid) -> Option<(&Arc<TableDef>, &Arc<IndexDef>)> {
        self.tables.values().find_map(|table| table.index(oid).map(|index| (table, index)))
    }

    /// All tables, in the order of their oids.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableDef>> {
        self.tables.values()
    }

    /// Inserts a table, or replaces its earlier definition.
    pub(crate) fn insert(&mut self, table: Arc<TableDef>) {
        self.remove(table.oid);
        self.names.insert(table.name.clone(), (table.oid, None));
        for index in &table.indexes {
            self.names.insert(index.name.clone(), (table.oid, Some(index.oid)));
        }
        self.tables.insert(table.oid, table);
    }

    /// Removes a table and its indexes.
    pub(crate) fn remove(&mut self, oid: Oid) -> Option<Arc<TableDef>> {
        let table = self.tables.remove(&oid)?;
        self.names.retain(|_, (table, _)| *table != oid);
        Some(table)
    }
}
