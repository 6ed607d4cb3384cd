//! PostgreSQL's own regression statements on Millpond and on a private PostgreSQL 15: the share of
//! those that PostgreSQL runs, and that have the same result.
//!
//! PostgreSQL's files are not part of this repository. The directory is `src/test/regress` of its
//! sources, at the branch point of version 15. Each file runs on new tables, those of its
//! `test_setup.sql`. Later statements of a file may differ because an earlier one did.

pub mod logic;
mod score;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millpond_oracle::{Client, Postgres, Statement, is_ordered, statements};

use crate::run::Failed;
use score::{Board, postgres_failed};
use server::Server;

/// An answer of PostgreSQL that takes longer ends the run.
const PATIENCE: Duration = Duration::from_secs(120);
/// What makes the tables of all files.
const SETUP: &str = "test_setup";

/// The options of `cargo xtask scoreboard`.
#[derive(Args)]
pub struct Options {
    /// `src/test/regress` of PostgreSQL's sources.
    directory: PathBuf,
    /// Only these files of `sql/`, without `.sql`.
    files: Vec<String>,
    /// The server to judge.
    #[arg(long, default_value = "target/release/millpond")]
    millpond: PathBuf,
    /// Where to write the statements whose answers differ.
    #[arg(long, default_value = "target/scoreboard.txt")]
    list: PathBuf,
}

/// Prints a line for each file and one for all, and writes the list of differing statements.
pub fn run(options: &Options) -> Result<(), Failed> {
    let postgres = private_postgres()?;
    let setup = script(&options.directory, SETUP)?;
    let mut admin = postgres.connect("postgres", PATIENCE).map_err(postgres_failed)?;
    admin.run("create database base", "").map_err(postgres_failed)?;
    let mut base = postgres.connect("base", PATIENCE).map_err(postgres_failed)?;
    for statement in &setup {
        base.run(&statement.text, &statement.data).map_err(postgres_failed)?;
    }
    drop(base);
    let mut board = Board::new();
    for name in names(options)? {
        let database = format!("r_{name}");
        created(&mut admin, &database, "base").map_err(postgres_failed)?;
        let mut theirs = limited(&postgres, &database)?;
        let mut ours = Server::start(&options.millpond)?;
        for statement in &setup {
            ours.run(&statement.text, &statement.data)?;
        }
        for statement in script(&options.directory, &name)? {
            let ordered = is_ordered(&statement.text);
            if !board.judge(&name, &statement, ordered, (&mut ours, &mut theirs))? {
                break;
            }
        }
        board.end_file(&name);
        drop(theirs);
        admin.run(&format!("drop database \"{database}\""), "").map_err(postgres_failed)?;
    }
    board.end(&options.list)
}

fn private_postgres() -> Result<Postgres, Failed> {
    let missing = || Failed("PostgreSQL 15 is not installed".to_owned());
    Postgres::start().map_err(postgres_failed)?.ok_or_else(missing)
}

/// A session of PostgreSQL with a limit of time.
fn limited(postgres: &Postgres, database: &str) -> Result<Client, Failed> {
    let mut client = postgres.connect(database, PATIENCE).map_err(postgres_failed)?;
    client.run("set statement_timeout = '20s'", "").map_err(postgres_failed)?;
    Ok(client)
}

/// Makes a database of the tables in another. PostgreSQL first has to end the session that made
/// them.
fn created(admin: &mut Client, database: &str, template: &str) -> std::io::Result<()> {
    for _ in 0..100 {
        let answer =
            admin.run(&format!("create database \"{database}\" template {template}"), "")?;
        match answer.refusal() {
            None => return Ok(()),
            Some(refusal) if refusal.sqlstate == "55006" => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Some(refusal) => return Err(std::io::Error::other(refusal.message.clone())),
        }
    }
    Err(std::io::Error::other("the template database stays in use"))
}

/// The files to run.
fn names(options: &Options) -> Result<Vec<String>, Failed> {
    if !options.files.is_empty() {
        return Ok(options.files.clone());
    }
    let directory = options.directory.join("sql");
    let entries = fs::read_dir(&directory)
        .map_err(|error| Failed(format!("{}: {error}", directory.display())))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let sql = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sql"));
    let mut names: Vec<String> = sql
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| name != SETUP)
        .collect();
    names.sort();
    Ok(names)
}

/// The statements of a file. A COPY from a file of the server becomes one of the client's data: the
/// file is on this side.
fn script(directory: &Path, name: &str) -> Result<Vec<Statement>, Failed> {
    let path = directory.join("sql").join(format!("{name}.sql"));
    let bytes = fs::read(&path).map_err(|error| Failed(format!("{}: {error}", path.display())))?;
    let source = directory.to_string_lossy();
    let mut found = statements(&String::from_utf8_lossy(&bytes), &[("abs_srcdir", &source)]);
    for statement in &mut found {
        if let Some((before, path, after)) = copy_from_file(&statement.text) {
            if let Ok(data) = fs::read(path) {
                statement.data = String::from_utf8_lossy(&data).into_owned();
                statement.text = format!("{before}stdin{after}");
            }
        }
    }
    Ok(found)
}

/// `COPY t FROM 'path'...`: what is before and behind the path, and the path.
fn copy_from_file(text: &str) -> Option<(&str, &str, &str)> {
    let lower = text.to_ascii_lowercase();
    let from = lower.find(" from '").filter(|_| lower.starts_with("copy"))? + " from ".len();
    let end = from + 1 + text[from + 1..].find('\'')?;
    Some((&text[..from], &text[from + 1..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::copy_from_file;

    #[test]
    fn the_path_of_a_copy() {
        assert_eq!(
            copy_from_file("COPY t FROM '/a/b' csv"),
            Some(("COPY t FROM ", "/a/b", " csv"))
        );
        assert_eq!(copy_from_file("select 1 from 'x'"), None);
        assert_eq!(copy_from_file("copy t from stdin"), None);
    }
}
