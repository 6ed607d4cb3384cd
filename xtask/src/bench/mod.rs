//! The benchmarks: the buffer pool's operations, and Millpond's server beside PostgreSQL's.
//!
//! The scripts in `bench/` start servers, run pgbench and print CSV. This module passes settings to
//! them. It turns their figures into tables, charts and a verdict on each goal. It can report
//! earlier measurements again (`--from`).

mod bulk;
mod connections;
mod figures;
mod flat;
mod plot;

use clap::{Args, Subcommand};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Failed, cargo};

/// The benchmarks.
#[derive(Subcommand)]
pub enum Bench {
    /// Point selects (pgbench -S) as connections rise, beside PostgreSQL 15 and 18: CSV, table,
    /// SVG.
    Connections(connections::Connections),
    /// Whether Millpond's point selects keep their throughput as connections rise, and how certain
    /// that figure is: CSV, table.
    Flat(flat::Flat),
    /// Point selects beside bulk work (scans, VACUUM, COPY), beside PostgreSQL 18: CSV, table.
    Bulk(bulk::Bulk),
}

/// Options of all benchmarks with servers.
#[derive(Args)]
struct Common {
    /// Scale of pgbench's tables
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// How often each figure is measured; medians are reported
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Start no run that would end more than this many seconds after the start; 0 for no limit
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    budget: u32,
    /// Directory of the servers' data, kept for the next time; by default a temporary one
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// The millpond program [default: target/release/millpond]
    #[arg(long, value_name = "FILE")]
    millpond: Option<PathBuf>,
    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Measure only what an interrupted run has not: keep its CSV file in the results' directory
    #[arg(long)]
    resume: bool,
    /// Don't measure: report the figures in this file
    #[arg(long, value_name = "CSV")]
    from: Option<PathBuf>,
}

/// Further options of the benchmarks over numbers of clients.
#[derive(Args)]
struct Rising {
    /// Sizes of shared_buffers
    #[arg(long, default_value = "128MB,1GB", value_delimiter = ',')]
    sizes: Vec<String>,
    /// Numbers of clients
    #[arg(
        long,
        default_value = "1,2,3,5,7,17,27,53,83,107,139,163,191,211,239,271,307,353,397",
        value_delimiter = ','
    )]
    clients: Vec<u32>,
    /// Seconds for which each server is warmed up at each size
    #[arg(long, default_value_t = 8)]
    warmup: u32,
    /// pgbench's query mode
    #[arg(long, default_value = "simple")]
    mode: String,
}

impl Rising {
    /// The options as variables of the scripts, together with `more`.
    fn settings<const N: usize>(&self, more: [(&'static str, String); N]) -> Vec<(&str, String)> {
        let clients: Vec<String> = self.clients.iter().map(u32::to_string).collect();
        let mut settings = vec![
            ("SIZES", self.sizes.join(" ")),
            ("CLIENTS", clients.join(" ")),
            ("WARMUP_SECONDS", self.warmup.to_string()),
            ("MODE", self.mode.clone()),
        ];
        settings.extend(more);
        settings
    }
}

/// Runs the benchmarks.
pub fn run(bench: Option<Box<Bench>>, args: &[String]) -> Result<(), Failed> {
    match bench.as_deref() {
        None => cargo(&["bench", "-p", "millpond-buffer", "--bench", "costs"]).args(args).run(),
        Some(Bench::Connections(connections)) => connections.run(),
        Some(Bench::Flat(flat)) => flat.run(),
        Some(Bench::Bulk(bulk)) => bulk.run(),
    }
}

impl Common {
    /// The CSV that `script` of `bench/` prints, or the file to report again.
    fn figures(&self, script: &str, settings: &[(&str, String)]) -> Result<String, Failed> {
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|error| Failed(format!("could not read {}: {error}", path.display())))
        };
        if let Some(from) = &self.from {
            return read(from);
        }
        fs::create_dir_all(&self.out)
            .map_err(|error| Failed(format!("could not create {}: {error}", self.out.display())))?;
        let path = self.out.join(script).with_extension("csv");
        // The output goes directly to the file, so an interruption loses nothing.
        let (file, resumed) = results(&path, self.resume)
            .map_err(|error| Failed(format!("could not open {}: {error}", path.display())))?;
        let mut command = Command::new("bash");
        command.arg(root().join("bench").join(script)).stdin(Stdio::null()).stdout(file);
        command.env("SCALE", self.scale.to_string()).env("RUNS", self.runs.to_string());
        command.env("BUDGET_SECONDS", self.budget.to_string());
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        if let Some(work) = &self.work {
            command.env("WORK", work);
        }
        if resumed {
            command.env("MEASURED", &path);
        }
        if let Some(millpond) = &self.millpond {
            command.env("MILLPOND", millpond);
        }
        match command.status() {
            Ok(status) if status.success() => read(&path),
            Ok(status) => Err(Failed(format!(
                "{script} ended with {status}; what it had measured is in {}: --from reports it, --resume goes on",
                path.display()
            ))),
            Err(error) => Err(Failed(format!("could not run {script}: {error}"))),
        }
    }

    /// Writes a result and prints its path.
    fn write(&self, name: &str, contents: &str) -> Result<(), Failed> {
        let path = self.out.join(name);
        fs::create_dir_all(&self.out)
            .and_then(|()| fs::write(&path, contents))
            .map_err(|error| Failed(format!("could not write {}: {error}", path.display())))?;
        eprintln!("wrote {}", path.display());
        Ok(())
    }
}

/// Opens the file for a script's figures. If it has figures that `resume` keeps, the script appends
/// to them (true); otherwise the file is emptied.
fn results(path: &Path, resume: bool) -> io::Result<(fs::File, bool)> {
    let resume = resume && fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let mut options = fs::File::options();
    let file =
        if resume { options.append(true) } else { options.create(true).write(true).truncate(true) };
    Ok((file.open(path)?, resume))
}

/// The repository's root.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The name of a system in reports.
fn name(system: &str) -> &str {
    match system {
        "mp" => "Millpond",
        "pg15" => "PostgreSQL 15",
        "pg18" => "PostgreSQL 18",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn figures_are_kept_when_resuming_and_only_then() {
        let path = std::env::temp_dir().join(format!("xtask-results-{}.csv", std::process::id()));
        let write = |resume, text: &str| {
            let (mut file, resumed) = results(&path, resume).expect("opened");
            file.write_all(text.as_bytes()).expect("written");
            (resumed, fs::read_to_string(&path).expect("read"))
        };
        assert_eq!(write(true, ""), (false, String::new()), "nothing to keep yet");
        assert_eq!(write(true, "a"), (false, "a".to_owned()), "empty: the heading is wanted");
        assert_eq!(write(true, "b"), (true, "ab".to_owned()));
        assert_eq!(write(false, "c"), (false, "c".to_owned()));
        fs::remove_file(&path).expect("removed");
    }
}
