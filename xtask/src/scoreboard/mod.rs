//! PostgreSQL's own regression statements on Millpond and on a private PostgreSQL 15: the share of
//! those that PostgreSQL runs, and that have the same result.
//!
//! PostgreSQL's files are not part of this repository. The directory is `src/test/regress` of its
//! sources, at the branch point of version 15. Each file runs on the tables of its
//! `test_setup.sql`, and with the settings with which `pg_regress` runs it.
//!
//! Statements that need what Millpond does not have yet do not count (`exclusions`). Tables that
//! only PostgreSQL has made or changed are copied to Millpond (`pair`).

mod exclusions;
pub mod logic;
mod objects;
mod pair;
mod relations;
mod score;
mod server;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millpond_oracle::{Client, Postgres, Statement, is_ordered, statements};

use crate::run::Failed;
use exclusions::Exclusions;
use objects::Objects;
use pair::{Outcome, Pair};
use relations::Given;
use score::{Board, postgres_failed};
use server::Server;

/// An answer of PostgreSQL that takes longer ends the run.
const PATIENCE: Duration = Duration::from_secs(120);
/// What makes the tables of all files.
const SETUP: &str = "test_setup";
/// The core files: `--core` runs these.
const CORE: &str = "boolean char name varchar text int2 int4 int8 float4 float8 numeric strings \
    numerology date timestamp timestamptz horology expressions select select_distinct \
    select_distinct_on select_implicit select_having subselect union case join aggregates \
    transactions arrays update delete insert insert_conflict returning limit with window \
    groupingsets copy copyselect copydml copy2 constraints select_into create_table \
    create_table_like create_index btree_index prepare portals tsrf unicode comments errors \
    truncate domain sequence alter_table temp create_view conversion rangefuncs";
/// The settings of `pg_regress`, but for the time zone. That is PST8PDT, which newer time zone data
/// has as another name of this, and older data as a zone of its own.
const SETTINGS: [(&str, &str); 3] = [
    ("timezone", "America/Los_Angeles"),
    ("datestyle", "Postgres, MDY"),
    ("intervalstyle", "postgres_verbose"),
];
/// Files that another file needs to have run.
const NEEDED: [(&str, &[&str]); 2] = [
    ("horology", &["date", "time", "timetz", "timestamp", "timestamptz", "interval"]),
    ("aggregates", &["create_aggregate"]),
];

/// The options of `cargo xtask scoreboard`.
#[derive(Args)]
pub struct Options {
    /// `src/test/regress` of PostgreSQL's sources.
    directory: PathBuf,
    /// Only these files of `sql/`, without `.sql`.
    files: Vec<String>,
    /// The core files.
    #[arg(long)]
    core: bool,
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
    let mut admin = postgres.connect("postgres", PATIENCE).map_err(postgres_failed)?;
    admin.run("create database base", "").map_err(postgres_failed)?;
    let exclusions = Exclusions::new();
    let base = Base::new(options, &postgres, &exclusions)?;
    let mut board = Board::new();
    for name in names(options)? {
        let database = format!("r_{name}");
        created(&mut admin, &database, "base").map_err(postgres_failed)?;
        for (setting, value) in SETTINGS {
            let set = format!("alter database \"{database}\" set {setting} = '{value}'");
            admin.run(&set, "").map_err(postgres_failed)?;
        }
        let mut pair = base.pair(options, &postgres, &database)?;
        prepare(options, &postgres, &name, &mut pair)?;
        file(options, &name, pair, &mut board)?;
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

/// Runs the files that a file needs, on PostgreSQL only and each in a session of its own.
fn prepare(
    options: &Options,
    postgres: &Postgres,
    name: &str,
    pair: &mut Pair<'_>,
) -> Result<(), Failed> {
    let needed = NEEDED.iter().filter(|(file, _)| *file == name).flat_map(|(_, needed)| *needed);
    let database = format!("r_{name}");
    for needed in needed {
        for statement in script(&options.directory, needed)? {
            pair.prepare(&statement).map_err(postgres_failed)?;
        }
        pair.replace_theirs(postgres.connect(&database, PATIENCE).map_err(postgres_failed)?);
        pair.give_all().map_err(postgres_failed)?;
    }
    Ok(())
}

/// Runs a file.
fn file(
    options: &Options,
    name: &str,
    mut pair: Pair<'_>,
    board: &mut Board,
) -> Result<(), Failed> {
    for statement in script(&options.directory, name)? {
        let outcome = pair.run(&statement).map_err(postgres_failed)?;
        board.count(name, &statement, is_ordered(&statement.text), &outcome);
        if matches!(outcome, Outcome::Gone) {
            break;
        }
    }
    for why in &pair.not_given {
        board.note(format!("{name}: not given: {why}\n"));
    }
    board.end_file(name);
    Ok(())
}

/// The tables of the set-up.
struct Base<'a> {
    exclusions: &'a Exclusions,
    objects: Objects,
    given: HashMap<String, Given>,
    data: PathBuf,
    _directory: tempfile::TempDir,
}

impl<'a> Base<'a> {
    /// Makes the tables in PostgreSQL's database `base`, and copies them to a server of Millpond.
    fn new(
        options: &Options,
        postgres: &Postgres,
        exclusions: &'a Exclusions,
    ) -> Result<Self, Failed> {
        let theirs = postgres.connect("base", PATIENCE).map_err(postgres_failed)?;
        let mut pair =
            Pair::new(theirs, Server::start(&options.millpond, &SETTINGS, None)?, exclusions);
        for statement in script(&options.directory, SETUP)? {
            pair.prepare(&statement).map_err(postgres_failed)?;
        }
        pair.give_all().map_err(postgres_failed)?;
        let (ours, objects, given) = pair.parts();
        let (data, directory) = ours.stop()?;
        Ok(Base { exclusions, objects, given, data, _directory: directory })
    }

    /// Sessions on copies of both.
    fn pair(
        &self,
        options: &Options,
        postgres: &Postgres,
        database: &str,
    ) -> Result<Pair<'a>, Failed> {
        let theirs = limited(postgres, database)?;
        let ours = Server::start(&options.millpond, &SETTINGS, Some(&self.data))?;
        let mut pair = Pair::new(theirs, ours, self.exclusions);
        pair.start_with(self.objects.clone(), self.given.clone());
        Ok(pair)
    }
}

/// Makes a database of the tables in another. PostgreSQL first has to end the session that made
/// them.
fn created(admin: &mut Client, database: &str, template: &str) -> std::io::Result<()> {
    let create = format!("create database \"{database}\" template {template}");
    let mut attempts = 0;
    while let Some(refusal) = admin.run(&create, "")?.refusal() {
        attempts += 1;
        if refusal.sqlstate != "55006" || attempts > 100 {
            return Err(std::io::Error::other(refusal.message.clone()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The files to run.
fn names(options: &Options) -> Result<Vec<String>, Failed> {
    if options.core {
        return Ok(CORE.split_whitespace().map(str::to_owned).collect());
    }
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
