//! What holds the relations: databases, schemas, roles, access methods, settings.

use std::sync::Weak;

use super::Kind::{AclArray, Bool, Char, Int4, Name, Oid, Text, TextArray};
use super::{Cell, Columns, Source, View, unique, view};
use crate::query::SettingInfo;
use crate::settings::{self, FileSetting, Origin, SettingId};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_namespace", 2615, PG_NAMESPACE, pg_namespace).keyed(&[
        unique("pg_namespace_nspname_index", 2684, &["nspname"]),
        unique("pg_namespace_oid_index", 2685, &["oid"]),
    ]),
    view("pg_database", 1262, PG_DATABASE, pg_database).keyed(&[unique(
        "pg_database_oid_index",
        2672,
        &["oid"],
    )]),
    view("pg_roles", 12010, PG_ROLES, pg_roles),
    view("pg_user", 12011, PG_USER, pg_user),
    view("pg_am", 2601, PG_AM, pg_am).keyed(&[unique("pg_am_oid_index", 2652, &["oid"])]),
    view("pg_collation", 3456, PG_COLLATION, pg_collation).keyed(&[unique(
        "pg_collation_oid_index",
        3085,
        &["oid"],
    )]),
    view("pg_tablespace", 1213, PG_TABLESPACE, pg_tablespace).keyed(&[unique(
        "pg_tablespace_oid_index",
        2697,
        &["oid"],
    )]),
    view("pg_settings", 12012, PG_SETTINGS, pg_settings),
    view("pg_file_settings", 12013, PG_FILE_SETTINGS, pg_file_settings),
];

/// What functions return.
pub(crate) const FUNCTIONS: &[View] = &[
    view("pg_show_all_settings", 2084, PG_SETTINGS, pg_settings),
    view("pg_show_all_file_settings", 3329, PG_FILE_SETTINGS, pg_file_settings),
];

const PG_NAMESPACE: Columns =
    &[("oid", Oid), ("nspname", Name), ("nspowner", Oid), ("nspacl", AclArray)];

fn pg_namespace(_: &Source<'_>) -> Vec<Vec<Cell>> {
    [(11, "pg_catalog"), (2200, "public"), (13000, "information_schema")]
        .map(|(oid, name)| vec![oid.into(), name.into(), 10.into(), Cell::Null])
        .into()
}

const PG_DATABASE: Columns = &[
    ("oid", Oid),
    ("datname", Name),
    ("datdba", Oid),
    ("encoding", Int4),
    ("datlocprovider", Char),
    ("datistemplate", Bool),
    ("datallowconn", Bool),
    ("datconnlimit", Int4),
    ("datfrozenxid", Oid),
    ("datminmxid", Oid),
    ("dattablespace", Oid),
    ("datcollate", Text),
    ("datctype", Text),
    ("daticulocale", Text),
    ("datlocale", Text),
    ("daticurules", Text),
    ("datcollversion", Text),
    ("datacl", AclArray),
];

/// The number of the database.
pub(crate) const DATABASE_OID: i64 = 5;

fn pg_database(source: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        DATABASE_OID.into(),
        source.session().database.as_str().into(),
        10.into(),
        6.into(),
        "c".into(),
        false.into(),
        true.into(),
        (-1).into(),
        0.into(),
        0.into(),
        1663.into(),
        "C".into(),
        "C".into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]]
}

const PG_ROLES: Columns = &[
    ("oid", Oid),
    ("rolname", Name),
    ("rolsuper", Bool),
    ("rolinherit", Bool),
    ("rolcreaterole", Bool),
    ("rolcreatedb", Bool),
    ("rolcanlogin", Bool),
    ("rolreplication", Bool),
    ("rolconnlimit", Int4),
    ("rolpassword", Text),
    ("rolvaliduntil", Text),
    ("rolbypassrls", Bool),
    ("rolconfig", TextArray),
];

fn pg_roles(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        10.into(),
        "postgres".into(),
        true.into(),
        true.into(),
        true.into(),
        true.into(),
        true.into(),
        true.into(),
        (-1).into(),
        "********".into(),
        Cell::Null,
        true.into(),
        Cell::Null,
    ]]
}

const PG_USER: Columns = &[
    ("usename", Name),
    ("usesysid", Oid),
    ("usecreatedb", Bool),
    ("usesuper", Bool),
    ("userepl", Bool),
    ("usebypassrls", Bool),
    ("passwd", Text),
    ("valuntil", Text),
    ("useconfig", TextArray),
];

fn pg_user(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        "postgres".into(),
        10.into(),
        true.into(),
        true.into(),
        true.into(),
        true.into(),
        "********".into(),
        Cell::Null,
        Cell::Null,
    ]]
}

const PG_AM: Columns = &[("oid", Oid), ("amname", Name), ("amhandler", Oid), ("amtype", Char)];

fn pg_am(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![
        vec![2.into(), "heap".into(), 3.into(), "t".into()],
        vec![403.into(), "btree".into(), 330.into(), "i".into()],
    ]
}

const PG_COLLATION: Columns = &[
    ("oid", Oid),
    ("collname", Name),
    ("collnamespace", Oid),
    ("collowner", Oid),
    ("collprovider", Char),
    ("collisdeterministic", Bool),
    ("collencoding", Int4),
    ("collcollate", Text),
    ("collctype", Text),
    ("colliculocale", Text),
    ("collversion", Text),
];

fn pg_collation(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |oid: i32, name: &str, provider: &str| {
        vec![
            oid.into(),
            name.into(),
            11.into(),
            10.into(),
            provider.into(),
            true.into(),
            (-1).into(),
            "C".into(),
            "C".into(),
            Cell::Null,
            Cell::Null,
        ]
    };
    vec![row(100, "default", "d"), row(950, "C", "c")]
}

const PG_TABLESPACE: Columns = &[
    ("oid", Oid),
    ("spcname", Name),
    ("spcowner", Oid),
    ("spcacl", AclArray),
    ("spcoptions", TextArray),
];

/// The number and the name of the only tablespace.
pub(crate) const TABLESPACE: (i64, &str) = (1663, "pg_default");

fn pg_tablespace(_: &Source<'_>) -> Vec<Vec<Cell>> {
    let (oid, name) = TABLESPACE;
    vec![vec![oid.into(), name.into(), 10.into(), Cell::Null, Cell::Null]]
}

const PG_SETTINGS: Columns = &[
    ("name", Text),
    ("setting", Text),
    ("unit", Text),
    ("category", Text),
    ("short_desc", Text),
    ("extra_desc", Text),
    ("context", Text),
    ("vartype", Text),
    ("source", Text),
    ("boot_val", Text),
    ("sourcefile", Text),
    ("sourceline", Int4),
    ("pending_restart", Bool),
];

/// `setting` is what SHOW says, unit and all.
fn pg_settings(source: &Source<'_>) -> Vec<Vec<Cell>> {
    source.session().settings.iter().filter_map(setting_row).collect()
}

fn setting_row(setting: &SettingInfo) -> Option<Vec<Cell>> {
    let definition = SettingId::find(&setting.name)?.definition();
    let kind = match definition.kind {
        settings::Kind::Bool => "bool",
        settings::Kind::Int(..) => "integer",
        settings::Kind::Real(..) => "real",
        settings::Kind::Enum(_) => "enum",
        settings::Kind::Text | settings::Kind::List => "string",
    };
    // As in PostgreSQL, the place is told where it is the value's.
    let source = if setting.is_own { "session" } else { setting.origin.as_str() };
    let (file, line) = match &setting.origin {
        Origin::File { path, line } if !setting.is_own => {
            (Cell::Text(path.display().to_string()), Cell::from(*line))
        }
        _ => (Cell::Null, Cell::Null),
    };
    Some(vec![
        setting.name.as_str().into(),
        setting.setting.as_str().into(),
        Cell::Null,
        Cell::Null,
        setting.description.as_str().into(),
        Cell::Null,
        definition.context.as_str().into(),
        kind.into(),
        source.into(),
        definition.default.into(),
        file,
        line,
        setting.is_pending.into(),
    ])
}

const PG_FILE_SETTINGS: Columns = &[
    ("sourcefile", Text),
    ("sourceline", Int4),
    ("seqno", Int4),
    ("name", Text),
    ("setting", Text),
    ("applied", Bool),
    ("error", Text),
];

fn pg_file_settings(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let server = source.session().server.as_ref().and_then(Weak::upgrade);
    let lines = server.map(|server| server.configuration().file_settings()).unwrap_or_default();
    let row = |(number, line): (i32, FileSetting)| {
        vec![
            line.path.display().to_string().into(),
            line.line.into(),
            number.into(),
            line.name.into(),
            line.setting.into(),
            line.applied.into(),
            line.error.into(),
        ]
    };
    (1..).zip(lines).map(row).collect()
}
