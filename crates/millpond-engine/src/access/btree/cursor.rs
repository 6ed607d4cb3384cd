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

use std::cmp::Ordering;
use std::ops::Range;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageView, RelHandle, Ring};
use millpond_sync::mutant;

use super::ROOT;
use super::descend::{Side, Step, Steps, aside, damaged, right_of, step};
use super::env::Env;
use super::page::PageRead;
use super::page::item::Target;
use super::page::layout::{BODY_START, SLOTS};
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
        let ends_here = |upper| node.compare_high(Target::first(upper)).is_none_or(Ordering::is_ge);
        match node.right() {
            Some(right) if !upper.is_some_and(ends_here) => Next::Right(right),
            _ => Next::End,
        }
    }

    /// Copies the leaf at or after the copied leaf's high key, because the right sibling is gone.
    fn copy_after_high<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        upper: Option<&[u8]>,
    ) -> EngineResult<Range<usize>> {
        let mut high = Vec::new();
        let tid = Node(&*self.page).high_into(&mut high).unwrap_or(0);
        // The leaf may begin before the high key, with entries that the scan has returned already.
        let target = Target { key: &high, tid };
        let from = if mutant!("btree-scan-sees-twice") { Target::first(&[]) } else { target };
        self.copy_leaf(env, rel, target, Side::At, (from, upper))
    }

    /// Copies the leaf at the right link; `None` if it has left the tree.
    fn copy_right<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        block: u32,
        upper: Option<&[u8]>,
    ) -> EngineResult<Option<Range<usize>>> {
        // Copied into the spare page: the current one's high key is needed if the sibling is gone.
        let (copy, ring, block) = (&mut self.spare, self.ring.as_ref(), BlockNumber(block));
        let next = env.buffers().read_with(rel, block, env.wait(), ring, |view| {
            let node = Node(view);
            if node.is_node() && node.is_leaf() {
                return Step::Arrived(copy_slots(view, None, upper, copy));
            }
            aside(node)
        })?;
        match next {
            Step::Arrived(slots) => {
                if !self.is_spare_further() {
                    return Err(damaged(
                        rel,
                        block.0,
                        "the right links of leaves lead in a circle",
                    ));
                }
                std::mem::swap(&mut self.page, &mut self.spare);
                Ok(Some(slots))
            }
            Step::Gone => Ok(None),
            _ => Err(damaged(rel, block.0, "a leaf's right link leads to a page that is no leaf")),
        }
    }

    /// Whether the leaf in the spare page ends after the copied one. If it does not, the scan would
    /// go on for ever (btree rule 13).
    fn is_spare_further(&mut self) -> bool {
        self.key.clear();
        let Some(tid) = Node(&*self.page).high_into(&mut self.key) else { return false };
        let end = Node(&*self.spare).compare_high(Target { key: &self.key, tid });
        end.is_none_or(Ordering::is_gt) || mutant!("btree-scan-in-circles")
    }

    /// Descends and copies the leaf. A backward scan also notes the leaf's fence.
    fn copy_leaf<E: Env + ?Sized>(
        &mut self,
        env: &E,
        rel: &RelHandle,
        target: Target<'_>,
        side: Side,
        (lower, upper): (Target<'_>, Option<&[u8]>),
    ) -> EngineResult<Range<usize>> {
        let fenced = self.direction == Direction::Backward;
        let (mut fence, mut told) = ((Vec::new(), 0), (Vec::new(), 0));
        let mut block = ROOT;
        let mut steps = Steps::new(rel);
        let (copy, ring) = (&mut self.spare, self.ring.as_ref());
        loop {
            let at = BlockNumber(block);
            let next = env.buffers().read_with(rel, at, env.wait(), ring, |view| {
                let node = Node(view);
                let next = match step(node, target, side) {
                    Step::Arrived(()) => match right_of(node, target, side) {
                        Some(right) => Step::Right(right),
                        None => Step::Arrived(copy_slots(view, Some(lower), upper, copy)),
                    },
                    Step::Down(child) => Step::Down(child),
                    Step::Right(right) => Step::Right(right),
                    Step::Gone => Step::Gone,
                    Step::Lost => Step::Lost,
                };
                if fenced {
                    told.0.clear();
                    told.1 = fence_told(node, target, side, &next, &mut told.0);
                }
                next
            })?;
            steps.take(rel, block)?;
            match next {
                Step::Arrived(slots) => {
                    std::mem::swap(&mut self.page, &mut self.spare);
                    self.fence = fence;
                    return Ok(slots);
                }
                Step::Down(next) | Step::Right(next) => block = next,
                Step::Gone => {
                    block = ROOT;
                    told = (Vec::new(), 0);
                }
                Step::Lost => return Err(damaged(rel, block, "not a page of the tree")),
            }
            std::mem::swap(&mut fence, &mut told);
        }
    }
}

/// Copies what a scan needs of a leaf: the header, the slots in the range, and the bodies. Returns
/// the range of slots.
fn copy_slots(
    view: &PageView<'_>,
    lower: Option<Target<'_>>,
    upper: Option<&[u8]>,
    copy: &mut [u8; PAGE_SIZE],
) -> Range<usize> {
    let node = Node(view);
    let start = lower.map_or(0, |lower| node.lower_bound(lower));
    let end = upper.map_or(node.count(), |upper| node.lower_bound(Target::first(upper)));
    // The form is read once here: with torn bytes, the searches may have seen another form.
    let slot_bytes = node.slot_bytes();
    let start = start.min((PAGE_SIZE - SLOTS) / slot_bytes);
    let end = end.clamp(start, (PAGE_SIZE - SLOTS) / slot_bytes);
    view.copy(0, &mut copy[..SLOTS]);
    let (from, to) = (SLOTS + start * slot_bytes, SLOTS + end * slot_bytes);
    view.copy(from, &mut copy[from..to]);
    // Bodies begin where the page says. Torn bytes may say anything.
    let low = usize::from(view.u16(BODY_START)).clamp(to, PAGE_SIZE);
    view.copy(low, &mut copy[low..]);
    start..end
}

/// The lower bound of the page that `next` leads to. It is the separator of the downlink that is
/// followed, or the high key that is passed to the right.
fn fence_told<R>(
    node: Node<'_, PageView<'_>>,
    target: Target<'_>,
    side: Side,
    next: &Step<R>,
    key: &mut Vec<u8>,
) -> u64 {
    match next {
        Step::Down(_) => {
            let slot = match side {
                Side::At => node.child_slot(target),
                Side::Before => node.child_slot_before(target),
                Side::Last => node.count().saturating_sub(1),
            };
            node.key_into(slot, key)
        }
        Step::Right(_) => node.high_into(key).unwrap_or(0),
        _ => 0,
    }
}
