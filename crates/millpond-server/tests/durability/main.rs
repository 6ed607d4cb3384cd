//! Crashes a server under load at random moments, by kill -9 or by a power cut of its disk.
//! Afterwards no acknowledged change is missing, no change is there in part, the sums agree, and
//! `millpond check` finds no damage.
//!
//! Transfers, DDL, index builds, COPY, TRUNCATE and VACUUM are running at that moment. Each kind of
//! work keeps a ledger of what it requested and what the server acknowledged.
//!
//! `MILLPOND_CRASH_ROUNDS` sets the number of kills (default 3). `MILLPOND_POWER_CUTS` sets the
//! number of power cuts (default 0, because they mount a file system and need root).
//! `MILLPOND_SEED` replays the random choices.
#![allow(clippy::unwrap_used)]

mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod definitions;
mod machine;
mod transfers;
mod work;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::server::{ServerProcess, command};
use machine::{Directory, Ext4, Machine};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use work::Work;

/// Small, so that checkpoints, evictions and recycled segments happen within a round.
const SETTINGS: &[&str] = &[
    "--set",
    "checkpoint_timeout=30s",
    "--set",
    "max_wal_size=64MB",
    "--set",
    "autovacuum_naptime=2s",
    "--set",
    "maintenance_work_mem=1MB",
];

#[test]
fn killed_servers_lose_nothing_acknowledged() {
    let rounds = number("MILLPOND_CRASH_ROUNDS").unwrap_or(3);
    survive(&mut Directory::new(), rounds);
}

#[test]
fn power_cuts_lose_nothing_acknowledged() {
    let Some(rounds) = number("MILLPOND_POWER_CUTS") else {
        println!("skipped: MILLPOND_POWER_CUTS is not set");
        return;
    };
    survive(&mut Ext4::new(), rounds);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn survive(machine: &mut dyn Machine, rounds: u64) {
    let seed = number("MILLPOND_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
    });
    println!("seed: MILLPOND_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sockets = tempfile::tempdir().unwrap();
    let serve =
        |machine: &dyn Machine| ServerProcess::on(&machine.data(), sockets.path(), SETTINGS);

    let work = Work::new();
    let mut server = serve(machine);
    runtime.block_on(work.load(server.port)).unwrap();
    for round in 0..rounds {
        let clients = work.begin(&runtime, server.port, &mut random);
        // This only varies the moment of the crash; correctness does not depend on it.
        std::thread::sleep(Duration::from_millis(random.random_range(50..1500)));
        work.expect_the_end();
        machine.fail(&mut server, &mut random);
        for client in clients {
            runtime.block_on(client).unwrap();
        }
        work.assert_no_complaint();
        machine.come_up();
        // Recovery is interrupted as well.
        for _ in 0..random.random_range(0..3) {
            let again = ServerProcess::begin(&machine.data(), sockets.path(), SETTINGS);
            std::thread::sleep(Duration::from_millis(random.random_range(0..300)));
            machine.fail_early(again, &mut random);
        }
        server = serve(machine);
        runtime.block_on(work.verify(server.port)).unwrap();
        if round % 10 == 9 {
            server = stop_and_check(server, machine, || serve(machine));
            runtime.block_on(work.verify(server.port)).unwrap();
        }
        println!("round {round}: {work}");
    }
    drop(stop_and_check(server, machine, || serve(machine)));
    work.assert_something_was_done();
}

/// Shuts the server down cleanly, checks the directory, and starts the server again.
fn stop_and_check(
    mut server: ServerProcess,
    machine: &dyn Machine,
    serve: impl Fn() -> ServerProcess,
) -> ServerProcess {
    assert!(server.stop().success(), "a clean shutdown");
    let checked = command().arg("check").arg("--data").arg(machine.data()).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    serve()
}
