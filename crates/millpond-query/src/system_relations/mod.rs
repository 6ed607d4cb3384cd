//! The system relations: `pg_catalog` and `information_schema`, computed from the live catalog.
//!
//! A [`View`] is a relation with PostgreSQL's name, number and columns, and a function that gives
//! its rows. Some have [keys](Key): a plan that knows a key's value asks for the rows of that
//! value, as it would ask an index. Relations of things that Millpond does not have are there and
//! empty, because clients join with them.
//!
//! [`definition`] makes tables of them for the planner. The executor reads them through
//! [`View::rows`]; DataFusion through `datafusion::views`.

mod activity;
mod aggregates;
mod attributes;
mod buffers;
mod cell;
mod definition;
mod describe;
mod empty;
mod functions;
mod indexes;
mod information_schema;
mod io;
mod locks;
mod operators;
mod prepared;
mod relations;
mod servers;
mod types;
mod wal;
mod zones;

use std::cell::OnceCell;

use millpond_engine::catalog::CatalogState;

use crate::Value;
use crate::query::SessionInfo;
pub use cell::{Cell, EPOCH_US, Kind};
pub(crate) use definition::{
    describe_columns, find_definition, find_function_definition, function_columns, is_system,
    schema_of, source_of, view_of,
};
pub use describe::{
    constraint_definition, constraint_index, index_definition, name_parts, relation_name,
    relation_named,
};
pub(crate) use functions::{Function, LANGUAGES, function, functions_named};
pub(crate) use io::backend_io;
pub(crate) use operators::{cast, cast_between, operator, operator_class, operator_named};
pub(crate) use servers::{DATABASE_OID, TABLESPACE};
pub(crate) use types::type_name;
pub use types::{is_type, type_oid};

/// What rows are computed from beside the catalog.
pub trait Host {
    /// The session that runs the statement.
    fn session(&self) -> SessionInfo;

    /// Bytes of a relation's data; 0 if they are unknown.
    fn relation_bytes(&self, oid: u32) -> u64;
}

/// What rows are computed from, and which are asked for.
pub struct Source<'a> {
    pub(crate) catalog: &'a CatalogState,
    host: &'a dyn Host,
    session: OnceCell<SessionInfo>,
    /// Values that columns of the rows must have. Rows with others may be left out.
    wanted: &'a [(&'static str, Value)],
}

impl<'a> Source<'a> {
    pub fn new(
        catalog: &'a CatalogState,
        host: &'a dyn Host,
        wanted: &'a [(&'static str, Value)],
    ) -> Self {
        Self { catalog, host, session: OnceCell::new(), wanted }
    }

    fn session(&self) -> &SessionInfo {
        self.session.get_or_init(|| self.host.session())
    }

    /// The only value that a column of numbers is wanted with.
    fn wanted_oid(&self, column: &str) -> Option<u32> {
        match self.wanted.iter().find(|(name, _)| *name == column)? {
            // A number that is out of range belongs to no relation.
            (_, Value::Int8(oid)) => Some(u32::try_from(*oid).unwrap_or(0)),
            _ => None,
        }
    }

    /// The only text that a column is wanted with.
    fn wanted_name(&self, column: &str) -> Option<&str> {
        match self.wanted.iter().find(|(name, _)| *name == column)? {
            (_, Value::Text(name)) => Some(name),
            _ => None,
        }
    }
}

/// Columns by which rows are found at once.
#[derive(Debug)]
pub(crate) struct Key {
    /// The name and the number of PostgreSQL's index.
    pub(crate) name: &'static str,
    pub(crate) oid: u32,
    pub(crate) columns: &'static [&'static str],
    pub(crate) unique: bool,
}

const fn unique(name: &'static str, oid: u32, columns: &'static [&'static str]) -> Key {
    Key { name, oid, columns, unique: true }
}

const fn key(name: &'static str, oid: u32, columns: &'static [&'static str]) -> Key {
    Key { name, oid, columns, unique: false }
}

/// Columns with their types.
type Columns = &'static [(&'static str, Kind)];

/// A system relation.
pub struct View {
    pub(crate) schema: &'static str,
    pub name: &'static str,
    pub(crate) oid: u32,
    pub columns: Columns,
    pub(crate) keys: &'static [Key],
    pub rows: fn(&Source<'_>) -> Vec<Vec<Cell>>,
}

const fn view(
    name: &'static str,
    oid: u32,
    columns: Columns,
    rows: fn(&Source<'_>) -> Vec<Vec<Cell>>,
) -> View {
    View { schema: "pg_catalog", name, oid, columns, keys: &[], rows }
}

impl View {
    /// Whether it is a table in PostgreSQL, not a view: their numbers are lower.
    pub(crate) fn is_catalog(&self) -> bool {
        is_catalog(self.oid)
    }

    const fn keyed(mut self, keys: &'static [Key]) -> Self {
        self.keys = keys;
        self
    }
}

/// The same of a system relation's number.
pub(crate) fn is_catalog(oid: u32) -> bool {
    oid < 12_000
}

fn all() -> impl Iterator<Item = &'static View> {
    [
        relations::VIEWS,
        attributes::VIEWS,
        indexes::VIEWS,
        servers::VIEWS,
        types::VIEWS,
        activity::VIEWS,
        buffers::VIEWS,
        information_schema::VIEWS,
        io::VIEWS,
        locks::VIEWS,
        wal::VIEWS,
        functions::VIEWS,
        aggregates::VIEWS,
        operators::VIEWS,
        prepared::VIEWS,
        zones::VIEWS,
        empty::views(),
    ]
    .into_iter()
    .flatten()
}

/// The relation of a name.
pub fn find(schema: &str, name: &str) -> Option<&'static View> {
    all().find(|view| view.schema == schema && view.name == name)
}

/// What functions return whose rows are those of a view. PostgreSQL's own functions have their
/// numbers there, those of its extensions have others.
fn table_functions() -> impl Iterator<Item = &'static View> {
    [
        buffers::FUNCTIONS,
        locks::FUNCTIONS,
        prepared::FUNCTIONS,
        servers::FUNCTIONS,
        zones::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_distinct() {
        let mut names: Vec<_> = all().map(|view| (view.schema, view.name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        // By their numbers pg_attribute tells whose columns are whose.
        let keys = all().flat_map(|view| view.keys).map(|key| key.oid);
        let mut oids: Vec<_> =
            all().chain(table_functions()).map(|view| view.oid).chain(keys).collect();
        let count = oids.len();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), count);
        assert!(oids.iter().all(|oid| (1..16_384).contains(oid)));
    }

    #[test]
    fn keys_are_of_columns() {
        for view in all() {
            for column in view.keys.iter().flat_map(|key| key.columns) {
                assert!(view.columns.iter().any(|(name, _)| name == column), "{}", view.name);
            }
        }
    }
}
