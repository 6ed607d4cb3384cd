//! Runs of plans made by hand.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion_common::JoinType;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::Operator;
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_physical_expr::aggregate::AggregateExprBuilder;
use datafusion_physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::joins::utils::JoinFilter;
use datafusion_physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
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

/// Numbers below a bound.
#[derive(Debug)]
struct Numbers {
    below: i64,
    schema: SchemaRef,
}

impl PartitionStream for Numbers {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let numbers = Int64Array::from_iter_values(0..self.below);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::new(numbers)]);
        let batches = futures::stream::iter([Ok(batch.unwrap())]);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

fn numbers(below: i64, name: &str) -> Arc<dyn ExecutionPlan> {
    let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Int64, false)]));
    let numbers = Arc::new(Numbers { below, schema: Arc::clone(&schema) });
    Arc::new(StreamingTableExec::try_new(schema, vec![numbers], None, None, false, None).unwrap())
}

/// The triples of numbers that meet a condition, which none meets.
fn triples(of: i64) -> Arc<dyn ExecutionPlan> {
    let pairs = Arc::new(CrossJoinExec::new(numbers(of, "a"), numbers(of, "b")));
    let third = numbers(of, "c");
    let fields = pairs.schema().fields().iter().chain(third.schema().fields()).cloned().collect();
    let schema = Arc::new(Schema::new(Fields::from_iter::<Vec<FieldRef>>(fields)));
    let column = |at: usize| Arc::new(Column::new(schema.field(at).name(), at)) as _;
    let times = |left, right| Arc::new(BinaryExpr::new(left, Operator::Multiply, right)) as _;
    let product = times(times(column(0), column(1)), column(2));
    let never = Arc::new(BinaryExpr::new(product, Operator::Lt, lit(-1i64)));
    let filter =
        JoinFilter::new(never, JoinFilter::build_column_indices(vec![0, 1], vec![0]), schema);
    let join = NestedLoopJoinExec::try_new(pairs, third, Some(filter), &JoinType::Inner, None);
    Arc::new(join.unwrap())
}

/// How many they are.
fn counted_triples(of: i64) -> Arc<dyn ExecutionPlan> {
    let triples = triples(of);
    let schema = triples.schema();
    let count = AggregateExprBuilder::new(count_udaf(), vec![lit(1i64)])
        .schema(Arc::clone(&schema))
        .alias("count")
        .build();
    let calls = vec![Arc::new(count.unwrap())];
    let keys = PhysicalGroupBy::new_single(Vec::new());
    let mode = AggregateMode::Single;
    Arc::new(AggregateExec::try_new(mode, keys, calls, vec![None], triples, schema).unwrap())
}

fn start(engine: &DataFusion, plan: Arc<dyn ExecutionPlan>) -> Run {
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
