//! One partition of the shared lock table: each object's holders, and its waiters in order.
//!
//! Pure bookkeeping under the partition's mutex: nothing waits or wakes. PostgreSQL's rules:
//!
//! * A request is granted if it conflicts with no other holder and with no waiter (lmgr rule 4).
//! * Otherwise it queues at the end, unless the session already holds a mode for which a waiter in
//!   the queue waits. Then its place is in front of the first such waiter, which cannot be served
//!   before it in any case. There it is granted at once if it conflicts with no other holder and
//!   with no waiter ahead of that place. If that waiter in turn holds something with which the
//!   request conflicts, both would wait forever.
//! * On a release the queue is served from the front. A waiter may overtake where there is no
//!   conflict.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use millpond_sync::mutant;
use smallvec::SmallVec;

use crate::ids::SessionNo;
use crate::lock::{LockMode, ModeSet};
use crate::lock::{LockTag, TagHash};

/// A session that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    pub(crate) session: SessionNo,
    pub(crate) mode: LockMode,
    pub(crate) since: Instant,
}

/// The decision on a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Granted,
    /// It would queue at this position.
    Wait(usize),
    /// It and the waiter it would overtake would wait for each other.
    Deadlock(SessionNo),
}

/// One object that is locked or waited for.
#[derive(Default, Debug)]
pub(crate) struct Entry {
    granted: SmallVec<[(SessionNo, ModeSet); 2]>,
    queue: VecDeque<Waiter>,
}

impl Entry {
    /// The modes that a session holds.
    pub(crate) fn held_by(&self, session: SessionNo) -> ModeSet {
        let holder = self.granted.iter().find(|(s, _)| *s == session);
        holder.map_or(ModeSet::EMPTY, |(_, modes)| *modes)
    }

    pub(crate) fn holders(&self) -> impl Iterator<Item = (SessionNo, ModeSet)> + '_ {
        self.granted.iter().copied()
    }

    pub(crate) fn queue(&self) -> impl Iterator<Item = &Waiter> + '_ {
        self.queue.iter()
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.granted.is_empty() && self.queue.is_empty()
    }

    /// Records a lock as held.
    pub(crate) fn grant(&mut self, session: SessionNo, mode: LockMode) {
        match self.granted.iter_mut().find(|(s, _)| *s == session) {
            Some((_, modes)) => *modes = modes.with(mode),
            None => self.granted.push((session, ModeSet::EMPTY.with(mode))),
        }
    }

    /// Removes a held lock. Returns `false` if it was not held.
    pub(crate) fn ungrant(&mut self, session: SessionNo, mode: LockMode) -> bool {
        let Some(index) = self.granted.iter().position(|(s, _)| *s == session) else {
            return false;
        };
        let modes = &mut self.granted[index].1;
        let held = modes.contains(mode);
        *modes = modes.without(mode);
        if modes.is_empty() {
            self.granted.swap_remove(index);
        }
        held
    }

    /// Whether another session holds a mode with which `mode` conflicts.
    pub(crate) fn conflicts_with_holders(&self, session: SessionNo, mode: LockMode) -> bool {
        self.conflicting_holders(session, mode).next().is_some()
    }

    /// Decides on a request, and grants it if that is the decision.
    pub(crate) fn request(&mut self, session: SessionNo, mode: LockMode) -> Request {
        let conflicts = mode.conflicts();
        let waited: ModeSet =
            self.queue.iter().fold(ModeSet::EMPTY, |set, waiter| set.with(waiter.mode));
        let free = !self.conflicts_with_holders(session, mode);
        if free && (mutant!("lock-overtakes-queue") || !conflicts.intersects(waited)) {
            self.grant(session, mode);
            return Request::Granted;
        }
        let own = self.held_by(session);
        let mut ahead = ModeSet::EMPTY;
        for (position, waiter) in self.queue.iter().enumerate() {
            if waiter.mode.conflicts().intersects(own) && !mutant!("lock-holder-queues-last") {
                if self.held_by(waiter.session).intersects(conflicts)
                    && !mutant!("lock-mutual-wait-unseen")
                {
                    return Request::Deadlock(waiter.session);
                }
                if free && !conflicts.intersects(ahead) {
                    self.grant(session, mode);
                    return Request::Granted;
                }
                return Request::Wait(position);
            }
            ahead = ahead.with(waiter.mode);
        }
        Request::Wait(self.queue.len())
    }

    /// Inserts a waiter into the queue.
    pub(crate) fn enqueue(&mut self, position: usize, waiter: Waiter) {
        self.queue.insert(position.min(self.queue.len()), waiter);
    }

    /// Removes a waiter from the queue. Returns `false` if it is not there.
    pub(crate) fn dequeue(&mut self, session: SessionNo) -> bool {
        match self.queue.iter().position(|w| w.session == session) {
            Some(index) => self.queue.remove(index).is_some(),
            None => false,
        }
    }

    /// Grants to all waiters that can be served now, and calls `granted` for each.
    pub(crate) fn serve(&mut self, mut granted: impl FnMut(SessionNo)) {
        let mut ahead = ModeSet::EMPTY;
        let mut index = 0;
        while let Some(waiter) = self.queue.get(index).copied() {
            let conflicts = waiter.mode.conflicts();
            if conflicts.intersects(ahead)
                || self.conflicts_with_holders(waiter.session, waiter.mode)
            {
                ahead = ahead.with(waiter.mode);
                index += 1;
            } else {
                self.queue.remove(index);
                self.grant(waiter.session, waiter.mode);
                granted(waiter.session);
            }
        }
    }

    /// Puts the same waiters into another order.
    pub(crate) fn set_order(&mut self, order: &[SessionNo]) {
        let place = |waiter: &Waiter| order.iter().position(|session| *session == waiter.session);
        // The sort is stable, and a waiter that is not named goes last: no waiter is lost.
        self.queue.make_contiguous().sort_by_key(|waiter| place(waiter).unwrap_or(usize::MAX));
    }

    /// The other sessions that hold a mode with which `mode` conflicts.
    pub(crate) fn conflicting_holders(
        &self,
        session: SessionNo,
        mode: LockMode,
    ) -> impl Iterator<Item = SessionNo> + '_ {
        let conflicts = match mode {
            LockMode::RowExclusive if mutant!("lock-conflict-left-out") => {
                mode.conflicts().without(LockMode::Share)
            }
            _ => mode.conflicts(),
        };
        let is_other = move |s| s != session || mutant!("lock-conflicts-with-own");
        let others = self.granted.iter().filter(move |(s, _)| is_other(*s));
        others.filter(move |(_, modes)| modes.intersects(conflicts)).map(|(s, _)| *s)
    }

    /// The sessions that block the waiter `session`: holders, then waiters ahead of it.
    pub(crate) fn blockers(&self, session: SessionNo) -> Vec<SessionNo> {
        let Some(position) = self.queue.iter().position(|w| w.session == session) else {
            return Vec::new();
        };
        let mode = self.queue[position].mode;
        let ahead = self.queue.iter().take(position);
        let ahead = ahead.filter(|waiter| mode.conflicts_with(waiter.mode));
        self.conflicting_holders(session, mode).chain(ahead.map(|waiter| waiter.session)).collect()
    }
}

/// The locks whose tags hash to one mutex.
#[derive(Default)]
pub(crate) struct Partition {
    entries: HashMap<LockTag, Entry, TagHash>,
}

impl Partition {
    pub(crate) fn entry(&mut self, tag: LockTag) -> &mut Entry {
        self.entries.entry(tag).or_default()
    }

    pub(crate) fn get(&self, tag: &LockTag) -> Option<&Entry> {
        self.entries.get(tag)
    }

    pub(crate) fn get_mut(&mut self, tag: &LockTag) -> Option<&mut Entry> {
        self.entries.get_mut(tag)
    }

    /// Removes the entry of an object that no session holds or waits for.
    pub(crate) fn tidy(&mut self, tag: &LockTag) {
        if self.entries.get(tag).is_some_and(Entry::is_unused) {
            self.entries.remove(tag);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&LockTag, &Entry)> {
        self.entries.iter()
    }
}
