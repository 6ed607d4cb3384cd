//! A corpus of statements, run by Millpond and by a private PostgreSQL 15. The tests compare rows,
//! names and types of columns, and codes and messages of errors.
//!
//! Each file of `sql/` is a script on one subject, run on new tables. In a file that begins with
//! `-- Statements by line`, a statement ends with its line, so that it may have an open quote.
//! `differences.txt` lists the statements whose answers are known to differ, under the reasons. A
//! listed statement whose answer is right is printed, so that its line can go. What Millpond
//! refuses with 0A000 counts as not supported.
//!
//! `BESIDE=joins` runs only files whose names begin so. `BESIDE_VERBOSE=1` prints what is not
//! supported.

#[path = "../common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use common::server::ServerProcess;
use millpond_oracle::{
    Answer, Client, Postgres, Statement, Verdict, compare, is_ordered, statements,
};

/// An answer that takes longer is a failure.
const PATIENCE: Duration = Duration::from_secs(20);
/// Known differences: `file: statement`, and the reasons as comments.
const DIFFERENCES: &str = include_str!("differences.txt");
/// The tables of every file.
const TABLES: &str = include_str!("tables.sql");

#[test]
fn statements_answer_as_postgresql_does() {
    let Some(postgres) = Postgres::start().expect("PostgreSQL starts") else { return };
    let mut pair = Pair::new(&postgres).expect("sessions");
    let only = std::env::var("BESIDE").unwrap_or_default();
    let mut total = Tally::default();
    let mut wrong = Vec::new();
    for (name, script) in files() {
        if !name.starts_with(&only) {
            continue;
        }
        let tally = pair.file(&name, &script, &mut wrong);
        println!("{name}: {tally}");
        total.add(&tally);
    }
    println!("all: {total}");
    assert!(wrong.is_empty(), "{} answers differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// The scripts, sorted by name.
fn files() -> Vec<(String, String)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/beside/sql");
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .expect("the directory of scripts")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a script"))
        })
        .collect();
    files.sort();
    files
}

/// The statements of a script.
fn split(script: &str) -> Vec<Statement> {
    if !script.starts_with("-- Statements by line") {
        return statements(script, &[]);
    }
    let lines = script.lines().enumerate().filter(|(_, text)| !text.starts_with("-- "));
    lines
        .map(|(index, text)| {
            let text = text.strip_suffix(';').unwrap_or(text).to_owned();
            Statement { text, line: index + 1, data: String::new() }
        })
        .collect()
}

/// How many statements got which verdict.
#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn count(&mut self, verdict: &str) {
        *self.0.entry(verdict.to_owned()).or_default() += 1;
    }

    fn add(&mut self, other: &Tally) {
        for (verdict, count) in &other.0 {
            *self.0.entry(verdict.clone()).or_default() += count;
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: usize = self.0.values().sum();
        write!(f, "{all} statements")?;
        for (verdict, count) in &self.0 {
            write!(f, ", {verdict} {count}")?;
        }
        Ok(())
    }
}

/// A session on each server.
struct Pair {
    server: ServerProcess,
    ours: Client,
    theirs: Client,
}

impl Pair {
    fn new(postgres: &Postgres) -> io::Result<Self> {
        let mut theirs = postgres.connect("postgres", PATIENCE)?;
        theirs.run("set statement_timeout = '15s'", "")?;
        let (server, ours) = Self::millpond()?;
        Ok(Pair { server, ours, theirs })
    }

    fn millpond() -> io::Result<(ServerProcess, Client)> {
        let server = ServerProcess::with(&["--set", "statement_timeout=15s"]);
        let ours = Client::tcp(server.port, "postgres", PATIENCE)?;
        Ok((server, ours))
    }

    /// Runs a script on both, with new tables, and adds what differs to `wrong`.
    fn file(&mut self, name: &str, script: &str, wrong: &mut Vec<String>) -> Tally {
        for statement in statements(TABLES, &[]) {
            let (ours, theirs) = self.run(&statement);
            let refused = ours.refusal().or(theirs.refusal());
            assert!(refused.is_none(), "{}: {ours} / {theirs}", statement.text);
        }
        let mut tally = Tally::default();
        for statement in split(script) {
            let (mut ours, theirs) = self.run(&statement);
            // Again, because the second time the plan may come from a cache.
            let reads = ["select", "with", "values", "("];
            let changes = ["(insert ", "(update ", "(delete "];
            let begins = reads.iter().any(|word| statement.text.starts_with(word));
            if begins && !changes.iter().any(|word| statement.text.contains(word)) {
                let (again, _) = self.run(&statement);
                if compare(&again, &ours, false).is_same() {
                    ours = again;
                } else {
                    wrong.push(format!(
                        "{name}.sql:{}: the second answer differs\n{name}: {}\n{ours}\n{again}",
                        statement.line, statement.text
                    ));
                }
            }
            let verdict = compare(&ours, &theirs, is_ordered(&statement.text));
            let place = format!("{name}.sql:{}", statement.line);
            let text = &statement.text;
            let entry =
                format!("{name}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
            let known = DIFFERENCES.lines().any(|line| line == entry);
            if verdict.is_same() || verdict == Verdict::Unsupported {
                tally.count(&verdict.to_string());
                if known && verdict.is_same() {
                    println!("no longer differs: {entry}");
                } else if verdict == Verdict::Unsupported
                    && std::env::var_os("BESIDE_VERBOSE").is_some()
                {
                    println!("{place}: {text}\n  {ours}");
                }
            } else if known {
                tally.count("known to differ");
            } else {
                tally.count(&verdict.to_string());
                wrong.push(format!(
                    "{place}: {verdict}\n{entry}\nPostgreSQL: {theirs}\nMillpond: {ours}"
                ));
            }
        }
        tally
    }

    /// Runs a statement on both. A session that Millpond ends, or that doesn't answer, is an
    /// internal error. A new one takes its place, on a new server if this one doesn't answer at
    /// all.
    fn run(&mut self, statement: &Statement) -> (Answer, Answer) {
        let theirs = self.theirs.run(&statement.text, &statement.data).expect("PostgreSQL answers");
        let ours = match self.ours.run(&statement.text, &statement.data) {
            Ok(answer) => answer,
            Err(error) => {
                println!("the session ended: {}", statement.text);
                match Client::tcp(self.server.port, "postgres", PATIENCE) {
                    Ok(client) => self.ours = client,
                    Err(_) => {
                        (self.server, self.ours) = Self::millpond().expect("a new server");
                        for statement in statements(TABLES, &[]) {
                            let _ = self.ours.run(&statement.text, &statement.data);
                        }
                    }
                }
                let message = format!("the session ended: {error}");
                let sqlstate = "XX000".to_owned();
                Answer::Refused(millpond_oracle::Refusal { sqlstate, message, position: None })
            }
        };
        (ours, theirs)
    }
}
