//! Checkpoints: every page that is dirty at the call reaches the store, once.
//!
//! A checkpoint ([`write_dirty`]) first marks every page that is dirty or being
//! written. Then it writes the marked pages in file order, neighbours joined. The session that
//! copies a marked page out removes the mark. So a page that was dirty at the call is written once,
//! by the checkpoint or by another session. The checkpoint waits for a page whose write was under
//! way at the call: if that write failed, the page is dirty again.

use super::async_write::Window;
use super::write::{RunOf, neighbours};
use crate::core::frame::{CHECKPOINT, DIRTY, OWNED, WRITING};
use crate::core::pool::PoolCore;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::PageId;

/// The progress of a [`BufferPool::write_dirty`](crate::BufferPool::write_dirty).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteProgress {
    /// Pages that were dirty at the call.
    pub total: usize,
    /// The number of them that have been dealt with, or are being written.
    pub done: usize,
}

/// Writes every page that is dirty at the call, and returns their number.
pub(crate) fn write_dirty(
    session: &SessionCore,
    mut pace: impl FnMut(WriteProgress),
) -> Result<usize, BufferError> {
    session.latched.must_not_wait_for_itself();
    let pool = &*session.pool;
    let _alone = pool.writing_all.lock();
    let mut dirty = mark_for_checkpoint(pool);
    dirty.sort_unstable();
    let total = dirty.len();
    let window = Window::new(session);
    let mut rest = &dirty[..];
    while !rest.is_empty() {
        let run = neighbours(rest, pool.config.max_write_run);
        let begun = window.write(&rest[..run], RunOf::Marked, run == rest.len());
        begun.result?;
        rest = &rest[begun.pages..];
        pace(WriteProgress { total, done: total - rest.len() });
    }
    window.finish()?;
    Ok(total)
}

/// Marks the pages that a checkpoint must write, and lists them.
fn mark_for_checkpoint(pool: &PoolCore) -> Vec<(PageId, u32)> {
    let mut dirty = Vec::new();
    for (number, frame) in pool.frames.iter().enumerate().take(pool.size.occupied()) {
        let marked = frame.update(|state| {
            let must = state & (DIRTY | WRITING) != 0 && state & OWNED == 0;
            must.then_some(state | CHECKPOINT)
        });
        // A frame that got another page meanwhile has lost the mark, and is passed over.
        if marked.is_ok()
            && let Some(page) = frame.page()
        {
            dirty.push((page, number as u32));
        }
    }
    dirty
}
