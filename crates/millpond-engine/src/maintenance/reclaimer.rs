//! Two background threads: one keeps clean frames free, one does the transactions' upkeep.

use std::sync::Arc;
use std::time::Duration;

use millpond_buffer::{BackendKind, Reclaimer};

use super::background::Signal;
use crate::ctx::{Ctx, Shared};
use crate::error::EngineResult;

/// How long the reclaimer rests after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// The time between two rounds of transaction upkeep.
const UPKEEP: Duration = Duration::from_millis(200);

fn context(shared: &Shared, kind: &'static str) -> Option<Ctx> {
    match Ctx::new(shared, kind) {
        Ok(ctx) => Some(ctx),
        Err(error) => {
            tracing::error!(kind, %error, "could not start a session for a background thread");
            None
        }
    }
}

/// Keeps clean frames free, so that sessions find them. Sleeps while no session needs any.
pub(crate) fn run(shared: Shared, signal: Arc<Signal>) {
    let Some(ctx) = context(&shared, "background writer") else { return };
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

/// Does the transactions' upkeep, which keeps room for new ids.
pub(crate) fn upkeep(shared: Shared, signal: Arc<Signal>) {
    let Some(ctx) = context(&shared, "transaction upkeep") else { return };
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
