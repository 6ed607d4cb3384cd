//! Where the operators of a run see that it is to end.
//!
//! The statement's thread answers its client as soon as it is cancelled. The operators run on
//! threads of their own. Without this module they would go on until the next request for a batch,
//! which does not come. So each stream of a run looks before each batch. The filters of joins can
//! go over many pairs of rows without any batch, so they look at each evaluation. A single
//! evaluation over a batch, or the sorting of what fits into memory, is not interrupted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result as DfResult};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::joins::utils::JoinFilter;
use datafusion_physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::query::TableScanner;

/// Whether a run is to end.
pub struct Interrupt {
    scanner: Arc<dyn TableScanner>,
    /// No session waits for the run any more. (What was asked of the statement is forgotten when
    /// the next begins.)
    abandoned: AtomicBool,
}

impl Interrupt {
    /// That of a run for this statement.
    pub fn new(scanner: Arc<dyn TableScanner>) -> Arc<Self> {
        Arc::new(Self { scanner, abandoned: AtomicBool::new(false) })
    }

    /// No session waits for the run any more.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// An error when the statement has been cancelled.
    pub fn check_statement(&self) -> Result<()> {
        self.scanner.check_cancelled()
    }

    fn check(&self) -> DfResult<()> {
        let result = if self.abandoned.load(Ordering::Relaxed) {
            Err(SqlError::new(SqlState::QUERY_CANCELED, "no session waits for the query any more"))
        } else {
            self.check_statement()
        };
        result.map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("abandoned", &self.abandoned).finish_non_exhaustive()
    }
}

/// The same plan, whose operators look.
pub fn watch(
    plan: Arc<dyn ExecutionPlan>,
    interrupt: &Arc<Interrupt>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let watched = plan.transform_up(|plan| {
        let input = watch_filter(plan, interrupt)?;
        let watched = Watched { input, interrupt: Arc::clone(interrupt) };
        Ok(Transformed::yes(Arc::new(watched) as Arc<dyn ExecutionPlan>))
    })?;
    Ok(watched.data)
}

/// A join's filter looks at each evaluation.
fn watch_filter(
    plan: Arc<dyn ExecutionPlan>,
    interrupt: &Arc<Interrupt>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let watched = |filter: &JoinFilter| {
        let expr: Arc<dyn PhysicalExpr> = Arc::new(WatchedExpr {
            inner: Arc::clone(filter.expression()),
            interrupt: Arc::clone(interrupt),
        });
        JoinFilter::new(expr, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    };
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let builder = NestedLoopJoinExecBuilder::from(join).with_filter(Some(watched(filter)));
        return Ok(Arc::new(builder.build()?));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return HashJoinExecBuilder::from(join).with_filter(Some(watched(filter))).build_exec();
    }
    Ok(plan)
}

/// An operator whose stream looks before each batch. Asked for its type, it answers with the type
/// of the operator inside.
#[derive(Debug)]
struct Watched {
    input: Arc<dyn ExecutionPlan>,
    interrupt: Arc<Interrupt>,
}

impl DisplayAs for Watched {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.input.fmt_as(form, f)
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &str {
        self.input.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.input.as_ref())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) if children.is_empty() => {
                Ok(Arc::new(Self { input, interrupt: Arc::clone(&self.interrupt) }))
            }
            _ => Err(DataFusionError::Internal("a watched operator has one child".to_owned())),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DfResult<SendableRecordBatchStream> {
        let mut stream = self.input.execute(partition, context)?;
        let schema: SchemaRef = stream.schema();
        let interrupt = Arc::clone(&self.interrupt);
        let watched = futures::stream::poll_fn(move |context| match interrupt.check() {
            Ok(()) => stream.poll_next_unpin(context),
            Err(error) => Poll::Ready(Some(Err(error))),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, watched)))
    }
}

/// An expression that looks before it is evaluated.
#[derive(Debug)]
struct WatchedExpr {
    inner: Arc<dyn PhysicalExpr>,
    interrupt: Arc<Interrupt>,
}

impl PartialEq for WatchedExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for WatchedExpr {}

impl Hash for WatchedExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for WatchedExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for WatchedExpr {
    fn return_field(&self, schema: &Schema) -> DfResult<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> DfResult<ColumnarValue> {
        self.interrupt.check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DfResult<Arc<dyn PhysicalExpr>> {
        match children.pop() {
            Some(inner) if children.is_empty() => {
                Ok(Arc::new(Self { inner, interrupt: Arc::clone(&self.interrupt) }))
            }
            _ => Err(DataFusionError::Internal("a watched expression has one child".to_owned())),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
