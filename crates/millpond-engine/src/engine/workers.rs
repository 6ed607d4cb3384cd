//! Contexts of threads that work for sessions, kept for the next one: making one costs memory and a line in
//! the table of sessions.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ctx::{Ctx, Shared};
use crate::error::EngineResult;

/// Idle contexts.
#[derive(Default)]
pub(super) struct CtxPool {
    idle: Arc<Mutex<Vec<Ctx>>>,
}

impl CtxPool {
    pub(super) fn take(&self, shared: &Shared) -> EngineResult<PooledCtx> {
        let idle = self.idle.lock().pop();
        let ctx = match idle {
            Some(ctx) => ctx,
            None => Ctx::new(shared, "parallel worker")?,
        };
        Ok(PooledCtx { ctx: Some(ctx), home: Arc::clone(&self.idle) })
    }
}

/// A context that goes back to its pool.
pub(crate) struct PooledCtx {
    ctx: Option<Ctx>,
    home: Arc<Mutex<Vec<Ctx>>>,
}

impl Deref for PooledCtx {
    type Target = Ctx;

    fn deref(&self) -> &Ctx {
        match &self.ctx {
            Some(ctx) => ctx,
            // It is taken out only by drop.
            None => unreachable!("a pooled context is used after its end"),
        }
    }
}

impl Drop for PooledCtx {
    fn drop(&mut self) {
        if let Some(ctx) = self.ctx.take() {
            self.home.lock().push(ctx);
        }
    }
}
