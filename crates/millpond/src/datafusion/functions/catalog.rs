//! Functions that look into one state of the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ScalarUDF;
use millpond_engine::catalog::{CatalogState, IndexDef, Relation, TableDef};

use super::fixed::quoted;
use super::scalar::{function, number, text, utf8_or_null};
use crate::error::{SqlError, SqlState};

/// The functions over `catalog`, by name.
pub fn of_catalog(catalog: &Arc<CatalogState>) -> HashMap<String, Arc<ScalarUDF>> {
    let functions = [
        over(catalog, "pg_get_indexdef", (1, 3), Arrow::Utf8, |catalog, args| {
            let found = oid(args).and_then(|oid| catalog.index(oid));
            let column = number(args, 1).unwrap_or(0);
            let shown = found.map(|(table, index)| index_definition(table, index, column));
            Ok(utf8_or_null(shown))
        }),
        over(catalog, "pg_get_constraintdef", (1, 2), Arrow::Utf8, |catalog, args| {
            let found = oid(args).and_then(|oid| catalog.index(constraint_index(oid)));
            Ok(utf8_or_null(found.map(|(table, index)| constraint_definition(table, index))))
        }),
        over(catalog, "regclass_name", (1, 1), Arrow::Utf8, |catalog, args| {
            Ok(utf8_or_null(number(args, 0).map(|number| relation_name(catalog, number))))
        }),
        over(catalog, "regclass_oid", (1, 1), Arrow::Int64, |catalog, args| {
            let Some(name) = text(args, 0) else { return Ok(ScalarValue::Int64(None)) };
            match relation_oid(catalog, &name) {
                Some(oid) => Ok(ScalarValue::Int64(Some(oid))),
                None => Err(DataFusionError::External(Box::new(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{name}\" does not exist"),
                )))),
            }
        }),
        over(catalog, "to_regclass", (1, 1), Arrow::Int64, |catalog, args| {
            Ok(ScalarValue::Int64(text(args, 0).and_then(|name| relation_oid(catalog, &name))))
        }),
    ];
    functions.into_iter().map(|function| (function.name().to_owned(), function)).collect()
}

fn over(
    catalog: &Arc<CatalogState>,
    name: &str,
    args: (usize, usize),
    returns: Arrow,
    body: fn(&CatalogState, &[ScalarValue]) -> datafusion::error::Result<ScalarValue>,
) -> Arc<ScalarUDF> {
    let catalog = Arc::clone(catalog);
    function(name, args, returns, move |args| body(&catalog, args))
}

fn oid(args: &[ScalarValue]) -> Option<u32> {
    number(args, 0).and_then(|number| u32::try_from(number).ok())
}

/// Constraints have their index's number, moved out of the way of relations.
const CONSTRAINT_OID: u32 = 1 << 30;

/// The number of the constraint that `index` enforces.
pub fn constraint_oid(index: u32) -> u32 {
    index | CONSTRAINT_OID
}

fn constraint_index(constraint: u32) -> u32 {
    constraint & !CONSTRAINT_OID
}

/// What `regclass` prints.
fn relation_name(catalog: &CatalogState, number: i64) -> String {
    let oid = u32::try_from(number).unwrap_or(0);
    let table = catalog.table(oid).map(|table| quoted(&table.name));
    table
        .or_else(|| catalog.index(oid).map(|(_, index)| quoted(&index.name)))
        .or_else(|| crate::datafusion::views::view_name(oid).map(str::to_owned))
        .unwrap_or_else(|| if oid == 0 { "-".to_owned() } else { number.to_string() })
}

/// The number of a relation named as in SQL, or as a number.
fn relation_oid(catalog: &CatalogState, name: &str) -> Option<i64> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let bare = name.strip_prefix("public.").unwrap_or(name);
    let folded = match bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => bare.to_lowercase(),
    };
    match catalog.relation(&folded) {
        Some(Relation::Table(table)) => Some(i64::from(table.oid)),
        Some(Relation::Index(_, index)) => Some(i64::from(index.oid)),
        None => {
            let view = folded.strip_prefix("pg_catalog.").unwrap_or(&folded);
            crate::datafusion::views::view_oid(view).map(i64::from)
        }
    }
}

/// `CREATE INDEX` as text, or the name of the `column`-th column if that is not 0.
pub fn index_definition(table: &TableDef, index: &IndexDef, column: i64) -> String {
    if column > 0 {
        let position = usize::try_from(column - 1).unwrap_or(usize::MAX);
        let column = index.columns.get(position);
        return column.map(|column| quoted(&table.columns[column.column].name)).unwrap_or_default();
    }
    let columns: Vec<String> = index
        .columns
        .iter()
        .map(|column| {
            let name = quoted(&table.columns[column.column].name);
            if column.order.descending { format!("{name} DESC") } else { name }
        })
        .collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    format!(
        "CREATE {unique}INDEX {} ON public.{} USING btree ({})",
        quoted(&index.name),
        quoted(&table.name),
        columns.join(", ")
    )
}

/// `PRIMARY KEY (a)` or `UNIQUE (a)`.
pub fn constraint_definition(table: &TableDef, index: &IndexDef) -> String {
    let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
    let columns: Vec<String> =
        index.columns.iter().map(|column| quoted(&table.columns[column.column].name)).collect();
    format!("{kind} ({})", columns.join(", "))
}
