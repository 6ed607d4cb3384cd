//! What the catalog says of objects that clients rarely ask for: identities of replicas,
//! partitions, options, bodies of functions.

use super::catalog::{
    NAME, OID, OIDVECTOR_TYPE, Proc, RECORD_TYPE, REGCLASS_TYPE, TEXT, TEXT_ARRAY, proc,
};
use super::object_name::{TABLESPACES, with_catalog};
use super::reg::class;
use super::row_list::RowList;
use super::sequence::{Relation, could_not_open, is_relation};
use super::value::{body, wrong_arguments};
use super::{Columns, rows};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations::DATABASE_OID;
use crate::types::array::array_of;
use crate::types::coerce_text;
use crate::{DataType, Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(
        6120,
        "pg_get_replica_identity_index",
        &[REGCLASS_TYPE],
        REGCLASS_TYPE,
        body!(env, |of: Relation| identity_index(of, env)),
    )
    .stable(),
    // No relation has partitions, and none is one.
    proc(
        3424,
        "pg_partition_root",
        &[REGCLASS_TYPE],
        REGCLASS_TYPE,
        body!(|_of: Relation| Value::Null),
    ),
    proc(
        3425,
        "pg_partition_ancestors",
        &[REGCLASS_TYPE],
        REGCLASS_TYPE,
        rows(&[(Some("relid"), REGCLASS_TYPE)], |_, _| Ok(())),
    )
    .volatile(),
    // The functions that there are have no body in SQL, and there are no extended statistics.
    proc(6197, "pg_get_function_sqlbody", &[OID], TEXT, body!(|_oid: i64| None::<String>)).stable(),
    proc(
        6173,
        "pg_get_statisticsobjdef_expressions",
        &[OID],
        TEXT_ARRAY,
        body!(|_oid: i64| Value::Null),
    )
    .stable(),
    proc(2289, "pg_options_to_table", &[TEXT_ARRAY], RECORD_TYPE, rows(OPTIONS, options)).stable(),
    proc(
        2556,
        "pg_tablespace_databases",
        &[OID],
        OID,
        rows(&[(None, OID)], databases_of_tablespace),
    )
    .stable(),
    proc(
        1349,
        "oidvectortypes",
        &[OIDVECTOR_TYPE],
        TEXT,
        body!(|types: Datum<'_>| types_of_vector(&types)),
    )
    .stable(),
    proc(
        266,
        "nameconcatoid",
        &[NAME, OID],
        NAME,
        body!(|name: &str, oid: i64| name_with_number(name, oid)),
    ),
];

/// The index of a table's primary key.
fn identity_index(of: Relation, env: &Env<'_>) -> Result<Option<Value>> {
    if !is_relation(of.0, env)? {
        return Err(could_not_open(of.0));
    }
    let index = with_catalog(env, |catalog| {
        let table = catalog.table(of.0)?;
        table.indexes.iter().find(|index| index.primary).map(|index| index.oid)
    })?;
    index.map(|oid| class(oid.into(), env)).transpose()
}

const OPTIONS: Columns = &[(Some("option_name"), TEXT), (Some("option_value"), TEXT)];

/// Options written as `name=value`, taken apart.
fn options(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [array] = args else { return Err(wrong_arguments(args.len())) };
    let array = array_of(array).ok_or_else(|| wrong_arguments(1))?;
    for option in array.iter() {
        let Datum::Text(option) = option else {
            let message = "null array element not allowed in this context";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let text = |text: &str| Value::Text(text.to_owned());
        list.push(match option.split_once('=') {
            Some((name, value)) => [text(name), text(value)],
            None => [text(option), Value::Null],
        })?;
    }
    Ok(())
}

fn databases_of_tablespace(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let [Datum::Int8(oid)] = args else { return Err(wrong_arguments(args.len())) };
    if TABLESPACES.iter().any(|(own, _)| own == oid) {
        return list.push([Value::Int8(DATABASE_OID)]);
    }
    let warning = SqlError::warning(SqlState::WARNING, format!("{oid} is not a tablespace OID"));
    list.env.facts.notices.borrow_mut().push(warning);
    Ok(())
}

/// The types of a function's arguments.
fn types_of_vector(types: &Datum<'_>) -> Result<String> {
    let array = array_of(types).ok_or_else(|| wrong_arguments(1))?;
    let name = |oid: Datum<'_>| super::format_type(oid.as_i64().unwrap_or(0), None);
    let names: Vec<String> = array.iter().map(name).collect::<Result<_>>()?;
    Ok(names.join(", "))
}

/// The name is cut so that the number fits.
fn name_with_number(name: &str, oid: i64) -> Result<String> {
    const NAME_BYTES: usize = 63;
    let suffix = format!("_{oid}");
    let room = NAME_BYTES.saturating_sub(suffix.len());
    let kept = &name[..name.floor_char_boundary(room)];
    Ok(coerce_text(DataType::Name, &format!("{kept}{suffix}"), true)?.to_owned())
}
