//! `millpond bench`: `writes` counts what statements write to shared memory (in a build with the
//! feature `audit`); `scale` predicts how throughput grows with cores.

use super::model::Machine;
use super::scale;
use crate::chart;
use crate::cli::{Bench, BenchScale, BenchWrites};
use std::process::ExitCode;
use std::time::Duration;

/// Runs a benchmark.
pub fn bench(bench: &Bench) -> ExitCode {
    let result = match bench {
        Bench::Writes(options) => writes(options),
        Bench::Scale(options) => predict(options),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}

type Report = Result<String, Box<dyn std::error::Error>>;

#[cfg(feature = "audit")]
fn writes(options: &BenchWrites) -> Report {
    use super::writes::{count_all, report};
    Ok(report(&count_all(options.times.get())?))
}

#[cfg(not(feature = "audit"))]
fn writes(_: &BenchWrites) -> Report {
    Err("this build does not count its writes. Build one that does:\n  \
         cargo run -p millpond-server --no-default-features --features audit -- bench writes"
        .into())
}

fn predict(options: &BenchScale) -> Report {
    let time = Duration::from_secs_f64(options.seconds);
    if options.validate {
        return Ok(scale::validate(time)?);
    }
    let machine = Machine {
        near_ns: options.near_ns,
        far_ns: options.far_ns,
        cores_per_socket: options.cores_per_socket.get(),
    };
    let parts = scale::predict(&machine, time)?;
    if let Some(path) = &options.svg {
        let svg = chart::svg(&scale::panels(&parts))?;
        std::fs::write(path, svg)
            .map_err(|source| format!("could not write {}: {source}", path.display()))?;
    }
    Ok(scale::report(&parts, &machine))
}
