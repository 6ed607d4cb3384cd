//! Compares the buffer pool with caches, and Millpond's tables with embedded key-value stores.
//!
//! In this directory, run `cargo run --release -- pool` or `cargo run --release --features rocksdb
//! -- trees`. They print tables of medians with their ranges. All subjects are measured in turn,
//! round by round, so that a machine that changes its speed affects all alike. Random keys are
//! drawn before the measurement.

mod caches;
mod keys;
mod measure;
mod pool;
mod trees;

use clap::{Args, Parser, Subcommand};
use std::error::Error;
use std::time::Duration;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The pool against quick_cache, moka, foyer and a pool of shards behind RwLocks
    Pool {
        #[command(flatten)]
        how: How,
        /// Pages of 8 KiB that each cache may hold
        #[arg(long, default_value_t = 16_384)]
        pages: u32,
    },
    /// Point reads of a Millpond table against LMDB, redb and (feature rocksdb) RocksDB
    Trees {
        #[command(flatten)]
        how: How,
        /// Rows of 100 bytes
        #[arg(long, default_value_t = 2_000_000)]
        rows: u32,
    },
}

/// How to measure.
#[derive(Args)]
struct How {
    /// Rounds; medians are reported
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Length of each measurement
    #[arg(long, default_value_t = 300)]
    milliseconds: u64,
    /// Numbers of threads
    #[arg(long, default_value = "1,2", value_delimiter = ',')]
    threads: Vec<usize>,
}

impl How {
    fn time(&self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

fn main() -> Result<()> {
    match Cli::parse().what {
        What::Pool { how, pages } => pool::run(&how, pages),
        What::Trees { how, rows } => trees::run(&how, rows),
    }
}
