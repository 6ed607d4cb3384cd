//! The lives of an engine: start, work, faults, end, and what the next start finds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_engine::check::check_engine;
use millpond_engine::lmgr::LockMode;
use millpond_engine::{Engine, EngineConfig, EngineResult, Session};
use millpond_sync::thread::{NamedThread, sleep, spawn_named};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::client::{Client, Pace};
use super::damage::judge;
use super::definitions::{TABLES, define, found, name_of};
use super::ledger::Ledger;
use super::plan::{Clients, Plan, Trouble};
use super::registers::{History, note};
use super::tables::{
    ACCOUNTS, BALANCE, REPEATABLE_READ, accounts, history, named, recorded, row, run,
};
use super::ticks::{create, hold, insert_tick, tick, ticks};
use super::timers::{Tally, Timers, of_engine};
use super::writers::{compare, read, write};
use crate::history::Txn;
use crate::vfs::{Errno, Rates, SimFs, VfsFault, When};

pub(super) const SEGMENT: u64 = 1 << 17;
/// The number of sessions whose transactions are checked as a history.
const NOTING: usize = 2;
/// The number of slow clients that hold locks on tables.
const HOLDERS: usize = 2;
/// The largest number of consecutive starts that a power loss may interrupt.
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
    config.autovacuum.naptime = Duration::from_millis(100);
    config.autovacuum.threshold = 10;
    if let Clients::Slow(settings) = plan.clients {
        config.max_wal_bytes = settings.segments * SEGMENT;
        config.checkpoint_timeout = settings.checkpoint_timeout;
        config.autovacuum.naptime = settings.autovacuum_naptime;
        // The fewest that the ring can hold.
        config.recent_statuses = 0;
        config.old_statuses = settings.old_statuses;
    }
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

pub(super) struct Ended {
    /// Commits that were acknowledged.
    pub commits: u64,
    /// The number of transactions in the history.
    pub judged: u64,
    /// The number of calls in the first life.
    pub first_life: u64,
    /// How often each timer has fired.
    pub timers: Timers,
}

pub(super) fn lives(fs: &SimFs, plan: &Plan, seed: u64) -> Ended {
    let rng = &mut StdRng::seed_from_u64(seed);
    let (mut ledger, mut history) = (Ledger::new(plan.writers), History::default());
    let mut engine = surely("the first start", start(fs, plan));
    populate(&engine, plan);
    let (tally, mut timers) = (Arc::new(Tally::default()), Timers::default());
    let mut first_life = 0;
    for life in 0..plan.lives {
        make_trouble(fs, plan, rng);
        let before = fs.calls();
        let pace = Pace::new(&plan.clients, rng, &tally);
        let crew = Crew { engine: &engine, pace: &pace };
        let noting = start_noting(&crew, plan, &history, rng);
        let is_up = live(fs, &crew, plan, rng, &mut ledger);
        noting.into_iter().for_each(|thread| history.add(joined(thread)));
        if life == 0 {
            first_life = fs.calls() - before;
        }
        timers += of_engine(&engine);
        drop(pace);
        end(fs, engine, plan, is_up, rng);
        restart_without_power(fs, plan, rng);
        judge(fs, plan, &ledger, seed ^ u64::from(life) << 32);
        engine = surely("start", start(fs, plan));
        examine(&engine, &mut ledger, rng, life);
        let settled = engine.session().and_then(|mut session| history.settle(&mut session));
        surely("read the registers", settled);
    }
    let judged = history.judge() as u64;
    let commits = ledger.writers.iter().map(|numbers| numbers.acknowledged as u64);
    let commits = ledger.commits + ledger.ticks.acknowledged as u64 + commits.sum::<u64>();
    surely("shutdown", engine.shutdown());
    timers += tally.timers();
    Ended { commits, judged, first_life, timers }
}

fn populate(engine: &Arc<Engine>, plan: &Plan) {
    let mut session = surely("session", engine.session());
    let made = run(&mut session, |session| session.ddl().create_table(accounts("accounts", true)));
    let table = surely("create accounts", made);
    surely("create history", run(&mut session, |session| session.ddl().create_table(history())));
    let fill = run(&mut session, |session| {
        session.lock_table(&table, LockMode::RowExclusive)?;
        (1..=ACCOUNTS)
            .try_for_each(|id| session.insert(&table, &row(id, "somebody", BALANCE)).map(drop))
    });
    surely("fill accounts", fill);
    surely("make registers", History::populate(&mut session));
    if plan.clients != Clients::Busy {
        surely("create ticks", create(&mut session));
    }
}

/// The clients of a life.
struct Crew<'a> {
    engine: &'a Arc<Engine>,
    pace: &'a Pace,
}

impl Crew<'_> {
    /// Starts a client. It returns `otherwise` if it gets no session.
    fn start<T: Send + 'static>(
        &self,
        name: &str,
        rng: &mut StdRng,
        otherwise: T,
        work: impl FnOnce(&mut Client, &mut StdRng) -> T + Send + 'static,
    ) -> NamedThread<T> {
        let (engine, pace) = (Arc::clone(self.engine), self.pace.clone());
        let seed = rng.random();
        let run = move || match Client::connect(&engine, &pace, seed) {
            Ok(mut client) => work(&mut client, &mut StdRng::seed_from_u64(seed)),
            Err(_) => otherwise,
        };
        started(spawn_named(name, run))
    }
}

/// Starts the sessions that record a history.
fn start_noting(
    crew: &Crew<'_>,
    plan: &Plan,
    history: &History,
    rng: &mut StdRng,
) -> Vec<NamedThread<Vec<Txn>>> {
    let steps = plan.steps;
    let mut start = |number: usize| {
        let clock = Arc::clone(&history.clock);
        crew.start(&format!("noting {number}"), rng, Vec::new(), move |client, rng| {
            note(client, rng, &clock, steps)
        })
    };
    (0..NOTING).map(&mut start).collect()
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

/// Runs sessions until they end or the machine crashes. Returns whether it is still up.
fn live(fs: &SimFs, crew: &Crew<'_>, plan: &Plan, rng: &mut StdRng, ledger: &mut Ledger) -> bool {
    let steps = plan.steps;
    let numbers = ledger.writers.iter().copied().enumerate();
    let writers: Vec<NamedThread<_>> = numbers
        .map(|(writer, numbers)| {
            crew.start(&format!("writer {writer}"), rng, numbers, move |client, rng| {
                write(client, rng, (writer, numbers), steps)
            })
        })
        .collect();
    let reader = crew.start("reader", rng, (), move |client, rng| read(client, rng, steps / 2));
    let before = ledger.clone();
    let definer = crew.start("definer", rng, ledger.clone(), move |client, rng| {
        define(client, rng, before, steps)
    });
    let slow = (plan.clients != Clients::Busy).then(|| {
        let holders: [_; HOLDERS] = std::array::from_fn(|number| {
            crew.start(&format!("holder {number}"), rng, (), move |client, rng| {
                hold(client, rng, steps / 2)
            })
        });
        let numbers = ledger.ticks;
        let ticker = crew.start("ticker", rng, numbers, move |client, rng| {
            tick(client, rng, numbers, steps / 4)
        });
        (holders, ticker)
    });
    let is_up = rng.random_bool(0.8);
    if !is_up {
        let moment = Duration::from_micros(rng.random_range(0..200_000));
        // The same part of a slow life is up to half an hour.
        sleep(if slow.is_some() { 9000 * moment } else { moment });
        fs.crash();
    }
    *ledger = joined(definer);
    ledger.writers = writers.into_iter().map(joined).collect();
    joined(reader);
    if let Some((holders, ticker)) = slow {
        holders.into_iter().for_each(joined);
        ledger.ticks = joined(ticker);
    }
    is_up
}

fn started<T>(thread: std::io::Result<NamedThread<T>>) -> NamedThread<T> {
    thread.unwrap_or_else(|error| panic!("no thread: {error}"))
}

fn joined<T>(thread: NamedThread<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends the engine in one of several ways.
fn end(fs: &SimFs, engine: Arc<Engine>, plan: &Plan, is_up: bool, rng: &mut StdRng) {
    fs.set_max_open(None);
    let left = (plan.clients != Clients::Busy && rng.random()).then(|| leave_open(&engine));
    match rng.random_range(0..4) {
        0 => {
            fs.heal();
            let result = engine.shutdown();
            // It may fail if the machine is down or the engine has stopped. The next start
            // recovers.
            let may_refuse = !is_up || fs.is_powered_off() || engine.stopped().is_some();
            assert!(may_refuse || result.is_ok(), "shutdown: {result:?}");
        }
        _ => engine.log().abandon(),
    }
    drop(left);
    drop(engine);
    if rng.random_bool(0.2) && !fs.is_powered_off() {
        fs.kill();
    } else {
        fs.crash();
    }
}

/// A session that is idle in a transaction when the engine ends. Its tick is never committed.
fn leave_open(engine: &Arc<Engine>) -> EngineResult<Session> {
    let mut session = engine.session()?;
    session.begin(REPEATABLE_READ)?;
    session.start_statement()?;
    let inserted = insert_tick(&mut session, -1);
    session.end_statement();
    inserted.map(|()| session)
}

/// Power losses while the engine starts, a few times.
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

/// Checks that what was acknowledged is there, and that nothing is damaged.
fn examine(engine: &Arc<Engine>, ledger: &mut Ledger, rng: &mut StdRng, life: u32) {
    let mut session = surely("session", engine.session());
    let Some(history) = named(&session, "history") else { panic!("life {life}: no history") };
    let writers = ledger.writers.len();
    let numbers = run(&mut session, |session| recorded(session, &history, writers));
    ledger.settle_writers(surely("read history", numbers));
    surely("read ticks", ticks(&mut session)).into_iter().for_each(|it| ledger.settle_ticks(it));
    surely("compare", compare(&mut session));
    for name in (0..TABLES).map(name_of) {
        let found = surely("read a table", found(&mut session, &name));
        ledger.settle_table(&name, found);
    }
    if rng.random() {
        check(engine, "after recovery");
        for name in ["accounts".to_owned(), "history".to_owned(), name_of(0)] {
            if let Some(table) = named(&session, &name) {
                surely("vacuum", session.maintenance().vacuum(table.oid));
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
