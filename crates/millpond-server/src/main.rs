//! The `millpond` command.
#![forbid(unsafe_code)]

use clap::Parser;
use millpond_server::{cli, commands};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = cli::Cli::parse().command;
    commands::log_to_stderr();
    match command {
        cli::Command::Serve(options) => commands::serve(&options),
        cli::Command::Check(options) => commands::check(&options),
        cli::Command::Replay(options) => commands::replay(&options),
    }
}
