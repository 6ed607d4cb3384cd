//! Each call of a workload fails in turn, before its effect and after it.
//!
//! The engine continues, or stops with a reason. The next start finds what was acknowledged.

use millpond_buffer::IoMethod;
use millpond_sim::vfs::{Errno, SimFs, VfsFault, When};
use millpond_sim::whole::{Clients, Plan, Trouble, run_on};

const SEED: u64 = 7;

fn plan(trouble: Trouble) -> Plan {
    Plan {
        clients: Clients::Busy,
        lives: 1,
        steps: 140,
        writers: 2,
        buffers: 32,
        io_method: IoMethod::Worker,
        trouble,
        reach: 1,
        is_mild: false,
    }
}

/// The distance between the calls that are tried: `SIM_EVERY=1` tries all.
fn stride() -> usize {
    std::env::var("SIM_EVERY").ok().and_then(|value| value.parse().ok()).unwrap_or(200)
}

fn each_call_fails(fault: impl Fn() -> VfsFault) {
    let calls = run_on(&SimFs::new(SEED), SEED, plan(Trouble::None)).unwrap().first_life;
    assert!(calls >= 2000, "the workload makes {calls} calls only");
    let mut failed = Vec::new();
    for call in (0..calls).step_by(stride()) {
        let plan = plan(Trouble::At(call, fault()));
        if let Err(failure) = run_on(&SimFs::new(SEED), SEED, plan) {
            failed.push(format!("call {call}: {failure}"));
        }
    }
    assert!(failed.is_empty(), "{} of {calls} calls:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn each_call_fails_before_its_effect() {
    each_call_fails(|| VfsFault::Error(Errno::Io, When::Before));
}

#[test]
fn each_call_fails_after_its_effect() {
    each_call_fails(|| VfsFault::Error(Errno::Io, When::After));
}

#[test]
fn the_power_goes_at_each_call() {
    each_call_fails(|| VfsFault::PowerLoss(When::Halfway));
}
