//! Reserving space in the log and copying records into the ring: in parallel, without a lock.
//!
//! # Layout
//!
//! ```text
//! position   63      56 55                                             0
//!           +----------+------------------------------------------------+
//!           | epoch  8 |  where the next record starts, in bytes     56 |
//!           +----------+------------------------------------------------+
//! slot       one per session, on a line of its own:
//!            IDLE, or a multiple of 8 not above the start of the record being inserted,
//!            with bit 0 set when a thread parks until this insertion has finished
//! ring       a power of two of bytes as relaxed words; the byte at log position p is at p mod size
//! written    everything below has been copied out of the ring
//! ```
//!
//! # Protocol
//!
//! An inserter takes five steps. (1) It stores a lower bound of its start into its slot. (2) It
//! takes epoch and start with one `fetch_add`. (3) It waits until the ring has room. (4) It copies.
//! (5) It sets its slot to IDLE.
//!
//! The thread that writes the log out loads the position and *then* the slots. Below the least of
//! all these numbers every record is complete. Why no unfinished record is missed: suppose the
//! loaded position is beyond a reservation. Then the load reads from that reservation's `fetch_add`
//! or a later one in its release sequence (every change of the position is a read-modify-write). So
//! the slot's store (1) happened before, and the load of the slot sees it or something newer. A
//! newer value is a Release store made after the copy (4), so the copied words are visible too.
//!
//! A bound may be lower than the start. That only makes the writing thread wait for a copy it need
//! not wait for. But the bound must not stay so while the inserter waits for room: the writing
//! thread and the inserter would wait for each other. So (3) raises the bound to the start before
//! it waits. Then everything before the first unfinished record is complete, hence written out. So
//! that record has room, because no record is longer than half the ring (wal rule 4).
//!
//! # The epoch
//!
//! The epoch counts the checkpoints that have begun, modulo 256. A checkpoint's start is itself a
//! reservation: it adds an epoch together with its length. An inserter decides under one epoch
//! which pages need an image. Its own `fetch_add` tells it whether that epoch is still current.

use std::time::Instant;

use millpond_buffer::Lsn;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::parking;
use millpond_sync::{audit, mutant};

const EPOCH_SHIFT: u32 = 56;
const POSITION_MASK: u64 = (1 << EPOCH_SHIFT) - 1;
const IDLE: u64 = !7;
const AWAITED: u64 = 1;

/// A position of the log and the epoch in which it was current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of checkpoints begun so far, modulo 256.
    pub epoch: u8,
    /// Byte position.
    pub lsn: Lsn,
}

impl Place {
    /// Both in one word.
    pub fn pack(self) -> u64 {
        u64::from(self.epoch) << EPOCH_SHIFT | self.lsn.get() & POSITION_MASK
    }

    /// The reverse of [`Place::pack`].
    pub fn unpack(word: u64) -> Self {
        Self { epoch: (word >> EPOCH_SHIFT) as u8, lsn: Lsn(word & POSITION_MASK) }
    }
}

/// The part of the log that inserters share: see the module's description.
pub(crate) struct Insertion {
    position: CachePadded<AtomicU64>,
    written: CachePadded<AtomicU64>,
    slots: Box<[CachePadded<AtomicU64>]>,
    ring: Box<[AtomicU64]>,
}

impl Insertion {
    /// A ring of `ring_bytes` (a power of two, at least 16) for `slots` sessions, empty at `start`.
    pub fn new(start: Lsn, ring_bytes: usize, slots: usize) -> Self {
        debug_assert!(ring_bytes.is_power_of_two() && ring_bytes >= 16);
        let idle = || (0..slots).map(|_| CachePadded::new(AtomicU64::new(IDLE))).collect();
        Self {
            position: CachePadded::new(AtomicU64::new(Place { epoch: 0, lsn: start }.pack())),
            written: CachePadded::new(AtomicU64::new(start.get())),
            slots: audit::session_owned("log insertion slots", idle),
            ring: (0..ring_bytes / 8).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// How many bytes the ring holds.
    pub fn ring_bytes(&self) -> u64 {
        self.ring.len() as u64 * 8
    }

    /// Where the next record will start, and the epoch.
    pub fn place(&self) -> Place {
        Place::unpack(self.position.load(Ordering::Acquire))
    }

    /// The ring has been copied out up to this position.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Step 1: announces an insertion that will not start before `bound`. The caller owns the slot,
    /// and has loaded `bound` from [`Insertion::place`] since its last insertion.
    pub fn begin(&self, slot: usize, bound: Lsn) {
        self.slots[slot].store(bound.get(), Ordering::Release);
    }

    /// Step 2: takes the next `bytes` bytes (a multiple of 8).
    pub fn reserve(&self, bytes: usize) -> Place {
        Place::unpack(self.position.fetch_add(bytes as u64, Ordering::AcqRel))
    }

    /// Step 2 if nothing has been inserted since `place`; returns whether that was so.
    pub fn reserve_at(&self, place: Place, bytes: usize) -> bool {
        let (from, to) = (place.pack(), place.pack() + bytes as u64);
        self.position.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Step 2 for a checkpoint's first record: also begins the next epoch. The place has the old
    /// one.
    pub fn reserve_and_begin_epoch(&self, bytes: usize) -> Place {
        let both = (1 << EPOCH_SHIFT) + bytes as u64;
        Place::unpack(self.position.fetch_add(both, Ordering::AcqRel))
    }

    /// Whether the ring can take bytes up to `end` now.
    pub fn has_room(&self, end: Lsn) -> bool {
        end.get() <= self.written().get() + self.ring_bytes()
    }

    /// Step 3: waits until the ring has room up to `end`. `ask` asks the writing thread to write at
    /// least up to a position; `stopped` says that it never will. Returns whether there is room.
    pub fn wait_for_room(
        &self,
        slot: usize,
        start: Lsn,
        end: Lsn,
        ask: impl Fn(Lsn),
        stopped: impl Fn() -> bool,
    ) -> bool {
        if self.has_room(end) {
            return true;
        }
        if !mutant!("wal-wait-for-room-with-old-bound") {
            self.replace(slot, start.get());
        }
        while !self.has_room(end) {
            if stopped() {
                return false;
            }
            ask(Lsn(end.get() - self.ring_bytes()));
            parking::park(self.room_key(), || !self.has_room(end) && !stopped(), None);
        }
        true
    }

    /// Step 4: copies an encoded record to its place.
    pub fn copy_in(&self, start: Lsn, record: &[u8]) {
        let mask = self.ring.len() - 1;
        let first = (start.get() / 8) as usize;
        audit::content(|| {
            for (index, word) in record.chunks_exact(8).enumerate() {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                self.ring[(first + index) & mask].store(word, Ordering::Relaxed);
            }
        });
    }

    /// Step 5: the record is complete.
    pub fn finish(&self, slot: usize) {
        self.replace(slot, IDLE);
    }

    /// Changes a slot and wakes the threads that waited for that.
    fn replace(&self, slot: usize, value: u64) {
        let old = self.slots[slot].swap(value, Ordering::AcqRel);
        if old & AWAITED != 0 {
            parking::unpark_all(self.slot_key(slot));
        }
    }

    /// A position below which every record is complete, and the slot that holds it back, if any.
    pub fn complete(&self) -> (Lsn, Option<(usize, u64)>) {
        let mut least = self.place().lsn.get();
        let mut blocker = None;
        for (index, slot) in self.slots.iter().enumerate() {
            let value = slot.load(Ordering::Acquire);
            if value & !AWAITED < least {
                least = value & !AWAITED;
                blocker = Some((index, value));
            }
        }
        (Lsn(least), blocker)
    }

    /// Parks until the slot has another value than `seen`, or `stopped`.
    pub fn wait_for_slot(&self, slot: usize, seen: u64, stopped: impl Fn() -> bool) {
        let word = &self.slots[slot];
        let awaited = seen | AWAITED;
        if seen != awaited {
            let marked = word.compare_exchange(seen, awaited, Ordering::AcqRel, Ordering::Acquire);
            if marked.is_err_and(|now| now != awaited) {
                return;
            }
        }
        let unchanged = || word.load(Ordering::Acquire) == awaited && !stopped();
        parking::park(self.slot_key(slot), unchanged, None::<Instant>);
    }

    /// Copies log bytes from `from` out of the ring. They are complete and not yet marked written.
    pub fn copy_out(&self, from: Lsn, out: &mut [u8]) {
        let mask = self.ring.len() - 1;
        let first = (from.get() / 8) as usize;
        for (index, bytes) in out.chunks_exact_mut(8).enumerate() {
            let word = self.ring[(first + index) & mask].load(Ordering::Relaxed);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Everything below `upto` has been copied out: its room can be reused.
    pub fn set_written(&self, upto: Lsn) {
        self.written.store(upto.get(), Ordering::Release);
        parking::unpark_all(self.room_key());
    }

    /// Wakes all threads that wait here, after the log has stopped.
    pub fn wake_all(&self) {
        parking::unpark_all(self.room_key());
        for slot in 0..self.slots.len() {
            parking::unpark_all(self.slot_key(slot));
        }
    }

    fn room_key(&self) -> usize {
        std::ptr::from_ref(&*self.written).addr()
    }

    fn slot_key(&self, slot: usize) -> usize {
        std::ptr::from_ref(&*self.slots[slot]).addr()
    }
}
