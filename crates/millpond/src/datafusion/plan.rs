//! A planned query, and a run of it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Field;
use datafusion::common::ParamValues;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{displayable, execute_stream};
use futures::StreamExt;
use millpond_engine::catalog::TableDef;
use tokio::sync::mpsc;

use super::errors::from_datafusion;
use super::functions::{self, LockCall, LockCalls};
use super::params::{scalar, sql_types};
use super::provider::Run;
use super::result::ResultBatch;
use super::rewrite::naming::shown;
use super::threads::{QueryThreads, wait, wait_for};
use super::types::describe;
use crate::advisory::{Advisory, Key};
use crate::error::{Result, SqlError, SqlState};
use crate::query::TableScanner;
use crate::{ColumnDesc, DataType, Value};

/// A planned query: kept with a prepared statement, run any number of times.
pub struct QueryPlan {
    state: Arc<SessionState>,
    threads: Arc<QueryThreads>,
    logical: LogicalPlan,
    /// The optimizer has already seen it; otherwise it waits for parameters or for the session.
    optimized: bool,
    /// It calls functions whose answers depend on the session.
    asks_session: bool,
    /// The session's time zone, as Arrow names it.
    zone: Arc<str>,
    /// What its columns are.
    pub columns: Vec<ColumnDesc>,
    /// The types of its parameters.
    pub params: Vec<DataType>,
    /// The tables it reads.
    pub tables: Vec<Arc<TableDef>>,
}

impl std::fmt::Debug for QueryPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryPlan").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl QueryPlan {
    pub(super) fn new(
        state: Arc<SessionState>,
        threads: Arc<QueryThreads>,
        logical: LogicalPlan,
        zone: Arc<str>,
        tables: Vec<Arc<TableDef>>,
        given: &[Option<DataType>],
    ) -> Result<Self> {
        let params = sql_types(&logical, given)?;
        let asks_session = functions::asks_session(&logical).map_err(from_datafusion)?;
        // now() is folded by the optimizer, so a plan that asks for it is optimized at each run.
        let optimized = params.is_empty() && !asks_session;
        let logical =
            if optimized { state.optimize(&logical).map_err(from_datafusion)? } else { logical };
        let fields = logical.schema().fields();
        let columns = fields.iter().map(|field| column(field)).collect::<Result<_>>()?;
        Ok(Self { state, threads, logical, optimized, asks_session, zone, columns, params, tables })
    }

    /// The plan as lines of text.
    pub fn explain(&self, scanner: Arc<dyn TableScanner>) -> Result<Vec<String>> {
        let values = vec![Value::Null; self.params.len()];
        // Nothing runs, so nobody is called.
        let (calls, _) = mpsc::unbounded_channel();
        let (physical, _) = self.physical(scanner, &values, &calls)?;
        let text = displayable(physical.as_ref()).indent(false).to_string();
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Starts a run. The rows come from `scanner`, whose snapshot the run is under.
    pub fn open(&self, scanner: Arc<dyn TableScanner>, params: &[Value]) -> Result<RowStream> {
        let (sender, calls) = mpsc::unbounded_channel();
        let (physical, state) = self.physical(Arc::clone(&scanner), params, &sender)?;
        let entered = self.threads.enter()?;
        let stream = execute_stream(physical, state.task_ctx()).map_err(from_datafusion)?;
        drop(entered);
        RowStream::start(stream, calls, &self.threads, scanner)
    }

    fn physical(
        &self,
        scanner: Arc<dyn TableScanner>,
        params: &[Value],
        calls: &LockCalls,
    ) -> Result<(Arc<dyn datafusion::physical_plan::ExecutionPlan>, SessionState)> {
        if params.len() != self.params.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!("{} parameters given, {} needed", params.len(), self.params.len()),
            ));
        }
        let mut state = SessionState::clone(&self.state);
        state.config_mut().set_extension(Arc::new(Run { scanner: Arc::clone(&scanner) }));
        state.mark_start_execution();
        let mut logical = self.logical.clone();
        if self.asks_session {
            logical = functions::bind_session(logical, &scanner, calls).map_err(from_datafusion)?;
        }
        if !params.is_empty() {
            let values = params
                .iter()
                .zip(&self.params)
                .map(|(value, ty)| Ok(ScalarAndMetadata::from(scalar(*ty, value, &self.zone)?)));
            let values = ParamValues::List(values.collect::<Result<Vec<_>>>()?);
            logical = logical.with_param_values(values).map_err(from_datafusion)?;
        }
        let entered = self.threads.enter()?;
        let physical = wait(async {
            if self.optimized {
                state.query_planner().create_physical_plan(&logical, &state).await
            } else {
                state.create_physical_plan(&logical).await
            }
        });
        drop(entered);
        Ok((physical.map_err(from_datafusion)?, state))
    }
}

fn column(field: &Field) -> Result<ColumnDesc> {
    let mut described = describe(field).ok_or_else(|| {
        SqlError::unsupported(format_args!("a result of type {}", field.data_type()))
    })?;
    described.name = shown(&described.name).to_owned();
    Ok(described)
}

/// A run of a query: its rows, a batch at a time.
///
/// The query's own thread computes and this one waits, so that a cancelled statement ends at once even where an
/// operator is busy for long. What is computed until then is thrown away.
pub struct RowStream {
    batches: mpsc::Receiver<DfResult<RecordBatch>>,
    /// Calls of functions that lock: they wait for this thread, whose session it is.
    calls: mpsc::UnboundedReceiver<LockCall>,
    computing: tokio::task::JoinHandle<()>,
    scanner: Arc<dyn TableScanner>,
}

/// How often a waiting statement looks whether it has been cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(20);
/// Batches that are computed ahead of a slow client.
const BATCHES_AHEAD: usize = 2;

impl RowStream {
    fn start(
        mut stream: SendableRecordBatchStream,
        calls: mpsc::UnboundedReceiver<LockCall>,
        threads: &QueryThreads,
        scanner: Arc<dyn TableScanner>,
    ) -> Result<Self> {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let computing = threads.spawn(async move {
            while let Some(batch) = stream.next().await {
                // Nobody listens any more.
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { batches, calls, computing, scanner })
    }

    /// The next rows; `None` at the end. Blocks. Meanwhile it calls `lock` for whatever function asks for locks.
    pub fn next_batch(
        &mut self,
        lock: &mut dyn FnMut(Advisory, Key) -> Result<Value>,
    ) -> Result<Option<ResultBatch>> {
        loop {
            self.scanner.check_cancelled()?;
            let (batches, calls) = (&mut self.batches, &mut self.calls);
            let next = poll_fn(|context| match calls.poll_recv(context) {
                Poll::Ready(Some(call)) => Poll::Ready(Err(call)),
                _ => batches.poll_recv(context).map(Ok),
            });
            let batch = match wait_for(next, CANCEL_POLL) {
                None => continue,
                Some(Err(call)) => {
                    let answer = lock(call.function, call.key)?;
                    // If nobody listens any more, the query is over.
                    let _ = call.reply.send(answer);
                    continue;
                }
                Some(Ok(batch)) => batch,
            };
            match batch {
                None if self.computing_failed() => {
                    return Err(SqlError::internal("a query ended by a panic"));
                }
                None => return Ok(None),
                Some(batch) => {
                    let batch = batch.map_err(from_datafusion)?;
                    if batch.num_rows() > 0 {
                        return ResultBatch::new(&batch).map(Some);
                    }
                }
            }
        }
    }

    /// The channel is closed: whether by the end of the rows or by a panic.
    fn computing_failed(&mut self) -> bool {
        wait(&mut self.computing).is_err()
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        self.computing.abort();
    }
}
