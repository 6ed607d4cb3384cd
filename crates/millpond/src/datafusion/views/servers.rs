//! What holds the relations: databases, schemas, roles, access methods, settings.

use super::Kind::{Array, Bool, Char, Int4, Int8, Name, Oid, Text};
use super::{Cell, Kind, Source, View};

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
    ("short_desc", Text),
    ("pending_restart", Bool),
    ("sourceline", Int8),
];

fn pg_settings(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |setting: &crate::query::SettingInfo| {
        vec![
            setting.name.as_str().into(),
            setting.setting.as_str().into(),
            Cell::Null,
            setting.description.as_str().into(),
            false.into(),
            Cell::Null,
        ]
    };
    source.session.settings.iter().map(row).collect()
}
