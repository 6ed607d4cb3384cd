//! Hash tables that outgrow their memory: answers as with ample memory, and files that go with the
//! statement.

use std::io;
use std::sync::Arc;

use millpond_engine::TempFiles;
use millpond_vfs::OsVfs;
use millpond_vfs::testing::{AskingVfs, Call};

use super::*;
use crate::analyze::tree::SetOperator;
use crate::error::SqlState;
use crate::memory::SessionMemory;
use crate::plan::query::node::{Acceleration, Aggregate, HashJoin, Strategy};

const LITTLE: usize = 64 << 10;
const AMPLE: usize = 64 << 20;

/// Numbers below `most`, some of them often, some never; each row has a text that takes memory.
fn rows(slot: u16, count: usize, most: u64, seed: u64) -> Node {
    let mut state = seed;
    let mut number = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let text = Expr::Const(Value::from("x".repeat(150).as_str()));
    let row = |_| {
        let key = match number() % 8 {
            0 => Expr::NULL,
            1 => int((number() % 5) as i32),
            _ => int((number() % most) as i32),
        };
        vec![key, text.clone(), int((number() % 100) as i32)]
    };
    Node::Values { slot: Slot(slot), rows: (0..count).map(row).collect() }
}

fn join(kind: JoinKind, seed: u64) -> QueryPlan {
    let join = HashJoin::new(
        kind,
        (rows(0, 700, 4000, seed), rows(1, 5000, 4000, seed + 1)),
        vec![(col(0, 0), col(1, 0))],
        Some(compare(Compare::Gt, add(col(0, 2), col(1, 2)), int(90))),
    );
    let output = match kind {
        JoinKind::Semi | JoinKind::Anti => vec![col(0, 0), col(0, 2)],
        _ => vec![col(0, 0), col(0, 2), col(1, 0), col(1, 2)],
    };
    plan(Node::HashJoin(Box::new(join)), output)
}

/// The same semi-join or anti-join, which keeps the rows that it gives.
fn swapped(kind: JoinKind, seed: u64) -> QueryPlan {
    let mut swapped = join(kind, seed);
    let Node::HashJoin(join) = &mut swapped.root else { panic!() };
    std::mem::swap(&mut join.outer, &mut join.inner);
    join.keys = vec![(col(1, 0), col(0, 0))];
    join.gives_inner = true;
    swapped
}

fn aggregate(sets: Option<Vec<Vec<usize>>>, seed: u64) -> QueryPlan {
    let aggregate = Aggregate {
        input: rows(0, 12_000, 9000, seed),
        slot: Slot(2),
        keys: vec![col(0, 0), col(0, 1)],
        sets,
        calls: vec![
            call(AggregateFunction::CountRows, vec![], DataType::Int8),
            call(AggregateFunction::Sum, vec![col(0, 2)], DataType::Int8),
        ],
        states: vec![0, 1],
        grouping: vec![],
        strategy: Strategy::Hashed,
        input_rows: 1.0,
        accelerated: Acceleration::No,
        in_parts: false,
    };
    let output = (0..4).filter(|place| *place != 1).map(|place| col(2, place)).collect();
    plan(Node::Aggregate(Box::new(aggregate)), output)
}

fn distinct(seed: u64) -> QueryPlan {
    let input = Box::new(rows(0, 12_000, 9000, seed));
    let keys = vec![col(0, 1), col(0, 0)];
    plan(Node::Distinct { input, keys, sorted: false }, vec![col(0, 0)])
}

fn set_operation(operator: SetOperator, all: bool, seed: u64) -> QueryPlan {
    let side = |slot, count, seed| {
        let input = Box::new(rows(slot, count, 9000, seed));
        let exprs = vec![col(slot, 0), col(slot, 1)];
        let slot = Slot(slot + 2);
        Box::new((Node::Project { input, slot, exprs }, slot))
    };
    let (left, right) = (side(0, 9000, seed), side(1, 7000, seed + 1));
    let node = Node::SetOp { slot: Slot(4), operator, all, left, right };
    plan(node, vec![col(4, 0)])
}

fn plans(seed: u64) -> Vec<(String, QueryPlan)> {
    use JoinKind::{Anti, Full, Inner, Left, Right, Semi};
    let mut plans = Vec::new();
    for kind in [Inner, Left, Right, Full, Semi, Anti] {
        plans.push((format!("{kind:?} join"), join(kind, seed)));
    }
    for kind in [Semi, Anti] {
        let mut large = swapped(kind, seed);
        let Node::HashJoin(join) = &mut large.root else { panic!() };
        join.inner = rows(0, 5000, 4000, seed);
        plans.push((format!("{kind:?} join of inner rows"), large));
    }
    plans.push(("groups".into(), aggregate(None, seed)));
    let sets = vec![vec![0, 1], vec![0], vec![]];
    plans.push(("grouping sets".into(), aggregate(Some(sets), seed)));
    plans.push(("distinct".into(), distinct(seed)));
    for operator in [SetOperator::Intersect, SetOperator::Except] {
        for all in [false, true] {
            let name = format!("{operator:?} {all}");
            plans.push((name, set_operation(operator, all, seed)));
        }
    }
    plans
}

/// The rows of a plan in any order, or its error; after either nothing is held.
fn answer(plan: &QueryPlan, resources: &Arc<Resources>) -> Result<Vec<String>, SqlError> {
    let answer = with_resources(resources, true, |work| rows_of(plan, work));
    assert_eq!((resources.memory.used(), resources.temp_space.used_bytes()), (0, 0));
    answer.map(|mut rows| {
        rows.sort();
        rows
    })
}

fn with_work_mem(bytes: usize, temp_files: TempFiles) -> Arc<Resources> {
    let memory = SessionMemory::new(&QueryMemory::new(256 << 20));
    memory.set_work(bytes, 1.0);
    let temp_files = Arc::new(temp_files);
    Arc::new(Resources { memory, temp_files, temp_space: Arc::default() })
}

#[test]
fn answers_with_little_memory_are_those_with_ample() {
    let little = with_work_mem(LITTLE, TempFiles::default());
    let ample = with_work_mem(AMPLE, TempFiles::default());
    ample.temp_space.set_limit_kb(Some(0));
    for seed in [1, 20] {
        for (name, plan) in plans(seed) {
            let expected = answer(&plan, &ample).unwrap();
            assert!(!expected.is_empty(), "{name}");
            let found = answer(&plan, &little).unwrap();
            assert!(found == expected, "{name}: {} rows, not {}", found.len(), expected.len());
        }
    }
}

#[test]
fn sides_of_semi_joins_can_be_swapped() {
    let ample = with_work_mem(AMPLE, TempFiles::default());
    for (kind, seed) in [(JoinKind::Semi, 3), (JoinKind::Anti, 4)] {
        let expected = answer(&join(kind, seed), &ample).unwrap();
        assert_eq!(answer(&swapped(kind, seed), &ample).unwrap(), expected);
    }
}

#[test]
fn spills_stay_within_the_limit_of_temporary_files() {
    let resources = with_work_mem(LITTLE, TempFiles::default());
    resources.temp_space.set_limit_kb(Some(100));
    for (name, plan) in plans(7) {
        let error = answer(&plan, &resources).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{name}: {error}");
    }
}

#[test]
fn full_disk_ends_the_statement_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let vfs = AskingVfs::new(OsVfs, |call, _| match call {
        Call::Write => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    let temp_files = TempFiles::open(vfs, directory.path()).unwrap();
    let resources = with_work_mem(LITTLE, temp_files);
    for (name, plan) in plans(7) {
        let error = answer(&plan, &resources).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::DISK_FULL, "{name}: {error}");
    }
    let left = std::fs::read_dir(directory.path().join("pgsql_tmp")).unwrap();
    assert_eq!(left.count(), 0);
}

/// Rows of one key can't be cut: they take more than a hash table should have.
#[test]
fn rows_of_one_key_are_joined_beyond_the_memory_of_hash_tables() {
    let join = |count| {
        let join = HashJoin::new(
            JoinKind::Inner,
            (column_of(0, &[Some(0), Some(7)]), rows(1, count, 1, 3)),
            vec![(col(0, 0), col(1, 0))],
            None,
        );
        plan(Node::HashJoin(Box::new(join)), vec![col(1, 0)])
    };
    let resources = with_work_mem(LITTLE, TempFiles::default());
    let found = answer(&join(3000), &resources).unwrap();
    assert!(found.len() > 2000, "{}", found.len());
    let memory = SessionMemory::new(&QueryMemory::new(300 << 10));
    memory.set_work(LITTLE, 1.0);
    let (temp_files, temp_space) = Default::default();
    let scarce = Arc::new(Resources { memory, temp_files, temp_space });
    let error = answer(&join(3000), &scarce).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::OUT_OF_MEMORY);
}
