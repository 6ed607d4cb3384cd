//! Tables with rows and an index that are created and dropped, and creations that are rolled back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::SmallRng;
use tokio_postgres::{Client, Error};

use crate::work::Scene;

/// The rows of each table.
const ROWS: i64 = 50;
/// The most tables that exist at a time.
const MOST: usize = 8;

/// The known state of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Present,
    Absent,
    /// A change of it was not acknowledged.
    Either,
}

#[derive(Default)]
struct Ledger {
    tables: BTreeMap<String, Known>,
    made: u64,
    acknowledged: u64,
}

#[derive(Default)]
pub struct Definitions(Mutex<Ledger>);

impl Definitions {
    pub fn acknowledged(&self) -> u64 {
        self.0.lock().acknowledged
    }

    fn know(&self, table: &str, known: Known) {
        let ledger = &mut *self.0.lock();
        ledger.tables.insert(table.to_owned(), known);
        ledger.acknowledged += u64::from(known != Known::Either);
    }

    fn present(&self) -> Vec<String> {
        let ledger = self.0.lock();
        let present = ledger.tables.iter().filter(|(_, known)| **known == Known::Present);
        present.map(|(table, _)| table.clone()).collect()
    }

    pub async fn work(
        self: Arc<Self>,
        client: Client,
        mut random: SmallRng,
        scene: Arc<Scene>,
    ) -> Result<(), Error> {
        while !scene.is_ending() {
            let table = {
                let ledger = &mut *self.0.lock();
                ledger.made += 1;
                format!("made{}", ledger.made)
            };
            if random.random_bool(0.25) {
                self.know(&table, Known::Absent);
                let create = format!("BEGIN; CREATE TABLE {table} (a int PRIMARY KEY); ROLLBACK");
                client.batch_execute(&create).await?;
                continue;
            }
            self.create(&client, &table).await?;
            let present = self.present();
            if present.len() > MOST {
                let dropped = &present[random.random_range(0..present.len())];
                self.know(dropped, Known::Either);
                client.batch_execute(&format!("DROP TABLE {dropped}")).await?;
                self.know(dropped, Known::Absent);
            }
        }
        Ok(())
    }

    async fn create(&self, client: &Client, table: &str) -> Result<(), Error> {
        self.know(table, Known::Either);
        client
            .batch_execute(&format!(
                "BEGIN; \
                 CREATE TABLE {table} (a int PRIMARY KEY, b text); \
                 INSERT INTO {table} SELECT g, repeat('q', 50) FROM generate_series(1, {ROWS}) g; \
                 CREATE INDEX {table}_b ON {table} (b); \
                 COMMIT"
            ))
            .await?;
        self.know(table, Known::Present);
        Ok(())
    }

    pub async fn verify(&self, client: &Client) -> Result<(), Error> {
        const NAMES: &str =
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'made%'";
        let rows = client.query(NAMES, &[]).await?;
        let found: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        for table in &found {
            let count = format!("SELECT count(*) FROM {table}");
            let rows: i64 = client.query_one(&count, &[]).await?.get(0);
            assert_eq!(rows, ROWS, "rows of {table}");
        }
        let ledger = &mut *self.0.lock();
        for (table, known) in &mut ledger.tables {
            let is_there = found.contains(table);
            match known {
                Known::Present => assert!(is_there, "table {table} is lost"),
                Known::Absent => assert!(!is_there, "table {table} is back"),
                Known::Either => {}
            }
            *known = if is_there { Known::Present } else { Known::Absent };
        }
        let unknown: Vec<_> =
            found.iter().filter(|table| !ledger.tables.contains_key(*table)).collect();
        assert!(unknown.is_empty(), "tables that nothing made: {unknown:?}");
        Ok(())
    }
}
