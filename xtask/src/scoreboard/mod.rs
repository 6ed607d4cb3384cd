//! PostgreSQL's own regression statements on Millpond and on a private PostgreSQL 15: the share of
//! those that PostgreSQL runs, and that have the same result.
//!
//! PostgreSQL's files are not part of this repository. The directory is `src/test/regress` of its
//! sources, at the branch point of version 15. Each file runs on new tables, those of its
//! `test_setup.sql`. Later statements of a file may differ because an earlier one did.

mod server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millpond_oracle::{
    Answer, Client, Postgres, Statement, Verdict, compare, is_ordered, statements,
};

use crate::run::Failed;
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
    let failed = |error: std::io::Error| Failed(format!("PostgreSQL: {error}"));
    let Some(postgres) = Postgres::start().map_err(failed)? else {
        return Err(Failed("PostgreSQL 15 is not installed".to_owned()));
    };
    let setup = script(&options.directory, SETUP)?;
    let mut admin = postgres.connect("postgres", PATIENCE).map_err(failed)?;
    admin.run("create database base", "").map_err(failed)?;
    let mut base = postgres.connect("base", PATIENCE).map_err(failed)?;
    for statement in &setup {
        base.run(&statement.text, &statement.data).map_err(failed)?;
    }
    drop(base);
    let mut all = Score::default();
    let mut list = String::new();
    println!("| file | statements | PostgreSQL runs | the same | share |\n|---|---|---|---|---|");
    for name in names(options)? {
        let database = format!("r_{name}");
        created(&mut admin, &database).map_err(failed)?;
        let mut theirs = postgres.connect(&database, PATIENCE).map_err(failed)?;
        theirs.run("set statement_timeout = '20s'", "").map_err(failed)?;
        let mut ours = Server::start(&options.millpond)?;
        for statement in &setup {
            ours.run(&statement.text, &statement.data)?;
        }
        let mut score = Score::default();
        for statement in script(&options.directory, &name)? {
            let expected = theirs.run(&statement.text, &statement.data).map_err(failed)?;
            let Ok(found) = ours.run(&statement.text, &statement.data) else {
                let _ = writeln!(list, "{name}:{}: the server is gone\n", statement.line);
                break;
            };
            let verdict = compare(&found, &expected, is_ordered(&statement.text));
            score.count(verdict, &expected);
            if !verdict.is_same() {
                entry(&mut list, &name, &statement, verdict, &expected, &found);
            }
        }
        println!("{}", score.row(&name));
        all.add(&score);
        drop(theirs);
        admin.run(&format!("drop database \"{database}\""), "").map_err(failed)?;
    }
    println!("{}", all.row("all"));
    for (verdict, count) in &all.verdicts {
        println!("{verdict}: {count}");
    }
    fs::write(&options.list, list)
        .map_err(|error| Failed(format!("{}: {error}", options.list.display())))
}

/// Makes a database of the tables in `base`. PostgreSQL first has to end the session that made
/// them.
fn created(admin: &mut Client, database: &str) -> std::io::Result<()> {
    for _ in 0..100 {
        let answer = admin.run(&format!("create database \"{database}\" template base"), "")?;
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

fn entry(
    list: &mut String,
    name: &str,
    statement: &Statement,
    verdict: Verdict,
    expected: &Answer,
    found: &Answer,
) {
    let Statement { text, line, .. } = statement;
    // Writing to a string does not fail.
    let _ = writeln!(
        list,
        "{name}:{line}: {verdict}\n{text}\nPostgreSQL: {expected}\nMillpond: {found}\n"
    );
}

/// What came of a file's statements.
#[derive(Default)]
struct Score {
    statements: usize,
    /// Those that PostgreSQL runs.
    run: usize,
    /// Those that PostgreSQL runs with the same result.
    same: usize,
    verdicts: BTreeMap<Verdict, usize>,
}

impl Score {
    fn count(&mut self, verdict: Verdict, expected: &Answer) {
        self.statements += 1;
        self.run += usize::from(expected.refusal().is_none());
        self.same += usize::from(verdict == Verdict::Same);
        *self.verdicts.entry(verdict).or_default() += 1;
    }

    fn add(&mut self, other: &Score) {
        self.statements += other.statements;
        self.run += other.run;
        self.same += other.same;
        for (verdict, count) in &other.verdicts {
            *self.verdicts.entry(*verdict).or_default() += count;
        }
    }

    fn row(&self, name: &str) -> String {
        let Score { statements, run, same, .. } = self;
        let share = 100.0 * *same as f64 / (*run).max(1) as f64;
        format!("| {name} | {statements} | {run} | {same} | {share:.1}% |")
    }
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
