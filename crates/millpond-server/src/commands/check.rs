//! `millpond check`: verifies that everything on disk is consistent.

use super::progress_bar;
use crate::cli::Check;
use indicatif::ProgressBar;
use millpond_engine::check::{
    CheckConfig, Checked, Finding, Part, Progress, Watch, check_directory,
};
use std::error::Error;
use std::process::ExitCode;

/// Damage was found.
const DAMAGED: u8 = 1;
/// The database could not be checked.
const FAILED: u8 = 2;

/// Checks a database that no server uses.
pub fn check(options: &Check) -> ExitCode {
    let data = options.data.display();
    let mut screen = Screen { name: data.to_string(), part: None, findings: 0 };
    let result = check_directory(CheckConfig::new(&options.data), &mut screen);
    let findings = screen.end();
    match result {
        Ok(checked) => {
            println!("{data}: {}", summary(&checked));
            if findings == 0 {
                println!("{data}: no damage found");
                return ExitCode::SUCCESS;
            }
            println!("{data}: {findings} finding(s); restore the database from a backup");
            ExitCode::from(DAMAGED)
        }
        Err(error) => {
            eprintln!("millpond: could not check {data}: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::from(FAILED)
        }
    }
}

/// Shows findings on stdout and progress on stderr.
struct Screen {
    name: String,
    part: Option<(Part, ProgressBar)>,
    findings: u64,
}

impl Screen {
    /// The number of findings.
    fn end(self) -> u64 {
        if let Some((_, bar)) = self.part {
            bar.finish_and_clear();
        }
        self.findings
    }
}

impl Watch for Screen {
    fn found(&mut self, finding: Finding) {
        self.findings += 1;
        match &self.part {
            Some((_, bar)) => bar.suspend(|| println!("{finding}")),
            None => println!("{finding}"),
        }
    }

    fn progress(&mut self, Progress { part, done, total }: Progress) {
        match &self.part {
            Some((current, bar)) if *current == part => bar.set_position(done),
            _ => {
                if let Some((_, bar)) = self.part.take() {
                    bar.finish_and_clear();
                }
                let what = match part {
                    Part::Log => "reading the log of",
                    Part::Recovery => "recovering in memory",
                    Part::Pages => "checking",
                };
                self.part = Some((part, progress_bar(total, what, &self.name)));
            }
        }
    }
}

fn summary(checked: &Checked) -> String {
    format!(
        "{} tables, {} indexes, {} pages, {} rows, {} index entries, {} log records",
        checked.tables,
        checked.indexes,
        checked.pages,
        checked.rows,
        checked.entries,
        checked.records
    )
}
