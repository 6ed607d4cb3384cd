//! A plain model of the lock manager, against which tests compare the real one. It uses vectors, no
//! fast path and no mutexes, and decides by trying everything.

use std::collections::{BTreeMap, BTreeSet};

use crate::lock::LockMode;
use crate::lock::LockTag;

/// The answer to a request by the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Already,
    Granted,
    Queued,
    WouldBlock,
    Deadlock,
}

/// What each session holds and how often, and the waiters in order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Reference {
    pub(super) held: BTreeMap<(u16, LockTag, LockMode), u32>,
    pub(super) queues: BTreeMap<LockTag, Vec<(u16, LockMode)>>,
}

/// The largest number of sessions.
const MAX: usize = 16;
/// For each session, those for which it waits, one bit each.
type Edges = [u16; MAX];

impl Reference {
    fn queue(&self, tag: LockTag) -> &[(u16, LockMode)] {
        self.queues.get(&tag).map_or(&[], Vec::as_slice)
    }

    /// What a waiting session waits for.
    pub(super) fn wait_of(&self, session: u16) -> Option<(LockTag, LockMode)> {
        let found = |(tag, queue): (&LockTag, &Vec<(u16, LockMode)>)| {
            queue.iter().find(|(s, _)| *s == session).map(|(_, mode)| (*tag, *mode))
        };
        self.queues.iter().find_map(found)
    }

    fn holder_objects(&self, session: u16, tag: LockTag, mode: LockMode) -> bool {
        self.held.keys().any(|(s, t, m)| *s != session && *t == tag && m.conflicts_with(mode))
    }

    fn holds_against(&self, session: u16, tag: LockTag, mode: LockMode) -> bool {
        self.held.keys().any(|(s, t, m)| *s == session && *t == tag && m.conflicts_with(mode))
    }

    pub(super) fn request(
        &mut self,
        session: u16,
        tag: LockTag,
        mode: LockMode,
        may_wait: bool,
    ) -> Answer {
        if let Some(count) = self.held.get_mut(&(session, tag, mode)) {
            *count += 1;
            return Answer::Already;
        }
        let queue = self.queue(tag);
        // The first waiter that waits for this session. To go in front of it costs it nothing.
        let place = queue.iter().position(|(_, wanted)| self.holds_against(session, tag, *wanted));
        let ahead = &queue[..place.unwrap_or(queue.len())];
        let free = !self.holder_objects(session, tag, mode);
        let unopposed = ahead.iter().all(|(_, wanted)| !wanted.conflicts_with(mode));
        let mutual = place.is_some_and(|place| self.holds_against(queue[place].0, tag, mode));
        if free && queue.iter().all(|(_, wanted)| !wanted.conflicts_with(mode))
            || free && unopposed && !mutual
        {
            self.held.insert((session, tag, mode), 1);
            return Answer::Granted;
        }
        if !may_wait {
            return Answer::WouldBlock;
        }
        if mutual {
            return Answer::Deadlock;
        }
        let place = ahead.len();
        self.queues.entry(tag).or_default().insert(place, (session, mode));
        Answer::Queued
    }

    /// Releases one request. Returns the sessions that this serves, in order.
    pub(super) fn release(&mut self, session: u16, tag: LockTag, mode: LockMode) -> Vec<u16> {
        match self.held.get_mut(&(session, tag, mode)) {
            Some(count) if *count > 1 => {
                *count -= 1;
                Vec::new()
            }
            _ => {
                self.held.remove(&(session, tag, mode));
                self.serve(tag)
            }
        }
    }

    /// Releases everything.
    pub(super) fn release_all(&mut self, session: u16) -> Vec<u16> {
        let mine: Vec<_> = self.held.keys().filter(|(s, ..)| *s == session).copied().collect();
        let mut served = Vec::new();
        for (_, tag, mode) in mine {
            self.held.insert((session, tag, mode), 1);
            served.extend(self.release(session, tag, mode));
        }
        served
    }

    /// Lets a waiter give up.
    pub(super) fn leave(&mut self, session: u16) -> Vec<u16> {
        let Some((tag, _)) = self.wait_of(session) else { return Vec::new() };
        self.queues.entry(tag).or_default().retain(|(s, _)| *s != session);
        self.serve(tag)
    }

    /// Grants to waiters that conflict with no holder and no remaining waiter ahead of them.
    pub(super) fn serve(&mut self, tag: LockTag) -> Vec<u16> {
        let queue = self.queues.remove(&tag).unwrap_or_default();
        let (mut left, mut served) = (Vec::<(u16, LockMode)>::new(), Vec::new());
        for (session, mode) in queue {
            let overtakes = left.iter().any(|(_, other)| other.conflicts_with(mode));
            if overtakes || self.holder_objects(session, tag, mode) {
                left.push((session, mode));
            } else {
                self.held.insert((session, tag, mode), 1);
                served.push(session);
            }
        }
        if !left.is_empty() {
            self.queues.insert(tag, left);
        }
        served
    }

    /// The waits-for edges: to holders and, if `soft`, to conflicting waiters ahead in the queue.
    fn edges(&self, soft: bool) -> Edges {
        let mut edges = Edges::default();
        for (tag, queue) in &self.queues {
            for (place, (waiter, wanted)) in queue.iter().enumerate() {
                for (holder, held, mode) in self.held.keys() {
                    if held == tag && holder != waiter && mode.conflicts_with(*wanted) {
                        edges[*waiter as usize] |= 1 << holder;
                    }
                }
                for (other, mode) in queue.iter().take(if soft { place } else { 0 }) {
                    if mode.conflicts_with(*wanted) {
                        edges[*waiter as usize] |= 1 << other;
                    }
                }
            }
        }
        edges
    }

    /// The sessions that are part of a cycle, in the graph without the sessions of `without`.
    pub(super) fn in_cycles(&self, soft: bool, without: &BTreeSet<u16>) -> BTreeSet<u16> {
        let mut reach = self.edges(soft);
        for session in without {
            reach.iter_mut().for_each(|to| *to &= !(1 << session));
            reach[*session as usize] = 0;
        }
        for middle in 0..MAX {
            for from in 0..MAX {
                if reach[from] & 1 << middle != 0 {
                    reach[from] |= reach[middle];
                }
            }
        }
        (0..MAX as u16).filter(|session| reach[*session as usize] & 1 << session != 0).collect()
    }

    /// Whether some order of the queues leaves `session` in no cycle: by trying all orders.
    pub(super) fn some_order_helps(&self, session: u16) -> bool {
        fn try_all(state: &mut Reference, tags: &[LockTag], session: u16) -> bool {
            let Some((tag, rest)) = tags.split_first() else {
                return !state.in_cycles(true, &BTreeSet::new()).contains(&session);
            };
            permutations(state.queue(*tag)).into_iter().any(|order| {
                state.queues.insert(*tag, order);
                try_all(state, rest, session)
            })
        }
        let tags: Vec<LockTag> = self.queues.keys().copied().collect();
        try_all(&mut self.clone(), &tags, session)
    }
}

fn permutations<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        for mut order in permutations(&rest) {
            order.insert(0, *item);
            all.push(order);
        }
    }
    all
}
