//! The benchmarks: criterion's below SQL, and Millpond's server beside PostgreSQL's.
//!
//! The scripts in `bench/` start servers, run pgbench and print CSV; from here they get their settings, and their
//! figures become tables, drawings and a word on each goal. What was measured once can be reported again (`--from`).

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

/// Which benchmarks.
#[derive(Subcommand)]
pub enum Bench {
    /// Point selects (pgbench -S) as connections rise, beside PostgreSQL 15 and 18: CSV, table, SVG.
    Connections(connections::Connections),
    /// Whether Millpond's point selects keep their throughput as connections rise, and how sure that is: CSV, table.
    Flat(flat::Flat),
    /// Point selects beside bulk work (scans, VACUUM, COPY), beside PostgreSQL 18: CSV, table.
    Bulk(bulk::Bulk),
}

/// What the benchmarks with servers have in common.
#[derive(Args)]
struct Common {
    /// Scale of pgbench's tables
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// How often each figure is measured; medians are reported
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Start no further run that would end later than so many seconds after the start; 0 for no limit
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    budget: u32,
    /// Directory of the servers' data, kept for the next time; a temporary one if not given
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// The millpond program [default: target/release/millpond]
    #[arg(long, value_name = "FILE")]
    millpond: Option<PathBuf>,
    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Measure only what an interrupted run has not: its CSV file in the directory for the results is kept
    #[arg(long)]
    resume: bool,
    /// Don't measure: report what this file says
    #[arg(long, value_name = "CSV")]
    from: Option<PathBuf>,
}

/// What the benchmarks over numbers of clients have in common besides.
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
    /// As the scripts want to be told, with what else they want.
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
        None => cargo(&["bench", "-p", "millpond-sync", "-p", "millpond-buffer"]).args(args).run(),
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
        // Straight into the file: what was measured before an interruption is kept.
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

    /// Writes a result and says where it is.
    fn write(&self, name: &str, contents: &str) -> Result<(), Failed> {
        let path = self.out.join(name);
        fs::create_dir_all(&self.out)
            .and_then(|()| fs::write(&path, contents))
            .map_err(|error| Failed(format!("could not write {}: {error}", path.display())))?;
        eprintln!("wrote {}", path.display());
        Ok(())
    }
}

/// The file that a script's figures go to: emptied, or, if it has some and they are to be kept (then true), to be appended to.
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

/// What the reports call a system.
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
