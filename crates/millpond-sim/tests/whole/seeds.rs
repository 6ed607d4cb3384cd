//! Seeds: that they repeat, seeds that once failed, and fresh ones.

use std::time::{Duration, Instant, UNIX_EPOCH};

use millpond_sim::vfs::{Called, SimFs};
use millpond_sim::whole::{ClientKind, Report, Timers, run, run_on};

/// Seeds that once failed, with the reason.
const CORPUS: &str = include_str!("corpus.txt");

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn surely(seed: u64, shape: ClientKind) -> Report {
    let variables = format!("SIM_SEED={seed} SIM_CLIENTS={shape}");
    eprintln!("{variables}");
    run(seed, shape).unwrap_or_else(|failure| {
        panic!("{failure}\nrepeat: {variables} cargo test -p millpond-sim --test whole one_seed")
    })
}

#[test]
fn a_seed_gives_the_same_calls_in_the_same_order() {
    for seed in 0..number("SIM_SEEDS").unwrap_or(20) {
        let shape = ClientKind::in_turn(seed);
        let twice = [0, 1].map(|_| {
            let fs = SimFs::new(seed);
            fs.keep_calls();
            (run_on(&fs, seed, shape.plan(seed)).map_err(|failure| failure.to_string()), fs)
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
            panic!(
                "seed {seed}, {shape} clients, at call {at}: {first:?}\n{second:?}\n{one}\n{other}"
            );
        }
        first.unwrap();
    }
}

#[test]
fn seeds_that_once_failed_run() {
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap();
        surely(word().parse().unwrap(), word().parse().unwrap());
    }
}

#[test]
fn transactions_are_judged_as_a_history() {
    let judged = surely(1, ClientKind::Busy).judged;
    assert!(judged > 20, "{judged} transactions");
}

#[test]
fn each_timer_fires_beside_slow_clients() {
    let mut timers = Timers::default();
    for seed in 0..8 {
        timers += surely(seed, ClientKind::Slow).timers;
    }
    let Timers { checkpoints, autovacuums, lock_timeouts, deadlocks, .. } = timers;
    let Timers { statement_timeouts, idle_in_transaction, spilled_pages, .. } = timers;
    assert!(checkpoints.min(autovacuums) > 0, "{timers:?}");
    assert!(lock_timeouts.min(deadlocks) > 0, "{timers:?}");
    assert!(statement_timeouts.min(idle_in_transaction) > 0, "{timers:?}");
    assert!(spilled_pages > 0, "{timers:?}");
}

#[test]
fn one_seed() {
    let shape = std::env::var("SIM_CLIENTS").map_or(ClientKind::Busy, |name| name.parse().unwrap());
    surely(number("SIM_SEED").unwrap_or(1), shape);
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
        surely(seed, ClientKind::in_turn(seed - first));
    }
}
