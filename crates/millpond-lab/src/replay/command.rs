//! `millpond replay`: simulates a trace with other policies and pool sizes.

use super::size::Size;
use super::{Plan, PolicyKind, ReadError, Trace, chart, read, report};
use crate::cli::Replay;
use indicatif::ProgressBar;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// Default cache sizes, as fractions of the trace's number of pages.
const DEFAULT_PARTS: [f64; 7] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

#[derive(Debug, Error)]
enum ReplayError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: the trace has no accesses", path.display())]
    Empty { path: PathBuf },
    #[error("could not draw {}: {source}", path.display())]
    Draw { path: PathBuf, source: Box<dyn Error> },
    #[error("could not write the table: {0}")]
    Write(#[from] io::Error),
}

/// Makes a progress bar from a length, an activity, and the name of what it works on.
pub type MakeBar = fn(u64, &'static str, &str) -> ProgressBar;

/// Replays traces.
pub fn replay(options: &Replay, progress_bar: MakeBar) -> ExitCode {
    match run(options, progress_bar) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the table may close its pipe early.
        Err(ReplayError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Replay, progress_bar: MakeBar) -> Result<(), ReplayError> {
    let mut plan = Plan { policies: policies(options), sizes: sizes(options) };
    let mut panels = Vec::new();
    for (at, path) in options.traces.iter().enumerate() {
        let trace = load(path, options, progress_bar)?;
        if plan.sizes.is_empty() {
            plan.sizes = default_sizes(&trace);
        }
        let bar = progress_bar(plan.work(&trace), "replaying", &trace.name);
        let outcomes = plan.run(&trace, &|more| bar.inc(more));
        bar.finish_and_clear();
        let mut out = io::stdout().lock();
        let gap = if at == 0 { "" } else { "\n" };
        write!(out, "{gap}{}", report::table(&trace, &plan, &outcomes))?;
        out.flush()?;
        panels.push((trace.name, outcomes));
    }
    match &options.svg {
        Some(path) => draw(path, &plan, &panels),
        None => Ok(()),
    }
}

fn draw(path: &Path, plan: &Plan, panels: &[chart::Panel]) -> Result<(), ReplayError> {
    let svg = chart::svg(plan, panels);
    svg.and_then(|svg| Ok(std::fs::write(path, svg)?))
        .map_err(|source| ReplayError::Draw { path: path.to_owned(), source })
}

fn load(path: &Path, options: &Replay, progress_bar: MakeBar) -> Result<Trace, ReplayError> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let bar = progress_bar(bytes, "reading", &path.display().to_string());
    let trace = read(path, options.format, &|read| bar.set_position(read));
    bar.finish_and_clear();
    let trace = trace?;
    let trace = if options.without_bulk { trace.without_bulk() } else { trace };
    if trace.is_empty() {
        return Err(ReplayError::Empty { path: path.to_owned() });
    }
    Ok(trace)
}

/// The chosen policies in the order given, without duplicates.
fn policies(options: &Replay) -> Vec<PolicyKind> {
    let chosen: Vec<_> = options.policy.iter().flat_map(|policies| policies.kinds()).collect();
    unique(&chosen).into_iter().copied().collect()
}

/// The chosen sizes, ascending.
fn sizes(options: &Replay) -> Vec<Size> {
    let mut sizes = options.size.clone();
    sizes.sort();
    sizes.dedup_by_key(|size| size.pages);
    sizes
}

/// The default sizes: fractions of the first trace's number of pages.
fn default_sizes(trace: &Trace) -> Vec<Size> {
    let parts = DEFAULT_PARTS.map(|part| ((trace.distinct as f64 * part) as usize).max(1));
    unique(&parts.map(Size::pages))
}

fn unique<T: PartialEq + Copy>(all: &[T]) -> Vec<T> {
    let mut unique = Vec::new();
    for one in all {
        if !unique.contains(one) {
            unique.push(*one);
        }
    }
    unique
}
