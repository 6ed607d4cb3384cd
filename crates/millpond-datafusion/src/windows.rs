//! The memory of window functions, which DataFusion's operators for them don't take from the pool.
//!
//! Such an operator keeps each row until the row's partition, or its frame, is complete. So one
//! node counts the rows and bytes that go in, and another one the rows that come out. What is
//! between them is taken from the pool:
//!
//! ```text
//! counts rows out  <-  window functions  <-  counts rows and bytes in
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use parking_lot::Mutex;

/// Rows are copied together when a partition is complete: for a while they are there twice.
const COPIES: f64 = 2.0;

/// Puts counters around all window functions of a plan.
pub fn counted(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let any: &dyn Any = node.as_ref();
        if !any.is::<WindowAggExec>() && !any.is::<BoundedWindowAggExec>() {
            return Ok(Transformed::no(node));
        }
        let Some(input) = node.children().first().map(|input| Arc::clone(input)) else {
            return Ok(Transformed::no(node));
        };
        let gauges = Arc::new(Gauges::default());
        let inside = Counter { input, gauges: Arc::clone(&gauges), side: Side::In };
        let window = replace_children_if_necessary(node, vec![Arc::new(inside)])?;
        Ok(Transformed::yes(Arc::new(Counter { input: window, gauges, side: Side::Out }) as _))
    })?;
    Ok(changed.data)
}

/// The gauges of an operator's runs, by partition.
#[derive(Debug, Default)]
struct Gauges(Mutex<Vec<Option<Arc<Gauge>>>>);

/// What is between the counters of one run.
#[derive(Debug)]
struct Gauge {
    counts: Mutex<Counts>,
    reservation: MemoryReservation,
}

#[derive(Debug, Default)]
struct Counts {
    rows_in: usize,
    bytes_in: usize,
    rows_out: usize,
}

impl Gauges {
    /// Begins a run.
    fn begin(&self, partition: usize, context: &TaskContext) -> Arc<Gauge> {
        let reservation = MemoryConsumer::new("WindowAgg").register(context.memory_pool());
        let gauge = Arc::new(Gauge { counts: Mutex::default(), reservation });
        let mut gauges = self.0.lock();
        if gauges.len() <= partition {
            gauges.resize_with(partition + 1, || None);
        }
        gauges[partition] = Some(Arc::clone(&gauge));
        gauge
    }

    /// The run that has just begun; it is its counters' from then on.
    fn take(&self, partition: usize) -> Option<Arc<Gauge>> {
        self.0.lock().get_mut(partition)?.take()
    }
}

impl Gauge {
    fn count(&self, side: Side, batch: &RecordBatch) -> DfResult<()> {
        let mut counts = self.counts.lock();
        match side {
            Side::In => {
                counts.rows_in += batch.num_rows();
                counts.bytes_in += batch.get_array_memory_size();
            }
            Side::Out => counts.rows_out += batch.num_rows(),
        }
        let left = counts.rows_in.saturating_sub(counts.rows_out);
        let share = left as f64 / counts.rows_in.max(1) as f64;
        self.reservation.try_resize((counts.bytes_in as f64 * share * COPIES) as usize)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    In,
    Out,
}

/// Counts what passes on one side of a window operator.
#[derive(Debug)]
struct Counter {
    input: Arc<dyn ExecutionPlan>,
    gauges: Arc<Gauges>,
    side: Side,
}

impl DisplayAs for Counter {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counter")
    }
}

impl ExecutionPlan for Counter {
    fn name(&self) -> &str {
        "Counter"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => {
                Ok(Arc::new(Counter { input, gauges: Arc::clone(&self.gauges), side: self.side }))
            }
            _ => Err(DataFusionError::Internal("a counter has one input".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DfResult<SendableRecordBatchStream> {
        let gauge = match self.side {
            Side::Out => Some(self.gauges.begin(partition, &context)),
            Side::In => self.gauges.take(partition),
        };
        let input = self.input.execute(partition, context)?;
        let Some(gauge) = gauge else { return Ok(input) };
        let (schema, side) = (input.schema(), self.side);
        let counted = input.map(move |batch| {
            let batch = batch?;
            gauge.count(side, &batch)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}
