//! Functions that list what is not here: extensions, partitions, rules of files, progress.

use super::catalog::{
    BOOL, INT4, INT8, NAME, NAME_ARRAY, OID, Param, Proc, RECORD_TYPE, REGCLASS_TYPE, TEXT,
    TEXT_ARRAY, TIMESTAMPTZ, XID_TYPE, proc,
};
use super::row_list::RowList;
use super::value::wrong_arguments;
use super::{Columns, rows};
use crate::Datum;
use crate::error::{Result, SqlError, SqlState};

/// A function without rows.
const fn none(oid: u32, name: &'static str, args: &'static [Param], columns: Columns) -> Proc {
    proc(oid, name, args, RECORD_TYPE, rows(columns, |_, _| Ok(())))
}

pub(super) static PROCS: &[Proc] = &[
    none(
        3082,
        "pg_available_extensions",
        &[],
        &[(Some("name"), NAME), (Some("default_version"), TEXT), (Some("comment"), TEXT)],
    )
    .stable(),
    none(
        3083,
        "pg_available_extension_versions",
        &[],
        &[
            (Some("name"), NAME),
            (Some("version"), TEXT),
            (Some("superuser"), BOOL),
            (Some("trusted"), BOOL),
            (Some("relocatable"), BOOL),
            (Some("schema"), NAME),
            (Some("requires"), NAME_ARRAY),
            (Some("comment"), TEXT),
        ],
    )
    .stable(),
    none(
        3423,
        "pg_partition_tree",
        &[REGCLASS_TYPE],
        &[
            (Some("relid"), REGCLASS_TYPE),
            (Some("parentrelid"), REGCLASS_TYPE),
            (Some("isleaf"), BOOL),
            (Some("level"), INT4),
        ],
    )
    .volatile(),
    // Addresses alone decide who connects, so there are no files of rules.
    none(
        3401,
        "pg_hba_file_rules",
        &[],
        &[
            (Some("line_number"), INT4),
            (Some("type"), TEXT),
            (Some("database"), TEXT_ARRAY),
            (Some("user_name"), TEXT_ARRAY),
            (Some("address"), TEXT),
            (Some("netmask"), TEXT),
            (Some("auth_method"), TEXT),
            (Some("options"), TEXT_ARRAY),
            (Some("error"), TEXT),
        ],
    )
    .volatile(),
    none(
        6250,
        "pg_ident_file_mappings",
        &[],
        &[
            (Some("line_number"), INT4),
            (Some("map_name"), TEXT),
            (Some("sys_name"), TEXT),
            (Some("pg_username"), TEXT),
            (Some("error"), TEXT),
        ],
    )
    .volatile(),
    // No transaction commits in two phases.
    none(
        1065,
        "pg_prepared_xact",
        &[],
        &[
            (Some("transaction"), XID_TYPE),
            (Some("gid"), TEXT),
            (Some("prepared"), TIMESTAMPTZ),
            (Some("ownerid"), OID),
            (Some("dbid"), OID),
        ],
    )
    .volatile(),
    proc(3318, "pg_stat_get_progress_info", &[TEXT], RECORD_TYPE, rows(PROGRESS, progress))
        .stable(),
    proc(
        3566,
        "pg_event_trigger_dropped_objects",
        &[],
        RECORD_TYPE,
        rows(DROPPED, |_, _| Err(no_event())),
    )
    .stable(),
];

const PROGRESS: Columns = &[
    (Some("pid"), INT4),
    (Some("datid"), OID),
    (Some("relid"), OID),
    (Some("param1"), INT8),
    (Some("param2"), INT8),
    (Some("param3"), INT8),
    (Some("param4"), INT8),
    (Some("param5"), INT8),
    (Some("param6"), INT8),
    (Some("param7"), INT8),
    (Some("param8"), INT8),
    (Some("param9"), INT8),
    (Some("param10"), INT8),
    (Some("param11"), INT8),
    (Some("param12"), INT8),
    (Some("param13"), INT8),
    (Some("param14"), INT8),
    (Some("param15"), INT8),
    (Some("param16"), INT8),
    (Some("param17"), INT8),
    (Some("param18"), INT8),
    (Some("param19"), INT8),
    (Some("param20"), INT8),
];

/// No command reports how far it is.
fn progress(args: &[Datum<'_>], _: &mut RowList<'_>) -> Result<()> {
    const COMMANDS: [&str; 6] =
        ["VACUUM", "ANALYZE", "CLUSTER", "CREATE INDEX", "BASEBACKUP", "COPY"];
    let [Datum::Text(command)] = args else { return Err(wrong_arguments(args.len())) };
    if COMMANDS.iter().any(|own| own.eq_ignore_ascii_case(command)) {
        return Ok(());
    }
    let message = format!("invalid command name: \"{command}\"");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

const DROPPED: Columns = &[
    (Some("classid"), OID),
    (Some("objid"), OID),
    (Some("objsubid"), INT4),
    (Some("original"), BOOL),
    (Some("normal"), BOOL),
    (Some("is_temporary"), BOOL),
    (Some("object_type"), TEXT),
    (Some("schema_name"), TEXT),
    (Some("object_name"), TEXT),
    (Some("object_identity"), TEXT),
    (Some("address_names"), TEXT_ARRAY),
    (Some("address_args"), TEXT_ARRAY),
];

fn no_event() -> SqlError {
    let message = "pg_event_trigger_dropped_objects() can only be called in a sql_drop event trigger function";
    SqlError::new(SqlState::EVENT_TRIGGER_PROTOCOL_VIOLATED, message)
}
