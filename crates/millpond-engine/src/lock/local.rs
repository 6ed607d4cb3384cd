//! A session's own record of the locks that it holds. By it, only the first request for a mode and
//! its last release reach shared memory (lmgr rule 2). No other session sees this memory.

use std::collections::HashMap;
use std::time::Duration;

use smallvec::SmallVec;

use super::mode::LockMode;
use super::tag::{LockTag, TagHash};

/// The owner of a lock, whose end releases it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOwner {
    /// The end of the transaction, at the latest.
    Transaction,
    /// The end of the session, or an explicit release (session advisory locks).
    Session,
}

/// Where a held lock is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In one of the session's own slots, unless a strong locker has transferred it.
    Slot(u8),
    /// In the shared table.
    Table,
}

/// A lock that the session holds, and how often the session has asked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) place: Place,
    pub(crate) by_transaction: u32,
    pub(crate) by_session: u32,
}

impl Held {
    pub(crate) fn count(&mut self, owner: LockOwner) -> &mut u32 {
        match owner {
            LockOwner::Transaction => &mut self.by_transaction,
            LockOwner::Session => &mut self.by_session,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.by_transaction == 0 && self.by_session == 0
    }
}

/// The key of a held lock.
pub(crate) type LockKey = (LockTag, LockMode);

/// Held locks by object and mode. Most transactions hold few. Those are stored inline in the
/// session's memory, where a linear search costs less than a hash.
#[derive(Default, Debug)]
pub(crate) struct HeldLocks {
    few: SmallVec<[(LockKey, Held); 4]>,
    /// The locks that did not fit inline.
    others: HashMap<LockKey, Held, TagHash>,
}

impl HeldLocks {
    #[inline]
    fn position(&self, key: &LockKey) -> Option<usize> {
        self.few.iter().position(|(known, _)| known == key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: &LockKey) -> Option<&mut Held> {
        match self.position(key) {
            Some(at) => Some(&mut self.few[at].1),
            None if self.others.is_empty() => None,
            None => self.others.get_mut(key),
        }
    }

    pub(crate) fn contains_key(&self, key: &LockKey) -> bool {
        self.position(key).is_some() || self.others.contains_key(key)
    }

    /// Adds a lock that is not in the map yet.
    #[inline]
    pub(crate) fn insert(&mut self, key: LockKey, held: Held) {
        if self.few.len() < self.few.inline_size() {
            self.few.push((key, held));
        } else {
            self.others.insert(key, held);
        }
    }

    pub(crate) fn remove(&mut self, key: &LockKey) {
        match self.position(key) {
            Some(at) => drop(self.few.swap_remove(at)),
            None => drop(self.others.remove(key)),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.others.is_empty()
    }

    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&LockKey, &mut Held) -> bool) {
        self.few.retain(|(key, held)| keep(key, held));
        if !self.others.is_empty() {
            self.others.retain(keep);
        }
    }
}

/// The locks of one session.
#[derive(Default, Debug)]
pub(crate) struct LocalLocks {
    pub(crate) held: HeldLocks,
    /// Bits of the fast-path slots that the session has filled and not released since.
    pub(crate) slots_used: u16,
    /// The session's own `deadlock_timeout`.
    pub(crate) deadlock_timeout: Option<Duration>,
    /// The session's `log_lock_waits`.
    pub(crate) logs_waits: bool,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn held_locks_behave_as_one_map() {
        let key = |i: u32| (LockTag::Relation(i % 7), LockMode::ALL[i as usize % 8]);
        let (mut locks, mut model) = (HeldLocks::default(), BTreeMap::new());
        let mut random = 1u32;
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Mostly few keys, sometimes all.
            let key = key(random >> 8 & if random >> 30 == 0 { 63 } else { 3 });
            match random >> 20 & 3 {
                0 => {
                    locks.remove(&key);
                    model.remove(&key);
                }
                1 if random >> 24 & 15 == 0 => {
                    locks.retain(|(_, mode), _| mode.is_weak());
                    model.retain(|(_, mode), _| mode.is_weak());
                }
                _ => match locks.get_mut(&key) {
                    Some(held) => {
                        held.by_session += 1;
                        model.entry(key).and_modify(|count| *count += 1);
                    }
                    None => {
                        let held = Held { place: Place::Table, by_transaction: 0, by_session: 1 };
                        locks.insert(key, held);
                        assert_eq!(model.insert(key, 1), None);
                    }
                },
            }
            assert_eq!(locks.is_empty(), model.is_empty());
            assert_eq!(locks.contains_key(&key), model.contains_key(&key));
            assert_eq!(locks.get_mut(&key).map(|held| held.by_session), model.get(&key).copied());
        }
        let mut left = 0;
        locks.retain(|_, _| {
            left += 1;
            false
        });
        assert_eq!((left, locks.is_empty()), (model.len(), true));
    }
}
