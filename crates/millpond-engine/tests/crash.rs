//! Kills the engine at random moments under load, many times. Afterwards all acknowledged commits
//! are there and nothing else is, sums agree, and the consistency check has no findings.
//!
//! The test runs its own program as the victim (`victim`, which does nothing unless it is given a
//! directory). The ledger of acknowledged commits is the victim's standard output: after each
//! commit it writes a line. `MILLPOND_CRASH_ROUNDS` sets the number of rounds.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::*;
use millpond_engine::catalog::{ColumnDef, NewTable};
use millpond_engine::lmgr::LockMode;
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineError, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const DIRECTORY: &str = "MILLPOND_CRASH_DIRECTORY";
const SEED: &str = "MILLPOND_CRASH_SEED";
const ACCOUNTS: i32 = 500;
const THREADS: i32 = 3;

/// `history (thread int, number bigint, account int, delta bigint)`: one row per transaction.
fn history() -> NewTable {
    let columns = [
        ("thread", DataType::Int4),
        ("number", DataType::Int8),
        ("account", DataType::Int4),
        ("delta", DataType::Int8),
    ];
    NewTable {
        name: "history".into(),
        columns: columns.map(|(name, ty)| ColumnDef::new(name, ty).not_null()).into(),
        fillfactor: 100,
        indexes: vec![millpond_engine::catalog::NewIndex { primary: true, ..index(0, &[0, 1]) }],
    }
}

/// What the threads have recorded: the number of transactions of each, and the sum of all deltas.
fn recorded(session: &mut Session) -> (Vec<i64>, i64) {
    let history = table(session, "history");
    run(session, |s| {
        s.lock_table(&history, LockMode::AccessShare)?;
        let (mut numbers, mut sum) = (vec![Vec::new(); THREADS as usize], 0);
        let mut scan = s.heap_scan(&history)?;
        while scan.next_page(s, &mut |_, bytes| {
            let column = |i| history.layout.column(bytes, i).unwrap().as_i64().unwrap();
            numbers[column(0) as usize].push(column(1));
            sum += column(3);
            Ok(())
        })? {}
        let last = numbers.into_iter().map(|mut numbers| {
            numbers.sort_unstable();
            // Every transaction of a thread up to its last one is there exactly once.
            assert_eq!(numbers, Vec::from_iter(1..=numbers.len() as i64));
            numbers.len() as i64
        });
        Ok((last.collect(), sum))
    })
    .unwrap()
}

fn transact(
    session: &mut Session,
    random: &mut StdRng,
    thread: i32,
    number: i64,
) -> Result<(), EngineError> {
    let (accounts, history) = (table(session, "accounts"), table(session, "history"));
    let account = random.random_range(1..=ACCOUNTS);
    let delta = random.random_range(-100..100);
    run(session, |s| {
        assert!(add(s, &accounts, account, delta)?);
        s.lock_table(&history, LockMode::RowExclusive)?;
        let row =
            [Datum::Int4(thread), Datum::Int8(number), Datum::Int4(account), Datum::Int8(delta)];
        s.insert(&history, &row)?;
        Ok(())
    })
}

/// The process that is killed. Runs only when [`DIRECTORY`] is set.
#[test]
fn victim() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let mut config = config(std::path::Path::new(&directory));
    config.buffers = 64;
    config.max_wal_bytes = 8 << 20;
    config.checkpoint_timeout = Duration::from_millis(300);
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    let (done, _) = recorded(&mut session);
    println!("ready");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, mut number) = (&engine, done[thread as usize]);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed ^ u64::from(thread as u32));
                let mut session = engine.session().unwrap();
                loop {
                    number += 1;
                    transact(&mut session, &mut random, thread, number).unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "{thread} {number}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
        // Tables and indexes are created and dropped, and rows are vacuumed.
        let accounts = table(&session, "accounts");
        let mut other = engine.session().unwrap();
        for round in 0.. {
            let name = format!("temporary{}", round % 2);
            // The previous victim may have left one.
            if let Some(left) = other.catalog().table_by_name(&name) {
                run(&mut other, |s| s.ddl().drop_table(left.oid)).unwrap();
            }
            let created = create(&mut other, NewTable { name, ..common::accounts() });
            fill(&mut other, &created, 50);
            other.maintenance().vacuum(accounts.oid).unwrap();
            if round % 3 == 0 {
                run(&mut other, |s| s.ddl().create_index(index(created.oid, &[1]))).unwrap();
                run(&mut other, |s| s.ddl().truncate(&[created.oid])).unwrap();
            }
            run(&mut other, |s| s.ddl().drop_table(created.oid)).unwrap();
        }
    });
}

/// Starts the victim, kills it after a while, and returns what it acknowledged.
fn kill_one(directory: &std::path::Path, random: &mut StdRng) -> Vec<i64> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(SEED, random.random::<u64>().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = vec![0; THREADS as usize];
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    for line in lines.by_ref() {
        if line.unwrap().ends_with("ready") {
            break;
        }
    }
    let delay = Duration::from_millis(random.random_range(10..700));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(delay);
        victim.kill().unwrap();
        victim.wait().unwrap();
    });
    for line in lines {
        // The last line may be cut off in the middle.
        let Ok(line) = line else { break };
        let mut words = line.split(' ').map(str::parse::<i64>);
        if let (Some(Ok(thread)), Some(Ok(number))) = (words.next(), words.next()) {
            let last = &mut acknowledged[thread as usize];
            *last = number.max(*last);
        }
    }
    killer.join().unwrap();
    acknowledged
}

#[test]
fn acknowledged_commits_survive_kills() {
    let rounds: usize =
        std::env::var("MILLPOND_CRASH_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    let seed: u64 = std::env::var(SEED).map_or_else(|_| rand::random(), |s| s.parse().unwrap());
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    {
        let engine = open(&path);
        let mut session = engine.session().unwrap();
        let accounts = create(&mut session, accounts());
        fill(&mut session, &accounts, ACCOUNTS);
        create(&mut session, history());
        drop(session);
        engine.shutdown().unwrap();
    }
    for round in 0..rounds {
        let acknowledged = kill_one(&path, &mut random);
        let engine = open(&path);
        let mut session = engine.session().unwrap();
        let (done, deltas) = recorded(&mut session);
        println!("round {round}: acknowledged {acknowledged:?}, found {done:?}");
        for (acknowledged, done) in acknowledged.iter().zip(&done) {
            // One more transaction may have committed before its line was written.
            assert!(done >= acknowledged, "lost: {acknowledged:?}");
        }
        let accounts = table(&session, "accounts");
        let (rows, sum) = run(&mut session, |s| total(s, &accounts)).unwrap();
        assert_eq!((rows, sum), (ACCOUNTS as u64, i64::from(ACCOUNTS) * 100 + deltas));
        assert_whole(&engine);
        // Every other round ends without a shutdown, so that the next victim recovers from this
        // start.
        if round % 2 == 0 {
            drop(session);
            engine.shutdown().unwrap();
        }
    }
}
