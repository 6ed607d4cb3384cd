//! A planned query, and a run of it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Field;
use datafusion::common::ParamValues;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use millpond_engine::catalog::TableDef;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::task::coop::unconstrained;

use super::errors::from_datafusion;
use super::functions::{self, LockCall, LockCalls};
use super::interrupt::{Interrupt, watch};
use super::memory::SessionPool;
use super::params::{scalar, sql_types};
use super::provider::Run;
use super::result::ResultBatch;
use super::rewrite::naming::shown;
use super::spill::SessionSpill;
use super::threads::{QueryThreads, Team};
use super::types::describe;
use super::windows;
use millpond_query::ColumnDesc;
use millpond_query::advisory::{Advisory, Key};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::memory::Resources;
use millpond_query::plan::external::{ExternalPlan, Lock};
use millpond_query::query::TableScanner;
use millpond_types::{DataType, Datum, Value};

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

impl ExternalPlan for QueryPlan {
    fn params(&self) -> &[DataType] {
        &self.params
    }

    fn columns(&self) -> &[ColumnDesc] {
        &self.columns
    }

    fn tables(&self) -> &[Arc<TableDef>] {
        &self.tables
    }

    fn explain(&self, scanner: Arc<dyn TableScanner>) -> Result<Vec<String>> {
        QueryPlan::explain(self, scanner)
    }

    fn run(
        &self,
        scanner: Arc<dyn TableScanner>,
        params: &[Value],
        lock: Lock<'_>,
        each: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        let mut stream = self.open(scanner, params)?;
        while let Some(batch) = stream.next_batch(lock)? {
            let mut row = Vec::new();
            for i in 0..batch.rows() {
                batch.row(i, &mut row);
                if !each(&row)? {
                    return Ok(());
                }
            }
        }
        Ok(())
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
        let bound = self.bind(&scanner, &values, &calls)?;
        let team = self.threads.team()?;
        let interrupt = Interrupt::new(scanner);
        let lines = async move {
            let physical = bound.physical().await?;
            let text = displayable(physical.as_ref()).indent(false).to_string();
            Ok(text.lines().map(str::to_owned).collect())
        };
        let mut planning = Computing::start(team, interrupt, lines)?;
        planning.result()
    }

    /// Starts a run. The rows come from `scanner`, whose snapshot the run is under.
    pub fn open(&self, scanner: Arc<dyn TableScanner>, params: &[Value]) -> Result<RowStream> {
        let (sender, calls) = mpsc::unbounded_channel();
        let bound = self.bind(&scanner, params, &sender)?;
        RowStream::start(bound, calls, self.threads.team()?, scanner)
    }

    /// What a run begins with.
    fn bind(
        &self,
        scanner: &Arc<dyn TableScanner>,
        params: &[Value],
        calls: &LockCalls,
    ) -> Result<Bound> {
        if params.len() != self.params.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!("{} parameters given, {} needed", params.len(), self.params.len()),
            ));
        }
        let mut state = SessionState::clone(&self.state);
        state.config_mut().set_extension(Arc::new(Run { scanner: Arc::clone(scanner) }));
        fit_to_work_mem(state.config_mut(), scanner.resources().memory.work());
        state.mark_start_execution();
        let mut logical = self.logical.clone();
        if self.asks_session {
            logical = functions::bind_session(logical, scanner, calls).map_err(from_datafusion)?;
        }
        if !params.is_empty() {
            let values = params
                .iter()
                .zip(&self.params)
                .map(|(value, ty)| Ok(ScalarAndMetadata::from(scalar(*ty, value, &self.zone)?)));
            let values = ParamValues::List(values.collect::<Result<Vec<_>>>()?);
            logical = logical.with_param_values(values).map_err(from_datafusion)?;
        }
        let resources = Arc::clone(scanner.resources());
        Ok(Bound { state, logical, optimized: self.optimized, resources })
    }
}

/// A plan with the session and the parameters of a run.
struct Bound {
    state: SessionState,
    logical: LogicalPlan,
    /// See [`QueryPlan`].
    optimized: bool,
    resources: Arc<Resources>,
}

impl Bound {
    async fn physical(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let Self { state, logical, optimized, .. } = self;
        let physical = if *optimized {
            state.query_planner().create_physical_plan(logical, state).await
        } else {
            state.create_physical_plan(logical).await
        };
        physical.map_err(from_datafusion)
    }

    async fn start(&self, interrupt: &Arc<Interrupt>) -> Result<SendableRecordBatchStream> {
        let physical = windows::counted(self.physical().await?).map_err(from_datafusion)?;
        let physical = watch(physical, interrupt).map_err(from_datafusion)?;
        let context = task_context(&self.state, &self.resources)?;
        execute_stream(physical, context).map_err(from_datafusion)
    }
}

/// What a run's operators take memory and temporary files from.
fn task_context(state: &SessionState, resources: &Resources) -> Result<Arc<TaskContext>> {
    let (memory, files) = (Arc::clone(&resources.memory), Arc::clone(&resources.temp_files));
    let space = Arc::clone(&resources.temp_space);
    let mut disk = DiskManagerBuilder::default();
    disk.set_temp_file_factory(Arc::new(SessionSpill { files, space }));
    let runtime = RuntimeEnv {
        memory_pool: Arc::new(SessionPool::new(memory)),
        disk_manager: Arc::new(disk.build().map_err(from_datafusion)?),
        ..RuntimeEnv::clone(state.runtime_env())
    };
    Ok(Arc::new(TaskContext::from(state).with_runtime(Arc::new(runtime))))
}

/// Lets a sort take no more than a part of `work_mem` at once, to merge runs or to sort in one
/// piece. Where `work_mem` is small, operators work on fewer rows at a time. They need memory for
/// some rows of each input.
fn fit_to_work_mem(config: &mut SessionConfig, work_mem: usize) {
    let part = work_mem / 4;
    let rows = (work_mem / BYTES_A_BATCH_ROW).clamp(FEWEST_BATCH_ROWS, BATCH_ROWS);
    let now = &config.options().execution;
    let in_place = now.sort_in_place_threshold_bytes.min(part);
    let fits = now.sort_spill_reservation_bytes == part
        && now.sort_in_place_threshold_bytes == in_place
        && config.batch_size() == rows;
    if !fits {
        *config = std::mem::take(config).with_batch_size(rows);
        let execution = &mut config.options_mut().execution;
        execution.sort_spill_reservation_bytes = part;
        execution.sort_in_place_threshold_bytes = in_place;
    }
}

/// How many rows operators work on at a time, where `work_mem` is large enough: it is by default.
pub(super) const BATCH_ROWS: usize = 8192;
const FEWEST_BATCH_ROWS: usize = 64;
/// So much of `work_mem` allows for one more row.
const BYTES_A_BATCH_ROW: usize = 512;

fn column(field: &Field) -> Result<ColumnDesc> {
    let mut described = describe(field).ok_or_else(|| {
        SqlError::unsupported(format_args!("a result of type {}", field.data_type()))
    })?;
    described.name = shown(&described.name).to_owned();
    Ok(described)
}

/// Something that is computed by a team, and the thread that waits for it.
///
/// The team computes and the thread waits, so that a cancelled statement ends at once even where an
/// operator is busy for long. What is computed until the operator notices is thrown away.
struct Computing<T> {
    task: JoinHandle<Result<T>>,
    interrupt: Arc<Interrupt>,
    /// Rests when nobody waits any more.
    _team: Team,
}

/// How often a waiting statement looks whether it has been cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(20);

impl<T: Send + 'static> Computing<T> {
    fn start(
        team: Team,
        interrupt: Arc<Interrupt>,
        task: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Self> {
        let task = team.spawn(task).ok_or_else(|| SqlError::internal("a team without threads"))?;
        Ok(Self { task, interrupt, _team: team })
    }

    /// Waits for the end of the task.
    fn result(&mut self) -> Result<T> {
        let Self { task, interrupt, .. } = self;
        match wait(interrupt, |context| Pin::new(&mut *task).poll(context))? {
            Ok(result) => result,
            Err(_) => Err(SqlError::internal("a query ended by a panic")),
        }
    }
}

impl<T> Drop for Computing<T> {
    fn drop(&mut self) {
        self.interrupt.abandon();
        self.task.abort();
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, which may be one of a runtime of the embedder's, until something is ready
/// or the statement is cancelled.
fn wait<T>(interrupt: &Interrupt, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // The embedder's task may have used its budget up, and gets no other while it waits here.
    let mut ready = pin!(unconstrained(std::future::poll_fn(poll)));
    loop {
        interrupt.check_statement()?;
        if let Poll::Ready(result) = ready.as_mut().poll(&mut context) {
            return Ok(result);
        }
        std::thread::park_timeout(CANCEL_POLL);
    }
}

/// A run of a query: its rows, a batch at a time.
pub struct RowStream {
    batches: mpsc::Receiver<RecordBatch>,
    /// Calls of functions that lock: they wait for this thread, whose session it is.
    calls: mpsc::UnboundedReceiver<LockCall>,
    computing: Computing<()>,
}

/// Batches that are computed ahead of a slow client.
const BATCHES_AHEAD: usize = 2;

impl RowStream {
    fn start(
        bound: Bound,
        calls: mpsc::UnboundedReceiver<LockCall>,
        team: Team,
        scanner: Arc<dyn TableScanner>,
    ) -> Result<Self> {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let interrupt = Interrupt::new(scanner);
        let watched = Arc::clone(&interrupt);
        let run = async move {
            let mut stream = bound.start(&watched).await?;
            while let Some(batch) = stream.next().await {
                // Nobody listens any more.
                if sender.send(batch.map_err(from_datafusion)?).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        Ok(Self { batches, calls, computing: Computing::start(team, interrupt, run)? })
    }

    /// The next rows; `None` at the end. Blocks. Meanwhile it calls `lock` for whatever function
    /// asks for locks.
    pub fn next_batch(
        &mut self,
        lock: &mut dyn FnMut(Advisory, Key) -> Result<Value>,
    ) -> Result<Option<ResultBatch>> {
        loop {
            let (batches, calls) = (&mut self.batches, &mut self.calls);
            let next = wait(&self.computing.interrupt, |context| match calls.poll_recv(context) {
                Poll::Ready(Some(call)) => Poll::Ready(Err(call)),
                _ => batches.poll_recv(context).map(Ok),
            });
            let batch = match next? {
                Err(call) => {
                    let answer = lock(call.function, call.key)?;
                    // If nobody listens any more, the query is over.
                    let _ = call.reply.send(answer);
                    continue;
                }
                Ok(batch) => batch,
            };
            match batch {
                // The end of the rows, an error or a panic.
                None => return self.computing.result().map(|()| None),
                Some(batch) if batch.num_rows() > 0 => return ResultBatch::new(&batch).map(Some),
                Some(_) => {}
            }
        }
    }
}
