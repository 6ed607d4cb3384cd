//! Clean frames ahead of demand, and the transactions' upkeep.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::background::Signal;
use crate::ctx::Ctx;
use crate::engine::Engine;
use crate::error::EngineResult;

/// How long the reclaimer rests when it has nothing to do, and when it has.
const IDLE: Duration = Duration::from_millis(200);
const BUSY: Duration = Duration::from_millis(10);
/// The part of the pool that is kept clean and free, and its bounds in pages.
const FREE_PART: usize = 64;
const MIN_FREE: usize = 16;
const MAX_FREE: usize = 4096;
/// How often transaction statuses are looked after.
const UPKEEP: Duration = Duration::from_millis(200);

fn context(engine: &Weak<Engine>, kind: &'static str) -> Option<Ctx> {
    let engine = engine.upgrade()?;
    match Ctx::new(engine.shared(), kind) {
        Ok(ctx) => Some(ctx),
        Err(error) => {
            tracing::error!(kind, %error, "no session for a background thread");
            None
        }
    }
}

/// Writes dirty pages that will soon be victims, so that sessions find clean frames.
pub(super) fn run(engine: Weak<Engine>, signal: Arc<Signal>) {
    let Some(ctx) = context(&engine, "background writer") else { return };
    let frames = ctx.pool().frames();
    let target = (frames / FREE_PART).clamp(MIN_FREE, MAX_FREE).min(frames / 2);
    let mut rest = IDLE;
    while signal.sleep(rest) {
        if ctx.log().is_stopped().is_some() {
            return;
        }
        rest = match ctx.pool().reclaim(ctx.buffers(), target) {
            Ok(0) => IDLE,
            Ok(_) => BUSY,
            Err(error) => {
                tracing::debug!(%error, "no frames reclaimed");
                IDLE
            }
        };
    }
}

/// Keeps room for new transactions.
pub(super) fn upkeep(engine: Weak<Engine>, signal: Arc<Signal>) {
    let Some(ctx) = context(&engine, "transaction upkeep") else { return };
    while signal.sleep(UPKEEP) {
        if ctx.log().is_stopped().is_some() {
            return;
        }
        let result: EngineResult<()> = ctx.txns().maintain(&ctx);
        if let Err(error) = result {
            tracing::warn!(%error, "transaction upkeep failed");
        }
    }
}
