//! Configuration files, ALTER SYSTEM, and reading them again.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::Raw;
use common::server::ServerProcess;
use std::fs;
use std::path::PathBuf;

struct Fixture {
    dir: tempfile::TempDir,
    data: PathBuf,
}

impl Fixture {
    /// A data directory whose configuration file is this.
    fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert!(ServerProcess::on(&data, dir.path(), &[]).stop().success());
        fs::write(data.join("millpond.conf"), config).unwrap();
        Fixture { dir, data }
    }

    fn serve(&self, args: &[&str]) -> ServerProcess {
        ServerProcess::on(&self.data, self.dir.path(), args)
    }
}

fn client(server: &ServerProcess) -> Raw {
    Raw::tcp(server.port).startup(0x0003_0000)
}

/// The columns of the rows that a statement returns, joined; or its error's state.
fn answer(client: &mut Raw, sql: &str) -> String {
    let mut rows = Vec::new();
    for reply in client.query(sql).replies() {
        match reply.kind {
            'E' => return reply.sqlstate(),
            'D' => rows.push(row(&reply.body)),
            _ => {}
        }
    }
    rows.join(";")
}

fn row(body: &[u8]) -> String {
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, after) = after.split_at(usize::try_from(length).unwrap_or(0));
        columns.push(if length < 0 { "-" } else { std::str::from_utf8(value).unwrap() });
        rest = after;
    }
    columns.join("|")
}

#[test]
fn altered_settings_count_after_a_reload_and_a_restart() {
    let fixture = Fixture::new("lock_timeout = 1s\n");
    let mut server = fixture.serve(&[]);
    let mut session = client(&server);
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut session, "alter system set lock_timeout = '2s'"), "");
    assert_eq!(answer(&mut session, "alter system set datestyle to iso, dmy"), "");
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut session, "select pg_reload_conf()"), "t");
    assert_eq!(answer(&mut session, "show lock_timeout"), "2s");
    assert_eq!(answer(&mut session, "show datestyle"), "ISO, DMY");
    let view = "select setting, source, sourceline, pending_restart from pg_settings where name = 'lock_timeout'";
    assert_eq!(answer(&mut session, view), "2s|configuration file|3|f");
    // What a session has set itself stays.
    let mut other = client(&server);
    answer(&mut other, "set lock_timeout = '9s'");
    answer(&mut session, "alter system reset lock_timeout");
    answer(&mut session, "select pg_reload_conf()");
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut other, "show lock_timeout"), "9s");
    assert!(answer(&mut other, view).starts_with("9s|session|-|"));
    assert!(server.stop().success());
    let mut server = fixture.serve(&[]);
    assert_eq!(answer(&mut client(&server), "show datestyle"), "ISO, DMY");
    assert!(server.stop().success());
}

#[test]
fn alter_system_fails_as_postgresql_has_it() {
    let fixture = Fixture::new("");
    let server = fixture.serve(&[]);
    let mut session = client(&server);
    for (sql, state) in [
        ("alter system set no_such_setting = 1", "42704"),
        ("alter system reset no_such_setting", "42704"),
        ("alter system set server_version = '16'", "55P02"),
        ("alter system set work_mem = 'lots'", "22023"),
        ("alter system set", "42601"),
        ("alter system work_mem = 1", "42601"),
    ] {
        assert_eq!(answer(&mut session, sql), state, "{sql}");
    }
    answer(&mut session, "begin");
    assert_eq!(answer(&mut session, "alter system set work_mem = '8MB'"), "25001");
    answer(&mut session, "rollback");
    assert_eq!(answer(&mut session, "alter system reset all"), "");
}

#[test]
fn a_hangup_reads_the_files_again() {
    let fixture = Fixture::new("lock_timeout = 1s\n");
    let mut server = fixture.serve(&["--set", "statement_timeout=50s"]);
    let mut session = client(&server);
    let config =
        "lock_timeout = 3s\nstatement_timeout = 1s\nmax_connections = 7\nwal_writer_delay = 10ms\n";
    fs::write(fixture.data.join("millpond.conf"), config).unwrap();
    server.signal("HUP");
    while answer(&mut session, "show lock_timeout") != "3s" {
        std::thread::yield_now();
    }
    assert_eq!(answer(&mut session, "show wal_writer_delay"), "10ms");
    // The command line has the last word; and some settings wait for a start.
    assert_eq!(answer(&mut session, "show statement_timeout"), "50s");
    assert_eq!(answer(&mut session, "show max_connections"), "400");
    let view = "select name from pg_settings where pending_restart";
    assert_eq!(answer(&mut session, view), "max_connections");
    // A mistake changes nothing.
    fs::write(fixture.data.join("millpond.conf"), "lock_timeout = 4s\nnonsense\n").unwrap();
    assert_eq!(answer(&mut session, "select pg_reload_conf()"), "f");
    assert_eq!(answer(&mut session, "show lock_timeout"), "3s");
    assert!(server.stop().success());
}

#[test]
fn clients_are_told_of_what_a_reload_changes() {
    let fixture = Fixture::new("");
    let mut server = fixture.serve(&[]);
    let mut session = client(&server);
    fs::write(fixture.data.join("millpond.conf"), "application_name = reloaded\n").unwrap();
    answer(&mut session, "select pg_reload_conf()");
    let replies = session.query("select 1").replies();
    let told = replies.iter().any(|r| r.kind == 'S' && r.text() == "application_name\0reloaded");
    assert!(told, "{replies:?}");
    assert!(server.stop().success());
}

#[test]
fn shutdown_mode_is_that_of_the_last_reload() {
    let fixture = Fixture::new("");
    let mut server = fixture.serve(&[]);
    let mut session = client(&server);
    answer(&mut session, "alter system set shutdown_mode = smart");
    answer(&mut session, "select pg_reload_conf()");
    server.signal("TERM");
    assert_eq!(answer(&mut session, "select 1"), "1");
    drop(session);
    assert!(server.child.wait().unwrap().success());
}
