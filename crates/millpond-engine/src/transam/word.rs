//! The status of one transaction in one atomic word, and its committing mark (transam rule 2).
//!
//! ```text
//! bits 0..3   state
//! bits 3..64  the transaction's id; once committed, its commit number
//! ```
//!
//! | state | next states | changed by |
//! |---|---|---|
//! | 0 empty | running | the transaction, when it draws its id |
//! | 1 running | committing, aborted | the transaction |
//! | | moved | retirement, after it has put a copy into the overflow |
//! | 2 committing | committing and awaited | a reader that is about to park |
//! | | committed | the transaction |
//! | 3 committing and awaited | committed | the transaction, which then wakes the readers |
//! | 4 committed | | |
//! | 5 aborted | | |
//! | 6 moved | | |
//!
//! Words 1 to 3 and 5 carry the id. So no compare-exchange hits the word of the slot's next user.
//!
//! Ordering. A transaction sets the committing mark (an exchange with Release). Then it draws its
//! commit number with a read-modify-write with Release on the clock. A reader whose snapshot
//! includes the number has loaded the clock with Acquire. So it sees the mark or something later:
//! it cannot take the transaction for running (transam rule 4).

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::{hint, mutant, parking};

use super::snapshot::XidStatus;
use crate::ids::{Csn, Xid};

const STATE_BITS: u32 = 3;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;
const RUNNING: u64 = 1;
const COMMITTING: u64 = 2;
const AWAITED: u64 = 3;
const COMMITTED: u64 = 4;
const ABORTED: u64 = 5;
const MOVED: u64 = 6;

/// How often a reader looks again before it parks. A commit needs a few dozen instructions between
/// its mark and its number, unless its thread is descheduled.
const SPINS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// The content of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// No transaction has used the slot yet.
    Empty,
    Running(Xid),
    /// Its commit number is being drawn.
    Committing(Xid),
    Committed(Csn),
    Aborted(Xid),
    /// The status is in the overflow.
    Moved,
    /// No such state: memory was overwritten.
    Invalid,
}

impl Status {
    fn of(raw: u64) -> Status {
        let payload = raw >> STATE_BITS;
        match raw & STATE_MASK {
            0 if payload == 0 => Status::Empty,
            RUNNING => Status::Running(Xid(payload)),
            COMMITTING | AWAITED => Status::Committing(Xid(payload)),
            COMMITTED => Status::Committed(Csn(payload)),
            ABORTED => Status::Aborted(Xid(payload)),
            MOVED => Status::Moved,
            _ => Status::Invalid,
        }
    }

    /// The status, if settled or running. `None`: the caller must wait or look elsewhere.
    pub(crate) fn settled(self) -> Option<XidStatus> {
        match self {
            Status::Empty | Status::Running(_) => Some(XidStatus::InProgress),
            Status::Committed(csn) => Some(XidStatus::Committed(csn)),
            Status::Aborted(_) => Some(XidStatus::Aborted),
            Status::Committing(_) | Status::Moved | Status::Invalid => None,
        }
    }
}

/// A raw word as loaded, so that a waiting reader can tell whether it has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loaded(u64);

impl Loaded {
    pub(crate) fn status(self) -> Status {
        Status::of(self.0)
    }
}

/// The atomic word.
#[derive(Debug, Default)]
pub(crate) struct StatusWord(AtomicU64);

impl StatusWord {
    pub(crate) fn new(status: Status) -> Self {
        let word = Self::default();
        word.set(status);
        word
    }

    /// Sets a word that no other thread changes at this time.
    pub(crate) fn set(&self, status: Status) {
        let raw = match status {
            Status::Empty => 0,
            Status::Running(xid) => xid.0 << STATE_BITS | RUNNING,
            Status::Committing(xid) => xid.0 << STATE_BITS | COMMITTING,
            Status::Committed(csn) => csn.0 << STATE_BITS | COMMITTED,
            Status::Aborted(xid) => xid.0 << STATE_BITS | ABORTED,
            Status::Moved | Status::Invalid => MOVED,
        };
        self.0.store(raw, Ordering::Release);
    }

    pub(crate) fn load(&self) -> Loaded {
        Loaded(self.0.load(Ordering::Acquire))
    }

    fn change(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Running to committing. Fails if the word has been moved (or given to a later transaction).
    pub(crate) fn mark_committing(&self, xid: Xid) -> bool {
        let id = match mutant!("transam-word-of-any-transaction") {
            true => self.0.load(Ordering::Relaxed) & !STATE_MASK,
            false => xid.0 << STATE_BITS,
        };
        self.change(id | RUNNING, id | COMMITTING)
    }

    /// Committing to committed. Wakes the readers that wait for the number.
    pub(crate) fn set_committed(&self, csn: Csn) {
        let before = self.0.swap(csn.0 << STATE_BITS | COMMITTED, Ordering::AcqRel);
        if before & STATE_MASK == AWAITED {
            parking::unpark_all(self.key());
        }
    }

    /// Running to aborted. Fails like [`mark_committing`](Self::mark_committing).
    pub(crate) fn set_aborted(&self, xid: Xid) -> bool {
        let id = xid.0 << STATE_BITS;
        self.change(id | RUNNING, id | ABORTED)
    }

    /// Running to moved. Fails if the transaction has changed the word meanwhile.
    pub(crate) fn move_away(&self, xid: Xid) -> bool {
        self.change(xid.0 << STATE_BITS | RUNNING, MOVED)
    }

    /// Waits until the word is no longer the loaded committing word. Spins for a moment, then
    /// parks, so that a descheduled committer costs its readers no processor time.
    pub(crate) fn wait_committing(&self, loaded: Loaded) {
        for _ in 0..SPINS {
            if self.load() != loaded {
                return;
            }
            hint::spin_loop();
        }
        let awaited = loaded.0 & !STATE_MASK | AWAITED;
        if loaded.0 != awaited && !self.change(loaded.0, awaited) && self.load().0 != awaited {
            return;
        }
        parking::park(self.key(), || self.0.load(Ordering::Acquire) == awaited, None);
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.0).addr()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_set() {
        let all = [
            Status::Empty,
            Status::Running(Xid(7)),
            Status::Committing(Xid(7)),
            Status::Committed(Csn(9)),
            Status::Aborted(Xid(7)),
            Status::Moved,
        ];
        for status in all {
            assert_eq!(StatusWord::new(status).load().status(), status);
        }
    }

    #[test]
    fn only_the_running_transaction_changes_its_word() {
        let word = StatusWord::new(Status::Running(Xid(7)));
        assert!(!word.mark_committing(Xid(8)), "another transaction's word");
        assert!(word.mark_committing(Xid(7)));
        assert!(!word.set_aborted(Xid(7)) && !word.move_away(Xid(7)));
        word.set_committed(Csn(3));
        assert_eq!(word.load().status().settled(), Some(XidStatus::Committed(Csn(3))));
    }

    #[test]
    fn a_reader_parks_until_the_number_is_there() {
        let word = std::sync::Arc::new(StatusWord::new(Status::Running(Xid(7))));
        assert!(word.mark_committing(Xid(7)));
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let word = word.clone();
                std::thread::spawn(move || {
                    loop {
                        let loaded = word.load();
                        match loaded.status() {
                            Status::Committing(_) => word.wait_committing(loaded),
                            other => return other,
                        }
                    }
                })
            })
            .collect();
        std::thread::yield_now();
        word.set_committed(Csn(5));
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Status::Committed(Csn(5)));
        }
    }
}
