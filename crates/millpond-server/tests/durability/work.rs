//! All kinds of work together: their clients, their ledgers, and which errors are unexpected.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};

use crate::bulk::{Copies, Scratch};
use crate::definitions::Definitions;
use crate::transfers::{CLIENTS, Transfers};

/// What all clients share.
#[derive(Default)]
pub struct Scene {
    /// Whether the server is about to end. From then on errors are expected.
    ending: AtomicBool,
    complaints: Mutex<Vec<String>>,
}

impl Scene {
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Records an error, unless the work must expect it.
    fn note(&self, error: &Error) {
        let expected = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        if !self.is_ending() && !error.code().is_some_and(|code| expected.contains(code)) {
            self.complaints.lock().push(format!("{error:?}"));
        }
    }
}

pub struct Work {
    scene: Arc<Scene>,
    transfers: Arc<Transfers>,
    definitions: Arc<Definitions>,
    copies: Arc<Copies>,
    scratch: Arc<Scratch>,
}

impl Work {
    pub fn new() -> Self {
        Self {
            scene: Arc::default(),
            transfers: Arc::default(),
            definitions: Arc::default(),
            copies: Arc::default(),
            scratch: Arc::default(),
        }
    }

    /// Creates the tables.
    pub async fn load(&self, port: u16) -> Result<(), Error> {
        let client = connect(port).await?;
        client.batch_execute(&crate::transfers::tables()).await?;
        client.batch_execute(crate::bulk::TABLES).await
    }

    /// Starts all clients.
    pub fn begin(
        &self,
        runtime: &Runtime,
        port: u16,
        random: &mut SmallRng,
    ) -> Vec<JoinHandle<()>> {
        self.scene.ending.store(false, Ordering::SeqCst);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(self.spawn(runtime, port, random, &self.transfers, Transfers::work));
        }
        clients.push(self.spawn(runtime, port, random, &self.definitions, Definitions::work));
        clients.push(self.spawn(runtime, port, random, &self.copies, Copies::work));
        clients.push(self.spawn(runtime, port, random, &self.scratch, Scratch::work));
        clients.push(self.spawn(runtime, port, random, &Arc::new(()), maintain));
        clients
    }

    /// Starts a client that works until an error. After an expected error it starts over.
    fn spawn<W: Send + Sync + 'static, F>(
        &self,
        runtime: &Runtime,
        port: u16,
        random: &mut SmallRng,
        ledger: &Arc<W>,
        work: fn(Arc<W>, Client, SmallRng, Arc<Scene>) -> F,
    ) -> JoinHandle<()>
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (ledger, scene) = (Arc::clone(ledger), Arc::clone(&self.scene));
        let mut random = SmallRng::seed_from_u64(random.random());
        runtime.spawn(async move {
            while !scene.is_ending() {
                let done = match connect(port).await {
                    Ok(client) => {
                        let random = SmallRng::seed_from_u64(random.random());
                        work(Arc::clone(&ledger), client, random, Arc::clone(&scene)).await
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = done {
                    scene.note(&error);
                    if error.code().is_none() {
                        return;
                    }
                }
            }
        })
    }

    /// From now on errors are expected.
    pub fn expect_the_end(&self) {
        self.scene.ending.store(true, Ordering::SeqCst);
    }

    /// Asserts that no statement failed before the server's end.
    pub fn assert_no_complaint(&self) {
        let complaints = self.scene.complaints.lock();
        assert!(complaints.is_empty(), "{complaints:?}");
    }

    /// Compares the server's rows with the ledgers.
    pub async fn verify(&self, port: u16) -> Result<(), Error> {
        let client = connect(port).await?;
        self.transfers.verify(&client).await?;
        self.definitions.verify(&client).await?;
        self.copies.verify(&client).await?;
        self.scratch.verify(&client).await
    }

    pub fn assert_something_was_done(&self) {
        assert!(self.transfers.acknowledged() > 0, "no transaction was acknowledged");
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} transfers, {} definitions, {} copies, {} truncations acknowledged so far",
            self.transfers.acknowledged(),
            self.definitions.acknowledged(),
            self.copies.acknowledged(),
            self.scratch.acknowledged()
        )
    }
}

async fn connect(port: u16) -> Result<Client, Error> {
    let parameters = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs VACUUM and checkpoints, and creates and drops an index, beside the other work.
async fn maintain(
    _: Arc<()>,
    client: Client,
    mut random: SmallRng,
    scene: Arc<Scene>,
) -> Result<(), Error> {
    const STATEMENTS: &[&str] = &[
        "VACUUM",
        "VACUUM accounts",
        "VACUUM copied",
        "CHECKPOINT",
        "CREATE INDEX IF NOT EXISTS history_tid ON history (tid)",
        "DROP INDEX IF EXISTS history_tid",
    ];
    while !scene.is_ending() {
        client.batch_execute(STATEMENTS[random.random_range(0..STATEMENTS.len())]).await?;
    }
    Ok(())
}
