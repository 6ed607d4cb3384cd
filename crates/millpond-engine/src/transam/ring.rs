//! The statuses of recent transactions: a ring (circular array) of words indexed by id, and an
//! overflow for the few that must be kept longer.
//!
//! ```text
//!   ids:   ... | in the clog pages | in the ring              | not drawn yet
//!                                  ^ retired                  ^ next       ^ reusable + size
//! ```
//!
//! Retirement removes the oldest statuses from the ring, a chunk ([`CHUNK`] ids) at a time. Only
//! one thread at a time does it (the caller holds a mutex). Before it begins here, it has written
//! the clog bits of the chunk's commits. Then:
//!
//! 1. If it must keep some status of the chunk (running, or committed after the horizon), it puts a
//!    copy of the chunk into the overflow. Every running word in the ring becomes *moved*.
//! 2. It moves `retired` past the chunk (Release).
//! 3. It empties the words. Then it moves `reusable` past the chunk (Release), which frees the
//!    slots.
//!
//! **Validated reads** (transam rule 3). A reader loads its slot (Acquire), then `retired`
//! (Acquire). Suppose the word was written for a later transaction in the same slot. That one had
//! loaded `reusable` with Acquire. So steps 1 to 3 happened before the word was stored, and the
//! reader's load of `retired` sees step 2. Hence a word that passes the test is the reader's own.
//!
//! A committer whose word was moved finds it in the overflow ([`super::overflow`]), where it was
//! put before. A chunk leaves the overflow when all snapshots see its commits and its clog bits are
//! written.

use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::sync::Arc;
use millpond_sync::{CachePadded, mutant, ordering};

use super::chunk::{CHUNK, ChunkBits};
use super::overflow::{Found, Kept, Overflow};
use super::snapshot::XidStatus;
use super::word::{Status, StatusWord};
use crate::ids::{Csn, Xid};

/// Bounds of the ring. All readers load `retired`; only a retirement writes here.
struct Bounds {
    /// Ids below this are not in the ring.
    retired: AtomicU64,
    /// Slots of ids below this may be given out again.
    reusable: AtomicU64,
}

/// The ring and its overflow.
pub(crate) struct StatusRing {
    slots: Box<[StatusWord]>,
    mask: u64,
    next: CachePadded<AtomicU64>,
    bounds: CachePadded<Bounds>,
    pub(super) overflow: Overflow,
}

impl StatusRing {
    /// A ring of at least `size` slots. `next`, rounded up to a chunk, is the first id that it
    /// gives out. All ids below are in the clog.
    pub(crate) fn new(size: usize, next: Xid) -> Self {
        let size = size.max(4 * CHUNK as usize).next_power_of_two();
        let next = next.0.next_multiple_of(CHUNK);
        StatusRing {
            slots: (0..size).map(|_| StatusWord::default()).collect(),
            mask: size as u64 - 1,
            next: CachePadded::new(AtomicU64::new(next)),
            bounds: CachePadded::new(Bounds {
                retired: AtomicU64::new(next),
                reusable: AtomicU64::new(next),
            }),
            overflow: Overflow::default(),
        }
    }

    /// Starts again at `next`, rounded up to a chunk, but never below the current next id. For the
    /// end of recovery, before any session reads.
    pub(crate) fn restart(&self, next: Xid) {
        let next = next.0.next_multiple_of(CHUNK).max(self.next.load(Ordering::Acquire));
        for slot in &self.slots {
            slot.set(Status::Empty);
        }
        self.bounds.retired.store(next, Ordering::Release);
        self.bounds.reusable.store(next, Ordering::Release);
        self.next.store(next, Ordering::Release);
    }

    pub(crate) fn size(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, xid: Xid) -> &StatusWord {
        &self.slots[(xid.0 & self.mask) as usize]
    }

    /// The next id to be drawn.
    pub(crate) fn next(&self) -> Xid {
        Xid(self.next.load(Ordering::Acquire))
    }

    /// Ids below this are in the clog, or in the overflow.
    pub(crate) fn retired(&self) -> Xid {
        Xid(self.bounds.retired.load(Ordering::Acquire))
    }

    /// How many ids can be drawn before a retirement must make room.
    pub(crate) fn room(&self) -> u64 {
        let reusable = self.bounds.reusable.load(Ordering::Acquire);
        (reusable + self.size()).saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Draws an id. Each caller has seen more [`room`](Self::room) than there are sessions, and
    /// draws one id. So all sessions together cannot overrun the ring.
    pub(crate) fn draw(&self) -> Xid {
        let xid = Xid(self.next.fetch_add(1, ordering!("transam-draw-relaxed", AcqRel)));
        self.slot(xid).set(Status::Running(xid));
        xid
    }

    /// Marks a transaction as committing. Returns the word that its number must go to.
    pub(crate) fn mark_committing(&self, xid: Xid) -> Option<WordRef<'_>> {
        if mutant!("transam-commit-without-mark") || self.slot(xid).mark_committing(xid) {
            return Some(WordRef::Ring(self.slot(xid)));
        }
        let kept = self.overflow.in_memory(xid)?;
        kept.word(xid).mark_committing(xid).then_some(WordRef::Kept(kept, xid))
    }

    /// Marks a transaction as aborted; returns whether it was running.
    pub(crate) fn set_aborted(&self, xid: Xid) -> bool {
        self.slot(xid).set_aborted(xid)
            || self.overflow.in_memory(xid).is_some_and(|kept| kept.word(xid).set_aborted(xid))
    }

    /// The status of a transaction; waits out the committing mark.
    pub(crate) fn find(&self, xid: Xid) -> Found {
        let slot = self.slot(xid);
        loop {
            let loaded = slot.load();
            let retired = self.bounds.retired.load(Ordering::Acquire);
            if xid.0 < retired && !mutant!("transam-read-not-validated") {
                return self.overflow.find(xid);
            }
            match loaded.status() {
                Status::Committing(_) if mutant!("transam-mark-not-waited-for") => {
                    return Found::Status(XidStatus::InProgress);
                }
                Status::Committing(_) => slot.wait_committing(loaded),
                Status::Moved => return self.overflow.find(xid),
                Status::Running(id) | Status::Aborted(id) if id != xid => return Found::Unknown,
                Status::Empty if xid >= self.next() => return Found::Unknown,
                status => return status.settled().map_or(Found::Unknown, Found::Status),
            }
        }
    }

    /// The next chunk to retire, if all its ids have been drawn and published.
    pub(crate) fn oldest_chunk(&self) -> Option<u64> {
        let first = self.bounds.retired.load(Ordering::Acquire);
        if first + CHUNK > self.next.load(Ordering::Acquire) {
            return None;
        }
        let published =
            (first..first + CHUNK).all(|id| self.slot(Xid(id)).load().status() != Status::Empty);
        published.then_some(first / CHUNK)
    }

    /// For each id of a chunk in the ring, whether it has committed.
    pub(crate) fn committed_in(&self, chunk: u64) -> ChunkBits {
        let mut bits = ChunkBits { settled: true, ..ChunkBits::default() };
        for index in 0..CHUNK {
            let xid = Xid(chunk * CHUNK + index);
            bits.note(index, self.slot(xid).load().status());
        }
        bits
    }

    /// Retires the oldest chunk. Its commits in `logged` are in the clog; commits with a number
    /// above `horizon` are kept. Only one thread at a time calls this, and it has just got `chunk`
    /// from [`oldest_chunk`](Self::oldest_chunk).
    pub(crate) fn retire(&self, chunk: u64, logged: &ChunkBits, horizon: Csn) {
        let ids = chunk * CHUNK..(chunk + 1) * CHUNK;
        let mut keep = false;
        let words: Box<[StatusWord]> = ids
            .clone()
            .enumerate()
            .map(|(index, id)| {
                let status = self.slot(Xid(id)).load().status();
                keep |= match status {
                    Status::Aborted(_) => false,
                    // Committed since the clog was written: only the overflow has it.
                    Status::Committed(csn) => csn > horizon || !logged.contains(index as u64),
                    _ => true,
                };
                // A commit in progress is settled below.
                StatusWord::new(match status {
                    Status::Committing(xid) => Status::Running(xid),
                    other => other,
                })
            })
            .collect();
        if keep {
            let kept = Arc::new(Kept { words });
            self.overflow.insert(chunk, kept.clone());
            for id in ids.clone() {
                self.hand_over(Xid(id), kept.word(Xid(id)));
            }
        }
        let too_late = mutant!("transam-empty-before-retired");
        if !too_late {
            self.bounds.retired.store(ids.end, Ordering::Release);
        }
        for id in ids.clone() {
            self.slot(Xid(id)).set(Status::Empty);
        }
        if too_late {
            self.bounds.retired.store(ids.end, Ordering::Release);
        }
        self.bounds.reusable.store(ids.end, Ordering::Release);
    }

    /// Makes the overflow's word the valid one.
    fn hand_over(&self, xid: Xid, kept: &StatusWord) {
        let slot = self.slot(xid);
        loop {
            let loaded = slot.load();
            match loaded.status() {
                Status::Running(_) => {
                    if slot.move_away(xid) {
                        return;
                    }
                }
                Status::Committing(_) => slot.wait_committing(loaded),
                settled => return kept.set(settled),
            }
        }
    }
}

/// The word of a committing transaction.
pub(crate) enum WordRef<'a> {
    Ring(&'a StatusWord),
    Kept(Arc<Kept>, Xid),
}

impl WordRef<'_> {
    /// Stores the number and wakes the readers that wait for it.
    pub(crate) fn set_committed(&self, csn: Csn) {
        match self {
            WordRef::Ring(word) => word.set_committed(csn),
            WordRef::Kept(kept, xid) => kept.word(*xid).set_committed(csn),
        }
    }
}
