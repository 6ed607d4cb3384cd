//! A pool of contexts for the worker threads of parallel scans ([`CtxPool`]).
//!
//! Making a context costs memory and a line in the table of sessions, so the pool keeps a few idle
//! ones. The number of contexts, idle or in use, is limited, because clients need lines, too. At
//! the limit, [`CtxPool::take`] fails at once.

use std::ops::Deref;
use std::sync::Arc;

use millpond_sync::sync::Mutex;

use crate::ctx::{Ctx, Shared};
use crate::error::{EngineError, EngineResult};

/// Contexts for workers. Their number is limited, so that each client still finds a line.
pub(super) struct CtxPool {
    state: Arc<Mutex<State>>,
    limit: usize,
}

struct State {
    idle: Vec<Ctx>,
    /// The number of contexts, idle or in use.
    made: usize,
    keep: usize,
}

impl CtxPool {
    /// At most `limit` contexts at a time, of which up to `keep` are kept when idle.
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
                    what: "too many parallel scans at a time; raise \"max_parallel_workers\" or try again later",
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

/// A context that returns to its pool when it is dropped.
pub(crate) struct PooledCtx {
    ctx: Option<Ctx>,
    home: Arc<Mutex<State>>,
}

impl Deref for PooledCtx {
    type Target = Ctx;

    fn deref(&self) -> &Ctx {
        match &self.ctx {
            Some(ctx) => ctx,
            // Only `drop` takes it out.
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
        // The line must be free before the count allows another context in its place.
        drop(ctx);
        self.home.lock().made -= 1;
    }
}
