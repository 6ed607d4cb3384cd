//! Point lookups: the hottest path of the engine.

use millpond_buffer::{BlockNumber, PageRead, RelHandle};
use smallvec::SmallVec;

use super::ROOT;
use super::descend::{Path, Side, Step, Steps, aside, damaged, find_page, right_of, step};
use super::env::Env;
use super::page::item::Target;
use super::page::node::Node;
use crate::EngineResult;
use crate::access::Tid;

/// Rows found under one key; a unique key mostly has one.
pub type Tids = SmallVec<[Tid; 4]>;

/// Appends the tids of all entries with this key, in order. If the pages are in memory, it writes
/// nothing shared. It allocates nothing as long as `found` has room.
pub fn lookup<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    key: &[u8],
    found: &mut Tids,
) -> EngineResult<()> {
    let before = found.len();
    let target = Target::first(key);
    let mut block = ROOT;
    let mut steps = Steps::new(rel);
    loop {
        // Results of earlier pages stay. A new run removes the results of a run on torn bytes.
        let kept = found.len();
        let next = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            found.truncate(kept);
            let node = Node(view);
            match step(node, target, Side::At) {
                Step::Arrived(()) => collect(node, key, found),
                other => other,
            }
        })?;
        block = match next {
            Step::Arrived(()) => return Ok(()),
            Step::Down(next) | Step::Right(next) => next,
            Step::Gone => {
                // What earlier pages gave is found again.
                found.truncate(before);
                ROOT
            }
            Step::Lost => return Err(damaged(rel, block, "not a page of the tree")),
        };
        steps.take(rel, block)?;
    }
}

/// Whether there is an entry with this key and row. It costs one descent, even with many rows.
pub fn contains<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    key: &[u8],
    tid: Tid,
) -> EngineResult<bool> {
    let target = Target { key, tid: tid.to_u64() };
    let mut path = Path::new();
    let mut block = find_page(env, rel, target, 0, &mut path)?;
    let mut steps = Steps::new(rel);
    loop {
        let next = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
            let node = Node(view);
            if !node.is_node() || !node.is_leaf() {
                return aside(node);
            }
            if let Some(right) = right_of(node, target, Side::At) {
                return Step::Right(right);
            }
            let at = node.lower_bound(target);
            let is_there = at < node.count() && node.row(at) == target.tid && node.key_is(at, key);
            Step::Arrived(is_there)
        })?;
        block = match next {
            Step::Arrived(is_there) => return Ok(is_there),
            Step::Down(next) | Step::Right(next) => next,
            Step::Gone => find_page(env, rel, target, 0, &mut path)?,
            Step::Lost => return Err(damaged(rel, block, "not a leaf of the tree")),
        };
        steps.take(rel, block)?;
    }
}

#[inline]
pub(super) fn collect<P: PageRead + ?Sized>(
    leaf: Node<'_, P>,
    key: &[u8],
    found: &mut Tids,
) -> Step<()> {
    let count = leaf.count();
    let mut at = leaf.lower_bound(Target::first(key));
    while at < count && leaf.key_is(at, key) {
        found.push(Tid::from_u64(leaf.row(at)));
        at += 1;
    }
    // The run of this key can go on to the right only if it reaches the page's end.
    if at >= count && leaf.is_beyond(Target::last(key)) {
        return Step::Right(leaf.right().unwrap_or(0));
    }
    Step::Arrived(())
}
