//! More tables than descriptors. This test has its own process, because the limit applies to a
//! process.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use millpond_engine::Engine;
use millpond_engine::catalog::NewTable;
use millpond_engine::lmgr::LockMode;
use rustix::process::{Resource, Rlimit, setrlimit};

fn limit_descriptors(most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn many_tables_work_with_few_descriptors() {
    const TABLES: i32 = 150;
    const ROUNDS: i32 = 3;
    limit_descriptors(256);
    let (dir, engine, mut session) = opened();
    let name = |number: i32| format!("t{number}");
    for number in 0..TABLES {
        create(&mut session, NewTable { name: name(number), ..accounts() });
    }
    for round in 0..ROUNDS {
        for number in 0..TABLES {
            let table = table(&session, &name(number));
            run(&mut session, |s| {
                s.lock_table(&table, LockMode::RowExclusive)?;
                for id in 0..3 {
                    s.insert(&table, &row(round * 1000 + id, &"x".repeat(1500), 100))?;
                }
                Ok(())
            })
            .unwrap();
        }
    }
    engine.checkpoint().unwrap();
    assert_eq!(engine.log().is_stopped(), None);
    close(session, engine);
    let engine = Engine::open(config(dir.path())).unwrap();
    let mut session = engine.session().unwrap();
    for number in 0..TABLES {
        let table = table(&session, &name(number));
        let rows = run(&mut session, |s| total(s, &table)).unwrap().0;
        assert_eq!(rows, 3 * ROUNDS as u64, "{}", name(number));
    }
}
