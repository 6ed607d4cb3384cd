//! kill -9 at a random moment under load: nothing acknowledged is missing afterwards, the sums agree, and
//! `millpond check` finds nothing.
//!
//! Each client runs transactions of the shape of pgbench's default script, each with a number of its own
//! in the history. It writes a transaction down as attempted before COMMIT is sent and as acknowledged when
//! the answer has come. `MILLPOND_CRASH_ROUNDS` sets the rounds (3 unless given), `MILLPOND_SEED` replays a run.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::server::{ServerProcess, command};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Error, NoTls};

const CLIENTS: u64 = 6;
const ACCOUNTS: i32 = 2000;
const TELLERS: i32 = 20;
const BRANCHES: i32 = 2;

/// What the clients know of their transactions.
#[derive(Default)]
struct Ledger {
    attempted: HashSet<i64>,
    acknowledged: HashSet<i64>,
}

#[test]
fn killed_servers_lose_nothing_acknowledged() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("MILLPOND_CRASH_ROUNDS").unwrap_or(3);
    let seed = number("MILLPOND_SEED").unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64)
    });
    println!("seed: MILLPOND_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();

    let server = ServerProcess::on(&data, dir.path(), &[]);
    runtime.block_on(load(server.port)).unwrap();
    drop(server);

    let ledger = Arc::new(Mutex::new(Ledger::default()));
    for round in 0..rounds {
        let mut server = ServerProcess::on(&data, dir.path(), &["--set", "checkpoint_timeout=30s"]);
        runtime.block_on(verify(server.port, &ledger)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (ledger, stop) = (Arc::clone(&ledger), Arc::clone(&stop));
                let first = ((round * CLIENTS + client) << 32) as i64;
                let random = SmallRng::seed_from_u64(random.random());
                runtime.spawn(run_client(server.port, first, random, ledger, stop))
            })
            .collect();
        // The moment of the kill is what varies; correctness does not depend on it.
        std::thread::sleep(Duration::from_millis(random.random_range(50..900)));
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            // Connection errors are what the kill looks like.
            let _ = runtime.block_on(client).unwrap();
        }
        let acknowledged = ledger.lock().acknowledged.len();
        println!("round {round}: {acknowledged} acknowledged so far");
    }
    let mut server = ServerProcess::on(&data, dir.path(), &[]);
    runtime.block_on(verify(server.port, &ledger)).unwrap();
    assert!(server.stop().success(), "a clean shutdown");
    let checked = command().arg("check").arg("--data").arg(&data).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(!ledger.lock().acknowledged.is_empty(), "no transaction was acknowledged");
}

async fn connect(port: u16) -> Result<Client, Error> {
    let parameters = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn load(port: u16) -> Result<(), Error> {
    let client = connect(port).await?;
    client
        .batch_execute(
            "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
             CREATE TABLE tellers (tid int PRIMARY KEY, bid int, tbalance int);
             CREATE TABLE branches (bid int PRIMARY KEY, bbalance int);
             CREATE TABLE history (number bigint PRIMARY KEY, tid int, bid int, aid int, delta int)",
        )
        .await?;
    let rows =
        |count: i32, row: fn(i32) -> String| (1..=count).map(row).collect::<Vec<_>>().join(", ");
    let accounts = rows(ACCOUNTS, |aid| format!("({aid}, {}, 0, '')", aid % BRANCHES + 1));
    let tellers = rows(TELLERS, |tid| format!("({tid}, {}, 0)", tid % BRANCHES + 1));
    let branches = rows(BRANCHES, |bid| format!("({bid}, 0)"));
    client.batch_execute(&format!("INSERT INTO accounts VALUES {accounts}")).await?;
    client.batch_execute(&format!("INSERT INTO tellers VALUES {tellers}")).await?;
    client.batch_execute(&format!("INSERT INTO branches VALUES {branches}")).await
}

async fn run_client(
    port: u16,
    first: i64,
    mut random: SmallRng,
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
) -> Result<(), Error> {
    let client = connect(port).await?;
    for number in first.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let aid = random.random_range(1..=ACCOUNTS);
        let tid = random.random_range(1..=TELLERS);
        let bid = random.random_range(1..=BRANCHES);
        let delta = random.random_range(-5000..=5000);
        client
            .batch_execute(&format!(
                "BEGIN; \
                 UPDATE accounts SET abalance = abalance + {delta} WHERE aid = {aid}; \
                 SELECT abalance FROM accounts WHERE aid = {aid}; \
                 UPDATE tellers SET tbalance = tbalance + {delta} WHERE tid = {tid}; \
                 UPDATE branches SET bbalance = bbalance + {delta} WHERE bid = {bid}; \
                 INSERT INTO history VALUES ({number}, {tid}, {bid}, {aid}, {delta})"
            ))
            .await?;
        ledger.lock().attempted.insert(number);
        client.batch_execute("COMMIT").await?;
        ledger.lock().acknowledged.insert(number);
    }
    Ok(())
}

/// The server's rows against the ledger.
async fn verify(port: u16, ledger: &Mutex<Ledger>) -> Result<(), Error> {
    let client = connect(port).await?;
    let mut found = HashSet::new();
    let mut deltas = 0i64;
    for row in client.query("SELECT number, delta FROM history", &[]).await? {
        assert!(found.insert(row.get::<_, i64>(0)), "a history row stands twice");
        deltas += i64::from(row.get::<_, i32>(1));
    }
    for table in ["accounts", "tellers", "branches"] {
        let column = format!("{}balance", &table[..1]);
        let rows = client.query(&format!("SELECT {column} FROM {table}"), &[]).await?;
        let sum: i64 = rows.iter().map(|row| i64::from(row.get::<_, i32>(0))).sum();
        assert_eq!(sum, deltas, "the balances of {table} against history");
    }
    let ledger = ledger.lock();
    let missing: Vec<_> = ledger.acknowledged.difference(&found).take(5).collect();
    assert!(missing.is_empty(), "acknowledged but missing: {missing:?}");
    let invented: Vec<_> = found.difference(&ledger.attempted).take(5).collect();
    assert!(invented.is_empty(), "committed without being asked to: {invented:?}");
    Ok(())
}
