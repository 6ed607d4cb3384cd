//! A session's own count of its pins.
//!
//! The first pin of a page by a session touches the frame's shared word; further ones only count here.
//! An open-addressed table keyed by frame, with multiplicative hashing (neighbouring frames land far
//! apart), at most half full, and deletion that shifts back instead of leaving tombs: the cost of a pin
//! does not depend on how many are held.

/// One session's pins.
pub(crate) struct PinTable {
    slots: Box<[Slot]>,
    held: usize,
    shift: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    frame: u32,
    /// 0: the slot is empty.
    count: u32,
}

const EMPTY: Slot = Slot { frame: 0, count: 0 };
const FIRST_SIZE: usize = 16;

impl PinTable {
    pub(crate) fn new() -> Self {
        Self::with_size(FIRST_SIZE)
    }

    fn with_size(size: usize) -> Self {
        Self { slots: vec![EMPTY; size].into(), held: 0, shift: 64 - size.ilog2() }
    }

    /// How many different frames are pinned.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    #[inline]
    fn home(&self, frame: u32) -> usize {
        (u64::from(frame).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Where the frame is, or the empty slot where it would go.
    #[inline]
    fn find(&self, frame: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(frame) & mask;
        while self.slots[at].count != 0 && self.slots[at].frame != frame {
            at = (at + 1) & mask;
        }
        at
    }

    /// Counts another pin of a frame that is already pinned; `false` if it isn't.
    #[inline]
    pub(crate) fn again(&mut self, frame: u32) -> bool {
        let at = self.find(frame);
        let slot = &mut self.slots[at];
        if slot.count == 0 {
            return false;
        }
        slot.count += 1;
        true
    }

    /// Whether the frame is pinned.
    pub(crate) fn has(&self, frame: u32) -> bool {
        self.slots[self.find(frame)].count != 0
    }

    /// Makes room for one more frame, so that the next `first` does not allocate.
    pub(crate) fn reserve(&mut self) {
        if (self.held + 1) * 2 > self.slots.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Self::with_size(self.slots.len() * 2);
        for slot in self.slots.iter().filter(|slot| slot.count != 0) {
            let at = larger.find(slot.frame);
            larger.slots[at] = *slot;
        }
        larger.held = self.held;
        *self = larger;
    }

    /// Counts the first pin of a frame.
    #[inline]
    pub(crate) fn first(&mut self, frame: u32) {
        self.reserve();
        let at = self.find(frame);
        debug_assert!(self.slots[at].count == 0, "pinned before");
        self.slots[at] = Slot { frame, count: 1 };
        self.held += 1;
    }

    /// Takes a pin back; `true` if it was the last one of the frame.
    #[inline]
    pub(crate) fn drop_one(&mut self, frame: u32) -> bool {
        let at = self.find(frame);
        let slot = &mut self.slots[at];
        match slot.count {
            0 => {
                debug_assert!(false, "not pinned");
                false
            }
            1 => {
                self.remove(at);
                true
            }
            _ => {
                slot.count -= 1;
                false
            }
        }
    }

    /// Empties a slot and shifts back those after it that would rather be there.
    #[inline]
    fn remove(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.count == 0 {
                break;
            }
            // How far it is from home, against how far the hole is from here.
            let from_home = at.wrapping_sub(self.home(slot.frame)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.held -= 1;
    }

    /// The frames that are pinned.
    pub(crate) fn frames(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().filter(|slot| slot.count != 0).map(|slot| slot.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        /// Against a map: pins and unpins in any order.
        #[test]
        fn like_a_map(steps in prop::collection::vec((0u32..60, any::<bool>()), 1..300)) {
            let mut table = PinTable::new();
            let mut map = HashMap::<u32, u32>::new();
            for (frame, pin) in steps {
                if pin {
                    let again = table.again(frame);
                    prop_assert_eq!(again, map.contains_key(&frame));
                    if !again {
                        table.first(frame);
                    }
                    *map.entry(frame).or_default() += 1;
                } else if let Some(count) = map.get_mut(&frame) {
                    *count -= 1;
                    prop_assert_eq!(table.drop_one(frame), *count == 0);
                    if *count == 0 {
                        map.remove(&frame);
                    }
                }
                prop_assert_eq!(table.held(), map.len());
            }
            let mut left: Vec<_> = table.frames().collect();
            left.sort_unstable();
            let mut expected: Vec<_> = map.into_keys().collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
