//! The descent: one optimistic read per page, no pin, no latch, no shared write (btree rule 2).
//!
//! Nothing is held between two pages. Meanwhile:
//! * the child may be split: its high key shows that, and the right link leads on (btree rule 3);
//! * the root may be split: it keeps its block and gains a level. So the child read from it is
//!   still a page of the tree;
//! * the child may leave the tree: it is marked deleted, and a new descent no longer leads there.
//!
//! If none of this explains a page, the page is damaged. The size of the file bounds the number of
//! steps, as a cheap guard against endless loops on damaged links.

use std::cmp::Ordering;

use millpond_buffer::{BlockNumber, RelHandle};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::ROOT;
use super::env::Env;
use super::page::PageRead;
use super::page::item::Target;
use super::page::node::Node;
use crate::{EngineError, EngineResult};

/// The blocks visited on the way down, by level. For each level it is the block that has a
/// downlink, not one further right that a link led to. They are only hints: any of them may have
/// been split since. But a session that latches one of them and goes right meets every incomplete
/// split. So it never comes to a page without a downlink (btree rule 6).
pub(crate) type Path = SmallVec<[u32; 8]>;

/// Where to go from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<R> {
    Down(u32),
    Right(u32),
    Arrived(R),
    /// The page left the tree since the link to it was read.
    Gone,
    /// Not a page of the tree.
    Lost,
}

/// Which child of an inner page to follow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that the target belongs to.
    At,
    /// The one that holds what comes last before the target.
    Before,
    /// The last one; the target does not matter.
    Last,
}

/// One step on an inner page, or to the right from any page that the target is beyond.
#[inline]
pub(crate) fn step<P: PageRead + ?Sized>(
    node: Node<'_, P>,
    target: Target<'_>,
    side: Side,
) -> Step<()> {
    if !node.is_node() {
        return aside(node);
    }
    if node.is_leaf() {
        return Step::Arrived(());
    }
    let slot = match side {
        Side::At => node.child_slot(target),
        Side::Before => node.child_slot_before(target),
        Side::Last => node.count().saturating_sub(1),
    };
    step_by(node, slot, target, side)
}

/// One step on an inner page, once it is known which entry the target belongs to.
#[inline]
pub(crate) fn step_by<P: PageRead + ?Sized>(
    node: Node<'_, P>,
    slot: usize,
    target: Target<'_>,
    side: Side,
) -> Step<()> {
    // What lies between two entries is below the high key, which matters only after the last entry.
    if slot + 1 >= node.count()
        && let Some(right) = right_of(node, target, side)
    {
        return Step::Right(right);
    }
    match node.child(slot) {
        0 => Step::Lost,
        child => Step::Down(child),
    }
}

/// The right sibling, if the target belongs there. (A link of zero is damage and leads to the meta
/// page, which is not a page of the tree.)
#[inline]
pub(crate) fn right_of<P: PageRead + ?Sized>(
    node: Node<'_, P>,
    target: Target<'_>,
    side: Side,
) -> Option<u32> {
    let beyond = match side {
        Side::At => node.is_beyond(target) && !mutant!("btree-without-move-right"),
        Side::Before => node.compare_high(target).is_some_and(Ordering::is_lt),
        Side::Last => return node.right(),
    };
    beyond.then(|| node.right().unwrap_or(0))
}

/// What a page is that is not a node.
#[cold]
pub(crate) fn aside<R, P: PageRead + ?Sized>(node: Node<'_, P>) -> Step<R> {
    let is_deleted = node.is_deleted() && !mutant!("btree-deleted-page-is-damage");
    if is_deleted { Step::Gone } else { Step::Lost }
}

/// Counts steps, so that a descent along damaged links can't go in circles for ever.
#[derive(Clone)]
pub(crate) struct Steps {
    left: u64,
}

impl Steps {
    pub(crate) fn new(rel: &RelHandle) -> Self {
        Self { left: 64 + 2 * u64::from(rel.block_count()) }
    }

    pub(crate) fn take(&mut self, rel: &RelHandle, block: u32) -> EngineResult<()> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(damaged(rel, block, "the links between pages lead in a circle")),
        }
    }
}

/// An error that names a page.
#[cold]
pub(crate) fn damaged(rel: &RelHandle, block: u32, what: &str) -> EngineError {
    EngineError::Corruption {
        place: format!("B+tree, {}", rel.rel().page(BlockNumber(block))),
        what: what.to_owned(),
    }
}

/// Descends to the page of a level that the target belongs to. `path` gets the first block that it
/// visits on each level.
pub(crate) fn find_page<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    target: Target<'_>,
    level: u16,
    path: &mut Path,
) -> EngineResult<u32> {
    find_page_on(env, rel, target, Side::At, level, path)
}

/// Descends to a level, to either side of the target.
pub(crate) fn find_page_on<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    target: Target<'_>,
    side: Side,
    level: u16,
    path: &mut Path,
) -> EngineResult<u32> {
    path.clear();
    let mut block = ROOT;
    let mut steps = Steps::new(rel);
    loop {
        let (at, leaf, next) = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            let node = Node(view);
            (node.level(), node.is_leaf(), step(node, target, side))
        })?;
        steps.take(rel, block)?;
        // A leaf above level 0, or an inner page of level 0, would send writers here again and
        // again.
        let misplaced = at < level || leaf != (at == 0);
        if next == Step::Lost || (misplaced && next != Step::Gone) {
            return Err(damaged(
                rel,
                block,
                "not a page of the tree, or of another level than its parent says",
            ));
        }
        if next == Step::Gone {
            path.clear();
            block = ROOT;
            continue;
        }
        let index = usize::from(at);
        if path.len() <= index {
            path.resize(index + 1, 0);
        }
        if path[index] == 0 || mutant!("btree-path-from-the-right") {
            path[index] = block;
        }
        match next {
            Step::Right(right) => block = right,
            Step::Down(child) if at > level => block = child,
            _ => return Ok(block),
        }
    }
}
