//! A run of operators.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use datafusion_common::Result as DfResult;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use millpond_query::memory::Resources;
use millpond_query::query::TableScanner;
use millpond_query::{Result, SqlError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::task::coop::unconstrained;

use super::errors::Failure;
use super::interrupt::{Interrupt, watch};
use super::memory::SessionPool;
use super::spill::SessionSpill;
use super::threads::Team;

/// What a run's operators take memory and temporary files from.
fn task_context(config: &SessionConfig, resources: &Resources) -> DfResult<TaskContext> {
    let mut config = config.clone();
    fit_to_work_mem(&mut config, resources.memory.work());
    let (memory, files) = (Arc::clone(&resources.memory), Arc::clone(&resources.temp_files));
    let space = Arc::clone(&resources.temp_space);
    let mut disk = DiskManagerBuilder::default();
    disk.set_temp_file_factory(Arc::new(SessionSpill { files, space }));
    let runtime = RuntimeEnv {
        memory_pool: Arc::new(SessionPool::new(memory)),
        disk_manager: Arc::new(disk.build()?),
        ..RuntimeEnv::default()
    };
    Ok(TaskContext::default().with_session_config(config).with_runtime(Arc::new(runtime)))
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

/// Something that is computed by a team, and the thread that waits for it.
///
/// The team computes and the thread waits, so that a cancelled statement ends at once even where an
/// operator is busy for long. What is computed until the operator notices is thrown away.
struct Computing {
    task: JoinHandle<DfResult<()>>,
    interrupt: Arc<Interrupt>,
    /// Rests when no session waits any more.
    _team: Team,
}

/// How often a waiting statement looks whether it has been cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(20);

impl Computing {
    fn start(
        team: Team,
        interrupt: Arc<Interrupt>,
        task: impl Future<Output = DfResult<()>> + Send + 'static,
    ) -> Result<Self> {
        let task = team.spawn(task).ok_or_else(|| SqlError::internal("a team without threads"))?;
        Ok(Self { task, interrupt, _team: team })
    }

    /// Waits for the end of the task.
    fn result(&mut self) -> Result<(), Failure> {
        let Self { task, interrupt, .. } = self;
        match wait(interrupt, |context| Pin::new(&mut *task).poll(context))? {
            Ok(result) => Ok(result?),
            // It panicked.
            Err(_) => Err(Failure::Declined),
        }
    }
}

impl Drop for Computing {
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

/// A run: its rows, a batch at a time.
pub struct Run {
    batches: mpsc::Receiver<RecordBatch>,
    computing: Computing,
}

/// Batches that are computed ahead.
const BATCHES_AHEAD: usize = 2;

impl Run {
    /// Starts one of a plan that reads from `scanner`.
    pub fn start(
        config: &SessionConfig,
        plan: Arc<dyn ExecutionPlan>,
        team: Team,
        scanner: Arc<dyn TableScanner>,
    ) -> Result<Self, Failure> {
        let context = Arc::new(task_context(config, scanner.resources())?);
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let interrupt = Interrupt::new(scanner);
        let plan = watch(plan, &interrupt)?;
        let run = async move {
            let mut stream = execute_stream(plan, context)?;
            while let Some(batch) = stream.next().await {
                // No session listens any more.
                if sender.send(batch?).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        Ok(Self { batches, computing: Computing::start(team, interrupt, run)? })
    }

    /// The next rows; `None` at the end. Blocks.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            let batches = &mut self.batches;
            let next = wait(&self.computing.interrupt, |context| batches.poll_recv(context));
            match next? {
                // The end of the rows, an error or a panic.
                None => return self.computing.result().map(|()| None),
                Some(batch) if batch.num_rows() > 0 => return Ok(Some(batch)),
                Some(_) => {}
            }
        }
    }
}
