//! How large a part of a tree lies between two keys: an estimate for planners.
//!
//! A descent to a key sees on each page which of the entries it takes. If all subtrees of a level
//! held as many entries, that would be the key's place in the tree. So two descents give the share
//! between two keys. They end above the leaves: inner pages are few and mostly in memory, and to
//! read a leaf could cost more than the estimate is worth. In a B+tree all leaves are equally deep.
//! If many are between the keys, some are looked at, to see whether they are nearly empty. So the
//! estimate is seldom wrong by more than a factor of two, unless both keys belong to one leaf or to
//! neighbours. In that case these leaves can be looked at, too.
//!
//! A planner may ask without a snapshot, and so without what keeps a page that left the tree from
//! being used again. Then the answer is wrong, and no more: it must not be used to find rows.

use millpond_buffer::{BlockNumber, RelHandle};

use super::ROOT;
use super::descend::{Side, Step, Steps, aside, damaged, step_by};
use super::env::Env;
use super::fullness::fullness;
use super::page::PageRead;
use super::page::item::Target;
use super::page::node::Node;
use crate::{EngineError, EngineResult};

/// Two keys that lead to the same leaf are taken to have this part of it between them.
const PART_OF_LEAF: f64 = 0.25;

/// Where a key is in a tree.
#[derive(Clone, Copy)]
struct Place {
    /// The part of the entries before it.
    before: f64,
    /// The part of the entries within which that is uncertain: a leaf's, or none.
    unsure: f64,
    /// The leaf, if that was not looked at.
    leaf: Option<u32>,
}

/// Which part of a tree's `entries` have keys from `lower` (included) to `upper` (excluded), from 0
/// to 1. An estimate: see the module's text. If the pages are in memory, it writes nothing shared.
pub fn share_between<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    lower: &[u8],
    upper: &[u8],
    entries: f64,
) -> EngineResult<f64> {
    let places = places(env, rel, Target::first(lower), Target::first(upper))?;
    share_of_full(env, rel, places, entries)
}

/// How many of a tree's `entries` have such keys: an estimate as well. But if the keys are in one
/// leaf or in neighbours, it looks at these, unless the session would have to wait for them.
pub fn rows_between<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    lower: &[u8],
    upper: &[u8],
    entries: f64,
) -> EngineResult<f64> {
    let (lower, upper) = (Target::first(lower), Target::first(upper));
    let (from, to) = places(env, rel, lower, upper)?;
    if let (Some(first), Some(last)) = (from.leaf, to.leaf) {
        match counted(env, rel, (lower, first), (upper, last)) {
            Ok(Some(rows)) => return Ok(rows as f64),
            Ok(None) | Err(EngineError::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(share_of_full(env, rel, (from, to), entries)? * entries)
}

/// The share between two places, with regard to how full the leaves are.
fn share_of_full<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    (from, to): (Place, Place),
    entries: f64,
) -> EngineResult<f64> {
    let leaf = from.unsure.max(to.unsure);
    let full = match fullness(env, rel, (from.before, to.before), leaf, entries) {
        Err(EngineError::WouldBlock) => 1.0,
        full => full?,
    };
    Ok(share(from, to) * full)
}

/// The entries between two keys in these leaves, if they are one or neighbours.
fn counted<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    (lower, first): (Target<'_>, u32),
    (upper, last): (Target<'_>, u32),
) -> EngineResult<Option<usize>> {
    let from = slot_in(env, rel, lower, first)?;
    if first != last && from.right != Some(last) {
        return Ok(None);
    }
    let to = slot_in(env, rel, upper, last)?;
    let before = if first == last { 0 } else { from.count };
    Ok(Some((before + to.slot).saturating_sub(from.slot)))
}

fn share(from: Place, to: Place) -> f64 {
    let least = from.unsure.min(to.unsure) * PART_OF_LEAF;
    (to.before - from.before).clamp(least, 1.0)
}

/// Where a key is in a leaf.
#[derive(Clone, Copy, Default)]
struct InLeaf {
    slot: usize,
    /// The entries of the leaf.
    count: usize,
    right: Option<u32>,
}

/// The place of a key in a leaf. A leaf that was split a moment ago may not have it: then all of
/// its entries are before the key.
fn slot_in<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    target: Target<'_>,
    leaf: u32,
) -> EngineResult<InLeaf> {
    let read = env.buffers().read(rel, BlockNumber(leaf), env.wait(), |view| {
        let node = Node(view);
        let (count, right) = (node.count(), node.right());
        node.is_node().then(|| InLeaf { slot: node.lower_bound(target), count, right })
    })?;
    Ok(read.unwrap_or_default())
}

fn places<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    lower: Target<'_>,
    upper: Target<'_>,
) -> EngineResult<(Place, Place)> {
    let mut descent = Descent::new(rel);
    // Most ranges are small: the ways to their ends part late.
    loop {
        let (count, seen, other) =
            env.buffers().read(rel, BlockNumber(descent.block), env.wait(), |view| {
                let node = Node(view);
                (node.count(), Seen::of(node, lower), Seen::of(node, upper))
            })?;
        let mut apart = descent.clone();
        match (descent.follow(count, seen)?, apart.follow(count, other)?) {
            (None, None) if descent.block == apart.block => {}
            (from, to) => {
                return Ok((descent.finish(env, lower, from)?, apart.finish(env, upper, to)?));
            }
        }
    }
}

/// What one page says of the place of a key.
#[derive(Clone, Copy)]
enum Seen {
    Leaf { slot: usize },
    Inner { slot: usize, level: u16, step: Step<()> },
    Aside(Step<()>),
}

impl Seen {
    fn of<P: PageRead + ?Sized>(node: Node<'_, P>, target: Target<'_>) -> Self {
        if !node.is_node() {
            return Seen::Aside(aside(node));
        }
        if node.is_leaf() {
            return Seen::Leaf { slot: node.lower_bound(target) };
        }
        let slot = node.child_slot(target);
        let step = step_by(node, slot, target, Side::At);
        Seen::Inner { slot, level: node.level(), step }
    }
}

/// The way down to a key.
#[derive(Clone)]
struct Descent<'r> {
    rel: &'r RelHandle,
    block: u32,
    /// The part of the entries before the page, and on the page and below.
    before: f64,
    part: f64,
    steps: Steps,
}

impl<'r> Descent<'r> {
    fn new(rel: &'r RelHandle) -> Self {
        Self { rel, block: ROOT, before: 0.0, part: 1.0, steps: Steps::new(rel) }
    }

    /// Goes where a page of `count` entries leads; the place, once it is known.
    fn follow(&mut self, count: usize, seen: Seen) -> EngineResult<Option<Place>> {
        self.steps.take(self.rel, self.block)?;
        let share = self.part / count.max(1) as f64;
        let at = |slot| self.before + share * slot as f64;
        let step = match seen {
            Seen::Leaf { slot } => {
                return Ok(Some(Place { before: at(slot), unsure: 0.0, leaf: None }));
            }
            Seen::Inner { slot, level: 1, step: Step::Down(leaf) } => {
                return Ok(Some(Place { before: at(slot), unsure: share, leaf: Some(leaf) }));
            }
            Seen::Inner { slot, step: Step::Down(child), .. } => {
                (self.before, self.part) = (at(slot), share);
                Step::Down(child)
            }
            Seen::Inner { step, .. } | Seen::Aside(step) => step,
        };
        self.block = match step {
            Step::Down(child) => child,
            // The page was split since the link to it was read: all of it is before the target.
            Step::Right(right) => {
                self.before += self.part;
                right
            }
            Step::Gone => {
                (self.before, self.part) = (0.0, 1.0);
                ROOT
            }
            Step::Lost | Step::Arrived(()) => {
                return Err(damaged(self.rel, self.block, "not a page of the tree"));
            }
        };
        Ok(None)
    }

    /// Goes on alone, unless the place is known.
    fn finish<E: Env + ?Sized>(
        mut self,
        env: &E,
        target: Target<'_>,
        mut place: Option<Place>,
    ) -> EngineResult<Place> {
        loop {
            if let Some(place) = place {
                return Ok(place);
            }
            let block = BlockNumber(self.block);
            let (count, seen) = env.buffers().read(self.rel, block, env.wait(), |view| {
                (Node(view).count(), Seen::of(Node(view), target))
            })?;
            place = self.follow(count, seen)?;
        }
    }
}
