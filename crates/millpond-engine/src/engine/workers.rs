//! Contexts of threads that work for sessions, kept for the next one: making one costs memory and a line in
//! the table of sessions.

use std::ops::Deref;
use std::sync::Arc;

use millpond_sync::sync::Mutex;

use crate::ctx::{Ctx, Shared};
use crate::error::{EngineError, EngineResult};

/// Contexts for workers. No more at a time than leave every client its line, and a few idle ones.
pub(super) struct CtxPool {
    state: Arc<Mutex<State>>,
    limit: usize,
}

struct State {
    idle: Vec<Ctx>,
    /// Idle or in use.
    made: usize,
    /// How many idle ones are kept.
    keep: usize,
}

impl CtxPool {
    /// At most `limit` at a time, of which `keep` stay when they are idle.
    pub(super) fn new(limit: usize, keep: usize) -> Self {
        let state = State { idle: Vec::new(), made: 0, keep };
        Self { state: Arc::new(Mutex::new(state)), limit: limit.max(1) }
    }

    pub(super) fn take(&self, shared: &Shared) -> EngineResult<PooledCtx> {
        let mut state = self.state.lock();
        let idle = state.idle.pop();
        if idle.is_none() {
            if state.made >= self.limit {
                return Err(EngineError::LimitExceeded {
                    what: "too many parallel scans at a time",
                });
            }
            state.made += 1;
        }
        drop(state);
        let ctx = match idle {
            Some(ctx) => ctx,
            None => {
                Ctx::new(shared, "parallel worker").inspect_err(|_| self.state.lock().made -= 1)?
            }
        };
        Ok(PooledCtx { ctx: Some(ctx), home: Arc::clone(&self.state) })
    }
}

/// A context that goes back to its pool.
pub(crate) struct PooledCtx {
    ctx: Option<Ctx>,
    home: Arc<Mutex<State>>,
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
        let Some(ctx) = self.ctx.take() else { return };
        let mut state = self.home.lock();
        if state.idle.len() < state.keep {
            state.idle.push(ctx);
            return;
        }
        drop(state);
        // Its line is free before another may be made in its place.
        drop(ctx);
        self.home.lock().made -= 1;
    }
}
