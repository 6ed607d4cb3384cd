//! The session's prepared statements: `pg_prepared_statements`.

use super::Kind::{Bool, Int8, Text, TimestampTz, TypeArray};
use super::{Cell, Columns, EPOCH_US, Source, View, view};
use crate::query::PreparedInfo;

/// The views of this file.
pub(crate) const VIEWS: &[View] =
    &[view("pg_prepared_statements", 12095, PG_PREPARED_STATEMENTS, pg_prepared_statements)];

/// What functions return.
pub(crate) const FUNCTIONS: &[View] =
    &[view("pg_prepared_statement", 2510, PG_PREPARED_STATEMENTS, pg_prepared_statements)];

const PG_PREPARED_STATEMENTS: Columns = &[
    ("name", Text),
    ("statement", Text),
    ("prepare_time", TimestampTz),
    ("parameter_types", TypeArray),
    ("from_sql", Bool),
    ("generic_plans", Int8),
    ("custom_plans", Int8),
];

fn pg_prepared_statements(source: &Source<'_>) -> Vec<Vec<Cell>> {
    source.session().prepared.iter().map(row).collect()
}

fn row(prepared: &PreparedInfo) -> Vec<Cell> {
    let PreparedInfo { name, statement, began, params, executions } = prepared;
    vec![
        name.as_str().into(),
        statement.as_str().into(),
        (began + EPOCH_US).into(),
        Cell::Ints(params.iter().map(|ty| ty.oid().into()).collect()),
        true.into(),
        // A plan does not depend on the values of parameters.
        (*executions).into(),
        0_i64.into(),
    ]
}
