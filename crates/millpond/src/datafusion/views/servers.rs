//! What holds the relations: databases, schemas, roles, access methods, settings.

use super::Kind::{Array, Bool, Char, Int4, Name, Oid, Text};
use super::{Cell, Kind, Source, View};
use crate::query::SettingInfo;
use crate::settings::{self, FileSetting, Origin, SettingId};

/// The views of this file.
pub const VIEWS: &[View] = &[
    View {
        schema: "pg_catalog",
        name: "pg_namespace",
        oid: 2615,
        columns: PG_NAMESPACE,
        rows: pg_namespace,
    },
    View {
        schema: "pg_catalog",
        name: "pg_database",
        oid: 1262,
        columns: PG_DATABASE,
        rows: pg_database,
    },
    View { schema: "pg_catalog", name: "pg_roles", oid: 12010, columns: PG_ROLES, rows: pg_roles },
    View { schema: "pg_catalog", name: "pg_user", oid: 12011, columns: PG_USER, rows: pg_user },
    View { schema: "pg_catalog", name: "pg_am", oid: 2601, columns: PG_AM, rows: pg_am },
    View {
        schema: "pg_catalog",
        name: "pg_collation",
        oid: 3456,
        columns: PG_COLLATION,
        rows: pg_collation,
    },
    View {
        schema: "pg_catalog",
        name: "pg_tablespace",
        oid: 1213,
        columns: PG_TABLESPACE,
        rows: pg_tablespace,
    },
    View {
        schema: "pg_catalog",
        name: "pg_settings",
        oid: 12012,
        columns: PG_SETTINGS,
        rows: pg_settings,
    },
    View {
        schema: "pg_catalog",
        name: "pg_file_settings",
        oid: 12013,
        columns: PG_FILE_SETTINGS,
        rows: pg_file_settings,
    },
];

const PG_NAMESPACE: &[(&str, Kind)] =
    &[("oid", Oid), ("nspname", Name), ("nspowner", Oid), ("nspacl", Array)];

fn pg_namespace(_: &Source<'_>) -> Vec<Vec<Cell>> {
    [(11, "pg_catalog"), (2200, "public"), (13000, "information_schema")]
        .map(|(oid, name)| vec![oid.into(), name.into(), 10.into(), Cell::Null])
        .into()
}

const PG_DATABASE: &[(&str, Kind)] = &[
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
    ("datacl", Array),
];

fn pg_database(source: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        5.into(),
        source.session.database.as_str().into(),
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

const PG_ROLES: &[(&str, Kind)] = &[
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
    ("rolconfig", Array),
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

const PG_USER: &[(&str, Kind)] = &[
    ("usename", Name),
    ("usesysid", Oid),
    ("usecreatedb", Bool),
    ("usesuper", Bool),
    ("userepl", Bool),
    ("usebypassrls", Bool),
    ("passwd", Text),
    ("valuntil", Text),
    ("useconfig", Array),
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

const PG_AM: &[(&str, Kind)] =
    &[("oid", Oid), ("amname", Name), ("amhandler", Oid), ("amtype", Char)];

fn pg_am(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![
        vec![2.into(), "heap".into(), 3.into(), "t".into()],
        vec![403.into(), "btree".into(), 330.into(), "i".into()],
    ]
}

const PG_COLLATION: &[(&str, Kind)] = &[
    ("oid", Oid),
    ("collname", Name),
    ("collnamespace", Oid),
    ("collowner", Oid),
    ("collprovider", Char),
    ("collisdeterministic", Bool),
    ("collencoding", Int4),
    ("collcollate", Text),
    ("collctype", Text),
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
        ]
    };
    vec![row(100, "default", "d"), row(950, "C", "c")]
}

const PG_TABLESPACE: &[(&str, Kind)] =
    &[("oid", Oid), ("spcname", Name), ("spcowner", Oid), ("spcacl", Array), ("spcoptions", Array)];

fn pg_tablespace(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![1663.into(), "pg_default".into(), 10.into(), Cell::Null, Cell::Null]]
}

const PG_SETTINGS: &[(&str, Kind)] = &[
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
    source.session.settings.iter().filter_map(setting_row).collect()
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

const PG_FILE_SETTINGS: &[(&str, Kind)] = &[
    ("sourcefile", Text),
    ("sourceline", Int4),
    ("seqno", Int4),
    ("name", Text),
    ("setting", Text),
    ("applied", Bool),
    ("error", Text),
];

fn pg_file_settings(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let server = source.session.server.upgrade();
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
