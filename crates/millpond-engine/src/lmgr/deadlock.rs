//! Deadlock detection by the waits-for graph, with queue reordering.
//!
//! A session that has waited for `deadlock_timeout` holds all partitions for a moment and searches the
//! graph for a path back to itself. Edges lead from a waiter to each session that holds what it
//! conflicts with (hard), and to each waiter ahead of it in the queue that it conflicts with (soft).
//!
//! The last edge of a cycle comes into being when a session begins to wait, and every waiter searches
//! once, later than that: so the session that closed the cycle finds it (lmgr rule 7). A cycle with a soft edge
//! may be dissolved by letting the waiter overtake: the queue is reordered if no cycle through any of its waiters
//! remains then. Otherwise the searcher is the victim, and leaves its queue before the partitions are given
//! up: nobody else finds the same cycle.

use smallvec::SmallVec;

use super::manager::{AllPartitions, LockManager};
use super::mode::LockMode;
use super::tag::LockTag;
use crate::transam::SessionNo;

/// One step of a cycle: who waits, for what, blocked by whom, and whether the blocker holds it.
#[derive(Clone, Copy, Debug)]
struct Edge {
    waiter: SessionNo,
    tag: LockTag,
    mode: LockMode,
    blocker: SessionNo,
    hard: bool,
}

impl LockManager {
    /// Looks for a deadlock that `session` is part of. Resolves it by reordering a queue if that helps; otherwise
    /// takes the session out of its queue and describes the cycle.
    pub(super) fn find_deadlock(&self, session: SessionNo) -> Option<String> {
        let mut all = self.all_partitions();
        let cycle = self.cycle_through(&mut all, session)?;
        for edge in cycle.iter().filter(|edge| !edge.hard) {
            if let Some(served) = self.reorder(&mut all, edge) {
                drop(all);
                self.wake(&served);
                return None;
            }
        }
        let detail = self.describe(&cycle);
        let tag = cycle.first()?.tag;
        let served = self.leave_queue(all.of(&tag), session, &tag);
        drop(all);
        self.wake(&served);
        Some(detail)
    }

    /// A path of the waits-for graph from `session` back to itself.
    fn cycle_through(&self, all: &mut AllPartitions<'_>, session: SessionNo) -> Option<Vec<Edge>> {
        let mut visited = vec![false; self.waits.len()];
        let mut path = Vec::new();
        // Depth first, with an explicit stack of edges still to follow: chains may be long.
        let mut open: Vec<SmallVec<[Edge; 4]>> = vec![self.edges(all, session)];
        visited[session.index()] = true;
        while let Some(edges) = open.last_mut() {
            let Some(edge) = edges.pop() else {
                open.pop();
                path.pop();
                continue;
            };
            if edge.blocker == session {
                path.push(edge);
                return Some(path);
            }
            if !std::mem::replace(&mut visited[edge.blocker.index()], true) {
                path.push(edge);
                open.push(self.edges(all, edge.blocker));
            }
        }
        None
    }

    /// The edges out of a session; hard ones last, so that they are followed first.
    fn edges(&self, all: &mut AllPartitions<'_>, waiter: SessionNo) -> SmallVec<[Edge; 4]> {
        let Some((tag, mode)) = *self.waits[waiter.index()].lock() else {
            return SmallVec::new();
        };
        let Some(entry) = all.of(&tag).get(&tag) else { return SmallVec::new() };
        let mut edges: SmallVec<[Edge; 4]> = entry
            .blockers(waiter)
            .into_iter()
            .map(|(blocker, hard)| Edge { waiter, tag, mode, blocker, hard })
            .collect();
        edges.sort_by_key(|edge| edge.hard);
        edges
    }

    /// Lets the waiter of a soft edge overtake its blocker, if that leaves no deadlock among the waiters of the
    /// queue; gives those who can be served then.
    fn reorder(
        &self,
        all: &mut AllPartitions<'_>,
        edge: &Edge,
    ) -> Option<SmallVec<[SessionNo; 4]>> {
        let entry = all.of(&edge.tag).get_mut(&edge.tag)?;
        let before = entry.order();
        if !entry.move_before(edge.waiter, edge.blocker) {
            return None;
        }
        let waiters: Vec<SessionNo> = entry.queue().map(|w| w.session).collect();
        if waiters.into_iter().all(|waiter| self.cycle_through(all, waiter).is_none()) {
            return Some(self.serve(all.of(&edge.tag), &edge.tag));
        }
        if let Some(entry) = all.of(&edge.tag).get_mut(&edge.tag) {
            entry.set_order(before);
        }
        None
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

    /// The detail of a deadlock of two on one object, which shows as soon as the second asks.
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

    /// Those for whom a session waits now: holders and those ahead of it in the queue (`pg_blocking_pids`).
    pub fn blockers(&self, session: SessionNo) -> Vec<SessionNo> {
        if session.index() >= self.waits.len() {
            return Vec::new();
        }
        let mut all = self.all_partitions();
        let mut blockers: Vec<SessionNo> =
            self.edges(&mut all, session).iter().map(|edge| edge.blocker).collect();
        blockers.sort();
        blockers.dedup();
        blockers
    }
}
