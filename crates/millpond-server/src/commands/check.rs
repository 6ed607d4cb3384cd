//! `millpond check`: is everything on disk as it should be?

use crate::cli::Check;
use millpond_engine::check::{Checked, check_directory};
use std::error::Error;
use std::process::ExitCode;

/// Damage was found.
const DAMAGED: u8 = 1;
/// The database could not be checked.
const FAILED: u8 = 2;

/// Checks a database that nobody serves.
pub fn check(options: &Check) -> ExitCode {
    let data = options.data.display();
    // Opening would create it.
    if !options.data.join("control").exists() {
        eprintln!("millpond: {data} is not a Millpond database: it has no control file");
        return ExitCode::from(FAILED);
    }
    let mut findings = 0u64;
    let result = check_directory(&options.data, &mut |finding| {
        findings += 1;
        println!("{finding}");
    });
    match result {
        Ok(checked) => {
            println!("{data}: {}", summary(&checked));
            if findings == 0 {
                println!("{data}: no damage found");
                return ExitCode::SUCCESS;
            }
            println!("{data}: {findings} finding(s)");
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

fn summary(checked: &Checked) -> String {
    format!(
        "{} tables, {} indexes, {} pages, {} rows, {} index entries",
        checked.tables, checked.indexes, checked.pages, checked.rows, checked.entries
    )
}
