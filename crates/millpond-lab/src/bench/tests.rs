//! Pins what statements write: a change that writes more to shared memory fails here.
#![allow(clippy::unwrap_used)]

use super::profile;
use super::workload::Statement;
use super::writes::{Count, Step, count_all};
use millpond_sync::audit::place::PlacingAllocator;

#[global_allocator]
static ALLOCATOR: PlacingAllocator = PlacingAllocator;

/// The shared writes of each step, as in docs/scaling.md.
const PINNED: [(Step, f64); 7] = [
    (Step::Read(Statement::SelectByKey), 0.0),
    (Step::Read(Statement::SelectRange), 0.0),
    (Step::Change(Statement::Insert), 17.7),
    (Step::Change(Statement::UpdateInPage), 7.0),
    (Step::Change(Statement::UpdateIndexed), 17.5),
    (Step::Commit { sync: false }, 4.0),
    (Step::Commit { sync: true }, 21.0),
];

/// The goal for an update and its commit (without sync).
const UPDATE: f64 = 12.0;

#[test]
fn statement_writes_match_pinned_counts() {
    let counts = count_all(400).unwrap();
    let count = |step| counts.iter().find(|count| count.step == step).unwrap();
    for (step, pinned) in PINNED {
        let found = count(step).shared();
        // Page splits and new pages happen by chance.
        let tolerance = if pinned < 8.0 { 0.1 } else { 0.8 };
        let is_pinned =
            if pinned == 0.0 { found == 0.0 } else { (found - pinned).abs() < tolerance };
        assert!(is_pinned, "{step:?}: {found} shared writes, not {pinned}");
    }
    let commit = count(Step::Commit { sync: false });
    let update = count(Step::Change(Statement::UpdateInPage)).shared() + commit.shared();
    assert!(update <= UPDATE, "an update and its commit: {update} shared writes");

    // The model must use the counted figures.
    let log = |count: &Count| {
        count.common.iter().filter(|visit| visit.writes && visit.name == "wal: control").count()
    };
    assert_eq!(log(commit), 1);
    for statement in [Statement::Insert, Statement::UpdateInPage, Statement::UpdateIndexed] {
        let change = count(Step::Change(statement));
        assert!((1..=profile::records(statement)).contains(&log(change)), "{change:?}");
        // The model does not spread the statuses of transactions.
        let spread = change.spread_lines + commit.spread_lines - 2.0;
        let (control, content) = profile::spread_lines(statement);
        let model = (control + content) as f64;
        let tolerance = model * 0.1 + 1.5;
        assert!((spread - model).abs() <= tolerance, "{statement:?}: {spread}, not {model}");
    }
}
