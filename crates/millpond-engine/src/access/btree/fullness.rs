//! How full the leaves within a part of a tree are, beside all leaves: an estimate for planners.
//!
//! Leaves are mostly filled alike. But where nearly all entries have been deleted, as the key of a
//! queue's waiting rows leaves them behind, many leaves with an entry or two are left. Their number
//! would say that most rows still wait. So some leaves all over the range are looked at.

use millpond_buffer::{BlockNumber, RelHandle};

use super::ROOT;
use super::descend::Steps;
use super::env::Env;
use super::page::node::Node;
use crate::EngineResult;

/// How many leaves are looked at.
const LOOKS: u32 = 4;
/// A part of the tree of fewer leaves is not worth it.
const FEWEST_LEAVES: f64 = 8.0;
/// Leaves that are fuller than this part of others are like others: splits halve them.
const EMPTIER: f64 = 0.25;
/// Of long keys a leaf has so few that their number says nothing.
const FEWEST_ENTRIES: f64 = 16.0;

/// How many entries a leaf within a part of the tree has, beside `expected`: 1 if about as many, or
/// if it is not known. The part is from one place to another, which are parts of the entries before
/// them, as is `leaf`, what a leaf is taken to have.
pub(super) fn fullness<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    (from, to): (f64, f64),
    leaf: f64,
    expected: f64,
) -> EngineResult<f64> {
    if to - from < leaf * FEWEST_LEAVES || expected < FEWEST_ENTRIES {
        return Ok(1.0);
    }
    let mut sum = 0;
    for look in 0..LOOKS {
        let part = (f64::from(look) + 0.5) / f64::from(LOOKS);
        match leaf_entries(env, rel, from + (to - from) * part)? {
            Some(entries) => sum += entries,
            None => return Ok(1.0),
        }
    }
    let full = sum as f64 / f64::from(LOOKS) / expected;
    // Not none: one that has some may be anywhere.
    Ok(if full < EMPTIER { full.max(1.0 / expected) } else { 1.0 })
}

/// The entries of the leaf at a place. `None` if pages on the way have been split or have left the
/// tree meanwhile.
fn leaf_entries<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    place: f64,
) -> EngineResult<Option<usize>> {
    let (mut block, mut before, mut part) = (ROOT, 0.0, 1.0);
    let mut steps = Steps::new(rel);
    loop {
        steps.take(rel, block)?;
        let page = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            let node = Node(view);
            let count = node.count();
            let share = part / count.max(1) as f64;
            let slot = (((place - before) / share).max(0.0) as usize).min(count.saturating_sub(1));
            (node.is_node(), node.is_leaf(), (count, slot, share), node.child(slot))
        })?;
        let (is_node, is_leaf, (count, slot, share), child) = page;
        if !is_node || count == 0 && !is_leaf {
            return Ok(None);
        }
        if is_leaf {
            return Ok(Some(count));
        }
        (block, before, part) = (child, before + share * slot as f64, share);
    }
}
