//! Finding the cursor's next leaf, and copying what is in its range.

use std::cmp::Ordering;
use std::ops::Range;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageView, RelHandle};
use millpond_sync::mutant;

use super::{Cursor, Direction};
use crate::EngineResult;
use crate::access::btree::ROOT;
use crate::access::btree::descend::{Side, Step, Steps, aside, damaged, right_of, step};
use crate::access::btree::env::Env;
use crate::access::btree::page::PageRead;
use crate::access::btree::page::item::Target;
use crate::access::btree::page::layout::{BODY_START, SLOTS};
use crate::access::btree::page::node::Node;

impl Cursor {
    /// Copies the leaf at or after the copied leaf's high key, because the right sibling is gone.
    pub(super) fn copy_after_high<E: Env + ?Sized>(
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
    pub(super) fn copy_right<E: Env + ?Sized>(
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
    pub(super) fn copy_leaf<E: Env + ?Sized>(
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
    let end =
        upper.map_or(node.count(), |upper| node.lower_bound_from(start, Target::first(upper)));
    // The form is read once here: with torn bytes, the searches may have seen another form.
    let slot_bytes = node.slot_bytes();
    let start = start.min((PAGE_SIZE - SLOTS) / slot_bytes);
    let end = end.clamp(start, (PAGE_SIZE - SLOTS) / slot_bytes);
    view.copy(0, &mut copy[..SLOTS]);
    let (from, to) = (SLOTS + start * slot_bytes, SLOTS + end * slot_bytes);
    view.copy(from, &mut copy[from..to]);
    // Bodies begin where the page says. Torn bytes may say anything. Whole words are copied faster.
    let low = usize::from(view.u16(BODY_START)).clamp(to, PAGE_SIZE) / 8 * 8;
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
