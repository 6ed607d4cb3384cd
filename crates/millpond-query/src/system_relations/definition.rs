//! System relations as tables of the planner: their keys are indexes, so that it chooses among them
//! as it does among a table's.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use millpond_engine::catalog::{ColumnDef, FIRST_NORMAL_OID, IndexColumn, TableDef};
use millpond_types::key::KeyOrder;

use super::{Kind, View, all, table_functions};
use crate::DataType;
use crate::parse::Name;
use crate::sink::ColumnDesc;

/// A system relation with its table.
struct Defined {
    view: &'static View,
    table: Arc<TableDef>,
}

/// All of them by their numbers.
static DEFINED: LazyLock<HashMap<u32, Defined>> = LazyLock::new(|| {
    let defined = |view: &'static View| {
        let table = Arc::new(table_of(view)?);
        Some((view.oid, Defined { view, table }))
    };
    all().chain(table_functions()).filter_map(defined).collect()
});

/// Their numbers by schema and name.
static NAMED: LazyLock<HashMap<(&str, &str), u32>> =
    LazyLock::new(|| all().map(|view| ((view.schema, view.name), view.oid)).collect());

fn table_of(view: &View) -> Option<TableDef> {
    let columns =
        view.columns.iter().map(|(name, kind)| ColumnDef::new(*name, kind.data_type())).collect();
    let mut table = TableDef::without_storage(view.oid, view.name, columns)?;
    for key in view.keys {
        let column = |name: &&str| {
            let order = KeyOrder { descending: false, nulls_first: false };
            table.column(name).map(|column| IndexColumn { column, order })
        };
        let columns = key.columns.iter().map(column).collect::<Option<Vec<_>>>()?;
        table.add_key_without_storage(key.oid, key.name, columns, key.unique)?;
    }
    Some(table)
}

/// Whether a table is a system relation.
pub(crate) fn is_system(table: &TableDef) -> bool {
    table.oid < FIRST_NORMAL_OID
}

/// The schema of a table or system relation.
pub(crate) fn schema_of(table: &TableDef) -> &'static str {
    source_of(table.oid).map_or("public", |view| view.schema)
}

/// The relation of a number.
pub(crate) fn view_of(oid: u32) -> Option<&'static View> {
    source_of(oid).filter(|view| NAMED.get(&(view.schema, view.name)) == Some(&oid))
}

/// What has the rows of a relation, or of a function that returns rows.
pub(crate) fn source_of(oid: u32) -> Option<&'static View> {
    DEFINED.get(&oid).map(|defined| defined.view)
}

/// The system relation that a name means: `pg_catalog` is searched before all other schemas.
pub(crate) fn find_definition(name: &Name) -> Option<&'static Arc<TableDef>> {
    let schema = name.schema.as_deref().unwrap_or("pg_catalog");
    let oid = NAMED.get(&(schema, name.name.as_str()))?;
    DEFINED.get(oid).map(|defined| &defined.table)
}

/// The rows that a function returns whose rows are those of a view.
pub(crate) fn find_function_definition(name: &str) -> Option<&'static Arc<TableDef>> {
    let oid = table_functions().find(|function| function.name == name)?.oid;
    DEFINED.get(&oid).map(|defined| &defined.table)
}

/// The columns of such a function's rows.
pub(crate) fn function_columns(
    table: &TableDef,
) -> impl Iterator<Item = (&'static str, DataType)> + use<> {
    let columns = source_of(table.oid).map_or(&[][..], |view| view.columns);
    columns.iter().map(|(name, kind)| (*name, kind.data_type()))
}

/// What clients are told of a system relation's columns.
pub(crate) fn describe_columns(table: &TableDef) -> Vec<ColumnDesc> {
    let columns = source_of(table.oid).map_or(&[][..], |view| view.columns);
    let describe = |(place, (name, kind)): (usize, &(&str, Kind))| ColumnDesc {
        name: (*name).into(),
        ty: kind.data_type(),
        type_oid: kind.told_oid(),
        table_oid: table.oid,
        attnum: i16::try_from(place + 1).unwrap_or(0),
    };
    columns.iter().enumerate().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_has_a_table_with_its_keys() {
        for view in all().chain(table_functions()) {
            let table = &DEFINED.get(&view.oid).unwrap().table;
            assert_eq!(table.indexes.len(), view.keys.len(), "{}", view.name);
            assert_eq!(describe_columns(table).len(), view.columns.len());
        }
    }

    #[test]
    fn names_are_looked_for_in_pg_catalog() {
        let name = |schema: Option<&str>, name: &str| Name {
            schema: schema.map(Into::into),
            name: name.into(),
            location: None,
        };
        let oid = |name: &Name| find_definition(name).map(|table| table.oid);
        assert_eq!(oid(&name(None, "pg_class")), Some(1259));
        assert_eq!(oid(&name(Some("pg_catalog"), "pg_class")), Some(1259));
        assert_eq!(oid(&name(Some("public"), "pg_class")), None);
        assert_eq!(oid(&name(None, "tables")), None);
        assert!(oid(&name(Some("information_schema"), "tables")).is_some());
    }
}
