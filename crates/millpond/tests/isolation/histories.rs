//! Random transactions of many sessions, and the checker over what they saw.
//!
//! `MILLPOND_HISTORY_TXNS` sets how many transactions at least, `MILLPOND_SEED` replays a run's
//! choices (threads still run as they will).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use millpond::{CancelHandle, Settings};
use millpond_sim::history::workload::{Client, Epoch, Failed, Rows, SCHEMA, Shared, transaction};
use millpond_sim::history::{self, Txn};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::common::{Fresh, fresh_with};
use super::ground::{Protocol, Talker};

const SESSIONS: usize = 8;
/// Transactions between two looks at what is there.
const EPOCH_TXNS: usize = 1500;

impl Client for Talker {
    fn run(&mut self, sql: &str) -> Result<Rows, Failed> {
        let (keep, result) = self.talk(sql);
        match result {
            Ok(()) => Ok(keep.rows),
            Err(error) => {
                Err(Failed::State(error.sqlstate.as_str().to_owned(), error.message.clone()))
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn talker(fresh: &Fresh, protocol: Protocol) -> Talker {
    Talker { connection: fresh.database.connect().unwrap(), protocol }
}

/// What the threads of a history share.
struct Stage<'a> {
    fresh: &'a Fresh,
    shared: &'a Shared,
    history: Mutex<Vec<Txn>>,
    /// Sessions that may be interrupted.
    handles: Mutex<Vec<CancelHandle>>,
    wanted: usize,
    done: AtomicUsize,
    stop: AtomicBool,
}

/// A database with the tables, and a session of it.
fn ground() -> (Fresh, Talker) {
    let settings = Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("deadlock_timeout", "5ms"))
        .and_then(|settings| settings.with("synchronous_commit", "off"))
        .unwrap();
    let fresh = fresh_with(settings);
    let mut keeper = talker(&fresh, Protocol::Simple);
    for sql in SCHEMA {
        keeper.run(sql).unwrap();
    }
    (fresh, keeper)
}

#[test]
fn random_histories_have_no_anomalies() {
    let wanted = number("MILLPOND_HISTORY_TXNS").unwrap_or(4000) as usize;
    let seed = number("MILLPOND_SEED").unwrap_or_else(rand::random);
    println!("seed: MILLPOND_SEED={seed}");
    let (fresh, mut keeper) = ground();
    let shared = Shared::default();
    let mut random = StdRng::seed_from_u64(seed);
    let (mut total, mut ends) = (0, [0usize; 3]);
    for epoch in (0..).map(Epoch) {
        if total >= wanted {
            break;
        }
        for sql in epoch.rows() {
            keeper.run(&sql).unwrap();
        }
        let stage = Stage {
            fresh: &fresh,
            shared: &shared,
            history: Mutex::default(),
            handles: Mutex::default(),
            wanted: EPOCH_TXNS.min(wanted - total),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        };
        // In every other epoch statements are cancelled and sessions end.
        let interrupted = epoch.0 % 2 == 1;
        stage.play(epoch, interrupted, &mut random);
        let mut history = stage.history.into_inner();
        history.push(epoch.read_all(&mut keeper, &shared).unwrap());
        let found = history::check(&history);
        let told = Vec::from_iter(found.iter().take(5).map(ToString::to_string)).join("\n");
        assert!(found.is_empty(), "epoch {}, {} anomalies:\n{told}", epoch.0, found.len());
        for txn in &history {
            ends[txn.fate as usize] += 1;
        }
        total += stage.done.into_inner();
        for sql in epoch.removal() {
            keeper.run(&sql).unwrap();
        }
    }
    let [committed, aborted, unknown] = ends;
    println!(
        "{total} transactions: with single statements {committed} committed, {aborted} rolled back, {unknown} unknown"
    );
    assert!(committed > wanted / 2, "most were rolled back");
    let mut problems = Vec::new();
    let engine = fresh.database.engine();
    millpond_engine::check::check_engine(engine, &mut |finding| problems.push(finding.to_string()))
        .unwrap();
    assert_eq!(problems, Vec::<String>::new());
}

/// Says REPEATABLE READ and does READ COMMITTED.
struct Pretender(Talker);

impl Client for Pretender {
    fn run(&mut self, sql: &str) -> Result<Rows, Failed> {
        self.0.run(if sql.starts_with("begin") { "begin" } else { sql })
    }
}

/// Were a level not kept, these histories would show it.
#[test]
fn a_level_that_is_not_kept_is_noticed() {
    let (fresh, mut keeper) = ground();
    let shared = Shared::default();
    let found = (0..50).map(Epoch).any(|epoch| {
        for sql in epoch.rows() {
            keeper.run(&sql).unwrap();
        }
        let history: Mutex<Vec<Txn>> = Mutex::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = Pretender(talker(&fresh, Protocol::Simple));
                    let mut random = StdRng::from_os_rng();
                    for _ in 0..100 {
                        let told = transaction(&mut client, epoch, &shared, &mut random, false);
                        history.lock().append(&mut told.unwrap().txns);
                    }
                });
            }
        });
        !history::check(&history.into_inner()).is_empty()
    });
    assert!(found, "nothing was noticed in 50 histories");
}

impl Stage<'_> {
    fn play(&self, epoch: Epoch, interrupted: bool, random: &mut StdRng) {
        std::thread::scope(|scope| {
            let clients = Vec::from_iter((0..SESSIONS).map(|number| {
                let random = StdRng::seed_from_u64(random.random());
                scope.spawn(move || self.client(epoch, number, interrupted, random))
            }));
            let seed = random.random();
            let churn = scope.spawn(move || self.churn(interrupted, StdRng::seed_from_u64(seed)));
            let results = Vec::from_iter(clients.into_iter().map(|client| client.join()));
            self.stop.store(true, Ordering::Relaxed);
            churn.join().unwrap();
            for result in results {
                result.unwrap();
            }
        });
    }

    fn client(&self, epoch: Epoch, number: usize, interrupted: bool, mut random: StdRng) {
        let protocol = if number.is_multiple_of(2) { Protocol::Simple } else { Protocol::Prepared };
        while self.done.load(Ordering::Relaxed) < self.wanted {
            let mut talker = talker(self.fresh, protocol);
            self.handles.lock().push(talker.connection.cancel_handle());
            let mut lost = false;
            while !lost && self.done.fetch_add(1, Ordering::Relaxed) < self.wanted {
                let told = transaction(&mut talker, epoch, self.shared, &mut random, interrupted);
                let mut told = told.unwrap_or_else(|error| panic!("{error}"));
                lost = told.lost;
                self.history.lock().append(&mut told.txns);
            }
        }
    }

    /// What else goes on: vacuum, checkpoints, indexes that come and go; cancelled statements,
    /// ended sessions.
    fn churn(&self, interrupted: bool, mut random: StdRng) {
        let mut talker = talker(self.fresh, Protocol::Simple);
        let mut steps = 0u32;
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(random.random_range(1..10)));
            steps += 1;
            if interrupted && let Some(handle) = self.pick(&mut random) {
                if steps.is_multiple_of(8) { handle.terminate() } else { handle.cancel() }
            }
            let sql = match random.random_range(0..40) {
                0 => "create index if not exists registers_n on registers (n)",
                1 => "drop index if exists registers_n",
                2 => "create index if not exists lists_k on lists (k, g)",
                3 => "drop index if exists lists_k",
                4 => "vacuum lists",
                5 => "vacuum registers",
                6 => "checkpoint",
                _ => continue,
            };
            match talker.run(sql) {
                Ok(_) => {}
                Err(Failed::State(state, _)) if state == "40P01" => {}
                Err(error) => panic!("{sql}: {error:?}"),
            }
        }
    }

    fn pick(&self, random: &mut StdRng) -> Option<CancelHandle> {
        let handles = self.handles.lock();
        let place = random.random_range(0..handles.len().max(1));
        handles.get(place).cloned()
    }
}
