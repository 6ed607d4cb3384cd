//! The threads that queries run on: a team of them for each run.
//!
//! An operator may compute for long without letting another task in. On shared threads, as many
//! such queries as there are threads would hold up all others. So each run has a team, as large as
//! the machine has cores, and the system shares the cores out between the teams. A team rests
//! between two runs, and is used again when nothing of the run before is left. One that has rested
//! for long ends.
//!
//! All teams together have a bound, `max_query_threads`, since a session may have many cursors open
//! and each is a run. While there is room, a team has a thread for each core. Later ones have a
//! single thread, from the half of the bound that is kept for them. With none left, a run is
//! refused. A thread counts until it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use millpond_query::error::{Result, SqlError, SqlState};

/// How long a team stays around with nothing to do, once others rest.
const IDLE: Duration = Duration::from_secs(10);
/// Address space, not memory: what plans need that nest deeply.
const STACK_BYTES: usize = 8 << 20;

/// The teams.
pub struct QueryThreads {
    /// Threads in a team, while there is room.
    size: usize,
    /// Threads of all teams together.
    most: usize,
    /// Those that there are. Counts only: nothing is ordered by it.
    used: Arc<AtomicUsize>,
    niceness: i32,
    /// Teams whose run is over. The last one has worked last.
    resting: Mutex<Vec<Resting>>,
}

struct Resting {
    runtime: Runtime,
    threads: usize,
    since: Instant,
}

/// Threads that count until the last of them has ended: each holds the callback that holds this.
struct Counted {
    threads: usize,
    used: Arc<AtomicUsize>,
}

impl Counted {
    /// Counts `threads` more, unless there are more than `most` then.
    fn reserve(used: &Arc<AtomicUsize>, threads: usize, most: usize) -> Option<Self> {
        let more = |used: usize| Some(used + threads).filter(|all| *all <= most);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { threads, used: Arc::clone(used) })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.used.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

impl QueryThreads {
    /// None yet. A team has `size` of them, all teams have at most `most` together. Their priority
    /// will be lower by `niceness` steps.
    pub fn new(size: usize, most: usize, niceness: i32) -> Arc<Self> {
        let (used, resting) = (Arc::default(), Mutex::default());
        Arc::new(Self { size, most: most.max(1), used, niceness, resting })
    }

    /// A team for a run.
    pub fn team(self: &Arc<Self>) -> Result<Team> {
        let team =
            |(runtime, size)| Team { runtime: Some(runtime), size, threads: Arc::clone(self) };
        if let Some(rested) = self.take_resting(self.size) {
            return Ok(team(rested));
        }
        // The part that is kept for teams of one.
        let kept = self.most / 2;
        if let Some(counted) = Counted::reserve(&self.used, self.size, self.most - kept) {
            return self.start(counted).map(team);
        }
        if let Some(rested) = self.take_resting(1) {
            return Ok(team(rested));
        }
        match Counted::reserve(&self.used, 1, self.most) {
            Some(counted) => self.start(counted).map(team),
            None => Err(self.refused()),
        }
    }

    /// A team that rests, of at least `least` threads, with nothing left of its last run.
    fn take_resting(&self, least: usize) -> Option<(Runtime, usize)> {
        let mut resting = self.resting.lock();
        let at = resting.iter().rposition(|team| {
            team.threads >= least && team.runtime.metrics().num_alive_tasks() == 0
        })?;
        let found = resting.remove(at);
        Some((found.runtime, found.threads))
    }

    #[cold]
    fn refused(&self) -> SqlError {
        let message = format!("all {} threads for queries are in use", self.most);
        SqlError::new(SqlState::INSUFFICIENT_RESOURCES, message)
            .detail("Each query that runs has at least one, and so has each open cursor.")
            .hint("Close cursors, or increase max_query_threads.")
    }

    /// The teams that rest and have not come to the end of their last run yet.
    #[cfg(test)]
    pub fn computing(&self) -> usize {
        let resting = self.resting.lock();
        resting.iter().filter(|team| team.runtime.metrics().num_alive_tasks() > 0).count()
    }

    fn start(&self, counted: Counted) -> Result<(Runtime, usize)> {
        let (niceness, threads) = (self.niceness, counted.threads);
        let started = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("millpond-query")
            .thread_stack_size(STACK_BYTES)
            .on_thread_start(move || {
                // Kept for as long as a thread may start or still ends.
                let _ = &counted;
                lower_priority(niceness);
            })
            .enable_time()
            .build();
        started.map(|runtime| (runtime, threads)).map_err(|error| {
            let message = format!("could not start query threads: {error}");
            SqlError::new(SqlState::INSUFFICIENT_RESOURCES, message)
        })
    }

    /// A run is over, though something of it may still be ending.
    fn rest(&self, runtime: Runtime, threads: usize) {
        let now = Instant::now();
        let mut resting = self.resting.lock();
        let old = resting.iter().take_while(|team| now - team.since > IDLE).count();
        let ended: Vec<_> = resting.drain(..old).collect();
        resting.push(Resting { runtime, threads, since: now });
        drop(resting);
        ended.into_iter().for_each(|team| team.runtime.shutdown_background());
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        // An operator that computes on must not hold up the thread that closes the database.
        for team in self.resting.get_mut().drain(..) {
            team.runtime.shutdown_background();
        }
    }
}

/// The threads of one run.
pub struct Team {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    size: usize,
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
            self.threads.rest(runtime, self.size);
        }
    }
}

/// Lowers the priority of the calling thread. A query that reads whole tables always has work. It
/// would keep a core to itself while sessions that read single rows wait for their turn.
fn lower_priority(niceness: i32) {
    // Where it is forbidden, they keep the priority of sessions.
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
        let threads = QueryThreads::new(1, 10, 0);
        let (release, held) = mpsc::channel::<()>();
        let first = threads.team().unwrap();
        let (started, starts) = mpsc::channel();
        let task = async move {
            started.send(()).unwrap();
            held.recv()
        };
        let busy = first.spawn(task).unwrap();
        starts.recv().unwrap();
        let busy_thread = {
            // No session waits for it any more, but it computes on.
            busy.abort();
            drop(first);
            let second = threads.team().unwrap();
            let other = thread_of(&second);
            drop(second);
            other
        };
        // The second has answered before its task has ended.
        while threads.computing() > 1 {
            thread::yield_now();
        }
        let third = threads.team().unwrap();
        assert_eq!(thread_of(&third), busy_thread, "a resting team is used again");
        drop(release);
    }

    #[test]
    fn teams_become_small_and_then_are_refused() {
        let threads = QueryThreads::new(3, 10, 0);
        let mut teams: Vec<Team> = (0..8).map(|_| threads.team().unwrap()).collect();
        let sizes: Vec<usize> = teams.iter().map(|team| team.size).collect();
        assert_eq!(sizes, [3, 1, 1, 1, 1, 1, 1, 1]);
        let refused = threads.team().map(drop).unwrap_err();
        assert_eq!(refused.sqlstate, SqlState::INSUFFICIENT_RESOURCES);
        // Those that rest are used again, the large one first.
        teams.remove(0);
        teams.pop();
        let again: Vec<Team> = (0..2).map(|_| threads.team().unwrap()).collect();
        assert_eq!((again[0].size, again[1].size), (3, 1));
        assert!(threads.team().is_err());
    }

    #[test]
    fn threads_count_until_they_have_ended() {
        let threads = QueryThreads::new(2, 4, 0);
        let used = Arc::clone(&threads.used);
        let (release, held) = mpsc::channel::<()>();
        let team = threads.team().unwrap();
        let (started, starts) = mpsc::channel();
        team.spawn(async move {
            started.send(()).unwrap();
            held.recv()
        });
        starts.recv().unwrap();
        drop(team);
        drop(threads);
        assert_eq!(used.load(Ordering::Relaxed), 2);
        drop(release);
        while used.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn dropping_the_threads_waits_for_nothing() {
        let (release, held) = mpsc::channel::<()>();
        let threads = QueryThreads::new(1, 10, 0);
        let team = threads.team().unwrap();
        team.spawn(async move { held.recv() }).unwrap();
        drop(team);
        drop(threads);
        drop(release);
    }
}
