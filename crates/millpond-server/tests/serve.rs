//! The `millpond` command: options, settings, addresses, signals.

mod common;

use common::raw::{Raw, V3_0};
use common::server::{ServerProcess, command};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Runs a command that should end by itself, and kills it after a minute.
fn run(args: &[&str]) -> (Output, String) {
    let child =
        command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let pid = child.id().to_string();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if ended
            .recv_timeout(Duration::from_secs(60))
            .is_err_and(|e| e == RecvTimeoutError::Timeout)
        {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
    });
    let output = child.wait_with_output().expect("runs");
    drop(done);
    watch.join().expect("watch");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

#[test]
fn help_and_version() {
    let (output, _) = run(&["--version"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("millpond 0."));
    for args in [&["--help"][..], &["serve", "--help"], &["check", "--help"], &["replay", "--help"]]
    {
        let (output, _) = run(args);
        assert!(output.status.success());
        assert!(output.stdout.len() > 200);
    }
    let (output, errors) = run(&["sevre"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("serve"), "{errors}");
}

#[test]
fn only_loopback_addresses() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    let data = data.to_str().expect("path");
    for address in ["0.0.0.0:0", "192.0.2.1:5433", "[::]:0"] {
        let (output, errors) = run(&["serve", "--data", data, "--listen", address]);
        assert_eq!(output.status.code(), Some(1));
        assert!(errors.contains("refusing to listen") && errors.contains("loopback"), "{errors}");
    }
    let (output, errors) = run(&["serve", "--data", data, "--listen", "nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("ADDR:PORT"), "{errors}");
}

#[test]
fn invalid_settings_are_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data").to_str().expect("path").to_owned();
    let serve = |more: &[&str]| {
        let args = [&["serve", "--data", &data, "--listen", "127.0.0.1:0"], more].concat();
        let (output, errors) = run(&args);
        assert!(!output.status.success());
        errors
    };
    let errors = serve(&["--set", "shared_bufers=1GB"]);
    assert!(errors.contains("shared_bufers") && errors.contains("\"shared_buffers\""), "{errors}");
    let errors = serve(&["--set", "shared_buffers=lots"]);
    assert!(errors.contains("lots"), "{errors}");
    let errors = serve(&["--set", "shared_buffers"]);
    assert!(errors.contains("NAME=VALUE"), "{errors}");

    let file = dir.path().join("millpond.conf");
    fs::write(&file, "# first\nshared_buffers = 64MB  # a comment\n\nsynchronous_comit = off\n")
        .expect("written");
    let path = file.to_str().expect("path");
    let errors = serve(&["--config", path]);
    assert!(errors.contains(path) && errors.contains("line 4"), "{errors}");
    assert!(errors.contains("\"synchronous_commit\""), "{errors}");
    let errors = serve(&["--config", "/nonexistent/file"]);
    assert!(errors.contains("/nonexistent/file"), "{errors}");
}

#[test]
fn signals_end_it_cleanly() {
    for signal in ["TERM", "INT"] {
        let mut server = ServerProcess::start();
        let mut client = server.client();
        let socket = server.sockets.join(format!(".s.PGSQL.{}", server.port));
        assert!(socket.exists());
        server.signal(signal);
        assert_eq!(client.replies().last().map(|r| r.sqlstate()), Some("57P01".into()));
        let status = server.child.wait().expect("status");
        assert_eq!(status.code(), Some(0));
        assert!(!socket.exists());
    }
}

/// The files below a directory with their permissions, without sockets.
fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("listed") {
        let entry = entry.expect("an entry");
        let metadata = entry.metadata().expect("there");
        if metadata.is_dir() {
            found.extend(modes(&entry.path()));
        }
        if !metadata.file_type().is_socket() {
            found.push((entry.path(), metadata.permissions().mode() & 0o777));
        }
    }
    found
}

/// The values of a query's only row, of a session over TCP or a Unix socket.
fn one_row(mut client: Raw, sql: &str) -> Vec<String> {
    let replies = client.query(sql).replies();
    let row = replies.iter().find(|reply| reply.kind == 'D').expect("a row");
    row.columns()
}

#[test]
fn sessions_know_both_ports_of_a_network_connection() {
    let server = ServerProcess::start();
    let sql = "select inet_server_port(), inet_client_port() = client_port, \
        inet_client_port() > 0, client_addr \
        from pg_stat_activity where pid = pg_backend_pid()";
    let port = server.port.to_string();
    assert_eq!(one_row(server.client(), sql), [port.as_str(), "t", "t", "127.0.0.1"]);
    let local = Raw::unix(&server.sockets, server.port).startup(V3_0);
    let sql = "select inet_server_port() is null, inet_client_port() is null";
    assert_eq!(one_row(local, sql), ["t", "t"]);
}

#[test]
fn files_are_private_under_any_umask() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    let trace = dir.path().join("pages.trace");
    let setting = format!("trace_pages={}", trace.display());
    let mut server = ServerProcess::under_umask(0, &data, dir.path(), &["--set", &setting]);
    let mut client = server.client();
    client.query("create table t (i int primary key, x text)").replies();
    client.query("insert into t select g, 'x' from generate_series(1, 1000) g").replies();
    client.query("alter system set work_mem = '8MB'").replies();
    client.query("checkpoint").replies();
    let found = modes(dir.path());
    assert!(found.iter().any(|(path, _)| path.ends_with("pages.trace")), "{found:?}");
    for (path, mode) in found {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    assert!(server.stop().success());
}

#[test]
fn a_data_directory_that_others_may_enter_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    assert!(ServerProcess::on(&data, dir.path(), &[]).stop().success());
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).expect("set");
    let path = data.to_str().expect("path");
    let (output, errors) = run(&["serve", "--data", path, "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("data directory \"{path}\" has invalid permissions");
    assert!(errors.contains(&expected), "{errors}");
    let detail = "Permissions should be u=rwx (0700) or u=rwx,g=rx (0750).";
    assert!(errors.contains(detail), "{errors}");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).expect("set");
    assert!(ServerProcess::on(&data, dir.path(), &[]).stop().success());
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = ServerProcess::start();
    let data = server.data.to_str().expect("path");
    let (output, errors) = run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains(data), "{errors}");
    let port = format!("127.0.0.1:{}", server.port);
    let (output, errors) = run(&["serve", "--data", "/nonexistent/x", "--listen", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains(&port), "{errors}");
}

#[test]
fn killed_server_restarts_on_the_same_directory() {
    let dir = tempfile::tempdir().expect("directory");
    let data = dir.path().join("data");
    let mut first = ServerProcess::on(&data, dir.path(), &[]);
    let port = first.port;
    first.child.kill().expect("killed");
    first.child.wait().expect("gone");
    assert!(dir.path().join(format!(".s.PGSQL.{port}")).exists());
    let listen = format!("127.0.0.1:{port}");
    let mut second = ServerProcess::on(&data, dir.path(), &["--listen", &listen]);
    Raw::unix(dir.path(), port).startup(V3_0);
    assert_eq!(second.stop().code(), Some(0));
}

#[test]
fn check_looks_at_a_stopped_database_only() {
    let dir = tempfile::tempdir().expect("directory");
    let empty = dir.path().to_str().expect("path");
    let (output, errors) = run(&["check", "--data", empty]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("not a Millpond database"), "{errors}");

    let mut server = ServerProcess::start();
    let data = server.data.to_str().expect("path").to_owned();
    let (output, errors) = run(&["check", "--data", &data]);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    server.stop();
    let (output, errors) = run(&["check", "--data", &data]);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("no damage found"));

    // The exit status for damage differs from that of a failed check.
    let control = server.data.join("control");
    let mut bytes = std::fs::read(&control).expect("control file");
    bytes[30] ^= 1;
    std::fs::write(&control, bytes).expect("written");
    let (output, _) = run(&["check", "--data", &data]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("control file: copy 0") && said.contains("1 finding(s)"), "{said}");
}

#[test]
fn idle_in_transaction_timeout_closes_the_connection() {
    let server = ServerProcess::start();
    let mut idle = server.client();
    let mut other = server.client();
    idle.query("create table t (a int)").replies();
    idle.query("set idle_in_transaction_session_timeout = '50ms'").replies();
    for begin in ["begin; insert into t values (1)", "begin; select * from nothing"] {
        let mut idle = server.client();
        idle.query("set idle_in_transaction_session_timeout = '50ms'").replies();
        idle.query(begin).replies();
        let told = idle.reply().expect("an error without a request");
        assert_eq!((told.kind, &*told.sqlstate()), ('E', "25P03"));
        assert!(idle.reply().is_none(), "the connection is closed");
    }
    // Its locks and rows are gone. A session that is idle outside a transaction stays.
    let kinds = other.query("begin; lock table t; select * from t; commit").kinds();
    assert_eq!(kinds, "CCTCCZ");
    assert_eq!(idle.query("select 1").kinds(), "TDCZ");
}
