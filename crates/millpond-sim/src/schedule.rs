//! Scripts of interleaved sessions, in the style of PostgreSQL's isolation tester.
//!
//! A script has scenarios. Each begins with its name and may set up its own tables. Then it says
//! step by step which session runs which statement, and what the result is:
//!
//! ```text
//! setup create table test (id int primary key, value int)
//! setup insert into test values (1, 10), (2, 20)
//!
//! scenario G0: write cycles
//! 1: begin
//! 2: begin
//! 1: update test set value = 11 where id = 1 => 1
//! 2: update test set value = 12 where id = 1 => blocks
//! 1: commit
//! 2: unblocks => 1
//! 1: select * from test => (2, 20) (1, 11)
//! 1: select * from test where id = 3 => nothing
//! ```
//!
//! An expectation is one of these:
//!
//! - a number of changed rows;
//! - rows (in any order), or `nothing`;
//! - `error` with an SQLSTATE;
//! - `blocks`: the session waits for a lock, as the lock manager reports. A later `unblocks` says
//!   how the statement ends.
//!
//! A step without an expectation must succeed. `setup` lines before the first scenario apply to all
//! scenarios; those inside a scenario replace them. `teardown` lines run after each scenario. Lines
//! that start with `#` are comments.
//!
//! The runner never relies on sleeping. A step is over when its result has arrived. It is blocked
//! when the lock manager shows its session waiting.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A step that takes longer counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the runner checks a session that may be waiting.
const GLANCE: Duration = Duration::from_micros(200);

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Rows, each as `(1, 10)`.
    Rows(Vec<String>),
    /// This number of rows was changed.
    Changed(u64),
    /// The SQLSTATE and the message.
    Error(String, String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Rows(rows) if rows.is_empty() => f.write_str("nothing"),
            Outcome::Rows(rows) => f.write_str(&rows.join(" ")),
            Outcome::Changed(count) => write!(f, "{count}"),
            Outcome::Error(state, message) => write!(f, "error {state} ({message})"),
        }
    }
}

/// Runs the statements of one session.
pub trait Party: Send {
    /// Runs one statement to its end, and waits as long as that takes.
    fn run(&mut self, sql: &str) -> Outcome;
}

/// The database on which scripts run.
pub trait Ground {
    /// A new session.
    fn party(&self) -> Box<dyn Party>;
    /// The number of sessions that wait for a lock now.
    fn waiting(&self) -> usize;
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expect {
    Success,
    Changed(u64),
    Rows(Vec<String>),
    Error(String),
    Blocks,
}

#[derive(Clone, Debug)]
struct Step {
    line: usize,
    session: String,
    /// `None`: the blocked statement ends.
    sql: Option<String>,
    expect: Expect,
}

/// One scenario of a script.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name.
    pub name: String,
    setup: Vec<String>,
    teardown: Vec<String>,
    steps: Vec<Step>,
}

/// Parses a script. Panics at a line that it does not understand: scripts are part of tests.
pub fn parse(script: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let (mut setup, mut teardown) = (Vec::new(), Vec::new());
    let mut own_setup = false;
    for (number, line) in script.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("scenario ") {
            own_setup = false;
            let (setup, teardown) = (setup.clone(), teardown.clone());
            scenarios.push(Scenario { name: name.to_owned(), setup, teardown, steps: Vec::new() });
        } else if let Some(sql) = line.strip_prefix("setup ") {
            match scenarios.last_mut() {
                None => setup.push(sql.to_owned()),
                Some(scenario) => {
                    if !std::mem::replace(&mut own_setup, true) {
                        scenario.setup.clear();
                    }
                    scenario.setup.push(sql.to_owned());
                }
            }
        } else if let Some(sql) = line.strip_prefix("teardown ") {
            teardown.push(sql.to_owned());
        } else {
            let step = step(number, line);
            match scenarios.last_mut() {
                Some(scenario) => scenario.steps.push(step),
                None => panic!("line {number}: a step outside of a scenario: {line}"),
            }
        }
    }
    scenarios
}

fn step(number: usize, line: &str) -> Step {
    let Some((session, rest)) = line.split_once(": ") else {
        panic!("line {number}: neither a step nor anything else: {line}");
    };
    let (sql, expect) = match rest.rsplit_once(" => ") {
        Some((sql, expect)) => (sql.trim(), expectation(number, expect.trim())),
        None => (rest.trim(), Expect::Success),
    };
    let sql = (sql != "unblocks").then(|| sql.to_owned());
    Step { line: number, session: session.trim().to_owned(), sql, expect }
}

fn expectation(number: usize, text: &str) -> Expect {
    if text == "blocks" {
        return Expect::Blocks;
    }
    if text == "nothing" {
        return Expect::Rows(Vec::new());
    }
    if let Some(state) = text.strip_prefix("error ") {
        return Expect::Error(state.trim().to_owned());
    }
    if let Ok(count) = text.parse() {
        return Expect::Changed(count);
    }
    assert!(text.starts_with('(') && text.ends_with(')'), "line {number}: what is {text:?}?");
    let mut rows: Vec<String> =
        text[1..text.len() - 1].split(") (").map(|row| format!("({row})")).collect();
    rows.sort();
    Expect::Rows(rows)
}

/// A session in its own thread.
struct Seat {
    name: String,
    orders: Sender<String>,
    results: Receiver<Outcome>,
    /// Whether its current statement is known to wait.
    blocked: bool,
}

impl Seat {
    fn new(name: &str, mut party: Box<dyn Party>) -> Self {
        let (orders, inbox) = channel::<String>();
        let (outbox, results) = channel();
        std::thread::spawn(move || {
            for sql in inbox {
                if outbox.send(party.run(&sql)).is_err() {
                    return;
                }
            }
        });
        Self { name: name.to_owned(), orders, results, blocked: false }
    }
}

/// Runs a scenario. If a result differs from the expectation, returns it with the lines before it.
pub fn run(scenario: &Scenario, ground: &dyn Ground) -> Result<(), String> {
    let mut first = ground.party();
    for sql in &scenario.setup {
        if let error @ Outcome::Error(..) = first.run(sql) {
            return Err(format!("{}: setup: {sql}: {error}", scenario.name));
        }
    }
    let mut seats: Vec<Seat> = Vec::new();
    let mut told = String::new();
    let mut result = Ok(());
    for step in &scenario.steps {
        let outcome = perform(step, &mut seats, ground);
        let said = step.sql.as_deref().unwrap_or("unblocks");
        let line = format!("{:4} {}: {said}", step.line, step.session);
        match outcome {
            Ok(outcome) => told.push_str(&format!("{line} => {outcome}\n")),
            Err(wrong) => {
                result = Err(format!("{}\n{told}{line}\n     {wrong}", scenario.name));
                break;
            }
        }
    }
    // Sessions end here. Their transactions are rolled back, which releases sessions that still
    // wait.
    let ends: Vec<Receiver<Outcome>> = seats
        .into_iter()
        .map(|seat| {
            drop(seat.orders);
            seat.results
        })
        .collect();
    for end in ends {
        while end.recv_timeout(PATIENCE).is_ok() {}
    }
    for sql in &scenario.teardown {
        if let error @ Outcome::Error(..) = first.run(sql) {
            return result.and(Err(format!("{}: teardown: {sql}: {error}", scenario.name)));
        }
    }
    result
}

fn perform(step: &Step, seats: &mut Vec<Seat>, ground: &dyn Ground) -> Result<String, String> {
    if !seats.iter().any(|seat| seat.name == step.session) {
        seats.push(Seat::new(&step.session, ground.party()));
    }
    let others = seats.iter().filter(|s| s.blocked && s.name != step.session).count();
    let Some(seat) = seats.iter_mut().find(|seat| seat.name == step.session) else {
        return Err("no such session".to_owned());
    };
    match &step.sql {
        Some(_) if seat.blocked => return Err("the session is still blocked".to_owned()),
        Some(sql) => seat.orders.send(sql.clone()).map_err(|e| e.to_string())?,
        None if !seat.blocked => return Err("the session is not blocked".to_owned()),
        None => seat.blocked = false,
    }
    if step.expect == Expect::Blocks {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match seat.results.recv_timeout(GLANCE) {
                Ok(outcome) => return Err(format!("does not block, but ends: {outcome}")),
                Err(RecvTimeoutError::Disconnected) => return Err("the session died".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if ground.waiting() > others {
                seat.blocked = true;
                return Ok("blocks".to_owned());
            }
        }
        return Err("neither blocks nor ends".to_owned());
    }
    let outcome = match seat.results.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => {
            return Err(format!("blocks; {} sessions wait for locks", ground.waiting()));
        }
        Err(RecvTimeoutError::Disconnected) => return Err("the session died".to_owned()),
    };
    check(&step.expect, outcome)
}

fn check(expect: &Expect, mut outcome: Outcome) -> Result<String, String> {
    if let Outcome::Rows(rows) = &mut outcome {
        rows.sort();
    }
    let (same, wanted) = match (expect, &outcome) {
        (Expect::Success, outcome) => {
            (!matches!(outcome, Outcome::Error(..)), "success".to_owned())
        }
        (Expect::Changed(count), outcome) => {
            (*outcome == Outcome::Changed(*count), count.to_string())
        }
        (Expect::Rows(rows), outcome) => {
            let wanted = Outcome::Rows(rows.clone());
            (wanted == *outcome, wanted.to_string())
        }
        (Expect::Error(state), Outcome::Error(found, _)) => (state == found, state.clone()),
        (Expect::Error(state), _) => (false, format!("error {state}")),
        (Expect::Blocks, _) => (false, "blocks".to_owned()),
    };
    if same { Ok(outcome.to_string()) } else { Err(format!("expected {wanted}, found {outcome}")) }
}

/// Runs all scenarios of a script. Returns their number, or a description of each failure.
pub fn run_all(script: &str, ground: &dyn Ground) -> Result<usize, String> {
    let scenarios = parse(script);
    let wrong: Vec<String> =
        scenarios.iter().filter_map(|scenario| run(scenario, ground).err()).collect();
    if wrong.is_empty() { Ok(scenarios.len()) } else { Err(wrong.join("\n\n")) }
}
