//! Runs of plans made by hand.

use std::sync::Arc;

use datafusion::functions_aggregate::count::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use millpond_engine::catalog::TableDef;
use millpond_query::memory::{QueryMemory, Resources, SessionMemory};
use millpond_query::query::{RowSource, TableScanner};
use millpond_query::{Result, SqlError};

use super::engine::DataFusion;
use super::run::Run;

/// A database without tables.
struct Nothing(Arc<Resources>);

impl Nothing {
    fn new() -> Arc<Self> {
        let memory = SessionMemory::new(&QueryMemory::new(1 << 30));
        memory.set_work(4 << 20, 2.0);
        let (temp_files, temp_space) = Default::default();
        Arc::new(Self(Arc::new(Resources { memory, temp_files, temp_space })))
    }
}

impl TableScanner for Nothing {
    fn scan(&self, _: &Arc<TableDef>, _: usize, _: usize) -> Result<Box<dyn RowSource>> {
        Err(SqlError::internal("there are no tables"))
    }

    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }

    fn resources(&self) -> &Arc<Resources> {
        &self.0
    }

    fn table_bytes(&self, _: &TableDef) -> u64 {
        0
    }
}

/// Numbers below `count`.
fn numbers(count: i64, name: &str) -> LogicalPlanBuilder {
    let rows = (0..count).map(|number| vec![lit(number)]).collect();
    let values = LogicalPlanBuilder::values(rows).unwrap();
    values.project(vec![col("column1").alias(name)]).unwrap()
}

/// How many triples of numbers meet a condition that none meets.
fn counted_triples(of: i64) -> LogicalPlan {
    let pairs = numbers(of, "a").cross_join(numbers(of, "b").build().unwrap()).unwrap();
    let triples = pairs.cross_join(numbers(of, "c").build().unwrap()).unwrap();
    let never = (col("a") * col("b") * col("c")).lt(lit(-1i64));
    let filtered = triples.filter(never).unwrap();
    filtered.aggregate(Vec::<Expr>::new(), vec![count(lit(1i64))]).unwrap().build().unwrap()
}

fn start(engine: &DataFusion, plan: LogicalPlan) -> Run {
    engine.start(plan, Nothing::new()).unwrap()
}

#[test]
fn a_run_gives_its_rows_and_ends() {
    let engine = DataFusion::new(0, 1000);
    let mut run = start(&engine, counted_triples(20));
    assert_eq!(run.next_batch().unwrap().unwrap().num_rows(), 1);
    assert!(run.next_batch().unwrap().is_none());
}

#[test]
fn an_abandoned_run_ends_where_its_operators_are() {
    let engine = DataFusion::new(0, 1000);
    drop(start(&engine, counted_triples(3000)));
    // It would go on for hours.
    while engine.is_computing() {
        std::thread::yield_now();
    }
}

/// The `nice` value of each thread of this process that has the name.
#[cfg(target_os = "linux")]
fn niceness_of(name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    // Number (name) and then, from the state on, fields without brackets: the 17th is the value.
    let fields = stats.filter_map(|stat| {
        let (head, rest) = stat.rsplit_once(") ")?;
        head.ends_with(&format!("({name}")).then(|| rest.split(' ').nth(16)?.parse().ok())?
    });
    fields.collect()
}

#[cfg(target_os = "linux")]
#[test]
fn query_threads_have_a_lower_priority() {
    let here = rustix::process::getpriority_process(None).unwrap();
    if here > 14 {
        println!("skipped: these tests already run at the lowest priority");
        return;
    }
    let engine = DataFusion::new(5, 1000);
    let mut run = start(&engine, counted_triples(5));
    assert!(run.next_batch().unwrap().is_some());
    assert!(niceness_of("millpond-query").contains(&(here + 5)));
}
