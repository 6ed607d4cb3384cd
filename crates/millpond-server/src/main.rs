//! The `millpond` command.
#![forbid(unsafe_code)]

use clap::Parser;
use millpond_server::{cli, commands};
use std::process::ExitCode;

#[cfg(feature = "audit")]
#[global_allocator]
static ALLOCATOR: millpond_sync::audit::place::PlacingAllocator =
    millpond_sync::audit::place::PlacingAllocator;

fn main() -> ExitCode {
    let command = cli::Cli::parse().command;
    // A benchmark drops its engines, which would log. Its result reports errors.
    #[cfg(feature = "lab")]
    let benchmark = matches!(command, cli::Command::Bench(_));
    #[cfg(not(feature = "lab"))]
    let benchmark = false;
    commands::log_to_stderr(if benchmark { "off" } else { "info" });
    match command {
        cli::Command::Serve(options) => commands::serve(&options),
        cli::Command::Check(options) => commands::check(&options),
        #[cfg(feature = "lab")]
        cli::Command::Replay(options) => {
            millpond_lab::replay::replay(&options, commands::progress_bar)
        }
        #[cfg(feature = "lab")]
        cli::Command::Bench(bench) => millpond_lab::bench::bench(&bench),
    }
}
