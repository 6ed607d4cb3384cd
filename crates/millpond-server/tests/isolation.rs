//! Scripts of interleaved sessions, over the wire.
//!
//! `MILLPOND_ISOLATION_SERVER` is the connection string of another server to run them against. The
//! scripts' expected results come from PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::server::ServerProcess;
use millpond_sim::schedule::{self, Ground, Outcome, Party};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

struct Wire {
    runtime: Handle,
    client: Client,
}

impl Wire {
    fn connect(runtime: &Handle, server: &str) -> Self {
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(server, NoTls)).unwrap();
        runtime.spawn(connection);
        Self { runtime: runtime.clone(), client }
    }
}

impl Party for Wire {
    fn run(&mut self, sql: &str) -> Outcome {
        let messages = match self.runtime.block_on(self.client.simple_query(sql)) {
            Ok(messages) => messages,
            Err(error) => {
                let state = error.code().map_or("none", |code| code.code()).to_owned();
                return Outcome::Error(state, error.to_string());
            }
        };
        let (mut rows, mut changed) = (None, 0);
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(_) => rows = Some(Vec::new()),
                SimpleQueryMessage::Row(row) => {
                    let field = |place| row.get(place).unwrap_or("null").to_owned();
                    let fields = Vec::from_iter((0..row.len()).map(field));
                    rows.get_or_insert_default().push(format!("({})", fields.join(", ")));
                }
                SimpleQueryMessage::CommandComplete(count) => changed = count,
                _ => {}
            }
        }
        rows.map_or(Outcome::Changed(changed), Outcome::Rows)
    }
}

/// A server and its sessions.
struct Server<'a> {
    runtime: &'a Handle,
    address: &'a str,
    level: &'a str,
    control: Mutex<Wire>,
    pids: Mutex<Vec<String>>,
}

impl Ground for Server<'_> {
    fn party(&self) -> Box<dyn Party> {
        let mut wire = Wire::connect(self.runtime, self.address);
        wire.run(&format!("set default_transaction_isolation = '{}'", self.level));
        if let Outcome::Rows(rows) = wire.run("select pg_backend_pid()") {
            self.pids.lock().push(rows[0].trim_matches(['(', ')']).to_owned());
        }
        Box::new(wire)
    }

    fn waiting(&self) -> usize {
        let mut control = self.control.lock();
        let mut is_waiting = |pid: &String| {
            let blockers = control.run(&format!("select pg_blocking_pids({pid})"));
            !matches!(blockers, Outcome::Rows(rows) if rows == ["({})"])
        };
        self.pids.lock().iter().filter(|pid| is_waiting(pid)).count()
    }
}

#[test]
fn scripts_over_the_wire() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let other = std::env::var("MILLPOND_ISOLATION_SERVER").ok();
    let own = other.is_none().then(|| ServerProcess::with(&["--set", "synchronous_commit=off"]));
    let address = match &own {
        Some(server) => {
            format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port)
        }
        None => other.unwrap_or_default(),
    };
    let handle = runtime.handle();
    let mut wrong = Vec::new();
    for (level, script) in [
        ("read committed", include_str!("../../millpond/tests/isolation/read_committed.txt")),
        ("repeatable read", include_str!("../../millpond/tests/isolation/repeatable_read.txt")),
        (
            "read committed",
            include_str!("../../millpond/tests/isolation/tables_read_committed.txt"),
        ),
        (
            "repeatable read",
            include_str!("../../millpond/tests/isolation/tables_repeatable_read.txt"),
        ),
        ("read committed", include_str!("../../millpond/tests/isolation/recheck.txt")),
    ] {
        for scenario in schedule::parse(script) {
            let control = Mutex::new(Wire::connect(handle, &address));
            let pids = Mutex::default();
            let ground = Server { runtime: handle, address: &address, level, control, pids };
            wrong.extend(schedule::run(&scenario, &ground).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
