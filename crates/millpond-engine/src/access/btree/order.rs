//! Takes the latch of a page while the session holds others, without a deadlock even if links are
//! damaged (btree rule 7).
//!
//! The order of the tree's pages: first by level, leaves first; on one level by high key. A page
//! without a high key is the last of its level. A session that holds latches waits only for a page
//! that is later in this order than all that it holds. On sound pages the links alone ensure that:
//! a right link leads to the right on the same level. A session goes up to a parent that it knows
//! from its descent, and that is on the level above. (The descent itself holds no latch.)
//!
//! A damaged link may lead anywhere: to a page that this session holds, or to one whose holder
//! waits for this session. So the session looks at the page first. To the right, it goes on only if
//! the page has the same level and a higher high key than the page with the link. Otherwise the
//! result is an error. Upwards, it waits only if the page is of the expected level. Otherwise the
//! result is `None`, and the caller descends again or gives up.
//!
//! In a circle of waiters, each would wait for a page that is later than all that it holds. That is
//! impossible.
//!
//! The look is an optimistic read. It never waits for a session that waits for a latch. Such a
//! session is not changing a page, so the pages that it holds can be read.

use std::cmp::Ordering;

use millpond_buffer::{ExclusivePage, PAGE_SIZE, PinnedPage, RelHandle, SharedPage};

use super::descend::damaged;
use super::env::{Env, pin};
use super::page::item::Target;
use super::page::node::Node;
use crate::EngineResult;

/// Latches the right sibling of a page whose latch the caller holds, which keeps it in the tree.
pub(crate) fn latch_right<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    held: &[u8; PAGE_SIZE],
    right: u32,
) -> EngineResult<ExclusivePage<'e>> {
    let pinned = pin(env, rel, right)?;
    expect_further(rel, held, &pinned)?;
    Ok(pinned.into_exclusive()?)
}

/// The same with a shared latch.
pub(crate) fn latch_right_shared<'e, E: Env + ?Sized>(
    env: &'e E,
    rel: &RelHandle,
    held: &[u8; PAGE_SIZE],
    right: u32,
) -> EngineResult<SharedPage<'e>> {
    let pinned = pin(env, rel, right)?;
    expect_further(rel, held, &pinned)?;
    Ok(pinned.into_shared()?)
}

/// Latches a page of a level above all pages that the session holds. `None` if the page is latched
/// and is not of that level.
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
