//! Counts what statements write to memory that sessions share.
//!
//! Two sessions run the same statement in turn with random keys, in an engine whose background
//! threads have ended. Only the writes of the sessions' own threads count, per statement:
//!
//! - **shared writes**: atomic read-modify-writes (successful or not), stores to atomics, and
//!   locking and unlocking mutexes and queues. They count in memory that several sessions write, or
//!   that other sessions read during their statements. PostgreSQL's 28 to 29 for a select are
//!   counted in this unit;
//! - **content**: the bytes of pages and log records that are the statement's purpose, in cache
//!   lines;
//! - **own**: writes to lines that belong to the session and that others rarely read
//!   (`millpond_sync::audit::session_owned`).
//!
//! A *common* line is one that both sessions write in most of their statements. Cores must pass it
//! to one another.

use super::profile::Visit;
use super::workload::{Driver, Statement, World};
use millpond_engine::EngineResult;
use millpond_sync::audit::place;
use millpond_sync::audit::writes::{Kind, Subsystem, Write, writes_of};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// What is counted: a statement up to its commit, or a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A transaction that reads: its statement and its commit.
    Read(Statement),
    /// A statement without its commit.
    Change(Statement),
    /// The commit of a transaction that changed something.
    Commit {
        /// Whether it waits until the log is durable.
        sync: bool,
    },
}

impl Step {
    /// All steps, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::Read(Statement::SelectByKey),
        Self::Read(Statement::SelectRange),
        Self::Change(Statement::Insert),
        Self::Change(Statement::UpdateInPage),
        Self::Change(Statement::UpdateIndexed),
        Self::Commit { sync: false },
        Self::Commit { sync: true },
    ];

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read(statement) | Self::Change(statement) => statement.name(),
            Self::Commit { sync: false } => "commit without sync",
            Self::Commit { sync: true } => "commit with sync",
        }
    }
}

/// The writes of one subsystem, in total.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Atomic read-modify-writes of shared words.
    pub read_modify: u64,
    /// Stores to shared words.
    pub stores: u64,
    /// Locking and unlocking of mutexes and queues.
    pub locks: u64,
    /// Cache lines of content.
    pub content: u64,
    /// Writes to the session's own lines.
    pub own: u64,
}

impl Tally {
    fn add(&mut self, write: &Write) {
        let count = match (write.session_owned, write.kind) {
            (_, Kind::Load) => return,
            (true, _) => &mut self.own,
            (false, Kind::ReadModifyWrite) => &mut self.read_modify,
            (false, Kind::Store) => &mut self.stores,
            (false, Kind::Lock) => &mut self.locks,
            (false, Kind::Content) => &mut self.content,
        };
        *count += 1;
    }

    /// Writes to shared words.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.read_modify + self.stores + self.locks
    }
}

/// The counts of one step.
#[derive(Debug, Clone)]
pub struct Count {
    /// The step.
    pub step: Step,
    /// The number of runs counted.
    pub times: u64,
    /// The writes by subsystem.
    pub tallies: HashMap<Subsystem, Tally>,
    /// The visits to common lines in a typical statement.
    pub common: Vec<Visit>,
    /// The shared lines written per statement that are not common.
    pub spread_lines: f64,
}

impl Count {
    /// Shared writes per step.
    #[must_use]
    pub fn shared(&self) -> f64 {
        self.mean(Tally::shared)
    }

    /// The mean of a figure over the counted steps.
    #[must_use]
    pub fn mean(&self, what: impl Fn(&Tally) -> u64) -> f64 {
        self.tallies.values().map(what).sum::<u64>() as f64 / self.times as f64
    }
}

/// Counts all steps, each `times` times after as many runs to warm up.
pub fn count_all(times: u64) -> EngineResult<Vec<Count>> {
    let world = place::shared(|| {
        let world = World::new(2)?;
        world.engine().end_background_work();
        Ok::<_, millpond_engine::EngineError>(world)
    })?;
    let mut drivers = [world.driver(0)?, world.driver(1)?];
    Step::ALL.into_iter().map(|step| count(&mut drivers, step, times)).collect()
}

fn count(drivers: &mut [Driver; 2], step: Step, times: u64) -> EngineResult<Count> {
    let mut recorded = Vec::new();
    for nth in 0..times * 2 {
        let session = (nth % 2) as usize;
        let writes = record(&mut drivers[session], step)?;
        if nth >= times {
            recorded.push((session, writes));
        }
    }
    Ok(summary(step, &recorded))
}

fn record(driver: &mut Driver, step: Step) -> EngineResult<Vec<Write>> {
    let mut result = Ok(());
    let writes;
    match step {
        Step::Read(statement) => {
            writes = writes_of(|| result = driver.run(statement, true));
        }
        Step::Change(statement) => {
            writes = writes_of(|| result = driver.begin(statement, false));
            driver.commit()?;
        }
        Step::Commit { sync } => {
            driver.begin(Statement::UpdateInPage, sync)?;
            writes = writes_of(|| result = driver.commit());
        }
    }
    result.map(|()| writes)
}

fn summary(step: Step, recorded: &[(usize, Vec<Write>)]) -> Count {
    let mut tallies: HashMap<Subsystem, Tally> = HashMap::new();
    // For each line, in how many steps of each session it was written.
    let mut written: HashMap<usize, [usize; 2]> = HashMap::new();
    for (session, writes) in recorded {
        let mut lines = HashSet::new();
        for write in writes {
            tallies.entry(write.subsystem()).or_default().add(write);
            let is_shared = !write.session_owned && write.kind != Kind::Load;
            if is_shared && lines.insert(write.line) {
                written.entry(write.line).or_default()[*session] += 1;
            }
        }
    }
    let most = recorded.len() / 4;
    let is_common = |line: &usize| {
        written.get(line).is_some_and(|[first, second]| *first > most && *second > most)
    };
    let times = recorded.len() as f64;
    let spread: usize =
        written.iter().filter(|(line, _)| !is_common(line)).map(|(_, [a, b])| a + b).sum();
    let common = recorded.last().map_or(Vec::new(), |(_, writes)| visits(writes, is_common));
    let spread_lines = spread as f64 / times;
    Count { step, times: recorded.len() as u64, tallies, common, spread_lines }
}

/// The visits: adjacent accesses to the same common line are one visit.
fn visits(writes: &[Write], is_common: impl Fn(&usize) -> bool) -> Vec<Visit> {
    let mut names: HashMap<usize, (Subsystem, usize)> = HashMap::new();
    for write in writes.iter().filter(|write| write.kind != Kind::Load) {
        let known = names.len();
        names.entry(write.line).or_insert((write.subsystem(), known));
    }
    let mut visits: Vec<Visit> = Vec::new();
    let mut last = None;
    for write in writes.iter().filter(|write| is_common(&write.line)) {
        let is_write = write.kind != Kind::Load;
        if last.replace(write.line) == Some(write.line) {
            if let Some(visit) = visits.last_mut() {
                visit.writes |= is_write;
            }
            continue;
        }
        let name = names.get(&write.line).map_or("?", |(subsystem, _)| subsystem.name());
        visits.push(Visit { line: write.line, name, writes: is_write });
    }
    visits
}

/// The report.
#[must_use]
pub fn report(counts: &[Count]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<28} {:>7} {:>7} {:>7} {:>7} {:>9} {:>7} {:>8}",
        "per statement or commit", "shared", "rmw", "stores", "locks", "content", "own", "common"
    );
    for count in counts {
        let mean = |what: fn(&Tally) -> u64| count.mean(what);
        let common: HashSet<usize> = count.common.iter().map(|visit| visit.line).collect();
        let _ = writeln!(
            text,
            "{:<28} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>9.2} {:>7.2} {:>8}",
            count.step.name(),
            count.shared(),
            mean(|tally| tally.read_modify),
            mean(|tally| tally.stores),
            mean(|tally| tally.locks),
            mean(|tally| tally.content),
            mean(|tally| tally.own),
            common.len(),
        );
    }
    let _ = writeln!(
        text,
        "{:<28} {:>7}   (by a count of its code; on shared lines, its sessions' lock lines among them)",
        "PostgreSQL 18, select by key", "28-29"
    );
    by_subsystem(&mut text, counts);
    common_lines(&mut text, counts);
    text
}

fn by_subsystem(text: &mut String, counts: &[Count]) {
    let _ = write!(text, "\n{:<20}", "shared, by subsystem");
    for count in counts {
        let _ = write!(text, " {:>12}", short(count.step));
    }
    let _ = writeln!(text);
    for subsystem in Subsystem::ALL {
        let tally = |count: &Count| count.tallies.get(&subsystem).copied().unwrap_or_default();
        let per_step = |count: &Count, what: u64| what as f64 / count.times as f64;
        let shared: fn(&Tally) -> u64 = Tally::shared;
        for (suffix, what) in [("", shared), (" (lines)", |tally| tally.content)] {
            if counts.iter().all(|count| what(&tally(count)) == 0) {
                continue;
            }
            let _ = write!(text, "{:<20}", format!("{subsystem}{suffix}"));
            for count in counts {
                let _ = write!(text, " {:>12.2}", per_step(count, what(&tally(count))));
            }
            let _ = writeln!(text);
        }
    }
}

fn common_lines(text: &mut String, counts: &[Count]) {
    let _ = writeln!(text, "\nvisits to common lines, in order (r: only reads)");
    for count in counts {
        let mut lines: Vec<usize> = Vec::new();
        let visits: Vec<String> = count
            .common
            .iter()
            .map(|visit| {
                let at = lines.iter().position(|line| *line == visit.line).unwrap_or_else(|| {
                    lines.push(visit.line);
                    lines.len() - 1
                });
                let read = if visit.writes { "" } else { " r" };
                format!("{} #{at}{read}", visit.name)
            })
            .collect();
        let visits = if visits.is_empty() { "none".to_owned() } else { visits.join(", ") };
        let _ = writeln!(
            text,
            "{}: {visits}; other shared lines written: {:.2}",
            count.step.name(),
            count.spread_lines
        );
    }
}

fn short(step: Step) -> &'static str {
    match step {
        Step::Read(Statement::SelectByKey) => "select",
        Step::Read(_) => "range",
        Step::Change(Statement::Insert) => "insert",
        Step::Change(Statement::UpdateInPage) => "update",
        Step::Change(_) => "update-index",
        Step::Commit { sync: false } => "commit-async",
        Step::Commit { sync: true } => "commit-sync",
    }
}
