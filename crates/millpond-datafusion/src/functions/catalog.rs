//! Functions that look into one state of the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as Arrow;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ScalarUDF;
use millpond_engine::catalog::CatalogState;

use super::scalar::{function, number, text, utf8_or_null};
use millpond_query::error::{SqlError, SqlState};
use millpond_query::system_relations::{
    constraint_definition, constraint_index, index_definition, relation_name, relation_oid,
};

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
