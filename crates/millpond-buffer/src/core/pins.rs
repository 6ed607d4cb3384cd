//! Pins, published in slots that belong to one session each.
//!
//! A session's table has a slot for each frame that the session has pinned. The table is an
//! open-addressed array of words. Only the session writes it, with plain stores; a session that
//! wants to take frames (an evictor) reads it. So pinning is no atomic read-modify-write and
//! touches no memory that another session writes. A slot has the frame's number plus one. In its
//! low half it counts how often the session has the frame pinned. 0 is an empty slot.
//!
//! `board.rs` has the protocol of pins against evictors.
//!
//! **The scan must not miss a pin that stays while its slot moves.** Two things move slots:
//!
//! - *Removal* shifts later entries back. (There are no tombstones, so the cost of a pin does not
//!   depend on history.) Probing never wraps round the end of a table, so entries only move to
//!   lower slots. The copy is stored before the original is overwritten (release), and a scan goes
//!   from high to low (acquire). A scan that finds a slot overwritten finds the copy below.
//! - *Growth* copies all entries to a table of twice the size and then publishes that. A scan that
//!   is still in the old table, which stays as it is, sees every pin held at that time. Sessions
//!   with younger pins see the claim. Tables are not freed while the pool lives.
//!
//! A session uses an old table again only after it has held no pin at all since it left that table.
//! So the session has released every pin that it held before the scan's barrier. A scan that is
//! still in the table has no pin to miss.
//!
//! **Memory ordering.** Every store to a slot is *release* and a scan's loads are *acquire*. So an
//! evictor that finds a frame unpinned has seen the last of the pinners' accesses. The number of
//! pins held is stored likewise, before the light barrier. Scans skip sessions where it is zero.
//!
//! **Failure.** Only memory can run out here. A session that is dropped empties its slots.

mod board;

use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use millpond_sync::prefetch::prefetch;
use millpond_sync::{audit, mutant, ordering};
use std::sync::OnceLock;

pub(crate) use board::PinBoard;

/// Slots in the smallest table, without the spare ones. At most half of them are used.
const FIRST_LEN: usize = if cfg!(any(loom, shuttle, miri)) { 2 } else { 16 };
/// Slots beyond the last home, so that probing need not wrap round.
const SPARE: usize = if cfg!(any(loom, shuttle, miri)) { 2 } else { 16 };
/// The number of tables; each is twice as large as the one before.
const LEVELS: usize = 32;
/// How often a session must come to hold no pin before it goes back to its smallest table.
const QUIET: u32 = if cfg!(any(loom, shuttle, miri)) { 1 } else { 256 };

const COUNT: u64 = u32::MAX as u64;

#[inline]
fn word_of(frame: u32) -> u64 {
    (u64::from(frame) + 1) << 32
}

#[inline]
fn frame_of(word: u64) -> Option<u32> {
    ((word >> 32) as u32).checked_sub(1)
}

type Table = Box<[AtomicU64]>;

/// One session's pins. Only that session changes it.
pub(crate) struct PinSlots {
    barriers: Barriers,
    /// The number of different frames that are pinned.
    held: AtomicU32,
    /// The number of the table in use.
    level: AtomicU32,
    /// How often the session came to hold no pin since the last growth.
    quiet: AtomicU32,
    tables: [OnceLock<Table>; LEVELS],
}

/// Whether a pin was the session's first of that frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    First,
    Again,
}

impl PinSlots {
    pub(crate) fn new(barriers: Barriers) -> Self {
        let slots = Self {
            barriers,
            held: AtomicU32::new(0),
            level: AtomicU32::new(0),
            quiet: AtomicU32::new(0),
            tables: [const { OnceLock::new() }; LEVELS],
        };
        slots.make(0);
        slots
    }

    fn make(&self, level: u32) -> &Table {
        let table = || (0..(FIRST_LEN << level) + SPARE).map(|_| AtomicU64::new(0)).collect();
        self.tables[level as usize % LEVELS].get_or_init(|| audit::session_owned("pins", table))
    }

    /// The barriers between announcing a frame's use and looking whether it has its page.
    #[inline]
    pub(crate) fn barriers(&self) -> Barriers {
        self.barriers
    }

    /// The number of different frames that are pinned.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed) as usize
    }

    /// Prefetches the words that every pin uses. (Looking up the table would itself
    /// cause the wait.)
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.held);
        prefetch(&self.tables[0]);
    }

    /// The table in use and its level.
    #[inline]
    fn table(&self, ordering: Ordering) -> (&[AtomicU64], u32) {
        let level = self.level.load(ordering);
        let table = self.tables[level as usize % LEVELS].get();
        (table.map_or(&[][..], |table| table), level)
    }

    /// The first slot to probe for a frame. Neighbouring frames land far apart.
    #[inline]
    fn home(frame: u32, level: u32) -> usize {
        const BITS: u32 = FIRST_LEN.ilog2();
        (u64::from(frame).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS - level)) as usize
    }

    /// Counts a pin. After the first pin of a frame, the caller must look whether the frame may be
    /// pinned, and otherwise remove the pin.
    #[inline]
    pub(crate) fn add(&self, frame: u32) -> Added {
        let (table, level) = self.table(Ordering::Relaxed);
        let held = self.held.load(Ordering::Relaxed);
        let wanted = word_of(frame);
        for slot in table.get(Self::home(frame, level)..).unwrap_or(&[]) {
            let word = slot.load(Ordering::Relaxed);
            if word == 0 {
                if held as usize >= FIRST_LEN << level >> 1 {
                    break;
                }
                slot.store(wanted | 1, Ordering::Release);
                self.held.store(held + 1, Ordering::Release);
                if !mutant!("pool-pin-without-barrier") {
                    self.barriers.light();
                }
                return Added::First;
            }
            if word & !COUNT == wanted {
                assert!(word & COUNT != COUNT, "too many pins of one page");
                slot.store(word + 1, Ordering::Release);
                return Added::Again;
            }
        }
        self.grow();
        self.add(frame)
    }

    /// Whether the session has the frame pinned.
    pub(crate) fn has(&self, frame: u32) -> bool {
        let (table, level) = self.table(Ordering::Relaxed);
        let words = table.iter().skip(Self::home(frame, level));
        let mut words =
            words.map(|slot| slot.load(Ordering::Relaxed)).take_while(|word| *word != 0);
        words.any(|word| frame_of(word) == Some(frame))
    }

    /// Removes a pin; `true` if it was the session's last one of the frame.
    #[inline]
    pub(crate) fn remove(&self, frame: u32) -> bool {
        let (table, level) = self.table(Ordering::Relaxed);
        let wanted = word_of(frame);
        let home = Self::home(frame, level);
        for (at, slot) in table.iter().enumerate().skip(home) {
            let word = slot.load(Ordering::Relaxed);
            if word & !COUNT == wanted {
                if word & COUNT > 1 {
                    slot.store(word - 1, Ordering::Release);
                    return false;
                }
                Self::empty(table, level, at);
                let held = self.held.load(Ordering::Relaxed) - 1;
                self.held.store(held, ordering!("pool-unpin-relaxed", Release));
                let is_free = held == 0 || mutant!("pool-shrink-slots-in-use") && held == 1;
                if is_free && level > 0 {
                    self.shrink_when_quiet();
                }
                return true;
            }
            if word == 0 {
                break;
            }
        }
        debug_assert!(false, "not pinned");
        false
    }

    /// Empties a slot and moves back the later entries whose home is at or before it.
    #[inline]
    fn empty(table: &[AtomicU64], level: u32, mut hole: usize) {
        let mut at = hole + 1;
        while let Some(slot) = table.get(at) {
            let word = slot.load(Ordering::Relaxed);
            let Some(frame) = frame_of(word) else { break };
            if Self::home(frame, level) <= hole {
                table[hole].store(word, Ordering::Release);
                hole = at;
            }
            at += 1;
        }
        table[hole].store(0, ordering!("pool-unpin-relaxed", Release));
    }

    /// Moves on to the next larger table.
    #[cold]
    fn grow(&self) {
        let (old, mut level) = self.table(Ordering::Relaxed);
        // Another round only in the unlikely case that entries pile up at the very end.
        loop {
            level += 1;
            let table = self.make(level);
            table.iter().for_each(|slot| slot.store(0, Ordering::Release));
            let mut words = old.iter().map(|slot| slot.load(Ordering::Relaxed));
            if words.all(|word| frame_of(word).is_none_or(|at| Self::place(table, level, at, word)))
            {
                break;
            }
        }
        self.quiet.store(0, Ordering::Relaxed);
        self.level.store(level, ordering!("pool-grow-slots-relaxed", Release));
    }

    /// Puts a word into a table that is not in use yet.
    fn place(table: &[AtomicU64], level: u32, frame: u32, word: u64) -> bool {
        let mut from_home = table.iter().skip(Self::home(frame, level));
        let free = from_home.find(|slot| slot.load(Ordering::Relaxed) == 0);
        free.inspect(|slot| slot.store(word, Ordering::Release)).is_some()
    }

    /// After [`QUIET`] calls goes back to the smallest table, so that a session that once held many
    /// pins does not slow scans down for ever. No pin is held, and the table is not the smallest.
    fn shrink_when_quiet(&self) {
        let quiet = self.quiet.load(Ordering::Relaxed) + 1;
        self.quiet.store(quiet, Ordering::Relaxed);
        if quiet >= QUIET {
            let smallest = self.make(0);
            smallest.iter().for_each(|slot| slot.store(0, Ordering::Release));
            self.level.store(0, Ordering::Release);
        }
    }

    /// Calls `each` for the pinned frames, as another thread sees them: for each frame that stays
    /// pinned throughout, and perhaps for others. From high to low.
    pub(crate) fn scan(&self, mut each: impl FnMut(u32)) {
        if self.held.load(Ordering::Acquire) == 0 {
            return;
        }
        let (table, _) = self.table(Ordering::Acquire);
        if mutant!("pool-scan-upwards") {
            let frames = table.iter().filter_map(|slot| frame_of(slot.load(Ordering::Acquire)));
            return frames.for_each(each);
        }
        for slot in table.iter().rev() {
            if let Some(frame) = frame_of(slot.load(Ordering::Acquire)) {
                each(frame);
            }
        }
    }

    /// Removes all pins.
    pub(crate) fn clear(&self) {
        let (table, _) = self.table(Ordering::Relaxed);
        table.iter().for_each(|slot| slot.store(0, Ordering::Release));
        self.held.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn seen(slots: &PinSlots) -> Vec<u32> {
        let mut seen = Vec::new();
        slots.scan(|frame| seen.push(frame));
        seen.sort_unstable();
        seen
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        /// Against a map: pins and unpins in any order, through growth and back.
        #[test]
        fn like_a_map(steps in prop::collection::vec((0u32..60, any::<bool>()), 1..if cfg!(miri) { 40 } else { 300 })) {
            let slots = PinSlots::new(Barriers::fences());
            let mut map = HashMap::<u32, u32>::new();
            for (frame, pin) in steps {
                if pin {
                    let first = slots.add(frame) == Added::First;
                    prop_assert_eq!(first, !map.contains_key(&frame));
                    *map.entry(frame).or_default() += 1;
                } else if let Some(count) = map.get_mut(&frame) {
                    *count -= 1;
                    prop_assert_eq!(slots.remove(frame), *count == 0);
                    if *count == 0 {
                        map.remove(&frame);
                    }
                }
                prop_assert_eq!(slots.held(), map.len());
            }
            let mut expected: Vec<_> = map.into_keys().collect();
            expected.sort_unstable();
            prop_assert_eq!(seen(&slots), expected);
        }
    }

    #[test]
    fn large_tables_are_left_when_quiet() {
        let slots = PinSlots::new(Barriers::fences());
        let many = if cfg!(miri) { 6 } else { 10_000 };
        for round in 0..2 {
            (0..many).for_each(|frame| assert_eq!(slots.add(frame * 7), Added::First));
            assert_eq!(seen(&slots), (0..many).map(|frame| frame * 7).collect::<Vec<_>>());
            (0..many).for_each(|frame| assert!(slots.remove(frame * 7)));
            let large = slots.level.load(Ordering::Relaxed);
            assert!(round == 1 || cfg!(miri) || large > 0, "still large");
            for _ in 0..QUIET {
                slots.add(5);
                slots.remove(5);
            }
            assert_eq!(slots.level.load(Ordering::Relaxed), 0);
        }
    }

    /// A session that keeps one pin for long does not count as one without pins.
    #[test]
    fn large_tables_are_not_left_while_in_use() {
        let slots = PinSlots::new(Barriers::fences());
        (0..2 * FIRST_LEN as u32).for_each(|frame| assert_eq!(slots.add(frame), Added::First));
        (1..2 * FIRST_LEN as u32).for_each(|frame| assert!(slots.remove(frame)));
        for _ in 0..2 * QUIET {
            slots.add(5);
            slots.remove(5);
            assert_eq!(seen(&slots), [0]);
        }
        assert!(slots.level.load(Ordering::Relaxed) > 0 && slots.remove(0));
    }

    /// Every scan sees a pin that stays, whatever other pins come and go.
    #[test]
    fn a_scan_misses_no_pin_that_stays() {
        const STAYS: u32 = 1000;
        let slots = PinSlots::new(Barriers::fences());
        slots.add(STAYS);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut least = 0;
                while least < if cfg!(miri) { 3 } else { 2000 } || !done.load(Ordering::Relaxed) {
                    let mut found = false;
                    slots.scan(|frame| found |= frame == STAYS);
                    assert!(found, "missed");
                    least += 1;
                }
            });
            for round in 0..if cfg!(miri) { 2 } else { 300u32 } {
                let many = 1 + round * 3 % 200;
                (0..many).for_each(|frame| assert_eq!(slots.add(frame), Added::First));
                let order = |at| if round % 2 == 0 { at } else { many - 1 - at };
                (0..many).for_each(|at| assert!(slots.remove(order(at))));
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn homes_are_spread() {
        // Strides as the pages of one fork have, and worse ones: no bucket gets more than a few.
        for stride in [1u32, 2, 3, 32, 64, 1000, 4096, 65_536] {
            let mut buckets = vec![0u32; FIRST_LEN << 2];
            (0..2 * FIRST_LEN as u32).for_each(|at| buckets[PinSlots::home(at * stride, 2)] += 1);
            assert!(buckets.iter().all(|&count| count <= 4), "stride {stride}: {buckets:?}");
        }
    }
}
