//! `fuzz`: runs targets on their corpora and on inputs made from them, on any compiler.
//!
//! A target runs in its own process, which writes the number of the current input to a file.
//! Whatever an input does (a panic, a stack overflow, memory without bound, an endless loop), the
//! program knows the input and keeps it.

mod progress;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{fs, io};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use millpond_fuzz::mutate::Mutator;
use millpond_fuzz::{TARGETS, Target, check, corpus};
use progress::Progress;

/// Runs fuzz targets: first the kept inputs, then others made from them.
#[derive(Parser)]
struct Args {
    /// Only this target (may be given several times).
    #[arg(long)]
    target: Vec<String>,
    /// Number of inputs to make for each target.
    #[arg(long)]
    inputs: Option<u64>,
    /// Seconds for all targets together, if the number of inputs isn't given.
    #[arg(long, default_value_t = 45.0)]
    seconds: f64,
    /// Seed of the made inputs; a new one by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs the target on these files instead.
    files: Vec<PathBuf>,
    /// Writes the target's seeds and kept inputs to a folder, for `guided`.
    #[arg(long)]
    write_seeds: Option<PathBuf>,
    /// Lists the targets.
    #[arg(long)]
    list: bool,
    /// File to which the process that runs a target writes its progress.
    #[arg(long, hide = true)]
    progress: Option<PathBuf>,
}

/// The address space that a target's process may have.
const MEMORY_BYTES: u64 = 4 << 30;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> io::Result<bool> {
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| {
            args.target.is_empty() || args.target.iter().any(|name| name == target.name)
        })
        .collect();
    if chosen.len() < args.target.len().max(1) {
        return Err(io::Error::other("no such target; --list names them"));
    }
    if args.list {
        chosen.iter().for_each(|target| println!("{:9} {}", target.name, target.reads));
        return Ok(true);
    }
    if let Some(folder) = &args.write_seeds {
        return chosen.iter().try_for_each(|target| write_seeds(target, folder)).map(|()| true);
    }
    if let Some(file) = &args.progress {
        let target = chosen[0];
        return run_here(target, &args, &Progress::open(file)?).map(|()| true);
    }
    if !args.files.is_empty() {
        for file in &args.files {
            chosen
                .iter()
                .try_for_each(|target| fs::read(file).map(|input| check(target, &input)))?;
        }
        return Ok(true);
    }
    let seed = args.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let mut sound = true;
    for target in &chosen {
        sound &= run_apart(target, &args, seed, chosen.len())?;
    }
    Ok(sound)
}

fn write_seeds(target: &Target, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in corpus::inputs(target)?.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), input)?;
    }
    Ok(())
}

/// Runs a target in its own process. `false` if it fails on an input.
fn run_apart(target: &Target, args: &Args, seed: u64, targets: usize) -> io::Result<bool> {
    let file = std::env::temp_dir().join(format!("millpond-fuzz-{}", std::process::id()));
    let progress = Progress::create(&file)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--target", target.name, "--seed", &seed.to_string(), "--progress"]).arg(&file);
    if let Some(inputs) = args.inputs {
        command.args(["--inputs", &inputs.to_string()]);
    }
    command.args(["--seconds", &(args.seconds / targets as f64).to_string()]);
    let start = Instant::now();
    let status = command.status()?;
    let (at, took) = (progress.read()?, start.elapsed().as_secs_f64());
    fs::remove_file(&file)?;
    if status.success() {
        println!("{:9} {at:9} inputs {took:7.1} s", target.name);
        return Ok(true);
    }
    let corpus = corpus::inputs(target)?;
    let input = input(target, &corpus, seed, at);
    let kept = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/artifacts"));
    fs::create_dir_all(&kept)?;
    let kept = kept.join(format!("{}-{seed:016x}-{at}", target.name));
    fs::write(&kept, &input)?;
    println!(
        "{:9} fails ({status}) on input {at} of seed {seed}, kept in {}",
        target.name,
        kept.display()
    );
    println!("again: cargo xtask fuzz --target {} {}", target.name, kept.display());
    Ok(false)
}

/// Input number `number`: the corpus comes first, then inputs made from it.
fn input(target: &Target, corpus: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let kept = usize::try_from(number).ok().and_then(|number| corpus.get(number));
    let made = || Mutator::new(corpus, target.tokens, seed, target.longest).input(number);
    kept.cloned().unwrap_or_else(made)
}

fn run_here(target: &Target, args: &Args, progress: &Progress) -> io::Result<()> {
    let limit = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(MEMORY_BYTES), ..limit })?;
    let corpus = corpus::inputs(target)?;
    let mutator = Mutator::new(&corpus, target.tokens, args.seed.unwrap_or(0), target.longest);
    let (start, time) = (Instant::now(), Duration::from_secs_f64(args.seconds));
    let kept = corpus.len() as u64;
    progress.watch();
    for number in 0u64.. {
        let made = number.saturating_sub(kept);
        let enough = match args.inputs {
            Some(inputs) => made >= inputs,
            None => number.is_multiple_of(16) && start.elapsed() >= time,
        };
        if number >= kept && enough {
            break;
        }
        progress.write(number)?;
        match corpus.get(number as usize) {
            Some(input) => check(target, input),
            None => check(target, &mutator.input(number)),
        }
    }
    Ok(())
}
