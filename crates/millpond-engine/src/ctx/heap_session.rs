//! What a session keeps for the heap: where it inserted last, and memory for building records.

use std::cell::{Cell, RefCell};

use millpond_buffer::{BlockNumber, RelationId};

const TARGETS: usize = 8;

/// A session's own state for heap operations: hints and scratch memory. Losing it costs only time.
#[derive(Debug, Default)]
pub struct HeapSession {
    /// The pages this session inserts into, by relation; the newest overwrites the oldest.
    targets: Cell<[Option<(RelationId, BlockNumber)>; TARGETS]>,
    next_victim: Cell<usize>,
    scratch: RefCell<Vec<u8>>,
    looks: Cell<u32>,
}

/// One in this many readers that want to prune computes the horizon.
const LOOK_EVERY: u32 = 16;

impl HeapSession {
    /// The page of `relation` into which the session inserted last.
    pub fn target(&self, relation: RelationId) -> Option<BlockNumber> {
        let targets = self.targets.get();
        targets.iter().flatten().find(|target| target.0 == relation).map(|target| target.1)
    }

    /// Sets the target of `relation`, or clears it.
    pub fn set_target(&self, relation: RelationId, block: Option<BlockNumber>) {
        let mut targets = self.targets.get();
        let known = targets.iter().position(|target| target.is_some_and(|t| t.0 == relation));
        let slot = match (known, block) {
            (Some(slot), _) => slot,
            (None, None) => return,
            (None, Some(_)) => {
                let victim = self.next_victim.get();
                self.next_victim.set((victim + 1) % TARGETS);
                victim
            }
        };
        targets[slot] = block.map(|block| (relation, block));
        self.targets.set(targets);
    }

    /// Whether this call should compute a new horizon.
    pub fn is_time_to_look(&self) -> bool {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        looks.is_multiple_of(LOOK_EVERY)
    }

    /// An empty buffer. Return it with [`HeapSession::give_back`], which keeps its memory.
    pub fn scratch(&self) -> Vec<u8> {
        let mut scratch = self.scratch.take();
        scratch.clear();
        scratch
    }

    /// See [`HeapSession::scratch`].
    pub fn give_back(&self, scratch: Vec<u8>) {
        *self.scratch.borrow_mut() = scratch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_remembered_and_the_oldest_is_forgotten() {
        let session = HeapSession::default();
        let relation = RelationId::constant;
        for n in 1..=TARGETS as u32 {
            session.set_target(relation(n), Some(BlockNumber(n)));
        }
        session.set_target(relation(2), Some(BlockNumber(22)));
        assert_eq!(session.target(relation(2)), Some(BlockNumber(22)));
        session.set_target(relation(9), Some(BlockNumber(9)));
        assert_eq!(session.target(relation(1)), None);
        session.set_target(relation(9), None);
        assert_eq!(session.target(relation(9)), None);
        session.set_target(relation(100), None);
        assert_eq!(session.target(relation(8)), Some(BlockNumber(8)));
    }
}
