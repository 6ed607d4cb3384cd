//! Seeds: that they repeat, those that once failed, and fresh ones.

use std::time::{Duration, Instant, UNIX_EPOCH};

use millpond_sim::vfs::{Called, SimFs};
use millpond_sim::whole::{Plan, Report, run, run_on};

/// Seeds that once failed, and why.
const CORPUS: &str = include_str!("corpus.txt");

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn surely(seed: u64) -> Report {
    eprintln!("SIM_SEED={seed}");
    run(seed).unwrap_or_else(|failure| {
        panic!(
            "{failure}\nrepeat: SIM_SEED={seed} cargo test -p millpond-sim --test whole one_seed"
        )
    })
}

#[test]
fn a_seed_gives_the_same_calls_in_the_same_order() {
    for seed in 0..number("SIM_SEEDS").unwrap_or(20) {
        let twice = [0, 1].map(|_| {
            let fs = SimFs::new(seed);
            fs.keep_calls();
            (run_on(&fs, seed, Plan::of(seed)).map_err(|failure| failure.to_string()), fs)
        });
        let [(first, one), (second, other)] = twice;
        if first != second {
            let calls = (one.all_calls(), other.all_calls());
            let at = calls.0.iter().zip(&calls.1).take_while(|(a, b)| a == b).count();
            let around = |calls: &[Called]| {
                let calls = calls.iter().skip(at.saturating_sub(6)).take(10);
                calls.map(|call| format!("  {call}\n")).collect::<String>()
            };
            let (one, other) = (around(&calls.0), around(&calls.1));
            panic!("seed {seed} at call {at}: {first:?}\n{second:?}\n{one}\n{other}");
        }
        first.unwrap();
    }
}

#[test]
fn seeds_that_once_failed_run() {
    let seeds = CORPUS.lines().filter_map(|line| line.split_whitespace().next());
    for seed in seeds.filter(|word| !word.starts_with('#')) {
        surely(seed.parse().unwrap());
    }
}

#[test]
fn transactions_are_judged_as_a_history() {
    let judged = surely(1).judged;
    assert!(judged > 20, "{judged} transactions");
}

#[test]
fn one_seed() {
    surely(number("SIM_SEED").unwrap_or(1));
}

#[test]
fn fresh_seeds_for_a_while() {
    let seconds = number("SIM_SECONDS").unwrap_or(5);
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 >> 8;
    for seed in first.. {
        if Instant::now() > end {
            return;
        }
        surely(seed);
    }
}
