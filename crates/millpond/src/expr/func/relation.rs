//! What the catalog says of relations and other objects: names and definitions.

use millpond_engine::catalog::CatalogState;

use super::catalog::{self, BOOL, INT4, OID, Param, Proc, TEXT, proc};
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
    proc(
        3495,
        "to_regclass",
        &[TEXT],
        OID,
        body!(env, |name: &str| with_catalog(env, |catalog| system::relation_oid(catalog, name))),
    )
    .stable(),
    // What casts to and from `regclass` call.
    proc(0, "regclass_oid", &[TEXT], OID, body!(env, |name: &str| relation_oid(name, env)))
        .stable(),
    proc(
        0,
        "regclass_name",
        &[OID],
        TEXT,
        body!(env, |oid: i64| with_catalog(env, |catalog| system::relation_name(catalog, oid))),
    )
    .stable(),
    proc(0, "regnamespace_oid", &[TEXT], OID, body!(|name: &str| schema_oid(name))).stable(),
    proc(0, "regnamespace_name", &[OID], TEXT, body!(|oid: i64| schema_name(oid))).stable(),
    proc(0, "regrole_oid", &[TEXT], OID, body!(|name: &str| role_oid(name))).stable(),
    proc(
        0,
        "regrole_name",
        &[OID],
        TEXT,
        body!(|oid: i64| if oid == 10 { "postgres".to_owned() } else { oid.to_string() }),
    )
    .stable(),
    proc(0, "regtype_oid", &[TEXT], OID, body!(|name: &str| type_oid(name))).stable(),
    proc(0, "regproc_oid", &[TEXT], OID, body!(|name: &str| function_oid(name))).stable(),
    proc(0, "regproc_name", &[OID], TEXT, body!(|oid: i64| function_name(oid))).stable(),
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
    proc(1641, "pg_get_viewdef", &[OID], TEXT, body!(|_oid: i64| None::<String>)).stable(),
    proc(
        2506,
        "pg_get_viewdef",
        &[OID, BOOL],
        TEXT,
        body!(|_oid: i64, _pretty: bool| None::<String>),
    )
    .stable(),
    proc(1573, "pg_get_ruledef", &[OID], TEXT, body!(|_oid: i64| None::<String>)).stable(),
    proc(
        2730,
        "pg_get_triggerdef",
        &[OID, BOOL],
        TEXT,
        body!(|_oid: i64, _pretty: bool| None::<String>),
    )
    .stable(),
    proc(
        1665,
        "pg_get_serial_sequence",
        &[TEXT, TEXT],
        TEXT,
        body!(|_table: &str, _column: &str| None::<String>),
    )
    .stable(),
    proc(3352, "pg_get_partkeydef", &[OID], TEXT, body!(|_oid: i64| None::<String>)).stable(),
    proc(3408, "pg_get_partition_constraintdef", &[OID], TEXT, body!(|_oid: i64| None::<String>))
        .stable(),
];

/// Calls a function with the catalog as the session sees it.
fn with_catalog<R>(env: &Env<'_>, look: impl FnOnce(&CatalogState) -> R) -> Result<R> {
    match env.facts.session {
        Some(session) => Ok(look(&session.catalog())),
        None => Err(SqlError::unsupported("a look into the catalog outside of a session")),
    }
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

fn relation_oid(name: &str, env: &Env<'_>) -> Result<i64> {
    with_catalog(env, |catalog| system::relation_oid(catalog, name))?.ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
    })
}

/// The schemas there are.
const SCHEMAS: [(i64, &str); 3] =
    [(11, "pg_catalog"), (2200, "public"), (13000, "information_schema")];

fn schema_oid(name: &str) -> Result<i64> {
    let found = SCHEMAS.iter().find(|(oid, own)| *own == name || oid.to_string() == name);
    found.map(|(oid, _)| *oid).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
    })
}

fn schema_name(oid: i64) -> String {
    let found = SCHEMAS.iter().find(|(own, _)| *own == oid);
    found.map_or_else(|| oid.to_string(), |(_, name)| (*name).to_owned())
}

fn role_oid(name: &str) -> Result<i64> {
    match name {
        "postgres" | "10" => Ok(10),
        _ => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("role \"{name}\" does not exist"),
        )),
    }
}

fn type_oid(name: &str) -> Result<i64> {
    let found = name.parse().ok().or_else(|| system::type_oid(name));
    found.ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
    })
}

fn function_name(oid: i64) -> String {
    let own = system::function(number(oid)).map(|proc| proc.name);
    let of_types = || system::io_functions().find(|function| i64::from(function.oid) == oid);
    match own.or_else(|| of_types().map(|function| function.name)) {
        Some(name) => name.to_owned(),
        None if oid == 0 => "-".to_owned(),
        None => oid.to_string(),
    }
}

fn function_oid(name: &str) -> Result<i64> {
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
    match catalog::named(bare).iter().filter(|proc| proc.oid != 0).collect::<Vec<_>>().as_slice() {
        [one] => Ok(one.oid.into()),
        [] => match system::io_functions().find(|function| function.name == bare) {
            Some(function) => Ok(function.oid.into()),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function \"{name}\" does not exist"),
            )),
        },
        _ => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one function named \"{name}\""),
        )),
    }
}

fn result_of(oid: i64) -> Result<Option<String>> {
    let proc = system::function(number(oid));
    proc.map(|proc| parameter_name(proc.result)).transpose()
}

fn arguments_of(oid: i64) -> Result<Option<String>> {
    let Some(proc) = system::function(number(oid)) else { return Ok(None) };
    let mut names = Vec::new();
    for (place, param) in proc.args.iter().enumerate() {
        let is_variadic = proc.variadic && place + 1 == proc.args.len();
        let name = parameter_name(*param)?;
        names.push(if is_variadic { format!("VARIADIC {name}") } else { name });
    }
    Ok(Some(names.join(", ")))
}

fn parameter_name(param: Param) -> Result<String> {
    super::system::format_type(catalog::type_number(param).into(), None)
}
