//! Who is connected and what they do: `pg_stat_activity`, `pg_stat_database`.

use super::Kind::{Int4, Name, Oid, Text, Xid};
use super::{Cell, Kind, Source, View};

/// The views of this file.
pub const VIEWS: &[View] = &[View {
    schema: "pg_catalog",
    name: "pg_stat_activity",
    oid: 12020,
    columns: PG_STAT_ACTIVITY,
    rows: pg_stat_activity,
}];

const PG_STAT_ACTIVITY: &[(&str, Kind)] = &[
    ("datid", Oid),
    ("datname", Name),
    ("pid", Int4),
    ("usesysid", Oid),
    ("usename", Name),
    ("application_name", Text),
    ("wait_event_type", Text),
    ("wait_event", Text),
    ("state", Text),
    ("backend_xid", Xid),
    ("query", Text),
    ("backend_type", Text),
];

fn pg_stat_activity(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let row = |session: &crate::query::ActivityInfo| {
        vec![
            5.into(),
            source.session.database.as_str().into(),
            session.pid.into(),
            10.into(),
            session.user.as_str().into(),
            session.application_name.as_str().into(),
            session.wait_event.map(|event| event.0).into(),
            session.wait_event.map(|event| event.1).into(),
            session.state.as_str().into(),
            session.xid.into(),
            session.query.as_str().into(),
            "client backend".into(),
        ]
    };
    source.session.activity.iter().map(row).collect()
}
