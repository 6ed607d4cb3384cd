//! Statements as the [model](super::model) of many cores runs them: a time of work, and visits to
//! cache lines that other cores visit, too ([`Profile`]).
//!
//! Millpond's visits are those that `millpond bench writes` counts; a test compares them.
//! PostgreSQL's are counted in its code.

use super::workload::Statement;

/// A recorded visit to a line that several sessions visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The line.
    pub line: usize,
    /// The line's name.
    pub name: &'static str,
    /// Whether the visit writes the line, or only reads it.
    pub writes: bool,
}

/// Lines of one kind. A statement visits a random one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineGroup {
    /// The name of the lines.
    pub name: &'static str,
    /// The number of lines; one if all sessions visit the same line.
    pub lines: usize,
}

/// A visit to a line of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The group, by number.
    pub group: usize,
    /// Whether the visit writes the line, or only reads it.
    pub writes: bool,
}

/// A statement as the model runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Its processor time on one core alone.
    pub work_ns: f64,
    /// The lines that it visits.
    pub groups: Vec<LineGroup>,
    /// Its visits, in order.
    pub steps: Vec<Step>,
}

/// A statement without visits to shared lines.
fn alone(name: &'static str, work_ns: f64) -> Profile {
    Profile { name, work_ns, groups: Vec::new(), steps: Vec::new() }
}

/// One line each for the next transaction id, the end of the log, and the clock of commits.
const COMMON: [&str; 3] = ["next id", "end of the log", "clock of commits"];
const XID: usize = 0;
const LOG: usize = 1;
const CLOCK: usize = 2;
/// Statuses of concurrent transactions. Eight are in a line, so neighbours contend for it.
const STATUS: usize = 3;
const STATUS_LINES: usize = 8;
/// Other writes are spread over enough lines that no core waits; most lines are elsewhere.
const SPREAD: usize = 4;
const SPREAD_LINES: usize = 1 << 16;
/// Transfers of content lines that a core overlaps: plain stores to adjacent lines. (An Intel core
/// has ten or more line fill buffers.)
const OVERLAP: usize = 4;

/// A statement of Millpond through the engine's API, with a commit that does not wait for the log.
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
    // The snapshot, the transaction id and its status, ...
    let mut steps = vec![Step { group: CLOCK, writes: false }, write(XID), write(STATUS)];
    // ... pages and records, and in their midst the reservation in the log, ...
    for nth in 0..spread {
        if nth == spread / 2 {
            steps.extend((0..records(statement)).map(|_| write(LOG)));
        }
        groups.push(LineGroup { name: "pages and records", lines: SPREAD_LINES });
        steps.push(write(SPREAD + nth));
    }
    // ... and the commit.
    steps.extend([write(LOG), write(STATUS), write(CLOCK), write(STATUS)]);
    Profile { name: statement.name(), work_ns, groups, steps }
}

/// The shared lines that a statement with its commit writes, without the common lines and statuses.
/// First those of latches and descriptors, then those of content (bytes of pages and log records).
#[must_use]
pub fn spread_lines(statement: Statement) -> (usize, usize) {
    match statement {
        Statement::SelectByKey | Statement::SelectRange => (0, 0),
        Statement::Insert => (6, 77),
        Statement::UpdateInPage => (2, 11),
        Statement::UpdateIndexed => (6, 116),
    }
}

/// The log records that a statement writes before that of its commit.
#[must_use]
pub fn records(statement: Statement) -> usize {
    match statement {
        Statement::SelectByKey | Statement::SelectRange => 0,
        Statement::UpdateInPage => 1,
        Statement::Insert | Statement::UpdateIndexed => 3,
    }
}

/// The processor time of a select by key with its client. Measured with two cores and two clients
/// of `pgbench -S -M prepared` on the same machine (docs/measurements, point selects).
const MILLPOND_SELECT_NS: f64 = 2e9 / 177_915.0;
const POSTGRESQL_SELECT_NS: f64 = 2e9 / 111_386.0;

/// Millpond's prepared select by key through its server, with its client.
#[must_use]
pub fn millpond_select() -> Profile {
    alone("Millpond", MILLPOND_SELECT_NS)
}

/// PostgreSQL's prepared select by key, with its client.
///
/// Of its 28 to 29 atomic writes 20 are placed here; two in a row to one line are one visit.
/// `ProcArrayLock` is taken and released for each of two snapshots. The root, an inner page, a leaf
/// and a page of the table are each pinned and locked, then unlocked and unpinned. The other 8 to 9
/// go to the session's own lock lines, which cost nothing here.
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
