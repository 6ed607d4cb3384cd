//! SQLite's corpus of queries (sqllogictest) on Millpond and on a private PostgreSQL 15: the share
//! of what PostgreSQL accepts that has the same result.
//!
//! The corpus is not part of this repository. Its records also say what SQLite answered. That is
//! not read here: PostgreSQL's types differ, so PostgreSQL's answer decides. A record for another
//! database runs too, and counts if PostgreSQL accepts it. Each file runs in a new database.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use millpond_oracle::Statement;

use super::score::{Board, postgres_failed};
use super::server::Server;
use super::{PATIENCE, created, limited, private_postgres};
use crate::run::Failed;

/// The options of `cargo xtask sqllogictest`.
#[derive(Args)]
pub struct Options {
    /// The corpus: the directory of its `.test` files.
    directory: PathBuf,
    /// Only the files whose paths in the directory begin with one of these.
    files: Vec<String>,
    /// Runs only every Nth query of each file, and all other statements.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// The first query of each file that runs, counted from 0.
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// The server to judge.
    #[arg(long, default_value = "target/release/millpond")]
    millpond: PathBuf,
    /// Where to write the statements whose answers differ.
    #[arg(long, default_value = "target/sqllogictest.txt")]
    list: PathBuf,
}

/// Prints a line for each file and one for all, and writes the list of differing statements.
pub fn run(options: &Options) -> Result<(), Failed> {
    let postgres = private_postgres()?;
    let mut admin = postgres.connect("postgres", PATIENCE).map_err(postgres_failed)?;
    let mut board = Board::new();
    for name in names(options)? {
        let path = options.directory.join(&name);
        let text =
            fs::read(&path).map_err(|error| Failed(format!("{}: {error}", path.display())))?;
        created(&mut admin, "logic", "template0").map_err(postgres_failed)?;
        let mut theirs = limited(&postgres, "logic")?;
        let mut ours = Server::start(&options.millpond, &[], None)?;
        let mut queries = 0;
        for record in records(&String::from_utf8_lossy(&text)) {
            if record.query {
                queries += 1;
                let from_first = (queries - 1_usize).checked_sub(options.first);
                if from_first.is_none_or(|at| at % options.every.max(1) != 0) {
                    continue;
                }
            }
            let servers = (&mut ours, &mut theirs);
            if !board.judge(&name, &record.statement, record.ordered, servers)? {
                break;
            }
        }
        board.end_file(&name);
        drop(theirs);
        admin.run("drop database logic with (force)", "").map_err(postgres_failed)?;
    }
    board.end(&options.list)
}

/// The paths of the files to run, in the directory.
fn names(options: &Options) -> Result<Vec<String>, Failed> {
    let mut found = Vec::new();
    collect(&options.directory, "", &mut found)
        .map_err(|error| Failed(format!("{}: {error}", options.directory.display())))?;
    let chosen = |name: &String| {
        options.files.is_empty() || options.files.iter().any(|start| name.starts_with(start))
    };
    found.retain(chosen);
    found.sort();
    Ok(found)
}

/// Adds the test files in a folder and those below it. `prefix` is the folder's path, with a slash
/// at its end.
fn collect(root: &Path, prefix: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(prefix))? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(root, &format!("{path}/"), found)?;
        } else if path.ends_with(".test") {
            found.push(path);
        }
    }
    Ok(())
}

/// A record of a file.
#[derive(Debug, PartialEq)]
struct Record {
    statement: Statement,
    query: bool,
    /// Whether the order of its rows counts: the corpus sorts those of other queries.
    ordered: bool,
}

/// The statements and queries of a file. Records end at an empty line. In each, comments and
/// conditions come first, and a query's expected rows come after a line of hyphens.
fn records(text: &str) -> Vec<Record> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut words = line.split_whitespace();
        let query = match words.next() {
            Some("query") => true,
            Some("statement") => false,
            _ => continue,
        };
        // The word after a query's types says how to sort its rows.
        let sorted = words.nth(1).is_some_and(|mode| mode != "nosort");
        let body = lines.by_ref().map(|(_, line)| line.trim_end());
        let record: Vec<&str> = body.take_while(|line| !line.is_empty()).collect();
        let sql: Vec<&str> = record.into_iter().take_while(|line| *line != "----").collect();
        let sql = sql.join("\n");
        let ordered = query && !sorted && millpond_oracle::is_ordered(&sql);
        let statement = Statement { text: sql, line: at + 2, data: String::new() };
        found.push(Record { statement, query, ordered });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::records;

    #[test]
    fn records_of_a_file() {
        let file = "# a comment\nhash-threshold 8\n\nstatement ok\nCREATE TABLE t(a)\n\n\
            onlyif mysql # why\nquery II rowsort label-1\nSELECT a\n  FROM t ORDER BY 1\n----\n\
            query\n1\n\nquery I nosort\nSELECT 1 ORDER BY 1\n";
        let found = records(file);
        let texts: Vec<&str> = found.iter().map(|r| r.statement.text.as_str()).collect();
        assert_eq!(
            texts,
            ["CREATE TABLE t(a)", "SELECT a\n  FROM t ORDER BY 1", "SELECT 1 ORDER BY 1"]
        );
        let kinds: Vec<(bool, bool)> = found.iter().map(|r| (r.query, r.ordered)).collect();
        assert_eq!(kinds, [(false, false), (true, false), (true, true)]);
        assert_eq!(found.iter().map(|r| r.statement.line).collect::<Vec<_>>(), [5, 9, 16]);
    }
}
