//! Connected sessions and what they do: `pg_stat_activity`.

use millpond_engine::proc::SessionInfo;

use super::Kind::{Int4, Int8, Name, Oid, Text, TimestampTz, Xid};
use super::{Cell, Columns, EPOCH_US, Source, View, view};

/// The views of this file.
pub(crate) const VIEWS: &[View] =
    &[view("pg_stat_activity", 12020, PG_STAT_ACTIVITY, pg_stat_activity)];

/// As in PostgreSQL 18.
const PG_STAT_ACTIVITY: Columns = &[
    ("datid", Oid),
    ("datname", Name),
    ("pid", Int4),
    ("leader_pid", Int4),
    ("usesysid", Oid),
    ("usename", Name),
    ("application_name", Text),
    ("client_addr", Text),
    ("client_hostname", Text),
    ("client_port", Int4),
    ("backend_start", TimestampTz),
    ("xact_start", TimestampTz),
    ("query_start", TimestampTz),
    ("state_change", TimestampTz),
    ("wait_event_type", Text),
    ("wait_event", Text),
    ("state", Text),
    ("backend_xid", Xid),
    ("backend_xmin", Xid),
    ("query_id", Int8),
    ("query", Text),
    ("backend_type", Text),
];

fn pg_stat_activity(source: &Source<'_>) -> Vec<Vec<Cell>> {
    let Some(statistics) = &source.session().statistics else { return Vec::new() };
    statistics.sessions().iter().map(row).collect()
}

fn row(session: &SessionInfo) -> Vec<Cell> {
    let SessionInfo { activity, statement, .. } = session;
    let is_client = activity.kind == "client backend";
    let of_client = |cell: Cell| if is_client { cell } else { Cell::Null };
    let time = |time: Option<i64>| Cell::from(time.map(|us| us + EPOCH_US));
    let (address, port) = address(&activity.client);
    let wait = session.wait_event.names();
    vec![
        of_client(5.into()),
        of_client((&*activity.database).into()),
        i64::from(session.process_id).into(),
        Cell::Null,
        of_client(10.into()),
        of_client((&*activity.user).into()),
        (&*activity.application).into(),
        address.into(),
        Cell::Null,
        // A client of a socket in the file system has the port -1.
        of_client(port.unwrap_or(-1).into()),
        time(Some(activity.started)),
        time(statement.transaction_began.filter(|_| session.in_transaction)),
        time(statement.began),
        time(statement.state_changed),
        wait.map(|event| event.0).into(),
        wait.map(|event| event.1).into(),
        of_client(statement.state.name().into()),
        session.xid.map(|xid| xid.0).into(),
        // Snapshots are commit numbers here, not ids.
        Cell::Null,
        Cell::Null,
        statement.query.clone().into(),
        activity.kind.into(),
    ]
}

/// Address and port of a client, if it came over a network.
fn address(client: &str) -> (Option<String>, Option<i64>) {
    match client.parse::<std::net::SocketAddr>() {
        Ok(address) => (Some(address.ip().to_string()), Some(address.port().into())),
        Err(_) => (Some(client.to_owned()).filter(|client| !client.is_empty()), None),
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn clients_of_a_network_have_addresses() {
        assert_eq!(address("127.0.0.1:5433"), (Some("127.0.0.1".to_owned()), Some(5433)));
        assert_eq!(address("[::1]:1"), (Some("::1".to_owned()), Some(1)));
        assert_eq!(address(""), (None, None));
    }
}
