//! What came of the statements: counts, and the list of those that differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use millpond_oracle::{Answer, Client, Statement, Verdict, compare};

use super::pair::Outcome;
use super::server::Server;
use crate::run::Failed;

/// A table with a row for each file, and the list of the statements that differ.
#[derive(Default)]
pub struct Board {
    file: Score,
    all: Score,
    list: Vec<String>,
}

impl Board {
    /// Prints the head of the table.
    pub fn new() -> Self {
        println!("{HEAD}");
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
        let Statement { text, data, .. } = statement;
        let expected = theirs.run(text, data).map_err(postgres_failed)?;
        let outcome = match ours.run(text, data) {
            Ok(found) => Outcome::Compared { expected, found },
            Err(Failed(_)) => Outcome::Gone,
        };
        self.count(file, statement, ordered, &outcome);
        Ok(!matches!(outcome, Outcome::Gone))
    }

    /// Counts what came of a statement.
    pub fn count(&mut self, file: &str, statement: &Statement, ordered: bool, outcome: &Outcome) {
        self.list.extend(self.file.count(file, statement, ordered, outcome));
    }

    /// Adds a line to the list.
    pub fn note(&mut self, line: String) {
        self.list.push(line);
    }

    /// Prints the row of a file whose statements have been judged.
    pub fn end_file(&mut self, name: &str) {
        let score = std::mem::take(&mut self.file);
        println!("{}", score.row(name));
        self.all.add(&score);
    }

    /// Prints the counts of all files, and writes the list.
    pub fn end(&self, list: &Path) -> Result<(), Failed> {
        println!("{}\n\n{}", self.all.row("all"), self.all.summary());
        let folder = list.parent().map_or(Ok(()), fs::create_dir_all);
        folder
            .and_then(|()| fs::write(list, self.list.join("\n")))
            .map_err(|error| Failed(format!("{}: {error}", list.display())))
    }
}

pub fn postgres_failed(error: std::io::Error) -> Failed {
    Failed(format!("PostgreSQL: {error}"))
}

/// The counts of a file or of all.
#[derive(Default)]
struct Score {
    statements: usize,
    /// Those that PostgreSQL runs.
    run: usize,
    /// Those that PostgreSQL runs and that count.
    counted: usize,
    /// Those that count and have the same result.
    same: usize,
    verdicts: BTreeMap<Verdict, usize>,
    /// How many of those that PostgreSQL runs are left out, by reason.
    excluded: BTreeMap<String, usize>,
}

/// The head of the table.
const HEAD: &str = "\
| file | statements | PostgreSQL runs | left out | counted | the same | share |
|---|---|---|---|---|---|---|";

impl Score {
    /// Counts a statement. Its entry for the list, if the answers differ.
    fn count(
        &mut self,
        file: &str,
        statement: &Statement,
        ordered: bool,
        outcome: &Outcome,
    ) -> Option<String> {
        self.statements += 1;
        match outcome {
            Outcome::Excluded(reason, expected) => {
                if expected.refusal().is_none() {
                    self.run += 1;
                    *self.excluded.entry(reason.clone()).or_default() += 1;
                }
                None
            }
            Outcome::Compared { expected, found } => {
                let verdict = compare(found, expected, ordered);
                let runs = usize::from(expected.refusal().is_none());
                self.run += runs;
                self.counted += runs;
                self.same += usize::from(verdict == Verdict::Same);
                *self.verdicts.entry(verdict).or_default() += 1;
                let differs = !verdict.is_same();
                differs.then(|| entry(file, statement, verdict, expected, found))
            }
            Outcome::Gone => Some(format!("{file}:{}: the server is gone", statement.line)),
        }
    }

    fn add(&mut self, other: &Score) {
        self.statements += other.statements;
        self.run += other.run;
        self.counted += other.counted;
        self.same += other.same;
        for (verdict, count) in &other.verdicts {
            *self.verdicts.entry(*verdict).or_default() += count;
        }
        for (reason, count) in &other.excluded {
            *self.excluded.entry(reason.clone()).or_default() += count;
        }
    }

    /// A line of the table.
    fn row(&self, name: &str) -> String {
        let Score { statements, run, counted, same, .. } = self;
        let left_out = run - counted;
        let share = 100.0 * *same as f64 / (*counted).max(1) as f64;
        format!("| {name} | {statements} | {run} | {left_out} | {counted} | {same} | {share:.2}% |")
    }

    /// The verdicts, and what is left out by reason, each with its count.
    fn summary(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for (verdict, count) in &self.verdicts {
            let _ = writeln!(text, "{verdict}: {count}");
        }
        if self.excluded.is_empty() {
            return text;
        }
        let _ = writeln!(text, "\n| left out | statements |\n|---|---|");
        let mut reasons: Vec<_> = self.excluded.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            let _ = writeln!(text, "| {reason} | {count} |");
        }
        text
    }
}

fn entry(
    file: &str,
    statement: &Statement,
    verdict: Verdict,
    expected: &Answer,
    found: &Answer,
) -> String {
    let Statement { text, line, .. } = statement;
    format!("{file}:{line}: {verdict}\n{text}\nPostgreSQL: {expected}\nMillpond: {found}\n")
}
