//! Opportunistic pruning: a session that uses a page without room, or with long chains, prunes it.
//!
//! It happens only if the page's hint says that something can go, and in readers only if the latch
//! is free. Pruning itself waits for no page latch and no row lock. If it fails for a reader, the
//! read still succeeds.

use millpond_buffer::{BlockNumber, ExclusivePage, Ring};
use millpond_sync::mutant;

use super::change::{log_has_room, log_page_change};
use super::judge::judge;
use super::last_fate::LastFate;
use super::lock::is_held;
use super::page;
use super::prune::{PruneOptions, PrunePlan, plan};
use super::record;
use super::relation::{HeapEvent, HeapRelation};
use crate::access::heap::visibility::Fates;
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{Horizon, Xid, XidStatus};

/// Whether what transaction `hint` left behind can be removed now.
fn is_ripe(ctx: &Ctx, hint: Xid, horizon: &Horizon) -> EngineResult<bool> {
    Ok(match ctx.status(hint)? {
        XidStatus::InProgress => false,
        XidStatus::Aborted => true,
        XidStatus::Committed(csn) => csn <= horizon.csn,
    })
}

/// Prunes a latched page if that frees something. Line pointers that indexes may name are kept.
pub fn prune_latched(
    ctx: &Ctx,
    heap: &HeapRelation,
    latched: &mut ExclusivePage<'_>,
) -> EngineResult<bool> {
    let hint = page::prune_hint(latched.bytes());
    if !page::is_heap(latched.bytes()) || !hint.is_valid() {
        return Ok(false);
    }
    // The last known horizon costs nothing. A new one reads a line of every session.
    let recent = ctx.txns().recent_horizon();
    if is_ripe(ctx, hint, &recent)? && prune_as_of(ctx, heap, latched, &recent)? {
        return Ok(true);
    }
    let horizon = ctx.txns().horizon();
    if horizon.csn <= recent.csn || !is_ripe(ctx, page::prune_hint(latched.bytes()), &horizon)? {
        return Ok(false);
    }
    prune_as_of(ctx, heap, latched, &horizon)
}

/// Judges all versions of a latched page and plans what can be done to it.
pub(super) fn plan_latched(
    ctx: &Ctx,
    latched: &ExclusivePage<'_>,
    horizon: &Horizon,
    options: PruneOptions,
) -> EngineResult<PrunePlan> {
    let fates = LastFate::new(ctx);
    plan(latched.bytes(), options, |offset, header| {
        let is_held = || is_held(ctx, latched.page_id(), offset, header);
        judge(header, horizon, &fates, is_held)
    })
}

fn prune_as_of(
    ctx: &Ctx,
    heap: &HeapRelation,
    latched: &mut ExclusivePage<'_>,
    horizon: &Horizon,
) -> EngineResult<bool> {
    if !page::is_heap(latched.bytes()) {
        return Ok(false);
    }
    let options = PruneOptions { has_indexes: true };
    let plan = plan_latched(ctx, latched, horizon, options)?;
    if !plan.frees() {
        return Ok(false);
    }
    let removed = plan.unused.len() + plan.dead.len();
    apply_plan(ctx, latched, &plan)?;
    heap.counters().add(ctx.no(), HeapEvent::Pruned, removed as u64);
    Ok(true)
}

/// Logs and applies a plan.
pub fn apply_plan(
    ctx: &Ctx,
    latched: &mut ExclusivePage<'_>,
    plan: &PrunePlan,
) -> EngineResult<()> {
    let mut data = ctx.heap().scratch();
    plan.encode(&mut data);
    if mutant!("heap-prune-unlogged") {
        let mut pruned = *latched.bytes();
        if plan.apply(&mut pruned).is_ok() {
            let mut change = latched.change();
            change.write_page(&pruned);
            change.publish_unlogged();
        }
        return Ok(());
    }
    log_has_room(ctx, 1, data.len())?;
    log_page_change(ctx, latched, Xid::INVALID, record::PRUNE, data)
}

/// Prunes a page that a reader found worth pruning, if its latch is free.
///
/// `hint` is the page's prune hint: if nothing can go yet, the page need not be visited. A new
/// horizon reads a line of every session, so it is computed only now and then. The reader already
/// has its rows. So whatever prevents pruning (a status that is not in memory, a log that has
/// stopped) is no error of the read.
pub fn prune_in_passing(
    ctx: &Ctx,
    heap: &HeapRelation,
    block: BlockNumber,
    hint: Xid,
    ring: Option<&Ring>,
) {
    if !hint.is_valid() {
        return;
    }
    let horizon = match ctx.heap().is_time_to_look() {
        true => ctx.txns().horizon(),
        false => ctx.txns().recent_horizon(),
    };
    if !is_ripe(ctx, hint, &horizon).unwrap_or(false) {
        return;
    }
    let pinned = ctx.buffers().pin_with(&heap.main, block, ctx.wait(), ring);
    let Ok(pinned) = pinned else { return };
    let Ok(mut latched) = pinned.try_into_exclusive() else { return };
    match prune_as_of(ctx, heap, &mut latched, &horizon) {
        Ok(_) | Err(EngineError::WouldBlock) => {}
        Err(error) => {
            tracing::debug!(page = %latched.page_id(), %error, "opportunistic pruning failed");
        }
    }
}
