//! Insertion, and the check that a key is unique.
//!
//! Only the leaf is latched, and its right neighbours one after the other if the place is further
//! right. A unique check runs under the latch of the first leaf that can hold the key. Every
//! session that inserts the same key must take that latch, so check and insertion are one atomic
//! step (btree rule 8).

use millpond_buffer::{
    BlockNumber, ExclusivePage, PAGE_SIZE, PinnedPage, RelHandle, SharedPage, Wait,
};
use millpond_sync::mutant;

use super::descend::{Path, Side, Steps, damaged, find_page, right_of};
use super::env::{Env, latch, pin};
use super::grow::{Added, add, finish_split};
use super::order::{latch_right, latch_right_shared};
use super::page::item::{Item, Target};
use super::page::layout::MAX_KEY_BYTES;
use super::page::node::Node;
use crate::access::Tid;
use crate::transam::Xid;
use crate::{EngineError, EngineResult};

/// What the heap says about a row whose index entry has the key that is to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueVerdict {
    /// The row is dead or not there: it does not conflict.
    Free,
    /// A live row has the key.
    Duplicate,
    /// It depends on whether this transaction commits.
    Wait(Xid),
}

/// Asks the heap about a row. It is called under a leaf's latch, so it must not touch the index.
pub type UniqueCheck<'a> = &'a dyn Fn(Tid) -> EngineResult<UniqueVerdict>;

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The entry is in the index.
    Done,
    /// Nothing was inserted: this row has the key.
    Duplicate(Tid),
    /// Nothing was inserted: wait for the transaction's end and try again.
    Wait(Xid),
}

/// Rejects keys that are too long.
pub fn check_key(key: &[u8]) -> EngineResult<()> {
    if key.len() > MAX_KEY_BYTES && !mutant!("btree-key-without-limit") {
        return Err(EngineError::IndexRowTooLarge { size: key.len(), limit: MAX_KEY_BYTES });
    }
    Ok(())
}

/// Inserts an entry; with `unique`, only if no other row has the key.
///
/// If it may not wait, it finds that out before the first change. A leaf that would have to be
/// split counts as waiting. An entry that is there already stays as it is.
pub fn insert<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    key: &[u8],
    tid: Tid,
    unique: Option<UniqueCheck<'_>>,
) -> EngineResult<InsertOutcome> {
    check_key(key)?;
    let place = Target { key, tid: tid.to_u64() };
    let mut path = Path::new();
    let mut leaf;
    if let Some(check) = unique {
        let first = match mutant!("btree-unique-from-own-place") {
            true => place,
            false => Target::first(key),
        };
        leaf = latch_leaf(env, rel, first, &mut path)?;
        match check_unique(env, rel, &leaf, key, tid, check)? {
            InsertOutcome::Done if mutant!("btree-unique-under-two-latches") => {
                drop(leaf);
                leaf = latch_leaf(env, rel, place, &mut path)?;
            }
            InsertOutcome::Done => leaf = move_right(env, rel, leaf, place, &path)?,
            conflict => return Ok(conflict),
        }
    } else {
        leaf = latch_leaf(env, rel, place, &mut path)?;
    }
    let node = Node(leaf.bytes());
    let index = node.lower_bound(place);
    if index < node.count() && node.key_is(index, key) && node.row(index) == place.tid {
        return Ok(InsertOutcome::Done);
    }
    let block = leaf.block().get();
    match add(env, rel, &path, leaf, index, Item { key, tid: place.tid, child: 0 }, None)? {
        Added::Done => Ok(InsertOutcome::Done),
        Added::MadeRoom => Err(damaged(rel, block, "a leaf was split without the new entry")),
    }
}

/// Latches the leaf that a target belongs to. Finishes incomplete splits that it finds on the way.
fn latch_leaf<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    target: Target<'_>,
    path: &mut Path,
) -> EngineResult<ExclusivePage<'e>> {
    loop {
        let block = find_page(env, rel, target, 0, path)?;
        let page = latch(env, rel, block)?;
        let node = Node(page.bytes());
        // The root may have grown, or the page left the tree, before this session got the latch.
        // Then it descends again.
        if (node.is_node() && node.is_leaf()) || mutant!("btree-root-latched-unseen") {
            return move_right(env, rel, page, target, path);
        }
    }
}

/// Goes from a latched leaf to the one that the target belongs to. The next leaf is latched before
/// the current latch is released.
fn move_right<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    mut page: ExclusivePage<'e>,
    target: Target<'_>,
    path: &Path,
) -> EngineResult<ExclusivePage<'e>> {
    let mut steps = Steps::new(rel);
    loop {
        let node = Node(page.bytes());
        if node.is_split_incomplete() && !mutant!("btree-writer-passes-mark") {
            page = finish_split(env, rel, path, page)?;
            continue;
        }
        let Some(right) = right_of(node, target, Side::At) else { return Ok(page) };
        steps.take(rel, right)?;
        if right == page.block().get() {
            return Err(damaged(rel, right, "a right link leads to its own page"));
        }
        let next = latch_right(env, rel, page.bytes(), right)?;
        expect_leaf(rel, right, next.bytes())?;
        page = next;
    }
}

/// The right link of a latched leaf must lead to a leaf: that latch keeps the sibling in the tree.
fn expect_leaf(rel: &RelHandle, block: u32, page: &[u8; PAGE_SIZE]) -> EngineResult<()> {
    let node = Node(page);
    if node.is_node() && node.is_leaf() {
        return Ok(());
    }
    Err(damaged(rel, block, "a leaf's right link leads to a page that is not a leaf of the tree"))
}

/// Asks about every row that has the key, from the first leaf (latched exclusively) to the right.
fn check_unique<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    leaf: &ExclusivePage<'_>,
    key: &[u8],
    own: Tid,
    check: UniqueCheck<'_>,
) -> EngineResult<InsertOutcome> {
    let (mut outcome, mut next) = check_leaf(leaf.bytes(), key, own, check)?;
    // The next page is latched before this one is unlatched, so the link to it stays valid.
    let (mut latched, mut last) = (None::<SharedPage<'_>>, leaf.block().get());
    let mut steps = Steps::new(rel);
    while outcome == InsertOutcome::Done {
        let Some(right) = next else { break };
        steps.take(rel, right)?;
        // The session holds these two pages and must not latch either again.
        if right == last || right == leaf.block().get() {
            return Err(damaged(rel, right, "the right links of leaves lead in a circle"));
        }
        let held = latched.as_ref().map_or_else(|| leaf.bytes(), SharedPage::bytes);
        let page = latch_right_shared(env, rel, held, right)?;
        expect_leaf(rel, right, page.bytes())?;
        last = right;
        (outcome, next) = check_leaf(page.bytes(), key, own, check)?;
        drop(latched.replace(page));
    }
    Ok(outcome)
}

/// The verdict about one leaf, and the leaf where the key may continue.
fn check_leaf(
    page: &[u8; PAGE_SIZE],
    key: &[u8],
    own: Tid,
    check: UniqueCheck<'_>,
) -> EngineResult<(InsertOutcome, Option<u32>)> {
    let node = Node(page);
    let mut at = node.lower_bound(Target::first(key));
    while at < node.count() && node.key_is(at, key) {
        let tid = Tid::from_u64(node.row(at));
        if tid != own {
            match check(tid)? {
                UniqueVerdict::Free => {}
                UniqueVerdict::Duplicate => return Ok((InsertOutcome::Duplicate(tid), None)),
                UniqueVerdict::Wait(xid) => return Ok((InsertOutcome::Wait(xid), None)),
            }
        }
        at += 1;
    }
    let more = at >= node.count() && node.is_beyond(Target::last(key));
    Ok((InsertOutcome::Done, node.right().filter(|_| more)))
}

/// Keeps a leaf in memory between [`prepare_insert`] and the insertion.
#[derive(Debug)]
pub struct PreparedInsert<'e> {
    _leaf: Option<PinnedPage<'e>>,
}

/// Finds out, before the first change of a statement, whether an insertion would have to wait. It
/// need not if the pages on the way are in memory and the leaf has room. While the result lives,
/// the leaf stays in memory.
pub fn prepare_insert<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    key: &[u8],
    tid: Tid,
) -> EngineResult<PreparedInsert<'e>> {
    check_key(key)?;
    if env.wait() == Wait::Allowed {
        return Ok(PreparedInsert { _leaf: None });
    }
    let target = Target { key, tid: tid.to_u64() };
    let item = Item { key, tid: target.tid, child: 0 };
    let block = find_page(env, rel, target, 0, &mut Path::new())?;
    let ready = env.buffers().read(rel, BlockNumber(block), env.wait(), |view| {
        let node = Node(view);
        node.is_node()
            && node.is_leaf()
            && !node.is_split_incomplete()
            && !node.is_beyond(target)
            && node.room_for(&item).is_some()
    })?;
    if !ready && !mutant!("btree-prepared-without-room") {
        return Err(EngineError::WouldBlock);
    }
    Ok(PreparedInsert { _leaf: Some(pin(env, rel, block)?) })
}
