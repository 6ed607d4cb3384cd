//! Clean frames ahead of demand, and the transactions' upkeep.

use std::sync::{Arc, Weak};
use std::time::Duration;

use millpond_buffer::{BackendKind, Reclaimer};

use super::background::Signal;
use crate::ctx::Ctx;
use crate::engine::Engine;
use crate::error::EngineResult;

/// How long the reclaimer rests after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
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

/// Keeps clean frames free, so that sessions find them. Sleeps while nobody needs any.
pub(super) fn run(engine: Weak<Engine>, signal: Arc<Signal>) {
    let Some(ctx) = context(&engine, "background writer") else { return };
    ctx.buffers().set_backend_kind(BackendKind::BackgroundWriter);
    let pool = Arc::clone(ctx.pool());
    signal.at_end(move || pool.wake_reclaimer());
    let mut reclaimer = Reclaimer::new(ctx.buffers());
    while !signal.is_ending() {
        reclaimer.wait(|| signal.is_ending());
        if signal.is_ending() || ctx.log().is_stopped().is_some() {
            return;
        }
        if let Err(error) = reclaimer.work() {
            tracing::debug!(%error, "no frames reclaimed");
            signal.sleep(AFTER_FAILURE);
        }
    }
}

/// Keeps room for new transactions.
pub(super) fn upkeep(engine: Weak<Engine>, signal: Arc<Signal>) {
    let Some(ctx) = context(&engine, "transaction upkeep") else { return };
    ctx.buffers().set_backend_kind(BackendKind::Other);
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
