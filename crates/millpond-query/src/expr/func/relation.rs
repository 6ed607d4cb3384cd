//! What the catalog says of relations and other objects: names and definitions.

use millpond_engine::catalog::CatalogState;

use super::Body;
use super::catalog::{BOOL, INT4, OID, Proc, TEXT, proc};
use super::object_name::{relation, with_catalog};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations as system;

pub(super) static PROCS: &[Proc] = &[
    proc(
        1643,
        "pg_get_indexdef",
        &[OID],
        TEXT,
        body!(env, |oid: i64| index_definition(oid, 0, env)),
    )
    .stable(),
    proc(
        2507,
        "pg_get_indexdef",
        &[OID, INT4, BOOL],
        TEXT,
        body!(env, |oid: i64, column: i32, _pretty: bool| index_definition(oid, column, env)),
    )
    .stable(),
    proc(
        1387,
        "pg_get_constraintdef",
        &[OID],
        TEXT,
        body!(env, |oid: i64| constraint_definition(oid, env)),
    )
    .stable(),
    proc(
        2508,
        "pg_get_constraintdef",
        &[OID, BOOL],
        TEXT,
        body!(env, |oid: i64, _pretty: bool| constraint_definition(oid, env)),
    )
    .stable(),
    // Expressions are kept as the text that they were written as.
    proc(1716, "pg_get_expr", &[TEXT, OID], TEXT, body!(|text: &str, _of: i64| text)).stable(),
    proc(
        2509,
        "pg_get_expr",
        &[TEXT, OID, BOOL],
        TEXT,
        body!(|text: &str, _of: i64, _pretty: bool| text),
    )
    .stable(),
    proc(
        2079,
        "pg_table_is_visible",
        &[OID],
        BOOL,
        body!(env, |oid: i64| with_catalog(env, |catalog| is_visible(catalog, oid))),
    )
    .stable(),
    // All of these are in pg_catalog.
    proc(2080, "pg_type_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(2081, "pg_function_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(2082, "pg_operator_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(2083, "pg_opclass_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3815, "pg_collation_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3403, "pg_statistics_obj_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(2093, "pg_conversion_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3829, "pg_opfamily_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3756, "pg_ts_parser_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3757, "pg_ts_dict_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3758, "pg_ts_config_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(3768, "pg_ts_template_is_visible", &[OID], BOOL, body!(|_oid: i64| true)).stable(),
    proc(2165, "pg_get_function_result", &[OID], TEXT, body!(|oid: i64| result_of(oid))).stable(),
    proc(2162, "pg_get_function_arguments", &[OID], TEXT, body!(|oid: i64| arguments_of(oid)))
        .stable(),
    proc(
        2232,
        "pg_get_function_identity_arguments",
        &[OID],
        TEXT,
        body!(|oid: i64| arguments_of(oid)),
    )
    .stable(),
    // Everything is in the data directory.
    proc(3778, "pg_tablespace_location", &[OID], TEXT, body!(|_oid: i64| "")).stable(),
    proc(6121, "pg_relation_is_publishable", &[OID], BOOL, body!(|_oid: i64| false)).stable(),
    proc(6174, "pg_get_statisticsobjdef_columns", &[OID], TEXT, body!(|_oid: i64| None::<String>))
        .stable(),
    // There are no views, rules, triggers, sequences and partitions.
    proc(1641, "pg_get_viewdef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
    proc(2506, "pg_get_viewdef", &[OID, BOOL], TEXT, NONE_OF_NUMBER_PRETTY).stable(),
    proc(
        3159,
        "pg_get_viewdef",
        &[OID, INT4],
        TEXT,
        body!(|_oid: i64, _columns: i32| None::<String>),
    )
    .stable(),
    proc(
        1640,
        "pg_get_viewdef",
        &[TEXT],
        TEXT,
        body!(env, |view: &str| relation(view, env).map(|_| None::<String>)),
    )
    .stable(),
    proc(
        2505,
        "pg_get_viewdef",
        &[TEXT, BOOL],
        TEXT,
        body!(env, |view: &str, _pretty: bool| relation(view, env).map(|_| None::<String>)),
    )
    .stable(),
    proc(1573, "pg_get_ruledef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
    proc(2504, "pg_get_ruledef", &[OID, BOOL], TEXT, NONE_OF_NUMBER_PRETTY).stable(),
    proc(1662, "pg_get_triggerdef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
    proc(2730, "pg_get_triggerdef", &[OID, BOOL], TEXT, NONE_OF_NUMBER_PRETTY).stable(),
    proc(3415, "pg_get_statisticsobjdef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
    proc(
        1665,
        "pg_get_serial_sequence",
        &[TEXT, TEXT],
        TEXT,
        body!(env, |table: &str, column: &str| serial_sequence(table, column, env)),
    )
    .stable(),
    proc(3352, "pg_get_partkeydef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
    proc(3408, "pg_get_partition_constraintdef", &[OID], TEXT, NONE_OF_NUMBER).stable(),
];

const NONE_OF_NUMBER: Body = body!(|_oid: i64| None::<String>);
const NONE_OF_NUMBER_PRETTY: Body = body!(|_oid: i64, _pretty: bool| None::<String>);

/// No column has a sequence, but the column has to be there.
fn serial_sequence(table: &str, column: &str, env: &Env<'_>) -> Result<Option<String>> {
    let oid = number(relation(table, env)?);
    with_catalog(env, |catalog| {
        let found = match system::view_of(oid) {
            Some(view) => view.columns.iter().any(|(name, _)| *name == column),
            None => catalog.table(oid).is_some_and(|table| table.column(column).is_some()),
        };
        if found {
            return Ok(None);
        }
        let table = system::relation_name(catalog, oid.into());
        Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{table}\" does not exist"),
        ))
    })?
}

fn number(oid: i64) -> u32 {
    u32::try_from(oid).unwrap_or(0)
}

fn index_definition(oid: i64, column: i32, env: &Env<'_>) -> Result<Option<String>> {
    with_catalog(env, |catalog| {
        let (table, index) = catalog.index(number(oid))?;
        Some(system::index_definition(table, index, column.into()))
    })
}

fn constraint_definition(oid: i64, env: &Env<'_>) -> Result<Option<String>> {
    with_catalog(env, |catalog| {
        let (table, index) = catalog.index(system::constraint_index(number(oid)))?;
        Some(system::constraint_definition(table, index))
    })
}

/// Whether a relation is the one that its name means; `None` if there is no such relation.
fn is_visible(catalog: &CatalogState, oid: i64) -> Option<bool> {
    let oid = number(oid);
    if catalog.table(oid).is_some() || catalog.index(oid).is_some() {
        return Some(true);
    }
    system::view_of(oid).map(|view| view.schema == "pg_catalog")
}

fn result_of(oid: i64) -> Result<Option<String>> {
    let Some(function) = system::function(number(oid)) else { return Ok(None) };
    let name = super::system::format_type(function.result.into(), None)?;
    Ok(Some(if function.returns_rows { format!("SETOF {name}") } else { name }))
}

fn arguments_of(oid: i64) -> Result<Option<String>> {
    let Some(function) = system::function(number(oid)) else { return Ok(None) };
    let last = function.args.len().saturating_sub(1);
    let name = |(place, ty): (usize, &u32)| {
        let name = super::system::format_type((*ty).into(), None)?;
        let is_variadic = function.variadic != 0 && place == last;
        Ok(if is_variadic { format!("VARIADIC {name}") } else { name })
    };
    let names: Vec<_> = function.args.iter().enumerate().map(name).collect::<Result<_>>()?;
    Ok(Some(names.join(", ")))
}
