//! The catalog: definitions of tables and indexes.
//!
//! Definitions are rows of a heap (relation 1), changed and seen under the same rules as all other
//! rows. In memory they form a [`CatalogState`]. A session finds the current one by one load of a
//! generation counter.

pub(crate) mod change;
mod def;
pub(crate) mod heap;
pub(crate) mod published;
pub(crate) mod rows;
mod state;
mod stats;

pub use crate::ids::{CATALOG_RELATION, FIRST_NORMAL_OID, Oid};
pub use def::{ColumnDef, IndexColumn, IndexDef, NewIndex, NewTable, TableDef};
pub use state::{CatalogState, Relation};
pub use stats::TableStats;
