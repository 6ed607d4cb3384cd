//! `millpond check`: is everything on disk as it should be?

use crate::cli::Check;
use std::process::ExitCode;

/// Checks a database that nobody serves.
pub fn check(options: &Check) -> ExitCode {
    if !options.data.join("control").exists() {
        eprintln!("millpond: {} is not a Millpond database", options.data.display());
        return ExitCode::from(2);
    }
    eprintln!("millpond: check is not there yet");
    ExitCode::from(2)
}
