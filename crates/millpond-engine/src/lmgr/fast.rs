//! Fast-path slots: weak relation locks that only their holder notes, and the counters by which
//! strong lockers collect them.
//!
//! Each session has its own [`SLOTS`] words. A slot is zero or `relation << 8 | mode`. Only its
//! session fills a slot. An exchange empties it, either by its session (release) or by a strong
//! locker (transfer to the table, under the mutex of the relation's partition).
//!
//! **Protocol** (lmgr rule 3). A weak locker stores its slot, fences (SeqCst), and loads the
//! relation's counter: zero means granted. A strong locker raises the counter, fences (SeqCst), and
//! then collects the slots. The two fences are ordered, and the side whose fence comes second sees
//! the other's store. If the weak locker sees the counter raised, it takes its slot back. If that
//! fails, a strong locker has already moved the lock to the table, where it counts as granted.
//!
//! The lock's own ordering has two parts. A weak locker's load of the counter is Acquire. It pairs
//! with the Release with which the last strong holder lowered the counter. A strong locker's load
//! of a slot is Acquire. It pairs with the Release of the exchange by which a weak holder left.
//!
//! A weak lock that is granted in its slot takes no read-modify-write, and stores only to the
//! session's own line. Its release is one exchange on that line.

use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use millpond_sync::prefetch::prefetch;
use millpond_sync::{audit, mutant, ordering};

use crate::ids::SessionNo;
use crate::lock::LockMode;

/// The number of slots of a session.
pub(crate) const SLOTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };
/// The number of counters; relations share them by hash.
const COUNTERS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 1024 };

/// The result of an attempt to note a weak lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Noted {
    /// The lock is in this slot, and granted.
    Slot(u8),
    /// A strong locker has moved the lock to the table meanwhile; there it is granted.
    Transferred,
    /// A strong locker is active: ask the table.
    No,
    /// All slots are taken: ask the table.
    Full,
}

/// The slots and counters of all sessions.
pub(crate) struct FastPath {
    slots: Box<[CachePadded<[AtomicU64; SLOTS]>]>,
    /// The number of strong locks that are held or wanted on the relations of each hash.
    strong: Box<[AtomicU32]>,
}

fn word(relation: u32, mode: LockMode) -> u64 {
    u64::from(relation) << 8 | mode as u64
}

impl FastPath {
    pub(crate) fn new(sessions: usize) -> Self {
        let slots = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let slots = || (0..sessions).map(|_| slots()).collect();
        FastPath {
            slots: audit::session_owned("fast-path lock slots", slots),
            strong: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn counter(&self, relation: u32) -> &AtomicU32 {
        let hash = u64::from(relation).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.strong[hash as usize % COUNTERS]
    }

    /// Prefetches the first of the session's slots.
    #[inline]
    pub(crate) fn prefetch(&self, session: SessionNo) {
        prefetch(&self.slots[session.index()][0]);
    }

    /// Notes a weak lock of `session`. `used` are the slots that the session knows to be taken.
    #[inline]
    pub(crate) fn note(
        &self,
        session: SessionNo,
        used: u16,
        relation: u32,
        mode: LockMode,
    ) -> Noted {
        let counter = self.counter(relation);
        let index = (!used).trailing_zeros() as usize;
        if index >= SLOTS {
            return Noted::Full;
        }
        if counter.load(Ordering::Relaxed) != 0 {
            return Noted::No;
        }
        let slot = &self.slots[session.index()][index];
        let word = word(relation, mode);
        slot.store(word, Ordering::Relaxed);
        if !mutant!("lock-weak-without-fence") {
            fence(Ordering::SeqCst);
        }
        if counter.load(Ordering::Acquire) == 0 {
            return Noted::Slot(index as u8);
        }
        match slot.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Noted::No,
            Err(_) => Noted::Transferred,
        }
    }

    /// Takes a noted lock back. Returns `false` if it has been transferred.
    #[inline]
    pub(crate) fn leave(
        &self,
        session: SessionNo,
        slot: u8,
        relation: u32,
        mode: LockMode,
    ) -> bool {
        let slot = &self.slots[session.index()][slot as usize % SLOTS];
        if mutant!("lock-slot-left-by-store") {
            slot.store(0, Ordering::Release);
            return true;
        }
        slot.compare_exchange(word(relation, mode), 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Announces a strong locker: from here on no session notes a weak lock on the relation unseen.
    pub(crate) fn raise(&self, relation: u32) {
        self.counter(relation).fetch_add(1, Ordering::AcqRel);
        if !mutant!("lock-strong-without-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Ends an announcement: the strong locker has released its lock or given up.
    pub(crate) fn lower(&self, relation: u32) {
        self.counter(relation).fetch_sub(1, ordering!("lock-lower-relaxed", Release));
    }

    /// Empties all slots that hold a lock on the relation and hands the locks over. The caller has
    /// [raised](Self::raise) the counter and holds the mutex of the relation's partition. So a
    /// holder whose slot is empty finds its lock in the table.
    pub(crate) fn collect(&self, relation: u32, mut take: impl FnMut(SessionNo, LockMode)) {
        for (session, slots) in self.slots.iter().enumerate() {
            for slot in slots.iter() {
                let seen = slot.load(Ordering::Acquire);
                if seen == 0 || seen >> 8 != u64::from(relation) {
                    continue;
                }
                let Some(mode) = mode_of(seen) else { continue };
                if slot.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    take(SessionNo(session as u16), mode);
                }
            }
        }
    }

    /// Shows all noted locks, for pg_locks.
    pub(crate) fn list(&self, mut show: impl FnMut(SessionNo, u32, LockMode)) {
        for (session, slots) in self.slots.iter().enumerate() {
            for slot in slots.iter() {
                let seen = slot.load(Ordering::Acquire);
                if let Some(mode) = mode_of(seen) {
                    show(SessionNo(session as u16), (seen >> 8) as u32, mode);
                }
            }
        }
    }
}

fn mode_of(word: u64) -> Option<LockMode> {
    LockMode::ALL.into_iter().find(|mode| *mode as u64 == word & 0xFF)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const ME: SessionNo = SessionNo(0);

    #[test]
    fn weak_locks_are_noted_until_a_strong_locker_comes() {
        let fast = FastPath::new(2);
        assert_eq!(fast.note(ME, 0, 7, LockMode::RowShare), Noted::Slot(0));
        assert_eq!(fast.note(ME, 1, 7, LockMode::RowExclusive), Noted::Slot(1));
        fast.raise(7);
        assert_eq!(fast.note(ME, 3, 7, LockMode::AccessShare), Noted::No);
        let mut taken = Vec::new();
        fast.collect(7, |session, mode| taken.push((session, mode)));
        assert_eq!(taken, [(ME, LockMode::RowShare), (ME, LockMode::RowExclusive)]);
        assert!(!fast.leave(ME, 0, 7, LockMode::RowShare), "it was transferred");
        fast.lower(7);
        assert_eq!(fast.note(ME, 3, 7, LockMode::AccessShare), Noted::Slot(2));
        assert!(fast.leave(ME, 2, 7, LockMode::AccessShare));
    }

    #[test]
    fn a_session_that_has_no_slot_left_asks_the_table() {
        let fast = FastPath::new(1);
        assert_eq!(fast.note(ME, u16::MAX, 7, LockMode::AccessShare), Noted::Full);
    }
}
