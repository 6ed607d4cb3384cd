//! COPY in batches, and a table that is filled and truncated over and over.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt, pin_mut};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::SmallRng;
use tokio_postgres::{Client, Error};

use crate::work::Scene;

pub const TABLES: &str = "CREATE TABLE copied (batch int, k int, t text);
     CREATE INDEX copied_batch ON copied (batch);
     CREATE TABLE scratch (a int, t text);
     CREATE INDEX scratch_a ON scratch (a)";

/// The rows of a batch.
const BATCH: i64 = 1000;

/// The known state of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batch {
    Whole,
    Absent,
    /// Its COPY or DELETE was not acknowledged.
    Either,
}

/// The batches that were copied in or deleted.
#[derive(Default)]
pub struct Copies {
    batches: Mutex<BTreeMap<i32, Batch>>,
}

impl Copies {
    pub fn acknowledged(&self) -> usize {
        self.batches.lock().values().filter(|batch| **batch != Batch::Either).count()
    }

    pub async fn work(
        self: Arc<Self>,
        client: Client,
        mut random: SmallRng,
        scene: Arc<Scene>,
    ) -> Result<(), Error> {
        while !scene.is_ending() {
            let number = self.batches.lock().last_key_value().map_or(0, |(last, _)| last + 1);
            self.batches.lock().insert(number, Batch::Either);
            copy(&client, number).await?;
            self.batches.lock().insert(number, Batch::Whole);
            let whole: Vec<i32> = {
                let batches = self.batches.lock();
                let whole = batches.iter().filter(|(_, batch)| **batch == Batch::Whole);
                whole.map(|(number, _)| *number).collect()
            };
            if whole.len() > 10 {
                let gone = whole[random.random_range(0..whole.len())];
                self.batches.lock().insert(gone, Batch::Either);
                client.batch_execute(&format!("DELETE FROM copied WHERE batch = {gone}")).await?;
                self.batches.lock().insert(gone, Batch::Absent);
            }
        }
        Ok(())
    }

    pub async fn verify(&self, client: &Client) -> Result<(), Error> {
        let rows = client.query("SELECT batch, count(*) FROM copied GROUP BY batch", &[]).await?;
        let found: BTreeMap<i32, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let mut batches = self.batches.lock();
        assert!(found.keys().all(|number| batches.contains_key(number)), "batches: {found:?}");
        for (number, batch) in &mut *batches {
            let rows = found.get(number).copied().unwrap_or(0);
            match batch {
                Batch::Whole => assert_eq!(rows, BATCH, "batch {number} was acknowledged"),
                Batch::Absent => assert_eq!(rows, 0, "batch {number} was deleted"),
                Batch::Either => assert!([0, BATCH].contains(&rows), "batch {number}: {rows}"),
            }
            *batch = if rows == BATCH { Batch::Whole } else { Batch::Absent };
        }
        Ok(())
    }
}

async fn copy(client: &Client, number: i32) -> Result<(), Error> {
    let sink = client.copy_in::<_, Bytes>("COPY copied FROM STDIN").await?;
    pin_mut!(sink);
    for part in 0..10 {
        let rows = (0..BATCH / 10).map(|k| format!("{number}\t{}\tabcdefgh{k}\n", part * 100 + k));
        sink.send(rows.collect::<String>().into()).await?;
    }
    sink.finish().await?;
    Ok(())
}

/// A table, and the numbers of rows that it may have.
pub struct Scratch(Mutex<(Vec<i64>, u64)>);

impl Default for Scratch {
    fn default() -> Self {
        Self(Mutex::new((vec![0], 0)))
    }
}

impl Scratch {
    pub fn acknowledged(&self) -> u64 {
        self.0.lock().1
    }

    /// Runs statements that leave the table with `after` rows. Until they are acknowledged, the
    /// table may have the old or the new number.
    async fn change(&self, client: &Client, sql: &str, after: i64) -> Result<(), Error> {
        self.0.lock().0.push(after);
        client.batch_execute(sql).await?;
        let (rows, acknowledged) = &mut *self.0.lock();
        *rows = vec![after];
        *acknowledged += u64::from(sql.contains("TRUNCATE"));
        Ok(())
    }

    pub async fn work(
        self: Arc<Self>,
        client: Client,
        mut random: SmallRng,
        scene: Arc<Scene>,
    ) -> Result<(), Error> {
        let fill = |count: i64| {
            format!(
                "INSERT INTO scratch SELECT g, repeat('s', 100) FROM generate_series(1, {count}) g"
            )
        };
        while !scene.is_ending() {
            let now = self.0.lock().0[0];
            let count = random.random_range(1..500);
            match random.random_range(0..10) {
                0 | 1 => self.change(&client, "TRUNCATE scratch", 0).await?,
                2 => {
                    let sql = format!("BEGIN; TRUNCATE scratch; {}; COMMIT", fill(3));
                    self.change(&client, &sql, 3).await?;
                }
                3 => {
                    let sql = format!("BEGIN; TRUNCATE scratch; {}; ROLLBACK", fill(3));
                    self.change(&client, &sql, now).await?;
                }
                _ => self.change(&client, &fill(count), now + count).await?,
            }
        }
        Ok(())
    }

    pub async fn verify(&self, client: &Client) -> Result<(), Error> {
        let rows: i64 = client.query_one("SELECT count(*) FROM scratch", &[]).await?.get(0);
        let known = &mut self.0.lock().0;
        assert!(known.contains(&rows), "scratch has {rows} rows, not one of {known:?}");
        *known = vec![rows];
        Ok(())
    }
}
