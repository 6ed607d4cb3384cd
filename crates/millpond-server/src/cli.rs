//! The command line.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use crate::replay::size::Size;
use crate::replay::{Format, Policies};

/// Millpond: a transactional storage engine that speaks PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "millpond", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a database to PostgreSQL clients
    Serve(Serve),
    /// Check a database that is not being served: control file, log, pages, tables, indexes
    Check(Check),
    /// Replay page traces through replacement policies and compare their hits
    Replay(Replay),
    /// Count what statements write to shared memory, and predict how that scales
    #[command(subcommand)]
    Bench(Bench),
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Count the writes of statements to memory that sessions share
    Writes(BenchWrites),
    /// Predict by a model how statements scale from 1 to 256 cores
    Scale(BenchScale),
}

/// Counts what statements, in an engine of their own in a temporary directory, write to memory that sessions share.
///
/// Needs a build with the feature audit.
#[derive(Debug, Args)]
pub struct BenchWrites {
    /// How often each statement is counted, after as many to warm up
    #[arg(long, value_name = "N", default_value = "2000")]
    pub times: NonZeroU64,
}

/// Predicts how many statements a second many cores run, by a model: cores run statements, each so long as it takes on one
/// core of this machine (measured first), and pass cache lines to one another, as many as `bench writes` counts.
///
/// It is a model. docs/scaling.md says what is in it and what is not. By default a line takes what was measured on two sockets
/// of Intel's Xeon Platinum 8375C (<https://github.com/nviennot/core-to-core-latency>).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millpond bench scale --svg scaling.svg
  millpond bench scale --near-ns 107 --far-ns 197       two sockets of AMD's EPYC 7R13
  millpond bench scale --validate                       the model beside this machine's first two cores")]
pub struct BenchScale {
    /// Nanoseconds that a cache line takes from one core to another of the same socket
    #[arg(long, value_name = "NS", default_value = "51")]
    pub near_ns: f64,
    /// Nanoseconds that it takes between sockets
    #[arg(long, value_name = "NS", default_value = "108")]
    pub far_ns: f64,
    /// Cores in a socket
    #[arg(long, value_name = "N", default_value = "64")]
    pub cores_per_socket: NonZeroUsize,
    /// Also draw the predictions into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Compare the model with one and two threads on this machine instead
    #[arg(long)]
    pub validate: bool,
    /// Seconds for each measurement
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub seconds: f64,
}

/// Serves a database until a signal stops it.
///
/// SIGTERM stops as the setting shutdown_mode says, by default fast; SIGINT (Ctrl-C) stops fast:
/// sessions end, within shutdown_timeout. SIGQUIT leaves at once, and the next start recovers.
/// SIGHUP reads the configuration again.
///
/// The first start creates the data directory, with user and database "postgres".
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millpond serve
  millpond serve --data /var/lib/millpond --socket-dir /tmp --set shared_buffers=1GB
  psql -h 127.0.0.1 -p 5433 -U postgres postgres

Logging goes to stderr; MILLPOND_LOG=debug shows more of it.
Connections are not authenticated yet: only loopback addresses and Unix sockets are allowed.")]
pub struct Serve {
    /// Directory of the database; created if it is not there
    #[arg(long, value_name = "DIR", default_value = "millpond-data")]
    pub data: PathBuf,
    /// Address to listen on, loopback only; port 0 takes a free one [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Also listen on the Unix socket DIR/.s.PGSQL.PORT
    #[arg(long, value_name = "DIR")]
    pub socket_dir: Option<PathBuf>,
    /// File of settings, lines like shared_buffers = 1GB [default: millpond.conf in the data
    /// directory, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change a setting, like --set shared_buffers=1GB (goes before the files; may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
}

/// Checks the control file, the log, and every page, row and index entry of a database. Changes nothing.
///
/// A database that was not shut down is recovered in memory. What does not fit there goes to a temporary file in the
/// directory that TMPDIR names.
///
/// Exit status: 0 when all is well; 1 when something is damaged; 2 when it could not be checked: the directory is no
/// database, a server uses it, a permission is missing, or there is no room for temporary files.
#[derive(Debug, Args)]
pub struct Check {
    /// Directory of the database
    #[arg(long, value_name = "DIR", default_value = "millpond-data")]
    pub data: PathBuf,
}

/// Replays page traces through the pool's own replacement policies, through those of the literature, and through
/// Belady's optimum, which knows the future: how many accesses would have found their page in memory?
///
/// The pool's policies are the very code that a server runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millpond serve --set trace_pages=/tmp/pages.trace     record a trace, until the server stops
  millpond replay /tmp/pages.trace
  millpond replay /tmp/pages.trace --policy probation,lru,optimum --size 64MB,128MB,256MB --svg hits.svg
  millpond replay oltp.lis.zst --size 1000,2000,5000

Policies: probation and clock-sweep (the pool's), lru, fifo, clock, 2q, arc, lirs, sieve, s3-fifo, optimum; or all.

Traces may be compressed (gzip, xz, zstd), which is told by their first bytes. Their format is told by their first
bytes or by the name without .gz, .xz or .zst: .lis, .bin (PostgreSQL recording), .u32le, .u32be, text of one number
a line; otherwise --format chooses it.

docs/trace-format.md describes the formats.")]
pub struct Replay {
    /// Traces; each gets a table of its own
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Policies to compare, separated by commas
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_value = "all")]
    pub policy: Vec<Policies>,
    /// Sizes of memory, separated by commas: pages of 8 kB, like 16384, or bytes, like 128MB or 1GB
    /// [default: parts of the first trace's pages]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub size: Vec<Size>,
    /// Also draw the hits into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The traces' format, if it can't be told
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Leave out accesses by bulk work (of traces that tell)
    #[arg(long)]
    pub without_bulk: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| "expected ADDR:PORT, like 127.0.0.1:5433 or [::1]:5433".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if (0.01..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected 0.01 to 3600".to_owned())
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "expected NAME=VALUE, like shared_buffers=1GB".to_owned())?;
    if name.trim().is_empty() {
        return Err("the name before '=' is missing".to_owned());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn addresses_and_settings_are_parsed() {
        assert_eq!(address("localhost:0"), Ok("127.0.0.1:0".parse().expect("address")));
        assert!(address("5433").is_err());
        assert_eq!(assignment("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(assignment("=1").is_err());
        assert!(assignment("shared_buffers").is_err());
    }
}
