//! The waits-for graph, and how its cycles are resolved.
//!
//! A session that searches for a deadlock holds all mutexes and builds a [`Graph`].
//! [`Graph::resolve`] only computes. Its [`Verdict`] is one of these: no cycle through the session;
//! a new order of some queues, which ends the cycles; a deadlock; or later. "Later"
//! means that other sessions are in a deadlock, which must end first.
//!
//! A **hard** edge leads from a waiter to each session that holds a lock with which it conflicts. A
//! **soft** edge leads to each waiter ahead of it in the same queue with which it conflicts.
//! Putting the waiter in front of the other reverses a soft edge; a hard edge can't be reversed.
//!
//! **When it is a deadlock.** A session waits for one lock at a time, and holders are fixed.
//! Suppose that no cycle consists of hard edges alone. Then there is an order of finishing in which
//! each session comes after those to which it has hard edges. Put every queue into that order: all
//! edges point back in the order, and there is no cycle. So there is a deadlock if and only if
//! there is a cycle of hard edges.
//!
//! **How a queue is reordered.** That order is not imposed on all queues: as in PostgreSQL, only
//! edges that close a cycle are reversed. Take a cycle through the searcher, or through a waiter
//! that has been moved. It contains a soft edge from a session that finishes earlier in the order
//! to one that finishes later. The search adds the constraint that the former is ahead. Then it
//! sorts the queue topologically by its constraints, and leaves all other waiters in their places.
//! It repeats this as long as there is such a cycle.
//!
//! All constraints agree with one order, so they never contradict each other, and the search never
//! backtracks. It ends after at most as many steps as there are pairs. Only pairs with a moved
//! waiter change places, so a cycle that reordering creates goes through such a waiter, and is
//! found.

use std::collections::HashMap;
use std::time::Instant;

use millpond_sync::mutant;
use smallvec::SmallVec;

use crate::ids::SessionNo;
use crate::lock::LockMode;
use crate::lock::LockTag;
use crate::lock::TagHash;

/// One step of a cycle: a waiter, what it waits for, its blocker, and whether the blocker holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) waiter: SessionNo,
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) blocker: SessionNo,
    pub(super) hard: bool,
}

/// A session that waits.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) since: Instant,
    /// The other sessions that hold a lock with which it conflicts.
    pub(super) holders: SmallVec<[SessionNo; 4]>,
}

/// The result of a search.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The session is in no cycle.
    Free,
    /// The session is in no cycle any more, if these queues get this order.
    Reorder(Vec<(LockTag, Vec<SessionNo>)>),
    /// The session is in this cycle, and no order of the queues would help.
    Deadlock(Vec<Edge>),
    /// The session is in a cycle that an order could dissolve. But others are in a deadlock whose
    /// victim is not known yet: search again later.
    Later,
}

/// A queue: its waiters in order.
type Queue = Vec<(SessionNo, LockMode)>;

/// All that can be reached from one waiter.
#[derive(Default, Debug)]
pub(super) struct Graph {
    nodes: HashMap<SessionNo, Node, TagHash>,
    queues: HashMap<LockTag, Queue, TagHash>,
    constraints: HashMap<LockTag, Vec<(SessionNo, SessionNo)>, TagHash>,
}

impl Graph {
    pub(super) fn add_node(&mut self, session: SessionNo, node: Node) {
        self.nodes.insert(session, node);
    }

    pub(super) fn add_queue(&mut self, tag: LockTag, queue: Queue) {
        self.queues.insert(tag, queue);
    }

    pub(super) fn has_node(&self, session: SessionNo) -> bool {
        self.nodes.contains_key(&session)
    }

    pub(super) fn has_queue(&self, tag: &LockTag) -> bool {
        self.queues.contains_key(tag)
    }

    /// Judges the cycles through `session`.
    pub(super) fn resolve(mut self, session: SessionNo) -> Verdict {
        if let Some(cycle) = self.cycle(session, false) {
            return Verdict::Deadlock(cycle);
        }
        let Some(mut cycle) = self.cycle(session, true) else { return Verdict::Free };
        let rank = match self.finishing_order() {
            Some(rank) => rank,
            None if mutant!("deadlock-searched-once") => return Verdict::Free,
            None => return Verdict::Later,
        };
        let mut watched = vec![session];
        loop {
            // A cycle can't go down in rank all the way round, so there is such an edge.
            let Some(edge) =
                cycle.into_iter().find(|e| !e.hard && rank[&e.waiter] < rank[&e.blocker])
            else {
                debug_assert!(false, "a cycle of edges that all lead down");
                return Verdict::Later;
            };
            let constraints = self.constraints.entry(edge.tag).or_default();
            if constraints.contains(&(edge.waiter, edge.blocker)) {
                // All mutexes are held here: giving up is better than an endless loop.
                debug_assert!(false, "a constraint that has been met is met again");
                return Verdict::Later;
            }
            constraints.push((edge.waiter, edge.blocker));
            if let Some(queue) = self.queues.get_mut(&edge.tag) {
                sort_queue(queue, constraints);
            }
            if !watched.contains(&edge.waiter) {
                watched.push(edge.waiter);
            }
            match watched.iter().find_map(|session| self.cycle(*session, true)) {
                Some(next) => cycle = next,
                None => return Verdict::Reorder(self.changed_queues()),
            }
        }
    }

    fn changed_queues(&self) -> Vec<(LockTag, Vec<SessionNo>)> {
        let sessions = |queue: &Queue| queue.iter().map(|(session, _)| *session).collect();
        let changed = self.queues.iter().filter(|(tag, _)| self.constraints.contains_key(tag));
        changed.map(|(tag, queue)| (*tag, sessions(queue))).collect()
    }

    /// The edges out of a session; hard ones last, so that they are followed first. After a soft
    /// edge to a waiter of the same mode, the rest of the queue is left out. What blocks that
    /// waiter also blocks this one, so the same sessions are reached. A row's long queue is a
    /// chain, not a mesh.
    pub(super) fn edges(&self, waiter: SessionNo, soft: bool) -> SmallVec<[Edge; 4]> {
        let mut edges = SmallVec::new();
        let Some(Node { tag, mode, holders, .. }) = self.nodes.get(&waiter) else { return edges };
        let edge = |blocker, hard| Edge { waiter, tag: *tag, mode: *mode, blocker, hard };
        if soft
            && !mutant!("deadlock-without-soft-edges")
            && let Some(queue) = self.queues.get(tag)
        {
            let place = queue.iter().position(|(session, _)| *session == waiter).unwrap_or(0);
            for (session, other) in queue.iter().take(place).rev() {
                if mode.conflicts_with(*other) {
                    edges.push(edge(*session, false));
                    if other == mode {
                        break;
                    }
                }
            }
        }
        if !mutant!("deadlock-without-hard-edges") {
            edges.extend(holders.iter().map(|holder| edge(*holder, true)));
        }
        edges
    }

    /// A path from `session` back to itself.
    fn cycle(&self, session: SessionNo, soft: bool) -> Option<Vec<Edge>> {
        let mut visited: HashMap<SessionNo, (), TagHash> = HashMap::default();
        let mut path = Vec::new();
        // Depth first, with an explicit stack of edges still to follow, because chains may be long.
        let mut open: Vec<SmallVec<[Edge; 4]>> = vec![self.edges(session, soft)];
        visited.insert(session, ());
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
            if visited.insert(edge.blocker, ()).is_none() {
                path.push(edge);
                open.push(self.edges(edge.blocker, soft));
            }
        }
        None
    }

    /// An order in which all waiters could finish if only holders mattered: longest wait first
    /// where the order is free. `None` if some waiters could never finish.
    fn finishing_order(&self) -> Option<HashMap<SessionNo, usize, TagHash>> {
        let mut blocked: HashMap<SessionNo, usize, TagHash> = HashMap::default();
        let mut blocks: HashMap<SessionNo, Vec<SessionNo>, TagHash> = HashMap::default();
        for (session, node) in &self.nodes {
            let waiting = node.holders.iter().filter(|holder| self.nodes.contains_key(holder));
            for holder in waiting.clone() {
                blocks.entry(*holder).or_default().push(*session);
            }
            blocked.insert(*session, waiting.count());
        }
        let age = |session: SessionNo| {
            (std::cmp::Reverse((self.nodes[&session].since, session)), session)
        };
        let mut ready: std::collections::BinaryHeap<_> =
            blocked.iter().filter(|(_, count)| **count == 0).map(|(s, _)| age(*s)).collect();
        let mut rank = HashMap::default();
        while let Some((_, session)) = ready.pop() {
            let next = rank.len();
            rank.insert(session, next);
            for waiter in blocks.remove(&session).unwrap_or_default() {
                if let Some(count) = blocked.get_mut(&waiter) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(age(waiter));
                    }
                }
            }
        }
        (rank.len() == self.nodes.len()).then_some(rank)
    }
}

/// Sorts a queue topologically: of each pair in `before` the first comes ahead of the second. It
/// fills the queue from the end. Each time it takes the last session that no remaining session has
/// to follow, so that only sessions that must move do.
fn sort_queue(queue: &mut Queue, before: &[(SessionNo, SessionNo)]) {
    let mut left = std::mem::take(queue);
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_left = |session: SessionNo| left.iter().any(|(other, _)| *other == session);
        let must_wait = |session: SessionNo| {
            before.iter().any(|(first, second)| *first == session && is_left(*second))
        };
        // Constraints that agree with one order always leave a candidate. Otherwise the last one is
        // taken, so no waiter is lost.
        let index =
            left.iter().rposition(|(session, _)| !must_wait(*session)).unwrap_or(left.len() - 1);
        sorted.push(left.remove(index));
    }
    sorted.reverse();
    *queue = sorted;
}
