//! The search for deadlocks: when it runs, under which mutexes, and what follows from its verdict.
//!
//! A session that has waited for `deadlock_timeout` briefly holds all partitions. It takes a
//! snapshot of the waits-for graph, as far as it can reach from itself, and passes it to
//! [`Graph::resolve`](super::graph::Graph::resolve).
//!
//! The last edge of a cycle arises when a session begins to wait, and every waiter searches once
//! after that. So the session that closed the cycle finds it (lmgr rule 7). If another order of
//! queues dissolves the cycle, the queues get that order, and waiters that can be served are
//! served. Otherwise the searcher is the victim. It leaves its queue before it releases the
//! partitions, so no other session finds the same cycle.

use millpond_sync::mutant;
use smallvec::SmallVec;

use super::graph::{Edge, Graph, Node, Verdict};
use super::manager::{AllPartitions, LockManager};
use crate::ids::SessionNo;
use crate::lock::LockMode;
use crate::lock::LockTag;

/// The result of a search for a deadlock.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// The session waits on.
    Wait,
    /// A new order of queues dissolved the session's cycle. It waits on, or has been served.
    Reordered,
    /// The session waits on, but has to search again.
    Again,
    /// The session has left its queue, because it was part of a deadlock. The text has a line for
    /// every party.
    Victim(String),
}

impl LockManager {
    /// Looks for a deadlock that `session` is part of, and resolves it.
    pub(super) fn find_deadlock(&self, session: SessionNo) -> Search {
        let mut all = self.all_partitions();
        let mut served: SmallVec<[SessionNo; 4]> = SmallVec::new();
        let mut queries = String::new();
        let search = match self.picture(&mut all, session).resolve(session) {
            Verdict::Free => Search::Wait,
            Verdict::Later => Search::Again,
            Verdict::Reorder(queues) => {
                for (tag, order) in queues {
                    if let Some(entry) = all.of(&tag).get_mut(&tag)
                        && !mutant!("deadlock-queues-keep-order")
                    {
                        entry.set_order(&order);
                    }
                    served.extend(self.serve(all.of(&tag), &tag));
                }
                Search::Reordered
            }
            Verdict::Deadlock(cycle) => {
                let detail = self.describe(&cycle);
                queries = self.queries(cycle.iter().map(|edge| edge.waiter));
                if let Some(edge) = cycle.first()
                    && !mutant!("deadlock-victim-stays-in-queue")
                {
                    served = self.leave_queue(all.of(&edge.tag), session, &edge.tag);
                }
                Search::Victim(detail)
            }
        };
        drop(all);
        self.wake(&served);
        if let Search::Victim(detail) = &search {
            tell_deadlock(detail, &queries);
        }
        search
    }

    /// What a search would find now.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn verdict(&self, session: SessionNo) -> Verdict {
        self.picture(&mut self.all_partitions(), session).resolve(session)
    }

    /// All waiters that can be reached from `session` by hard and soft edges, and their queues.
    fn picture(&self, all: &mut AllPartitions<'_>, session: SessionNo) -> Graph {
        let mut graph = Graph::default();
        let mut open = vec![session];
        while let Some(session) = open.pop() {
            if graph.has_node(session) {
                continue;
            }
            let Some((tag, mode)) = *self.waits[session.index()].lock() else { continue };
            let Some(entry) = all.of(&tag).get(&tag) else { continue };
            let Some(waiter) = entry.queue().find(|waiter| waiter.session == session) else {
                continue;
            };
            let holders = entry.conflicting_holders(session, mode).collect();
            graph.add_node(session, Node { tag, mode, since: waiter.since, holders });
            if !graph.has_queue(&tag) {
                graph.add_queue(tag, entry.queue().map(|w| (w.session, w.mode)).collect());
            }
            open.extend(graph.edges(session, true).iter().map(|edge| edge.blocker));
        }
        graph
    }

    fn describe(&self, cycle: &[Edge]) -> String {
        let lines: Vec<String> = cycle
            .iter()
            .map(|edge| self.line(edge.waiter, edge.tag, edge.mode, edge.blocker))
            .collect();
        lines.join("\n")
    }

    fn line(&self, waiter: SessionNo, tag: LockTag, mode: LockMode, blocker: SessionNo) -> String {
        format!(
            "Process {} waits for {mode} on {tag}; blocked by process {}.",
            self.procs.process_id(waiter),
            self.procs.process_id(blocker)
        )
    }

    /// What a deadlock's parties run, for the log. The caller's mutexes keep them in the deadlock.
    pub(super) fn queries(&self, parties: impl Iterator<Item = SessionNo>) -> String {
        let line = |party| {
            format!("\nProcess {}: {}", self.procs.process_id(party), self.procs.query(party))
        };
        parties.map(line).collect()
    }

    /// The detail of a deadlock of two sessions on one object, known as soon as the second asks.
    pub(super) fn mutual_detail(
        &self,
        session: SessionNo,
        tag: LockTag,
        mode: LockMode,
        other: SessionNo,
    ) -> String {
        let wanted = match *self.waits[other.index()].lock() {
            Some((_, wanted)) => wanted,
            None => mode,
        };
        format!(
            "{}\n{}",
            self.line(session, tag, mode, other),
            self.line(other, tag, wanted, session)
        )
    }

    /// The sessions that block a session now: holders, and waiters ahead of it in the queue.
    pub fn blockers(&self, session: SessionNo) -> Vec<SessionNo> {
        if session.index() >= self.waits.len() {
            return Vec::new();
        }
        let mut all = self.all_partitions();
        let waits = *self.waits[session.index()].lock();
        let Some((tag, _)) = waits else { return Vec::new() };
        let mut blockers =
            all.of(&tag).get(&tag).map(|entry| entry.blockers(session)).unwrap_or_default();
        blockers.sort();
        blockers.dedup();
        blockers
    }

    /// The same by process id (`pg_blocking_pids`).
    pub fn blocking_processes(&self, process_id: u32) -> Vec<u32> {
        let Some(session) = self.procs.session_of_process(process_id) else { return Vec::new() };
        self.blockers(session).into_iter().map(|s| self.procs.process_id(s)).collect()
    }
}

/// Logs a deadlock: the detail that its victim gets, and what every party runs.
pub(super) fn tell_deadlock(detail: &str, queries: &str) {
    if !mutant!("deadlock-untold") {
        tracing::warn!("deadlock detected: {detail}{queries}");
    }
}
