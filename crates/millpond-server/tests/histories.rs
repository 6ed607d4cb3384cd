//! Random transactions over the wire, while servers are killed (kill -9) and started again. What
//! the clients read has no anomaly that the isolation levels forbid, and no acknowledged change is
//! missing.
//!
//! `MILLPOND_HISTORY_TXNS` sets the least number of transactions (default 600). `MILLPOND_SEED`
//! replays a run's random choices.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::server::{ServerProcess, command};
use millpond_sim::history::workload::{Client, Epoch, Failed, Rows, SCHEMA, Shared, transaction};
use millpond_sim::history::{self, Fate, Txn};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{NoTls, SimpleQueryMessage};

const CLIENTS: usize = 6;
/// The number of servers in one history. The last one only reads.
const LIVES: u64 = 3;

/// A connection that waits for each answer.
struct Wire {
    runtime: tokio::runtime::Handle,
    client: tokio_postgres::Client,
}

impl Wire {
    fn connect(runtime: &tokio::runtime::Handle, port: u16) -> Result<Self, Failed> {
        let parameters = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
        let connected = runtime.block_on(tokio_postgres::connect(&parameters, NoTls));
        let (client, connection) = connected.map_err(failed)?;
        runtime.spawn(connection);
        Ok(Self { runtime: runtime.clone(), client })
    }
}

fn failed(error: tokio_postgres::Error) -> Failed {
    match error.as_db_error() {
        Some(error) => Failed::State(error.code().code().to_owned(), error.message().to_owned()),
        None => Failed::Lost,
    }
}

impl Client for Wire {
    fn run(&mut self, sql: &str) -> Result<Rows, Failed> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).map_err(failed)?;
        let mut rows = Rows::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                let columns = 0..row.len();
                rows.push(
                    columns.map(|place| row.get(place).unwrap_or_default().to_owned()).collect(),
                );
            }
        }
        Ok(rows)
    }
}

/// What all clients of one history share.
#[derive(Default)]
struct Ledger {
    shared: Shared,
    history: Mutex<Vec<Txn>>,
    done: AtomicUsize,
}

#[test]
fn histories_with_kills_in_between_have_no_anomalies() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("MILLPOND_HISTORY_TXNS").unwrap_or(600) as usize;
    let seed = number("MILLPOND_SEED").unwrap_or_else(rand::random);
    println!("seed: MILLPOND_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ledger = Arc::new(Ledger::default());
    let (mut total, mut kills, mut ends) = (0, 0, [0; 3]);
    for life in 0u64.. {
        let settings =
            ["--set", "checkpoint_timeout=30s", "--set", "deadlock_timeout=10ms"].as_slice();
        let mut server = ServerProcess::on(&data, dir.path(), settings);
        let mut keeper = Wire::connect(runtime.handle(), server.port).unwrap();
        let epoch = Epoch((life / LIVES) as u32);
        settle(&ledger);
        match life % LIVES {
            0 => begin(&mut keeper, epoch),
            last if last == LIVES - 1 => {
                check(&mut keeper, epoch, &ledger, seed, &mut ends);
                total += ledger.done.swap(0, Ordering::Relaxed);
                if total >= wanted {
                    assert!(server.stop().success(), "a clean shutdown");
                    break;
                }
                continue;
            }
            _ => {}
        }
        let until = ledger.done.load(Ordering::Relaxed) + random.random_range(20..400);
        let clients = Vec::from_iter((0..CLIENTS).map(|_| {
            let (ledger, runtime) = (Arc::clone(&ledger), runtime.handle().clone());
            let (port, seed) = (server.port, random.random());
            std::thread::spawn(move || run_client(&runtime, port, epoch, seed, &ledger))
        }));
        while ledger.done.load(Ordering::Relaxed) < until
            && !clients.iter().all(|client| client.is_finished())
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        kills += 1;
        for client in clients {
            client.join().unwrap();
        }
    }
    let [committed, aborted, unknown] = ends;
    println!(
        "{total} transactions, {kills} kills: with single statements {committed} committed, {aborted} rolled back, {unknown} unknown"
    );
    assert!(committed > wanted / 2, "most were rolled back");
    let checked = command().arg("check").arg("--data").arg(&data).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
}

fn begin(keeper: &mut Wire, epoch: Epoch) {
    let schema: &[&str] = if epoch.0 == 0 { SCHEMA } else { &[] };
    for sql in schema {
        keeper.run(sql).unwrap();
    }
    for sql in epoch.rows() {
        keeper.run(&sql).unwrap();
    }
}

/// A new server has started: unanswered transactions of the last one are decided by now.
fn settle(ledger: &Ledger) {
    let now = ledger.shared.now();
    for txn in ledger.history.lock().iter_mut() {
        txn.ended = txn.ended.min(now);
    }
}

/// Reads the final state, checks the history, and counts how the transactions ended.
fn check(keeper: &mut Wire, epoch: Epoch, ledger: &Ledger, seed: u64, ends: &mut [usize; 3]) {
    let mut history = std::mem::take(&mut *ledger.history.lock());
    history.push(epoch.read_all(keeper, &ledger.shared).unwrap());
    let found = history::check(&history);
    let told = Vec::from_iter(found.iter().take(5).map(ToString::to_string)).join("\n");
    assert!(found.is_empty(), "seed {seed}, epoch {}: {} anomalies:\n{told}", epoch.0, found.len());
    for sql in epoch.removal() {
        keeper.run(&sql).unwrap();
    }
    for txn in &history {
        ends[txn.fate as usize] += 1;
    }
}

/// Runs transactions until the server ends.
fn run_client(
    runtime: &tokio::runtime::Handle,
    port: u16,
    epoch: Epoch,
    seed: u64,
    ledger: &Ledger,
) {
    let mut random = StdRng::seed_from_u64(seed);
    let Ok(mut client) = Wire::connect(runtime, port) else { return };
    loop {
        let told = transaction(&mut client, epoch, &ledger.shared, &mut random, false);
        let mut told = told.unwrap_or_else(|error| panic!("{error}"));
        for txn in told.txns.iter_mut().filter(|txn| txn.fate == Fate::Unknown) {
            txn.ended = u64::MAX;
        }
        ledger.history.lock().append(&mut told.txns);
        ledger.done.fetch_add(1, Ordering::Relaxed);
        if told.lost {
            return;
        }
    }
}
