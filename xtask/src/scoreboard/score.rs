//! Counts how statements compare, and lists those whose answers differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use millpond_oracle::{Answer, Client, Statement, Verdict, compare};

use super::server::Server;
use crate::run::Failed;

/// What came of statements.
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
        format!("| {name} | {statements} | {run} | {same} | {share:.2}% |")
    }
}

/// A table with a row for each file, and the list of the statements that differ.
#[derive(Default)]
pub struct Board {
    file: Score,
    all: Score,
    list: String,
}

impl Board {
    /// Prints the head of the table.
    pub fn new() -> Self {
        println!(
            "| file | statements | PostgreSQL runs | the same | share |\n|---|---|---|---|---|"
        );
        Board::default()
    }

    /// Runs a statement on both servers and counts what comes of it. False: Millpond's server is
    /// gone. An error: PostgreSQL is.
    pub fn judge(
        &mut self,
        file: &str,
        statement: &Statement,
        ordered: bool,
        (ours, theirs): (&mut Server, &mut Client),
    ) -> Result<bool, Failed> {
        let Statement { text, data, line } = statement;
        let expected = theirs.run(text, data).map_err(postgres_failed)?;
        // Writing to a string does not fail.
        let Ok(found) = ours.run(text, data) else {
            let _ = writeln!(self.list, "{file}:{line}: the server is gone\n{text}\n");
            return Ok(false);
        };
        let verdict = compare(&found, &expected, ordered);
        self.file.count(verdict, &expected);
        if !verdict.is_same() {
            let _ = writeln!(
                self.list,
                "{file}:{line}: {verdict}\n{text}\nPostgreSQL: {expected}\nMillpond: {found}\n"
            );
        }
        Ok(true)
    }

    /// Prints the row of a file whose statements have been judged.
    pub fn end_file(&mut self, name: &str) {
        let score = std::mem::take(&mut self.file);
        println!("{}", score.row(name));
        self.all.add(&score);
    }

    /// Prints the counts of all files, and writes the list.
    pub fn end(&self, list: &Path) -> Result<(), Failed> {
        println!("{}", self.all.row("all"));
        for (verdict, count) in &self.all.verdicts {
            println!("{verdict}: {count}");
        }
        fs::write(list, &self.list).map_err(|error| Failed(format!("{}: {error}", list.display())))
    }
}

pub fn postgres_failed(error: std::io::Error) -> Failed {
    Failed(format!("PostgreSQL: {error}"))
}
