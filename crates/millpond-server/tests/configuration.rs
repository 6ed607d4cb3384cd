//! Configuration files, ALTER SYSTEM, and reloads.
#![allow(clippy::unwrap_used)]

mod common;

use common::raw::Raw;
use common::server::ServerProcess;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

struct Fixture {
    dir: tempfile::TempDir,
    data: PathBuf,
}

impl Fixture {
    /// A data directory with this configuration file.
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

/// The rows that a statement returns, their columns joined; or the SQLSTATE of its error.
fn answer(client: &mut Raw, sql: &str) -> String {
    let mut rows = Vec::new();
    for reply in client.query(sql).replies() {
        match reply.kind {
            'E' => return reply.sqlstate(),
            'D' => rows.push(reply.columns().join("|")),
            _ => {}
        }
    }
    rows.join(";")
}

#[test]
fn altered_settings_count_after_a_reload_and_a_restart() {
    let fixture = Fixture::new("lock_timeout = 1s\n");
    let mut server = fixture.serve(&[]);
    let mut session = server.client();
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut session, "alter system set lock_timeout = '2s'"), "");
    assert_eq!(answer(&mut session, "alter system set datestyle to iso, dmy"), "");
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut session, "select pg_reload_conf()"), "t");
    assert_eq!(answer(&mut session, "show lock_timeout"), "2s");
    assert_eq!(answer(&mut session, "show datestyle"), "ISO, DMY");
    let view = "select setting, source, sourceline, pending_restart from pg_settings where name = 'lock_timeout'";
    assert_eq!(answer(&mut session, view), "2s|configuration file|3|f");
    // A reload does not change a value that a session has set itself.
    let mut other = server.client();
    answer(&mut other, "set lock_timeout = '9s'");
    answer(&mut session, "alter system reset lock_timeout");
    answer(&mut session, "select pg_reload_conf()");
    assert_eq!(answer(&mut session, "show lock_timeout"), "1s");
    assert_eq!(answer(&mut other, "show lock_timeout"), "9s");
    assert!(answer(&mut other, view).starts_with("9s|session|-|"));
    assert!(server.stop().success());
    let mut server = fixture.serve(&[]);
    assert_eq!(answer(&mut server.client(), "show datestyle"), "ISO, DMY");
    assert!(server.stop().success());
}

#[test]
fn alter_system_fails_as_postgresql_has_it() {
    let fixture = Fixture::new("");
    let server = fixture.serve(&[]);
    let mut session = server.client();
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
fn sighup_rereads_the_configuration_files() {
    let fixture = Fixture::new("lock_timeout = 1s\n");
    let mut server = fixture.serve(&["--set", "statement_timeout=50s"]);
    let mut session = server.client();
    let config =
        "lock_timeout = 3s\nstatement_timeout = 1s\nmax_connections = 7\nwal_writer_delay = 10ms\n";
    fs::write(fixture.data.join("millpond.conf"), config).unwrap();
    server.signal("HUP");
    while answer(&mut session, "show lock_timeout") != "3s" {
        std::thread::yield_now();
    }
    assert_eq!(answer(&mut session, "show wal_writer_delay"), "10ms");
    // The command line takes precedence, and some settings need a restart.
    assert_eq!(answer(&mut session, "show statement_timeout"), "50s");
    assert_eq!(answer(&mut session, "show max_connections"), "400");
    let view = "select name from pg_settings where pending_restart";
    assert_eq!(answer(&mut session, view), "max_connections");
    assert!(server.stop().success());
}

/// As in PostgreSQL, `pg_reload_conf()` only asks for a reload. The log and a view show the result.
#[test]
fn invalid_configuration_file_changes_nothing_and_is_reported() {
    let fixture = Fixture::new("lock_timeout = 3s\n");
    let mut server = fixture.serve(&[]);
    let mut session = server.client();
    let config = fixture.data.join("millpond.conf");
    fs::write(&config, "lock_timeout = 4s\nnonsense = 1\n").unwrap();
    assert_eq!(answer(&mut session, "select pg_reload_conf()"), "t");
    assert_eq!(answer(&mut session, "show lock_timeout"), "3s");
    let view = "select sourceline, seqno, name, setting, applied, error from pg_file_settings";
    let unknown = "2|2|nonsense|1|f|unrecognized configuration parameter";
    assert_eq!(answer(&mut session, view), format!("1|1|lock_timeout|4s|f|-;{unknown}"));
    let files = answer(&mut session, "select distinct sourcefile from pg_file_settings");
    assert_eq!(files, config.canonicalize().unwrap().display().to_string());
    fs::write(&config, "lock_timeout = 4s\nmax_connections = 7\n").unwrap();
    answer(&mut session, "alter system set work_mem = '8MB'");
    let lines = "1|1|lock_timeout|4s|t|-;2|2|max_connections|7|f|setting could not be applied;3|3|work_mem|8MB|t|-";
    assert_eq!(answer(&mut session, view), lines);
    assert!(server.stop().success());
}

#[test]
fn the_socket_has_the_permissions_that_are_asked_for() {
    let fixture = Fixture::new("unix_socket_permissions = 0700\n");
    let socket = |server: &ServerProcess| {
        let path = server.sockets.join(format!(".s.PGSQL.{}", server.port));
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    let mut server = fixture.serve(&[]);
    assert_eq!(socket(&server), 0o700);
    assert_eq!(answer(&mut server.client(), "show unix_socket_permissions"), "0700");
    assert!(server.stop().success());
    let mut server = fixture.serve(&["--set", "unix_socket_permissions=0770"]);
    assert_eq!(socket(&server), 0o770);
    assert!(server.stop().success());
    fs::write(fixture.data.join("millpond.conf"), "").unwrap();
    let mut server = fixture.serve(&[]);
    assert_eq!(socket(&server), 0o777);
    assert!(server.stop().success());
}

#[test]
fn automatic_values_are_shown_in_force() {
    let fixture = Fixture::new("max_connections = 30\n");
    let mut server = fixture.serve(&[]);
    let mut session = server.client();
    for name in ["query_memory_limit", "max_query_threads", "max_shared_buffers"] {
        let shown = answer(&mut session, &format!("show {name}"));
        assert!(shown != "0" && shown.starts_with(|first: char| first.is_ascii_digit()), "{shown}");
        let view = format!(
            "select setting, boot_val, source, pending_restart from pg_settings where name = '{name}'"
        );
        let expected = format!("{shown}|0|default|f");
        assert_eq!(answer(&mut session, &view), expected);
        answer(&mut session, "select pg_reload_conf()");
        assert_eq!(answer(&mut session, &view), expected);
    }
    assert!(server.stop().success());
    let mut server = fixture.serve(&["--set", "query_memory_limit=64MB"]);
    assert_eq!(answer(&mut server.client(), "show query_memory_limit"), "64MB");
    assert!(server.stop().success());
}

#[test]
fn reload_reports_changed_settings_to_clients() {
    let fixture = Fixture::new("");
    let mut server = fixture.serve(&[]);
    let mut session = server.client();
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
    let mut session = server.client();
    answer(&mut session, "alter system set shutdown_mode = smart");
    answer(&mut session, "select pg_reload_conf()");
    server.signal("TERM");
    assert_eq!(answer(&mut session, "select 1"), "1");
    drop(session);
    assert!(server.child.wait().unwrap().success());
}
