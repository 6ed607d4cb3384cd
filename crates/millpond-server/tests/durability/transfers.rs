//! Transactions like pgbench's default script. Each inserts its own number into the history.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::SmallRng;
use tokio_postgres::{Client, Error};

use crate::work::Scene;

pub const CLIENTS: usize = 6;
const ACCOUNTS: i32 = 2000;
const TELLERS: i32 = 20;
const BRANCHES: i32 = 2;

/// The numbers of the requested and of the acknowledged transactions.
#[derive(Default)]
struct Ledger {
    attempted: HashSet<i64>,
    acknowledged: HashSet<i64>,
}

#[derive(Default)]
pub struct Transfers {
    ledger: Mutex<Ledger>,
    next: AtomicI64,
}

pub fn tables() -> String {
    let rows =
        |count: i32, row: fn(i32) -> String| (1..=count).map(row).collect::<Vec<_>>().join(", ");
    let accounts = rows(ACCOUNTS, |aid| format!("({aid}, {}, 0, '')", aid % BRANCHES + 1));
    let tellers = rows(TELLERS, |tid| format!("({tid}, {}, 0)", tid % BRANCHES + 1));
    let branches = rows(BRANCHES, |bid| format!("({bid}, 0)"));
    format!(
        "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
         CREATE TABLE tellers (tid int PRIMARY KEY, bid int, tbalance int);
         CREATE TABLE branches (bid int PRIMARY KEY, bbalance int);
         CREATE TABLE history (number bigint PRIMARY KEY, tid int, bid int, aid int, delta int);
         INSERT INTO accounts VALUES {accounts};
         INSERT INTO tellers VALUES {tellers};
         INSERT INTO branches VALUES {branches}"
    )
}

impl Transfers {
    pub fn acknowledged(&self) -> usize {
        self.ledger.lock().acknowledged.len()
    }

    pub async fn work(
        self: Arc<Self>,
        client: Client,
        mut random: SmallRng,
        scene: Arc<Scene>,
    ) -> Result<(), Error> {
        while !scene.is_ending() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
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
            self.ledger.lock().attempted.insert(number);
            client.batch_execute("COMMIT").await?;
            self.ledger.lock().acknowledged.insert(number);
        }
        Ok(())
    }

    pub async fn verify(&self, client: &Client) -> Result<(), Error> {
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
        let ledger = self.ledger.lock();
        let missing: Vec<_> = ledger.acknowledged.difference(&found).take(5).collect();
        assert!(missing.is_empty(), "acknowledged but missing: {missing:?}");
        let invented: Vec<_> = found.difference(&ledger.attempted).take(5).collect();
        assert!(invented.is_empty(), "committed without being asked to: {invented:?}");
        Ok(())
    }
}
