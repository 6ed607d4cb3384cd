//! The command-line options of `millpond replay` and `millpond bench`.

use clap::{Args, Subcommand};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use crate::replay::size::Size;
use crate::replay::{Format, Policies};

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Count the writes of statements to memory that sessions share
    Writes(BenchWrites),
    /// Predict by a model how statements scale from 1 to 256 cores
    Scale(BenchScale),
}

/// Counts what statements write to memory that sessions share, in a new temporary database.
///
/// Needs a build with the feature audit.
#[derive(Debug, Args)]
pub struct BenchWrites {
    /// How often each statement is counted, after as many runs to warm up
    #[arg(long, value_name = "N", default_value = "2000")]
    pub times: NonZeroU64,
}

/// Predicts by a model how many statements a second many cores run. Cores run statements, each for
/// the time that it takes on one core of this machine (measured first). They pass cache lines to
/// one another, as many as `bench writes` counts.
///
/// docs/scaling.md says what the model includes and what it leaves out. By default the transfer of
/// a line takes what was measured on two sockets of Intel's Xeon Platinum 8375C
/// (<https://github.com/nviennot/core-to-core-latency>).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millpond bench scale --svg scaling.svg
  millpond bench scale --near-ns 107 --far-ns 197       two sockets of AMD's EPYC 7R13
  millpond bench scale --validate                       the model beside this machine's first two cores")]
pub struct BenchScale {
    /// Nanoseconds to move a cache line from one core to another of the same socket
    #[arg(long, value_name = "NS", default_value = "51")]
    pub near_ns: f64,
    /// Nanoseconds to move it between sockets
    #[arg(long, value_name = "NS", default_value = "108")]
    pub far_ns: f64,
    /// Cores in a socket
    #[arg(long, value_name = "N", default_value = "64")]
    pub cores_per_socket: NonZeroUsize,
    /// Also draw the predictions into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Instead, compare the model with one and two threads on this machine
    #[arg(long)]
    pub validate: bool,
    /// Seconds for each measurement
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub seconds: f64,
}

/// Replays page traces through the pool's own replacement policies, those of the literature, and
/// Belady's optimum, which knows the future. How many accesses would have found their page in
/// memory?
///
/// The pool's policies are the code that a server runs.
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
    /// Traces; each gets its own table
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// Policies to compare, separated by commas
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_value = "all")]
    pub policy: Vec<Policies>,
    /// Sizes of memory, separated by commas: pages of 8 kB, like 16384, or bytes, like 128MB or
    /// 1GB. [default: fractions of the first trace's number of pages]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub size: Vec<Size>,
    /// Also draw the hit ratios into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The traces' format, if contents and name don't tell it
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Leave out accesses by bulk work (in traces that record the kind of work)
    #[arg(long)]
    pub without_bulk: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if (0.01..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected 0.01 to 3600".to_owned())
    }
}
