//! The actions after a lock wait has lasted `deadlock_timeout`, beside the search for a deadlock.
//! The session logs the wait (`log_lock_waits`) and cancels a background vacuum that is in the way.
//! Messages are PostgreSQL's.

use std::time::{Duration, Instant};

use millpond_sync::mutant;
use smallvec::SmallVec;

use super::manager::LockManager;
use crate::ids::SessionNo;
use crate::lock::LockMode;
use crate::lock::LockTag;
use crate::proc::Interrupt;

/// A session's wait.
pub(super) struct Wait {
    pub(super) session: SessionNo,
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) begun: Instant,
    /// The session's `deadlock_timeout`.
    pub(super) timeout: Duration,
    /// `log_lock_waits`.
    pub(super) is_logged: bool,
}

/// The kind of log message about a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    Still,
    Reordered,
    Deadlock,
    Acquired,
}

impl LockManager {
    /// Logs the wait, if the session's settings ask for it.
    pub(super) fn tell(&self, wait: &Wait, what: Told) {
        if wait.is_logged && !(what == Told::Acquired && mutant!("lock-long-wait-end-untold")) {
            self.log(wait, what);
        }
    }

    #[cold]
    fn log(&self, wait: &Wait, what: Told) {
        let Wait { mode, tag, .. } = wait;
        let process = self.procs.process_id(wait.session);
        let (verb, rest) = match what {
            Told::Still => ("still waiting for", ""),
            Told::Reordered => ("avoided deadlock for", " by rearranging queue order"),
            Told::Deadlock => ("detected deadlock while waiting for", ""),
            Told::Acquired => ("acquired", ""),
        };
        let after = milliseconds(millpond_sync::clock::since(wait.begun));
        let message = format!("process {process} {verb} {mode} on {tag}{rest} after {after} ms");
        if what == Told::Acquired {
            tracing::info!("{message}");
        } else {
            let detail = self.parties(tag);
            tracing::info!(detail, "{message}");
        }
    }

    /// The holders of a lock, and its waiters.
    fn parties(&self, tag: &LockTag) -> String {
        let (holders, queue) = {
            let partition = self.partition(tag);
            let Some(entry) = partition.get(tag) else { return String::new() };
            let process = |session| self.procs.process_id(session).to_string();
            let waits = |session| entry.queue().any(|waiter| waiter.session == session);
            let holders = entry.holders().map(|(session, _)| session);
            let holders: Vec<_> = holders.filter(|&s| !waits(s)).map(process).collect();
            (holders, Vec::from_iter(entry.queue().map(|waiter| process(waiter.session))))
        };
        let processes = if holders.len() == 1 { "Process" } else { "Processes" };
        let (holders, queue) = (holders.join(", "), queue.join(", "));
        format!("{processes} holding the lock: {holders}. Wait queue: {queue}.")
    }

    /// Cancels a background vacuum that holds what the session waits for. It loses only time.
    pub(super) fn stop_autovacuum(&self, wait: &Wait) {
        let mut stopped: SmallVec<[u32; 1]> = SmallVec::new();
        {
            // While the partition is locked, a holder of the lock can't release it.
            let partition = self.partition(&wait.tag);
            let Some(entry) = partition.get(&wait.tag) else { return };
            for holder in entry.conflicting_holders(wait.session, wait.mode) {
                if self.procs.is_autovacuum(holder) || mutant!("lock-stops-any-holder") {
                    stopped.push(self.procs.process_id(holder));
                    self.procs.interrupt_session(holder, Interrupt::Cancel);
                }
            }
        }
        // Writing a message may take long, so it happens without the mutex.
        for process in stopped {
            tracing::debug!("sending cancel to blocking autovacuum PID {process}");
        }
    }
}

fn milliseconds(time: Duration) -> String {
    let us = time.as_micros();
    format!("{}.{:03}", us / 1000, us % 1000)
}
