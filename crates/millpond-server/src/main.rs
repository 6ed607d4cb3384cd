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
    // A benchmark has engines that live for a second and end by being dropped. What goes wrong is in its result.
    let benchmark = matches!(command, cli::Command::Bench(_));
    commands::log_to_stderr(if benchmark { "off" } else { "info" });
    match command {
        cli::Command::Serve(options) => commands::serve(&options),
        cli::Command::Check(options) => commands::check(&options),
        cli::Command::Replay(options) => commands::replay(&options),
        cli::Command::Bench(bench) => commands::bench(&bench),
    }
}
