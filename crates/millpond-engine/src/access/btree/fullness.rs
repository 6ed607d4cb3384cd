//! How full the leaves within a part of a tree are: an estimate for planners.
//!
//! A place in a tree is told by its inner pages, as if all pages of a level led to as many entries.
//! But where nearly all entries have been deleted, many leaves with an entry or two may be left: a
//! queue's rows have one key while they wait, and another one when they are done. The leaves of the
//! first key would say that most rows still wait. So some leaves all over the range are looked at.
//!
//! The leaves are those of places that are evenly far apart. A leaf that stands for a larger part
//! of the tree is more likely among them, and counts as much less. So the mean of what leaves have,
//! each beside what its part of the tree should have, is right on the average for any tree.

use millpond_buffer::{BlockNumber, RelHandle};

use super::ROOT;
use super::env::Env;
use super::page::node::Node;
use crate::EngineResult;

/// How many leaves are looked at.
const LOOKS: u32 = 4;
/// A part of the tree of fewer leaves is not worth it.
const FEWEST_LEAVES: f64 = 8.0;
/// Leaves that have more than this of what they should have are like others: splits halve them.
const LIKE_OTHERS: f64 = 0.5;
/// Of long keys a leaf has so few that their number says nothing.
const FEWEST_ENTRIES: f64 = 16.0;

/// What a leaf has.
struct Leaf {
    count: usize,
    /// The part of all entries that it should have.
    part: f64,
}

/// Which part of what they should have the leaves between two places have: 1 if most of it, or if
/// that is not known. A place is the part of all `entries` before it; `leaf` is the part that a
/// leaf at one of the places should have.
pub(super) fn fullness<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    (from, to): (f64, f64),
    leaf: f64,
    entries: f64,
) -> EngineResult<f64> {
    if to - from < leaf * FEWEST_LEAVES {
        return Ok(1.0);
    }
    let (mut sum, mut expected) = (0.0, 0.0);
    for look in 0..LOOKS {
        let at = (f64::from(look) + 0.5) / f64::from(LOOKS);
        let Some(leaf) = leaf_at(env, rel, from + (to - from) * at)? else { return Ok(1.0) };
        sum += leaf.count as f64 / (leaf.part * entries);
        expected += leaf.part * entries;
    }
    let looks = f64::from(LOOKS);
    let is_known = expected / looks >= FEWEST_ENTRIES;
    Ok(Some(sum / looks).filter(|full| is_known && *full < LIKE_OTHERS).unwrap_or(1.0))
}

/// The leaf at a place. `None` if a page on the way has been split or has left the tree meanwhile,
/// or is none of the level below.
fn leaf_at<E: Env + ?Sized>(env: &E, rel: &RelHandle, place: f64) -> EngineResult<Option<Leaf>> {
    let (mut block, mut before, mut part) = (ROOT, 0.0, 1.0);
    let mut level_above: Option<u16> = None;
    loop {
        let page = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            let node = Node(view);
            let count = node.count();
            let share = part / count.max(1) as f64;
            let slot = (((place - before) / share).max(0.0) as usize).min(count.saturating_sub(1));
            (node.is_node(), node.level(), (count, slot, share), node.child(slot))
        })?;
        let (is_node, level, (count, slot, share), child) = page;
        if !is_node || level_above.is_some_and(|above| above.checked_sub(1) != Some(level)) {
            return Ok(None);
        }
        if level == 0 {
            return Ok(Some(Leaf { count, part }));
        }
        if count == 0 {
            return Ok(None);
        }
        (block, before, part) = (child, before + share * slot as f64, share);
        level_above = Some(level);
    }
}
