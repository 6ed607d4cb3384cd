//! Which cache lines a statement takes from other cores: Millpond's as `millpond bench writes` counts them (a test
//! compares), PostgreSQL's by a count of its code.

use super::workload::Statement;

/// A visit to a line that several sessions visit, as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Which line.
    pub line: usize,
    /// What it is.
    pub name: &'static str,
    /// Whether it is written; else only read.
    pub writes: bool,
}

/// Lines of one kind, of which a statement visits one by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineGroup {
    /// What they are.
    pub name: &'static str,
    /// How many there are; one, if all sessions visit the same.
    pub lines: usize,
}

/// A visit to a line of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The group, by number.
    pub group: usize,
    /// Whether the line is written; else only read.
    pub writes: bool,
}

/// A statement, as the model runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Processor time of one core alone.
    pub work_ns: f64,
    /// The lines it visits.
    pub groups: Vec<LineGroup>,
    /// Its visits, in order.
    pub steps: Vec<Step>,
}

/// A statement without visits to shared lines.
fn alone(name: &'static str, work_ns: f64) -> Profile {
    Profile { name, work_ns, groups: Vec::new(), steps: Vec::new() }
}

/// Ids of transactions, and the log's end, and the clock of commits: one line each.
const COMMON: [&str; 3] = ["next id", "end of the log", "clock of commits"];
const XID: usize = 0;
const LOG: usize = 1;
const CLOCK: usize = 2;
/// Statuses of transactions that run at the same time: eight in a line, so neighbours are in each other's way.
const STATUS: usize = 3;
const STATUS_LINES: usize = 8;
/// What else is written is spread over so many lines that nobody waits for it, but most are elsewhere.
const SPREAD: usize = 4;
const SPREAD_LINES: usize = 1 << 16;
/// Lines of content that a core has under way at the same time: plain stores to lines that follow each other. (A core of
/// Intel's has ten line fill buffers and more.)
const OVERLAP: usize = 4;

/// A statement of Millpond's, through the engine's API, with its commit, which does not wait for the log.
#[must_use]
pub fn millpond(statement: Statement, work_ns: f64) -> Profile {
    let (control, content) = spread_lines(statement);
    let spread = control + content.div_ceil(OVERLAP);
    if statement.is_read_only() {
        return alone(statement.name(), work_ns);
    }
    let mut groups: Vec<_> = COMMON.map(|name| LineGroup { name, lines: 1 }).into();
    groups.push(LineGroup { name: "statuses", lines: STATUS_LINES });
    let write = |group| Step { group, writes: true };
    // The snapshot; the id and its status; ...
    let mut steps = vec![Step { group: CLOCK, writes: false }, write(XID), write(STATUS)];
    // ... pages and records, among which is the place in the log; ...
    for nth in 0..spread {
        if nth == spread / 2 {
            steps.extend((0..records(statement)).map(|_| write(LOG)));
        }
        groups.push(LineGroup { name: "pages and records", lines: SPREAD_LINES });
        steps.push(write(SPREAD + nth));
    }
    // ... the commit.
    steps.extend([write(LOG), write(STATUS), write(CLOCK), write(STATUS)]);
    Profile { name: statement.name(), work_ns, groups, steps }
}

/// Shared lines, besides the common ones and statuses, that a statement with its commit writes: those of latches and
/// descriptors, and those of content, which are bytes of pages and log records.
#[must_use]
pub fn spread_lines(statement: Statement) -> (usize, usize) {
    match statement {
        Statement::SelectByKey | Statement::SelectRange => (0, 0),
        Statement::Insert => (6, 77),
        Statement::UpdateInPage => (2, 11),
        Statement::UpdateIndexed => (6, 116),
    }
}

/// Records that a statement puts into the log before that of its commit.
#[must_use]
pub fn records(statement: Statement) -> usize {
    match statement {
        Statement::SelectByKey | Statement::SelectRange => 0,
        Statement::UpdateInPage => 1,
        Statement::Insert | Statement::UpdateIndexed => 3,
    }
}

/// Processor time of a select by key with its client: two cores, two clients of `pgbench -S -M prepared` on the same machine
/// (docs/benchmarks.md, point selects).
const MILLPOND_SELECT_NS: f64 = 2e9 / 177_915.0;
const POSTGRESQL_SELECT_NS: f64 = 2e9 / 111_386.0;

/// Millpond's select through its server, client included.
#[must_use]
pub fn millpond_select() -> Profile {
    alone("Millpond", MILLPOND_SELECT_NS)
}

/// PostgreSQL's select by key, prepared, client included.
///
/// Of the 28 to 29 atomic writes 20 are placed here, two next to each other being one visit: `ProcArrayLock` is taken and
/// given back for each of two snapshots; the root, an inner page, a leaf and a page of the table are each pinned and locked,
/// and unlocked and unpinned. The other 8 to 9 go to the lock lines of the session's own, which cost nothing here.
#[must_use]
pub fn postgresql_select() -> Profile {
    let group = |name, lines| LineGroup { name, lines };
    let groups = vec![
        group("ProcArrayLock", 1),
        group("descriptor of the root", 1),
        group("descriptors of inner pages", 100),
        group("descriptors of leaves", 27_000),
        group("descriptors of the table", 160_000),
    ];
    let visits = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4];
    let steps = visits.map(|group| Step { group, writes: true }).into();
    Profile { name: "PostgreSQL 18", work_ns: POSTGRESQL_SELECT_NS, groups, steps }
}
