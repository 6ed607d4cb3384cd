//! The waits-for graph and what to do about its cycles. Pure: a picture of who waits, taken under all mutexes.
//!
//! Edges lead from a waiter to each session that holds what it conflicts with (**hard**), and to each waiter
//! ahead of it in the same queue that it conflicts with (**soft**). A soft edge can be turned round by
//! putting the waiter in front of the other; a hard one can't.
//!
//! **When it is a deadlock.** A session waits for one lock at a time, and holders are fixed. If no cycle consists
//! of hard edges alone, let everybody finish in an order in which each comes after those it has hard edges to, and put
//! every queue into that order: then all edges point back in the order, and nobody waits in a circle. So
//! there is a deadlock if and only if there is a cycle of hard edges.
//!
//! **How a queue is reordered.** That order is not imposed on all queues: only what closes a cycle is turned
//! round, as PostgreSQL does it. As long as there is a cycle through the searcher, or through a waiter that has been
//! moved, it contains a soft edge from one who finishes earlier to one who finishes later in the order; the
//! constraint that the former be ahead is added, and the queue sorted topologically by its constraints, leaving
//! everybody else where he was. Since all constraints agree with one order they never contradict each other: no
//! search and no second attempt, and an end after as many steps as there are pairs. Only pairs with a moved waiter
//! change places, so a cycle that reordering might create goes through one, and is found.

use std::collections::HashMap;
use std::time::Instant;

use millpond_sync::mutant;
use smallvec::SmallVec;

use super::mode::LockMode;
use super::table::TagHash;
use super::tag::LockTag;
use crate::transam::SessionNo;

/// One step of a cycle: who waits, for what, blocked by whom, and whether the blocker holds it.
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
    /// The other sessions that hold what it conflicts with.
    pub(super) holders: SmallVec<[SessionNo; 4]>,
}

/// What a search has found.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The session is in no cycle.
    Free,
    /// It no longer is, if these queues get this order.
    Reorder(Vec<(LockTag, Vec<SessionNo>)>),
    /// It is in this cycle, and no order of the queues would help.
    Deadlock(Vec<Edge>),
    /// It is in a cycle that an order could dissolve, but others are in a deadlock, and who will be its victim is not
    /// known yet: look again later.
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
            // A cycle can't go down in rank all the way round.
            let Some(edge) =
                cycle.into_iter().find(|e| !e.hard && rank[&e.waiter] < rank[&e.blocker])
            else {
                debug_assert!(false, "a cycle of edges that all lead down");
                return Verdict::Later;
            };
            let constraints = self.constraints.entry(edge.tag).or_default();
            if constraints.contains(&(edge.waiter, edge.blocker)) {
                // All mutexes are held here: better no order than no end.
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

    /// The edges out of a session; hard ones last, so that they are followed first. Behind one that waits for the same mode,
    /// the rest of the queue is left out: whoever is in the way of the one is in the way of the other, so the same sessions
    /// are reached, and a long queue for one row is a chain instead of a mesh.
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
        // Depth first, with an explicit stack of edges still to follow: chains may be long.
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

    /// An order in which all waiters could finish if only holders mattered, who has waited longest first where it
    /// may be; `None` if some never could.
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

/// Sorts a queue topologically: of each pair in `before` the first comes ahead of the second. Filled from the
/// end, always with the last of those that nobody left has to follow, so that only who must move does.
fn sort_queue(queue: &mut Queue, before: &[(SessionNo, SessionNo)]) {
    let mut left = std::mem::take(queue);
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_left = |session: SessionNo| left.iter().any(|(other, _)| *other == session);
        let must_wait = |session: SessionNo| {
            before.iter().any(|(first, second)| *first == session && is_left(*second))
        };
        // Constraints that agree with one order always leave somebody; without, nobody is lost.
        let index =
            left.iter().rposition(|(session, _)| !must_wait(*session)).unwrap_or(left.len() - 1);
        sorted.push(left.remove(index));
    }
    sorted.reverse();
    *queue = sorted;
}
