//! Latches taken by who holds latches already, in an order that damaged links can't make a circle of (btree rule 7).
//!
//! On sound pages links lead only to the right and downlinks only down, so that whoever goes by them waits in that order. On
//! damaged ones they lead anywhere: back to a page that this session holds, or to one whose holder waits for this session.
//! Therefore who finds a page latched looks at it first, and waits only if it is further in the order than the page held: of
//! a higher level, or of the same one with a higher high key. Along a circle that can't be so for every one who waits. The
//! look is an optimistic read and costs nothing while nobody waits: who waits for a latch is not in the middle of a change.

use std::cmp::Ordering;

use millpond_buffer::{ExclusivePage, PAGE_SIZE, PinnedPage, RelHandle, SharedPage};

use super::descend::damaged;
use super::env::{Env, pin};
use super::page::node::{Node, Target};
use crate::EngineResult;

/// Latches the right sibling of a page that is held, which keeps it in the tree.
pub(crate) fn latch_right<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    held: &[u8; PAGE_SIZE],
    right: u32,
) -> EngineResult<ExclusivePage<'e>> {
    match pin(env, rel, right)?.try_into_exclusive() {
        Ok(page) => Ok(page),
        Err(pinned) => {
            expect_further(rel, held, &pinned)?;
            Ok(pinned.into_exclusive()?)
        }
    }
}

/// The same, shared with others.
pub(crate) fn latch_right_shared<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    held: &[u8; PAGE_SIZE],
    right: u32,
) -> EngineResult<SharedPage<'e>> {
    match pin(env, rel, right)?.try_into_shared() {
        Ok(page) => Ok(page),
        Err(pinned) => {
            expect_further(rel, held, &pinned)?;
            Ok(pinned.into_shared()?)
        }
    }
}

/// Latches a page of a level above all pages that are held; `None` if it is found latched and is not of that level.
pub(crate) fn latch_above<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    block: u32,
    level: u16,
) -> EngineResult<Option<ExclusivePage<'e>>> {
    let pinned = match pin(env, rel, block)?.try_into_exclusive() {
        Ok(page) => return Ok(Some(page)),
        Err(pinned) => pinned,
    };
    let is_above = pinned.read(|view| Node(view).is_node() && Node(view).level() == level)?;
    if is_above { Ok(Some(pinned.into_exclusive()?)) } else { Ok(None) }
}

fn expect_further(
    rel: &RelHandle,
    held: &[u8; PAGE_SIZE],
    right: &PinnedPage<'_>,
) -> EngineResult<()> {
    let (held, mut high) = (Node(held), Vec::new());
    let tid = held.high_into(&mut high);
    let is_further = right.read(|view| {
        let node = Node(view);
        let is_beyond = |tid| {
            let order = node.compare_high(Target { key: &high, tid });
            order.is_none_or(Ordering::is_gt)
        };
        node.is_node() && node.level() == held.level() && tid.is_some_and(is_beyond)
    })?;
    if is_further {
        return Ok(());
    }
    Err(damaged(rel, right.block().get(), "the right links of pages lead in a circle"))
}
