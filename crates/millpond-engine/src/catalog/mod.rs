//! The catalog: definitions of tables and indexes.
//!
//! They are rows of a heap of their own (relation 1), changed and seen under the same rules as all
//! other rows. In memory they are a [`CatalogState`], found by one load of a generation counter.

pub(crate) mod change;
mod def;
pub(crate) mod heap;
pub(crate) mod published;
pub(crate) mod rows;
mod state;
mod stats;

pub use def::{
    CATALOG_RELATION, ColumnDef, FIRST_NORMAL_OID, IndexColumn, IndexDef, NewIndex, NewTable, Oid,
    TableDef,
};
pub use state::{CatalogState, Relation};
pub use stats::TableStats;
