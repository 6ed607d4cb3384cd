//! Range scans in both directions, one leaf at a time.
//!
//! A cursor copies a leaf (only the slots in its range) into its own memory, and then holds
//! nothing: no pin, no latch. From there it goes on:
//! * forward, to the right sibling that the copy names. A split of the copied leaf since then does
//!   not matter. What moved right was in the copy, and the sibling still begins where the copy
//!   ended. If the sibling has left the tree, the scan descends again, to the copy's high key;
//! * backward, by descending again, to the leaf that holds the last entry before the *fence*. The
//!   fence is the lower bound of the copied leaf, which its parent (or left neighbour) gave on the
//!   way down.
//!
//! An entry that exists during the whole scan is seen exactly once (btree rule 9). A call that
//! would have to wait leaves the cursor as it was, so it can be repeated where waiting is allowed.

mod copy;

use std::cmp::Ordering;
use std::ops::Range;

use millpond_buffer::{BlockNumber, PAGE_SIZE, RelHandle, Ring};

use super::ROOT;
use super::descend::{Side, damaged};
use super::env::Env;
use super::page::item::Target;
use super::page::node::Node;
use crate::EngineResult;
use crate::access::Tid;

/// The direction of an index scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key up.
    #[default]
    Forward,
    /// From the highest key down.
    Backward,
}

/// Where to go when the copied leaf is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Down from the root.
    Start,
    /// To this leaf.
    Right(u32),
    /// Down from the root, to what is before the fence.
    BeforeFence,
    /// Nowhere: the scan is at its end.
    End,
}

/// A scan over the entries with `lower <= key < upper`.
#[derive(Debug)]
pub struct Cursor {
    page: Box<[u8; PAGE_SIZE]>,
    spare: Box<[u8; PAGE_SIZE]>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    direction: Direction,
    next: Next,
    /// Slots of the copy that are still to be returned.
    slots: Range<usize>,
    /// The slot returned last.
    current: usize,
    fence: (Vec<u8>, u64),
    key: Vec<u8>,
    /// Leaves copied since the scan began.
    leaves: u32,
    /// The ring, once the scan is long.
    ring: Option<Ring>,
}

impl Cursor {
    /// A scan of the keys from `lower` (included; all if empty) to `upper` (excluded; all if
    /// `None`).
    pub fn new(lower: &[u8], upper: Option<&[u8]>, direction: Direction) -> Self {
        Self {
            page: Box::new([0; PAGE_SIZE]),
            spare: Box::new([0; PAGE_SIZE]),
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            direction,
            next: Next::Start,
            slots: 0..0,
            current: 0,
            fence: (Vec::new(), 0),
            key: Vec::new(),
            leaves: 0,
            ring: None,
        }
    }

    /// Begins another scan with the same memory.
    pub fn restart(&mut self, lower: &[u8], upper: Option<&[u8]>, direction: Direction) {
        self.lower.clear();
        self.lower.extend_from_slice(lower);
        match (&mut self.upper, upper) {
            (Some(own), Some(upper)) => {
                own.clear();
                own.extend_from_slice(upper);
            }
            (own, upper) => *own = upper.map(<[u8]>::to_vec),
        }
        self.direction = direction;
        self.next = Next::Start;
        self.slots = 0..0;
        (self.leaves, self.ring) = (0, None);
    }

    /// Ends the scan wherever it is: it returns no more entries and gives up its ring.
    pub fn end(&mut self) {
        self.next = Next::End;
        self.slots = 0..0;
        self.ring = None;
    }

    /// The row of the next entry; `None` at the end.
    #[inline]
    pub fn next<E: Env + ?Sized>(&mut self, env: &E, rel: &RelHandle) -> EngineResult<Option<Tid>> {
        loop {
            let slot = match self.direction {
                Direction::Forward => self.slots.next(),
                Direction::Backward => self.slots.next_back(),
            };
            if let Some(slot) = slot {
                self.current = slot;
                return Ok(Some(Tid::from_u64(Node(&*self.page).row(slot))));
            }
            if self.next == Next::End {
                return Ok(None);
            }
            self.advance(env, rel)?;
        }
    }

    /// The row of an entry of the copied leaf, by its place behind the one returned last.
    #[inline]
    pub fn peek(&self, place: usize) -> Option<Tid> {
        let mut rest = self.slots.clone();
        let slot = match self.direction {
            Direction::Forward => rest.nth(place),
            Direction::Backward => rest.nth_back(place),
        };
        Some(Tid::from_u64(Node(&*self.page).row(slot?)))
    }

    /// Appends the rows of the next entries of the copied leaf, as long as they are in this block
    /// of the table. It appends at most `most` of them.
    pub fn next_of_block(&mut self, block: BlockNumber, most: usize, into: &mut Vec<Tid>) {
        for _ in 0..most {
            let mut rest = self.slots.clone();
            let slot = match self.direction {
                Direction::Forward => rest.next(),
                Direction::Backward => rest.next_back(),
            };
            let Some(slot) = slot else { return };
            let tid = Tid::from_u64(Node(&*self.page).row(slot));
            if tid.block != block {
                return;
            }
            (self.slots, self.current) = (rest, slot);
            into.push(tid);
        }
    }

    /// Appends the rows of all entries left in the copied leaf, or else of the next leaf that has
    /// any. Returns `false` at the end.
    pub fn next_leaf<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        into: &mut Vec<Tid>,
    ) -> EngineResult<bool> {
        while self.slots.is_empty() {
            if self.next == Next::End {
                return Ok(false);
            }
            self.advance(env, rel)?;
        }
        let slots = std::mem::replace(&mut self.slots, 0..0);
        let tid = |slot| Tid::from_u64(Node(&*self.page).row(slot));
        match self.direction {
            Direction::Forward => into.extend(slots.map(tid)),
            Direction::Backward => into.extend(slots.rev().map(tid)),
        }
        Ok(true)
    }

    /// The number of leaves that the scan has copied.
    #[inline]
    pub fn leaves(&self) -> u32 {
        self.leaves
    }

    /// Lets a scan that turns out to be long go on in a ring of the pool.
    pub fn set_ring(&mut self, ring: Option<Ring>) {
        self.ring = ring;
    }

    /// The key of the entry that [`Cursor::next`] has just returned.
    pub fn key(&mut self) -> &[u8] {
        self.key.clear();
        Node(&*self.page).key_into(self.current, &mut self.key);
        &self.key
    }

    /// Copies the next leaf. After an error the cursor is still at the end of the leaf before.
    fn advance<E: Env + ?Sized>(&mut self, env: &E, rel: &RelHandle) -> EngineResult<()> {
        let upper = self.upper.take();
        let lower = std::mem::take(&mut self.lower);
        let range = (Target::first(&lower), upper.as_deref());
        let copied = match (self.direction, self.next) {
            (_, Next::End) => Ok(0..0),
            (Direction::Forward, Next::Right(block)) => {
                match self.copy_right(env, rel, block, range.1) {
                    Ok(None) => self.copy_after_high(env, rel, range.1),
                    Ok(Some(slots)) => Ok(slots),
                    Err(error) => Err(error),
                }
            }
            (Direction::Forward, _) => self.copy_leaf(env, rel, range.0, Side::At, range),
            (Direction::Backward, Next::BeforeFence) => {
                let (key, tid) = std::mem::take(&mut self.fence);
                let before = Target { key: &key, tid };
                let copied = match self.copy_leaf(env, rel, before, Side::Before, range) {
                    Ok(_) if (Target { key: &self.fence.0, tid: self.fence.1 }) >= before => {
                        let what = "a leaf's place is not before that of the one after it";
                        Err(damaged(rel, ROOT, what))
                    }
                    copied => copied,
                };
                if copied.is_err() {
                    self.fence = (key, tid);
                }
                copied
            }
            (Direction::Backward, _) => match range.1 {
                Some(upper) => self.copy_leaf(env, rel, Target::first(upper), Side::Before, range),
                None => self.copy_leaf(env, rel, Target::first(&[]), Side::Last, range),
            },
        };
        if let Ok(slots) = &copied {
            self.slots = slots.clone();
            self.leaves = self.leaves.saturating_add(1);
            self.next = self.after_copy(range);
        }
        self.lower = lower;
        self.upper = upper;
        copied.map(|_| ())
    }

    /// Where to go after the copied leaf.
    fn after_copy(&self, (lower, upper): (Target<'_>, Option<&[u8]>)) -> Next {
        if self.direction == Direction::Backward {
            let (key, tid) = &self.fence;
            return if (Target { key, tid: *tid }) > lower { Next::BeforeFence } else { Next::End };
        }
        let node = Node(&*self.page);
        // The leaf has an entry behind the range.
        if self.slots.end < node.count() {
            return Next::End;
        }
        let ends_here = |upper| node.compare_high(Target::first(upper)).is_none_or(Ordering::is_ge);
        match node.right() {
            Some(right) if !upper.is_some_and(ends_here) => Next::Right(right),
            _ => Next::End,
        }
    }
}
