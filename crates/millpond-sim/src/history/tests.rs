//! The checker finds each anomaly in the smallest history that has it, and accepts what the levels
//! allow.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::workload::{Client, Epoch, Failed, Rows, Shared, transaction};
use super::*;

/// A history, built step by step.
#[derive(Default)]
struct Story {
    txns: Vec<Txn>,
}

impl Story {
    /// Adds a transaction that runs from `begun` to `ended`.
    fn txn(mut self, level: Level, fate: Fate, (begun, ended): (u64, u64), ops: &[Op]) -> Self {
        self.txns.push(Txn { level, fate, begun, ended, ops: ops.to_vec() });
        self
    }

    /// Adds two transactions that overlap.
    fn both(self, level: Level, first: &[Op], second: &[Op]) -> Self {
        self.txn(level, Fate::Committed, (10, 100), first).txn(
            level,
            Fate::Committed,
            (10, 100),
            second,
        )
    }

    fn last(self, ops: &[Op]) -> Self {
        self.txn(RR, Fate::Committed, (1000, 1001), ops)
    }

    #[track_caller]
    fn has(&self, kinds: &[Kind]) {
        let found = check(&self.txns);
        let mut names: Vec<Kind> = found.iter().map(|anomaly| anomaly.kind).collect();
        names.sort();
        names.dedup();
        assert_eq!(names, kinds, "{found:#?}");
    }
}

impl Story {
    /// For histories whose anomaly can have several names.
    #[track_caller]
    fn includes(&self, kind: Kind) {
        let found = check(&self.txns);
        assert!(found.iter().any(|anomaly| anomaly.kind == kind), "{found:#?}");
    }
}

const RC: Level = Level::ReadCommitted;
const RR: Level = Level::RepeatableRead;
const LEVELS: [Level; 2] = [RC, RR];

fn append(key: u32, value: u32) -> Op {
    Op::Append { key, value }
}

fn list(key: u32, values: &[u32]) -> Op {
    Op::List { key, values: values.to_vec() }
}

fn write(key: u32, value: u32, version: u32) -> Op {
    Op::Write { key, value, version }
}

fn read(key: u32, value: u32, version: u32) -> Op {
    Op::Read { key, value, version }
}

#[test]
fn serial_history_has_no_anomaly() {
    for level in LEVELS {
        Story::default()
            .txn(level, Fate::Committed, (1, 2), &[append(1, 1), write(1, 7, 1)])
            .txn(level, Fate::Committed, (3, 4), &[list(1, &[1]), append(1, 2), list(1, &[1, 2])])
            .txn(level, Fate::Aborted, (5, 6), &[append(1, 3), list(1, &[1, 2, 3])])
            .txn(level, Fate::Committed, (7, 8), &[read(1, 7, 1), write(1, 8, 2), read(1, 8, 2)])
            .last(&[list(1, &[1, 2]), read(1, 8, 2), list(2, &[]), read(2, 0, 0)])
            .has(&[]);
    }
}

#[test]
fn dirty_writes() {
    for level in LEVELS {
        // Interleaved appends.
        Story::default()
            .both(level, &[append(1, 1), append(1, 3)], &[append(1, 2)])
            .last(&[list(1, &[1, 2, 3])])
            .has(&[Kind::DirtyWrite]);
        // In one list the first is first, in the other list the second.
        Story::default()
            .both(level, &[append(1, 1), append(2, 1)], &[append(1, 2), append(2, 2)])
            .last(&[list(1, &[1, 2]), list(2, &[2, 1])])
            .has(&[Kind::DirtyWrite]);
        Story::default()
            .both(level, &[write(1, 1, 1), write(2, 1, 2)], &[write(1, 2, 2), write(2, 2, 1)])
            .last(&[read(1, 2, 2), read(2, 1, 2)])
            .has(&[Kind::DirtyWrite]);
        // On top of a write that was rolled back.
        Story::default()
            .txn(level, Fate::Aborted, (1, 9), &[write(1, 1, 1)])
            .txn(level, Fate::Committed, (1, 9), &[write(1, 2, 2)])
            .last(&[read(1, 2, 2)])
            .has(&[Kind::DirtyWrite]);
    }
}

#[test]
fn aborted_reads() {
    for (level, fate) in [(RC, Fate::Committed), (RR, Fate::Committed), (RC, Fate::Aborted)] {
        Story::default()
            .txn(level, Fate::Aborted, (1, 9), &[append(1, 1)])
            .txn(level, fate, (1, 9), &[list(1, &[1])])
            .has(&[Kind::AbortedRead]);
        Story::default()
            .txn(level, Fate::Aborted, (1, 9), &[write(1, 1, 1)])
            .txn(level, fate, (1, 9), &[read(1, 1, 1)])
            .has(&[Kind::AbortedRead]);
    }
}

#[test]
fn intermediate_reads() {
    for level in LEVELS {
        Story::default()
            .both(level, &[append(1, 1), append(1, 2)], &[list(1, &[1])])
            .last(&[list(1, &[1, 2])])
            .includes(Kind::IntermediateRead);
        Story::default()
            .both(level, &[write(1, 1, 1), write(1, 2, 2)], &[read(1, 1, 1)])
            .last(&[read(1, 2, 2)])
            .includes(Kind::IntermediateRead);
    }
}

#[test]
fn circular_information_flow() {
    for level in LEVELS {
        Story::default()
            .both(level, &[append(1, 1), list(2, &[2])], &[append(2, 2), list(1, &[1])])
            .last(&[list(1, &[1]), list(2, &[2])])
            .has(&[Kind::CircularFlow]);
        Story::default()
            .both(level, &[write(1, 1, 1), read(2, 2, 1)], &[write(2, 2, 1), read(1, 1, 1)])
            .last(&[read(1, 1, 1), read(2, 2, 1)])
            .has(&[Kind::CircularFlow]);
    }
}

#[test]
fn lost_updates_are_for_read_committed_only() {
    for level in LEVELS {
        let expected: &[Kind] = if level == RC { &[] } else { &[Kind::LostUpdate] };
        Story::default()
            .both(level, &[read(1, 0, 0), write(1, 1, 1)], &[read(1, 0, 0), write(1, 2, 2)])
            .last(&[read(1, 2, 2)])
            .has(expected);
        Story::default()
            .both(level, &[list(1, &[]), append(1, 1)], &[list(1, &[]), append(1, 2)])
            .last(&[list(1, &[1, 2])])
            .has(expected);
        // Two writes became the same version: one is lost, whatever the level.
        Story::default()
            .both(level, &[write(1, 1, 1)], &[write(1, 2, 1)])
            .last(&[read(1, 2, 1)])
            .has(&[Kind::LostUpdate]);
    }
}

#[test]
fn read_skew_is_for_read_committed_only() {
    for level in LEVELS {
        let expected: &[Kind] = if level == RC { &[] } else { &[Kind::ReadSkew] };
        Story::default()
            .both(level, &[list(1, &[]), list(2, &[2])], &[append(1, 1), append(2, 2)])
            .last(&[list(1, &[1]), list(2, &[2])])
            .has(expected);
        Story::default()
            .both(level, &[read(1, 0, 0), read(2, 2, 1)], &[write(1, 1, 1), write(2, 2, 1)])
            .last(&[read(1, 1, 1), read(2, 2, 1)])
            .has(expected);
    }
    // With mixed levels, the reader's level counts.
    Story::default()
        .txn(RR, Fate::Committed, (10, 100), &[list(1, &[]), list(2, &[2])])
        .txn(RC, Fate::Committed, (10, 100), &[append(1, 1), append(2, 2)])
        .last(&[list(1, &[1]), list(2, &[2])])
        .has(&[Kind::ReadSkew]);
    Story::default()
        .txn(RC, Fate::Committed, (10, 100), &[list(1, &[]), list(2, &[2])])
        .txn(RR, Fate::Committed, (10, 100), &[append(1, 1), append(2, 2)])
        .last(&[list(1, &[1]), list(2, &[2])])
        .has(&[]);
}

#[test]
fn write_skew_is_allowed_and_non_adjacent_cycles_are_not() {
    for level in LEVELS {
        Story::default()
            .both(level, &[list(1, &[]), append(2, 2)], &[list(2, &[]), append(1, 1)])
            .last(&[list(1, &[1]), list(2, &[2])])
            .has(&[]);
    }
    // Two readers see two writers in different orders.
    Story::default()
        .txn(RR, Fate::Committed, (10, 100), &[append(1, 1)])
        .txn(RR, Fate::Committed, (10, 100), &[append(2, 2)])
        .txn(RR, Fate::Committed, (10, 100), &[list(1, &[1]), list(2, &[])])
        .txn(RR, Fate::Committed, (10, 100), &[list(1, &[]), list(2, &[2])])
        .last(&[list(1, &[1]), list(2, &[2])])
        .has(&[Kind::NonAdjacent]);
}

#[test]
fn stale_reads() {
    for level in LEVELS {
        Story::default()
            .txn(level, Fate::Committed, (1, 2), &[append(1, 1)])
            .txn(level, Fate::Committed, (3, 4), &[list(1, &[])])
            .last(&[list(1, &[1])])
            .has(&[Kind::StaleRead]);
        // The same with a register.
        Story::default()
            .txn(level, Fate::Committed, (1, 2), &[write(1, 1, 1)])
            .txn(level, Fate::Committed, (3, 4), &[read(1, 0, 0)])
            .last(&[read(1, 1, 1)])
            .has(&[Kind::StaleRead]);
        // Concurrent transactions are not stale.
        Story::default()
            .txn(level, Fate::Committed, (1, 3), &[append(1, 1)])
            .txn(level, Fate::Committed, (2, 4), &[list(1, &[])])
            .last(&[list(1, &[1])])
            .has(&[]);
    }
}

#[test]
fn lost_writes() {
    Story::default()
        .txn(RC, Fate::Committed, (1, 2), &[append(1, 1)])
        .last(&[list(1, &[])])
        .has(&[Kind::LostWrite]);
    Story::default()
        .txn(RC, Fate::Committed, (1, 2), &[append(1, 1)])
        .txn(RC, Fate::Committed, (3, 4), &[append(1, 2)])
        .last(&[list(1, &[2])])
        .has(&[Kind::LostWrite]);
}

#[test]
fn disorder_and_garbage() {
    Story::default()
        .both(RC, &[append(1, 1)], &[append(1, 2)])
        .txn(RC, Fate::Committed, (20, 30), &[list(1, &[2])])
        .last(&[list(1, &[1, 2])])
        .includes(Kind::Disorder);
    Story::default().last(&[list(1, &[9])]).has(&[Kind::Garbage]);
    Story::default()
        .txn(RC, Fate::Committed, (1, 2), &[append(1, 1)])
        .last(&[list(1, &[1, 1])])
        .has(&[Kind::Garbage]);
    Story::default().last(&[read(1, 5, 1)]).has(&[Kind::Garbage]);
    Story::default()
        .txn(RC, Fate::Committed, (1, 2), &[write(1, 5, 1)])
        .last(&[read(1, 5, 2)])
        .has(&[Kind::Garbage]);
}

#[test]
fn own_steps_are_seen() {
    for level in LEVELS {
        Story::default()
            .txn(level, Fate::Committed, (1, 2), &[append(1, 1), list(1, &[])])
            .last(&[list(1, &[1])])
            .has(&[Kind::Internal]);
        Story::default()
            .txn(level, Fate::Aborted, (1, 2), &[write(1, 1, 1), read(1, 0, 0)])
            .has(&[Kind::Internal]);
    }
    // In READ COMMITTED a later read sees what other transactions did in between.
    let twice = [list(1, &[]), list(1, &[1])];
    Story::default().both(RC, &twice, &[append(1, 1)]).last(&[list(1, &[1])]).has(&[]);
    Story::default().both(RR, &twice, &[append(1, 1)]).includes(Kind::Internal);
}

#[test]
fn commits_that_were_never_answered() {
    let unknown = |ops: &[Op]| Story::default().txn(RC, Fate::Unknown, (1, 50), ops);
    // Either outcome is correct, but not half of it.
    unknown(&[append(1, 1), append(2, 1)]).last(&[list(1, &[]), list(2, &[])]).has(&[]);
    unknown(&[append(1, 1), append(2, 1)]).last(&[list(1, &[1]), list(2, &[1])]).has(&[]);
    unknown(&[append(1, 1), append(2, 1)])
        .last(&[list(1, &[1]), list(2, &[])])
        .has(&[Kind::LostWrite, Kind::TornCommit]);
    unknown(&[append(1, 1), write(1, 1, 1)])
        .last(&[list(1, &[1]), read(1, 0, 0)])
        .has(&[Kind::ReadSkew, Kind::TornCommit]);
    // Another transaction has seen it, so it must stay.
    unknown(&[append(1, 1)])
        .txn(RC, Fate::Committed, (5, 6), &[list(1, &[1])])
        .last(&[list(1, &[])])
        .has(&[Kind::StaleRead]);
    // Another version follows it.
    unknown(&[write(1, 1, 1)])
        .txn(RC, Fate::Committed, (60, 70), &[write(1, 2, 2)])
        .last(&[read(1, 2, 2)])
        .has(&[]);
    // Or it was rolled back, and another write got its version.
    unknown(&[write(1, 1, 1)])
        .txn(RC, Fate::Committed, (60, 70), &[write(1, 2, 1)])
        .last(&[read(1, 2, 1)])
        .has(&[]);
    // It was rolled back. Another transaction got its version, read its own write, and was rolled
    // back, too.
    unknown(&[write(1, 1, 1)])
        .txn(RC, Fate::Aborted, (60, 70), &[write(1, 2, 1), read(1, 2, 1)])
        .last(&[read(1, 0, 0)])
        .has(&[]);
}

/// A database that never finds a row.
struct Forgetful;

impl Client for Forgetful {
    fn run(&mut self, _sql: &str) -> Result<Rows, Failed> {
        Ok(Rows::new())
    }
}

/// A row that a statement does not find leaves no trace in a history, so the statement itself must
/// fail.
#[test]
fn a_row_that_is_not_found_is_noticed() {
    let mut unnoticed = 0;
    for seed in 0..100 {
        let mut random = StdRng::seed_from_u64(seed);
        match transaction(&mut Forgetful, Epoch(7), &Shared::default(), &mut random, true) {
            Err(error) => assert!(error.contains("0 rows instead of"), "seed {seed}: {error}"),
            // The statements asked only for rows that others may hold.
            Ok(_) => unnoticed += 1,
        }
    }
    assert!(unnoticed < 10, "{unnoticed} of 100");
}
