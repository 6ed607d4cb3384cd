//! The system views: `pg_catalog` and `information_schema`, computed from the live catalog.
//!
//! Each view is a [`View`]: its columns, and a function from the catalog's state and the session to rows. They
//! have PostgreSQL's names, columns and numbers where clients look at them; relations of things
//! that Millpond does not have are there and empty, since clients join with them. Functions that return
//! tables are views by another way.

mod activity;
mod buffers;
mod empty;
mod indexes;
mod information_schema;
mod io;
mod locks;
mod provider;
mod relations;
mod servers;
mod types;
mod wal;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use millpond_engine::catalog::CatalogState;

use crate::query::{SessionInfo, TableScanner};
pub use io::PG_STAT_IO;
pub use types::{type_name, type_oid};

/// One value of a view's row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Int(value as i64)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The types that views' columns have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Oid,
    /// A transaction id.
    Xid,
    Name,
    Text,
    /// PostgreSQL's `"char"`: one byte.
    Char,
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// A `numeric` without decimals.
    Numeric,
    /// Microseconds since 1970.
    TimestampTz,
    /// An array, as text.
    Array,
}

/// What a view's rows are computed from.
pub struct Source<'a> {
    pub catalog: &'a CatalogState,
    pub session: &'a SessionInfo,
    pub scanner: &'a dyn TableScanner,
}

/// A view.
pub struct View {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: u32,
    pub columns: &'static [(&'static str, Kind)],
    pub rows: fn(&Source<'_>) -> Vec<Vec<Cell>>,
}

fn all() -> impl Iterator<Item = &'static View> {
    [
        relations::VIEWS,
        indexes::VIEWS,
        servers::VIEWS,
        types::VIEWS,
        activity::VIEWS,
        buffers::VIEWS,
        information_schema::VIEWS,
        io::VIEWS,
        locks::VIEWS,
        wal::VIEWS,
        empty::VIEWS,
    ]
    .into_iter()
    .flatten()
}

/// The view of that name, over one state of the catalog, for a session in that time zone.
pub fn find(
    schema: &str,
    name: &str,
    catalog: &Arc<CatalogState>,
    zone: &str,
) -> Option<Arc<dyn TableProvider>> {
    let view = all().find(|view| view.schema == schema && view.name == name)?;
    Some(Arc::new(provider::ViewTable::new(view, Arc::clone(catalog), zone)))
}

/// The table that a function of that name returns, likewise.
pub fn find_function(
    name: &str,
    catalog: &Arc<CatalogState>,
    zone: &str,
) -> Option<Arc<dyn TableProvider>> {
    let function = buffers::FUNCTIONS.iter().find(|function| function.name == name)?;
    Some(Arc::new(provider::ViewTable::new(function, Arc::clone(catalog), zone)))
}

/// The columns of that table.
pub fn function_columns(name: &str) -> Option<&'static [(&'static str, Kind)]> {
    let function = buffers::FUNCTIONS.iter().find(|function| function.name == name)?;
    Some(function.columns)
}

/// The name of the view with that number.
pub fn view_name(oid: u32) -> Option<&'static str> {
    all().find(|view| view.oid == oid && oid != 0).map(|view| view.name)
}

/// The number of the `pg_catalog` view of that name.
pub fn view_oid(name: &str) -> Option<u32> {
    all().find(|view| view.schema == "pg_catalog" && view.name == name).map(|view| view.oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_rows_of_an_empty_catalog_have_their_columns() {
        let mut names: Vec<_> = all().map(|view| (view.schema, view.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        // By their numbers pg_attribute tells whose columns are whose.
        let mut oids: Vec<_> = all().map(|view| view.oid).filter(|&oid| oid != 0).collect();
        let count = oids.len();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), count);
    }
}
