//! The lives of an engine: start, work, trouble, end, and what the next start finds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_engine::check::check_engine;
use millpond_engine::lmgr::LockMode;
use millpond_engine::{Engine, EngineConfig, EngineResult};
use millpond_sync::thread::{NamedThread, sleep, spawn_named};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::damage::judge;
use super::definitions::{TABLES, define, found, name_of};
use super::ledger::Ledger;
use super::plan::{Plan, Trouble};
use super::registers::{History, note};
use super::tables::{ACCOUNTS, BALANCE, accounts, history, named, recorded, row, run};
use super::writers::{compare, read, write};
use crate::history::Txn;
use crate::vfs::{Errno, Rates, SimFs, VfsFault, When};

pub(super) const SEGMENT: u64 = 1 << 17;
/// Sessions whose transactions are judged as a history.
const NOTING: usize = 2;
/// Starts that the power may interrupt, in a row.
const MOST_STARTS: u32 = 3;

fn config(fs: &SimFs, plan: &Plan) -> EngineConfig {
    let mut config = EngineConfig::new(Path::new("/data"));
    config.vfs = fs.mount();
    config.buffers = plan.buffers;
    config.io_method = plan.io_method;
    config.io_workers = 2;
    config.max_connections = 12;
    config.max_wal_bytes = 4 * SEGMENT;
    config.wal_segment_bytes = SEGMENT;
    config.wal_buffer_bytes = SEGMENT as usize;
    config.checkpoint_timeout = Duration::from_millis(400);
    config.autovacuum_naptime = Duration::from_millis(100);
    config.autovacuum_threshold = 10;
    config
}

pub(super) fn start(fs: &SimFs, plan: &Plan) -> EngineResult<Arc<Engine>> {
    if plan.is_mild {
        fs.set_rates(Rates::MILD);
    }
    Engine::open(config(fs, plan))
}

pub(super) fn surely<T>(what: &str, result: EngineResult<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// What is known at the end of a run.
pub(super) struct Ended {
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Transactions that the history has.
    pub judged: u64,
    /// Calls of the first life.
    pub first_life: u64,
}

/// All lives.
pub(super) fn lives(fs: &SimFs, plan: &Plan, seed: u64) -> Ended {
    let rng = &mut StdRng::seed_from_u64(seed);
    let (mut ledger, mut history) = (Ledger::new(plan.writers), History::default());
    let mut engine = surely("the first start", start(fs, plan));
    populate(&engine);
    let mut first_life = 0;
    for life in 0..plan.lives {
        make_trouble(fs, plan, rng);
        let before = fs.calls();
        let noting = start_noting(&engine, plan, &history, rng);
        let is_up = live(fs, &engine, plan, rng, &mut ledger);
        noting.into_iter().for_each(|thread| history.add(joined(thread)));
        if life == 0 {
            first_life = fs.calls() - before;
        }
        end(fs, engine, is_up, rng);
        restart_without_power(fs, plan, rng);
        judge(fs, plan, &ledger, seed ^ u64::from(life) << 32);
        engine = surely("start", start(fs, plan));
        examine(&engine, &mut ledger, rng, life);
        let settled = engine.session().and_then(|mut session| history.settle(&mut session));
        surely("read the registers", settled);
    }
    let judged = history.judge() as u64;
    let commits = ledger.writers.iter().map(|numbers| numbers.acknowledged as u64);
    let commits = ledger.commits + commits.sum::<u64>();
    surely("shutdown", engine.shutdown());
    Ended { commits, judged, first_life }
}

fn populate(engine: &Arc<Engine>) {
    let mut session = surely("session", engine.session());
    let made = run(&mut session, |session| session.create_table(accounts("accounts", true)));
    let table = surely("create accounts", made);
    surely("create history", run(&mut session, |session| session.create_table(history())));
    let fill = run(&mut session, |session| {
        session.lock_table(&table, LockMode::RowExclusive)?;
        (1..=ACCOUNTS)
            .try_for_each(|id| session.insert(&table, &row(id, "somebody", BALANCE)).map(drop))
    });
    surely("fill accounts", fill);
    surely("make registers", History::populate(&mut session));
}

/// Sessions that note what they see.
fn start_noting(
    engine: &Arc<Engine>,
    plan: &Plan,
    history: &History,
    rng: &mut StdRng,
) -> Vec<NamedThread<Vec<Txn>>> {
    let steps = plan.steps;
    let start = |number: usize| {
        let (engine, clock) = (Arc::clone(engine), Arc::clone(&history.clock));
        let mut rng = StdRng::seed_from_u64(rng.random());
        let work = move || note(&engine, &mut rng, &clock, steps);
        started(spawn_named(&format!("noting {number}"), work))
    };
    (0..NOTING).map(start).collect()
}

fn make_trouble(fs: &SimFs, plan: &Plan, rng: &mut StdRng) {
    const MOMENTS: [When; 3] = [When::Before, When::Halfway, When::After];
    let when = MOMENTS[rng.random_range(0..3)];
    let calls = rng.random_range(0..plan.reach);
    match plan.trouble {
        Trouble::None => {}
        Trouble::PowerLoss => fs.fail_after(calls, VfsFault::PowerLoss(when)),
        Trouble::Once(errno) => fs.fail_after(calls, VfsFault::Error(errno, when)),
        Trouble::ReadOnly => fs.fail_after(calls, VfsFault::ReadOnly),
        Trouble::DiskFull => fs.fail_after(calls, VfsFault::DiskFull),
        Trouble::Flaky => fs.set_rates(Rates {
            read_error: 0.01,
            write_error: 0.002,
            no_space: 0.01,
            too_many_files: 0.02,
            ..Rates::MILD
        }),
        Trouble::At(call, fault) => fs.fail_after(call, fault),
        Trouble::FewFiles => fs.set_max_open(Some(rng.random_range(6..30))),
    }
}

/// Sessions at work, until they end or the machine does. Returns whether it is still up.
fn live(
    fs: &SimFs,
    engine: &Arc<Engine>,
    plan: &Plan,
    rng: &mut StdRng,
    ledger: &mut Ledger,
) -> bool {
    let steps = plan.steps;
    let writers: Vec<NamedThread<_>> = ledger
        .writers
        .iter()
        .copied()
        .enumerate()
        .map(|(writer, numbers)| {
            let (engine, mut rng) = (Arc::clone(engine), StdRng::seed_from_u64(rng.random()));
            let work = move || write(&engine, &mut rng, (writer, numbers), steps);
            started(spawn_named(&format!("writer {writer}"), work))
        })
        .collect();
    let reader = {
        let (engine, mut rng) = (Arc::clone(engine), StdRng::seed_from_u64(rng.random()));
        started(spawn_named("reader", move || read(&engine, &mut rng, steps / 2)))
    };
    let definer = {
        let (engine, mut rng) = (Arc::clone(engine), StdRng::seed_from_u64(rng.random()));
        let ledger = ledger.clone();
        started(spawn_named("definer", move || define(&engine, &mut rng, ledger, steps)))
    };
    let is_up = rng.random_bool(0.8);
    if !is_up {
        sleep(Duration::from_micros(rng.random_range(0..200_000)));
        fs.crash();
    }
    *ledger = joined(definer);
    ledger.writers = writers.into_iter().map(joined).collect();
    joined(reader);
    is_up
}

fn started<T>(thread: std::io::Result<NamedThread<T>>) -> NamedThread<T> {
    thread.unwrap_or_else(|error| panic!("no thread: {error}"))
}

fn joined<T>(thread: NamedThread<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The engine ends, in one way or another.
fn end(fs: &SimFs, engine: Arc<Engine>, is_up: bool, rng: &mut StdRng) {
    fs.set_max_open(None);
    match rng.random_range(0..4) {
        0 => {
            fs.heal();
            let result = engine.shutdown();
            // It may refuse if the machine is down, or if the engine has stopped; the next start
            // recovers.
            let may_refuse = !is_up || fs.is_powered_off() || engine.stopped().is_some();
            assert!(may_refuse || result.is_ok(), "shutdown: {result:?}");
        }
        _ => engine.log().abandon(),
    }
    drop(engine);
    if rng.random_bool(0.2) && !fs.is_powered_off() {
        fs.kill();
    } else {
        fs.crash();
    }
}

/// The power goes while the engine starts, a few times.
fn restart_without_power(fs: &SimFs, plan: &Plan, rng: &mut StdRng) {
    for _ in 0..MOST_STARTS {
        if rng.random() {
            return;
        }
        fs.fail_after(rng.random_range(0..300), VfsFault::PowerLoss(When::Halfway));
        drop(start(fs, plan));
        fs.crash();
    }
    if rng.random() {
        // A start that fails for another reason leaves nothing behind that matters.
        fs.fail_after(rng.random_range(0..300), VfsFault::Error(Errno::Io, When::Halfway));
        drop(start(fs, plan));
        fs.crash();
    }
}

/// What was acknowledged is there, and nothing is damaged.
fn examine(engine: &Arc<Engine>, ledger: &mut Ledger, rng: &mut StdRng, life: u32) {
    let mut session = surely("session", engine.session());
    let Some(history) = named(&session, "history") else { panic!("life {life}: no history") };
    let writers = ledger.writers.len();
    let numbers = run(&mut session, |session| recorded(session, &history, writers));
    ledger.settle_writers(surely("read history", numbers));
    surely("compare", compare(&mut session));
    for name in (0..TABLES).map(name_of) {
        let found = surely("read a table", found(&mut session, &name));
        ledger.settle_table(&name, found);
    }
    if rng.random() {
        check(engine, "after recovery");
        for name in ["accounts".to_owned(), "history".to_owned(), name_of(0)] {
            if let Some(table) = named(&session, &name) {
                surely("vacuum", session.vacuum(table.oid));
            }
        }
        check(engine, "after VACUUM");
    }
}

fn check(engine: &Arc<Engine>, when: &str) {
    let mut findings = Vec::new();
    let checked = check_engine(engine, &mut |finding| findings.push(finding.to_string()));
    surely("check", checked);
    assert!(findings.is_empty(), "{when}: {findings:?}");
}
