//! The threads that queries run on: a team of them for each run.
//!
//! An operator may compute for long without letting another task in. On threads that all queries
//! share, as many such queries as there are threads would hold up everybody else's; so each run has
//! a team, as large as the machine has cores, and the system shares the cores out between them. A
//! team rests between two runs, and is used again when nothing of the run before is left. One that
//! has rested for long ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::error::{Result, SqlError, SqlState};

/// How long a team stays around with nothing to do, once others rest.
const IDLE: Duration = Duration::from_secs(10);
/// Address space, not memory: what plans need that nest deeply.
const STACK_BYTES: usize = 8 << 20;

/// The teams.
pub struct QueryThreads {
    /// Threads in a team.
    size: usize,
    niceness: i32,
    /// Those of which nobody waits for anything. The last has worked last.
    resting: Mutex<Vec<Resting>>,
}

struct Resting {
    runtime: Runtime,
    since: Instant,
}

impl QueryThreads {
    /// None yet. Their priority will be lower by `niceness` steps.
    pub fn new(size: usize, niceness: i32) -> Arc<Self> {
        Arc::new(Self { size, niceness, resting: Mutex::default() })
    }

    /// A team for a run.
    pub fn team(self: &Arc<Self>) -> Result<Team> {
        let mut resting = self.resting.lock();
        let free = resting.iter().rposition(|team| team.runtime.metrics().num_alive_tasks() == 0);
        let found = free.map(|at| resting.remove(at).runtime);
        drop(resting);
        let runtime = match found {
            Some(runtime) => runtime,
            None => self.start()?,
        };
        Ok(Team { runtime: Some(runtime), threads: Arc::clone(self) })
    }

    /// Whether a team that rests has not come to its end yet.
    #[cfg(test)]
    pub fn is_computing(&self) -> bool {
        let resting = self.resting.lock();
        resting.iter().any(|team| team.runtime.metrics().num_alive_tasks() > 0)
    }

    fn start(&self) -> Result<Runtime> {
        let niceness = self.niceness;
        let started = Builder::new_multi_thread()
            .worker_threads(self.size)
            .thread_name("millpond-query")
            .thread_stack_size(STACK_BYTES)
            .on_thread_start(move || give_way(niceness))
            .enable_time()
            .build();
        started.map_err(|error| {
            let message = format!("could not start query threads: {error}");
            SqlError::new(SqlState::INSUFFICIENT_RESOURCES, message)
        })
    }

    /// A run is over, though something of it may still be ending.
    fn rest(&self, runtime: Runtime) {
        let now = Instant::now();
        let mut resting = self.resting.lock();
        let old = resting.iter().take_while(|team| now - team.since > IDLE).count();
        let ended: Vec<_> = resting.drain(..old).collect();
        resting.push(Resting { runtime, since: now });
        drop(resting);
        ended.into_iter().for_each(|team| team.runtime.shutdown_background());
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        // An operator that computes on must not hold up whoever closes the database.
        for team in self.resting.get_mut().drain(..) {
            team.runtime.shutdown_background();
        }
    }
}

/// The threads of one run.
pub struct Team {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    threads: Arc<QueryThreads>,
}

impl Team {
    /// Starts a task.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<tokio::task::JoinHandle<T>> {
        self.runtime.as_ref().map(|runtime| runtime.spawn(task))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.threads.rest(runtime);
        }
    }
}

/// Lowers the priority of the thread that calls it: who reads whole tables has work for as long as
/// it is let, and would have a core of its own while those who read a row wait for their turn.
fn give_way(niceness: i32) {
    // Where it is forbidden, nothing is lost but the courtesy.
    if niceness > 0
        && let Err(error) = rustix::process::nice(niceness)
    {
        tracing::debug!(%error, "could not lower the priority of a query thread");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// The threads that a task of a team runs on.
    fn thread_of(team: &Team) -> thread::ThreadId {
        let (sender, receiver) = mpsc::channel();
        let task = async move { sender.send(thread::current().id()) };
        team.spawn(task).expect("a team");
        receiver.recv().expect("ran")
    }

    #[test]
    fn a_team_that_computes_holds_up_no_other() {
        let threads = QueryThreads::new(1, 0);
        let (release, held) = mpsc::channel::<()>();
        let first = threads.team().unwrap();
        let busy = first.spawn(async move { held.recv() }).unwrap();
        let busy_thread = {
            // Nobody waits for it any more, but it computes on.
            busy.abort();
            drop(first);
            let second = threads.team().unwrap();
            let other = thread_of(&second);
            drop(second);
            other
        };
        let third = threads.team().unwrap();
        assert_eq!(thread_of(&third), busy_thread, "a resting team is used again");
        drop(release);
    }

    #[test]
    fn dropping_the_threads_waits_for_nothing() {
        let (release, held) = mpsc::channel::<()>();
        let threads = QueryThreads::new(1, 0);
        let team = threads.team().unwrap();
        team.spawn(async move { held.recv() }).unwrap();
        drop(team);
        drop(threads);
        drop(release);
    }
}
