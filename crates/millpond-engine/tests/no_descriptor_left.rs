//! A process with all descriptors in use. This test has its own process, because the limit applies
//! to a process.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use millpond_engine::Engine;
use millpond_engine::lmgr::LockMode;
use rustix::process::{Resource, Rlimit, setrlimit};

fn limit_descriptors(most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// While no descriptor is free, a transaction may fail. The log continues, and everything works
/// again once some are free.
#[test]
fn a_process_without_descriptors_does_not_stop_the_engine() {
    limit_descriptors(256);
    let (dir, engine, mut session, accounts) = bank(1000);
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    assert!(!held.is_empty());
    let begun = engine.log().insert_position();
    let (mut id, mut committed, mut failed) = (2000, 0, 0);
    // More log than fits into the segments prepared before.
    while engine.log().insert_position().get() - begun.get() < 48 << 20 && failed < 5 {
        let done = run(&mut session, |s| {
            s.lock_table(&accounts, LockMode::RowExclusive)?;
            for _ in 0..20 {
                id += 1;
                s.insert(&accounts, &row(id, &"x".repeat(7000), 100))?;
            }
            Ok(())
        });
        match done {
            Ok(()) => committed += 20,
            Err(_) => failed += 1,
        }
        assert_eq!(engine.log().is_stopped(), None);
    }
    engine.checkpoint().unwrap();
    drop(held);
    run(&mut session, |s| {
        s.lock_table(&accounts, LockMode::RowExclusive)?;
        s.insert(&accounts, &row(1_000_000, "x", 1)).map(|_| ())
    })
    .unwrap();
    assert_eq!(run(&mut session, |s| total(s, &accounts)).unwrap().0, 1000 + committed + 1);
    close(session, engine);
    Engine::open(config(dir.path())).unwrap();
}
