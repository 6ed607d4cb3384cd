//! The system views as clients query them, through psql's commands and directly.

mod common;

use std::process::Command;

use common::server::{ServerProcess, installed};

/// psql's unaligned output; `None` if psql is not installed.
fn psql(server: &ServerProcess, command: &str) -> Option<String> {
    let output = Command::new(installed("psql")?)
        .args(["-X", "-q", "-A", "-v", "ON_ERROR_STOP=1", "-h"])
        .arg(&server.sockets)
        .args(["-p", &server.port.to_string(), "-U", "postgres", "-d", "postgres", "-c", command])
        .output()
        .expect("psql runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {complaint}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn psql_describes_tables_indexes_and_databases() {
    let server = ServerProcess::start();
    let create = "CREATE TABLE pets (id int PRIMARY KEY, name varchar(20) NOT NULL DEFAULT 'x', \
                  born date, price numeric(10,2), UNIQUE (name, born))";
    if psql(&server, create).is_none() {
        return;
    }
    psql(&server, "CREATE INDEX pets_born ON pets (born DESC)");
    let expectations: &[(&str, &[&str])] = &[
        ("\\d", &["public|pets|table|postgres"]),
        ("\\dt", &["public|pets|table|postgres"]),
        ("\\dt+", &["public|pets|table|postgres|permanent|heap"]),
        (
            "\\d pets",
            &[
                "id|integer||not null|",
                "name|character varying(20)||not null|'x'",
                "price|numeric(10,2)|||",
                "\"pets_pkey\" PRIMARY KEY, btree (id)",
                "\"pets_born\" btree (born DESC)",
                "\"pets_name_born_key\" UNIQUE CONSTRAINT, btree (name, born)",
            ],
        ),
        ("\\d+ pets", &["id|integer||not null||plain"]),
        ("\\d pets_born", &["born|date|yes|born"]),
        ("\\di", &["public|pets_born|index|postgres|pets", "public|pets_pkey|index|postgres|pets"]),
        ("\\l", &["postgres|postgres|UTF8"]),
        ("\\dn", &["public|postgres"]),
        ("\\du", &["postgres|Superuser"]),
    ];
    for (command, lines) in expectations {
        let shown = psql(&server, command).unwrap_or_default();
        for line in *lines {
            assert!(shown.contains(line), "{command} shows no {line:?}:\n{shown}");
        }
    }
}

#[test]
fn views_follow_definitions_of_the_own_transaction() {
    let server = ServerProcess::start();
    let script = "BEGIN; CREATE TABLE fresh (a int PRIMARY KEY); \
                  SELECT relname, relkind FROM pg_class WHERE relname LIKE 'fresh%' ORDER BY 1; \
                  ROLLBACK; \
                  SELECT count(*) FROM pg_class WHERE relname LIKE 'fresh%'; \
                  SELECT column_name FROM information_schema.columns WHERE table_name = 'fresh'";
    if let Some(shown) = psql(&server, script) {
        let expected = "relname|relkind\nfresh|r\nfresh_pkey|i\n(2 rows)\ncount\n0\n(1 row)\ncolumn_name\n(0 rows)\n";
        assert_eq!(shown, expected);
    }
}
