//! How large a part of a tree lies between two keys: an estimate for planners.
//!
//! A descent to a key sees on each page which of the entries it takes. If all subtrees of a level
//! held as many entries, that would be the key's place in the tree. So two descents give the share
//! between two keys. They end above the leaves: inner pages are few and mostly in memory, and to
//! read a leaf could cost more than the estimate is worth. In a B+tree all leaves are equally deep
//! and at least partly filled, so the estimate is seldom wrong by more than a factor of two, unless
//! both keys belong to one leaf or to neighbours.

use millpond_buffer::{BlockNumber, RelHandle};

use super::ROOT;
use super::descend::{Side, Step, Steps, aside, damaged, step_by};
use super::env::Env;
use super::page::item::Target;
use super::page::node::Node;
use crate::EngineResult;

/// Two keys that lead to the same leaf are taken to have this part of it between them.
const PART_OF_LEAF: f64 = 0.25;

/// Where a key is in a tree.
#[derive(Clone, Copy)]
struct Place {
    /// The part of the entries before it.
    before: f64,
    /// The part of the entries within which that is uncertain: a leaf's, or none.
    unsure: f64,
}

/// Which part of a tree's entries have keys from `lower` (included) to `upper` (excluded), from 0
/// to 1. An estimate: see the module's text. If the inner pages are in memory, it writes nothing
/// shared.
pub fn share_between<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    lower: &[u8],
    upper: &[u8],
) -> EngineResult<f64> {
    let from = place(env, rel, Target::first(lower))?;
    let to = place(env, rel, Target::first(upper))?;
    let least = from.unsure.min(to.unsure) * PART_OF_LEAF;
    Ok((to.before - from.before).clamp(least, 1.0))
}

/// What one page says of the place of a key.
enum Seen {
    Leaf { slot: usize },
    Inner { slot: usize, level: u16, step: Step<()> },
    Aside(Step<()>),
}

fn place<E: Env + ?Sized>(env: &E, rel: &RelHandle, target: Target<'_>) -> EngineResult<Place> {
    let (mut before, mut part, mut block) = (0.0, 1.0, ROOT);
    let mut steps = Steps::new(rel);
    loop {
        let (count, seen) = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            let node = Node(view);
            let seen = if !node.is_node() {
                Seen::Aside(aside(node))
            } else if node.is_leaf() {
                Seen::Leaf { slot: node.lower_bound(target) }
            } else {
                let slot = node.child_slot(target);
                let step = step_by(node, slot, target, Side::At);
                Seen::Inner { slot, level: node.level(), step }
            };
            (node.count(), seen)
        })?;
        steps.take(rel, block)?;
        let share = part / count.max(1) as f64;
        let step = match seen {
            Seen::Leaf { slot } => {
                return Ok(Place { before: before + share * slot as f64, unsure: 0.0 });
            }
            Seen::Inner { slot, level: 1, step: Step::Down(_) } => {
                return Ok(Place { before: before + share * slot as f64, unsure: share });
            }
            Seen::Inner { slot, step, .. } => {
                if let Step::Down(_) = step {
                    before += share * slot as f64;
                    part = share;
                }
                step
            }
            Seen::Aside(step) => step,
        };
        block = match step {
            Step::Down(child) => child,
            // The page was split since the link to it was read: all of it is before the target.
            Step::Right(right) => {
                before += part;
                right
            }
            Step::Gone => {
                (before, part) = (0.0, 1.0);
                ROOT
            }
            Step::Lost | Step::Arrived(()) => {
                return Err(damaged(rel, block, "not a page of the tree"));
            }
        };
    }
}
