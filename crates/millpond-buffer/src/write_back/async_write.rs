//! Write-behind: several combined writes in progress at a time.
//!
//! A job that writes many pages (a checkpoint, the reclaimer, a job with a ring) begins one
//! combined write after another. It goes on while the store carries them out. A write that has
//! begun belongs to itself, as a read-ahead load does ([`crate::read::read_ahead`]). Its [`Copies`]
//! own the right to write each page (WRITING and a raw pin) and a reference to the pool; the
//! request owns the bytes. The thread that finishes the write gives all that back. So no session
//! ever waits for a writer that is idle or gone (rule 10).
//!
//! ```text
//! writer      copy out -> flush the log -> checksum -> start_write .... the next run .... finish
//! store                                                   write, finish
//! any thread                             WRITING ends (DIRTY again if it failed), unpin, wake
//! ```
//!
//! Invariants:
//!
//! - The log is flushed up to a copy's LSN before its write begins (rule 7).
//! - A page has at most one write at a time (WRITING), so the order in which the store ends writes
//!   does not matter. Writes begin in the order in which the writer asks for them.
//! - A writer has at most `PoolConfig::io_max_concurrency` writes in progress. Their pages, which
//!   are pinned, are at most an eighth of the pool, or a single run if that is more.
//! - When [`Window::finish`] returns, or the window is dropped, all its writes have ended. A sync
//!   that begins then covers them.
//! - A writer needs no latch to wait for its writes. They end by themselves, without a latch.
//!
//! **Failure.** A write that fails makes its pages as dirty as before, and does not affect other
//! pages. The window keeps the first failure for the writer. If all pages must be written, the
//! writer then begins no other write ([`Window::write`], [`Window::finish`]). A panic of the store
//! during a write counts as a failure. If nothing is in progress, the writer carries out the last
//! run itself, which saves two thread switches.
//!
//! **Memory ordering.** Shared state is under a mutex. WRITING ends before the writer learns that a
//! write has ended.
//!
//! **Checkpoints.** Every page that is dirty at the call reaches the store, once. A checkpoint
//! ([`write_dirty`]) first marks every page that is dirty or being written. Then it writes the
//! marked pages in file order, neighbours joined. The session that copies a marked page out removes
//! the mark. So a page that was dirty at the call is written once, by the checkpoint or by another
//! session. The checkpoint waits for a page whose write was under way at the call: if that write
//! failed, the page is dirty again.

use super::{RunOf, Writing, begin_run, neighbours};
use crate::core::PoolCore;
use crate::core::frame::{CHECKPOINT, DIRTY, OWNED, WRITING};
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::ids::PageId;
use crate::page::set_checksum;
use crate::stats::Event;
use crate::store::{PageBuffer, PendingWrite, StoreError};
use millpond_sync::sync::{Condvar, Mutex};
use std::sync::Arc;

/// One writer may have this fraction of the pool in progress: one page in `PART`.
const PART: usize = 8;

/// How the beginning of a run was dealt with.
pub(crate) struct RunBegun {
    /// The number of its pages that have been dealt with: they are being written, or need not be,
    /// or can't be.
    pub(crate) pages: usize,
    pub(crate) result: Result<(), BufferError>,
}

/// One writer's writes.
pub(crate) struct Window<'s> {
    session: &'s SessionCore,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Writes in progress, and their pages.
    writes: usize,
    pages: usize,
    /// Writes that have succeeded, and their pages, as far as the writer has not counted them yet.
    succeeded: u64,
    pages_written: u64,
    failure: Option<StoreError>,
}

/// Pages that have been copied out and are being written. If this is dropped before they have been
/// written, they are as dirty as before.
struct Copies {
    pool: Arc<PoolCore>,
    /// Their frames, each with the flags that copying has cleared.
    frames: Vec<(u32, u64)>,
    result: Result<(), StoreError>,
    shared: Arc<Shared>,
}

impl Copies {
    fn finish(mut self, buffer: PageBuffer, result: Result<(), StoreError>) {
        self.pool.buffers.keep(buffer);
        if result.is_ok() {
            self.frames.iter_mut().for_each(|(_, restore)| *restore = 0);
        }
        self.result = result;
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for &(number, restore) in &self.frames {
            Writing::end(&self.pool.frames[number as usize], restore);
        }
        let mut state = self.shared.state.lock();
        state.writes -= 1;
        state.pages -= self.frames.len();
        match std::mem::replace(&mut self.result, Ok(())) {
            Ok(()) => {
                state.succeeded += 1;
                state.pages_written += self.frames.len() as u64;
            }
            Err(error) => {
                state.failure.get_or_insert(error);
            }
        }
        drop(state);
        self.shared.ended.notify_all();
    }
}

impl<'s> Window<'s> {
    pub(crate) fn new(session: &'s SessionCore) -> Self {
        Self { session, shared: Arc::default() }
    }

    /// Begins to write the pages at the beginning of `run`, which are neighbours in a file, once
    /// there is room for them. At least one page is dealt with. A page that can't be written ends
    /// the run before it; if it comes first, it alone fails. `is_last`: the writer has no further
    /// run.
    pub(crate) fn write(&self, run: &[(PageId, u32)], of: RunOf, is_last: bool) -> RunBegun {
        self.wait_for_room(run.len());
        // A writer that must write all its pages gives up at the first failure.
        if of == RunOf::Marked
            && let Err(error) = self.failure()
        {
            return RunBegun { pages: 1, result: Err(error) };
        }
        let pool = &self.session.pool;
        let mut buffer = pool.buffers.take(run.len());
        let begun = begin_run(self.session, run, of, &mut buffer.pages_mut());
        let begun = match begun {
            Ok(begun) if !begun.is_empty() => begun,
            // An empty run: the first page was clean, or another thread is using it.
            other => {
                pool.buffers.keep(buffer);
                return RunBegun { pages: 1, result: other.map(|_| ()) };
            }
        };
        let pages = begun.len();
        buffer.set_len(pages);
        RunBegun { pages, result: self.send(begun, buffer, is_last) }
    }

    /// Flushes the log, then begins to write the copies.
    fn send(
        &self,
        begun: Vec<Writing<'_>>,
        mut buffer: PageBuffer,
        is_last: bool,
    ) -> Result<(), BufferError> {
        let Some(first) = begun.first().map(Writing::page) else { return Ok(()) };
        let pool = &self.session.pool;
        pool.log_first(begun.iter().map(Writing::lsn).max().unwrap_or_default())?;
        for (writing, page) in begun.iter().zip(buffer.pages_mut()) {
            set_checksum(writing.page(), page);
        }
        let (copies, alone) = self.enter(begun);
        let done = move |buffer, result| copies.finish(buffer, result);
        let write = PendingWrite::new(first.rel_fork(), first.block(), buffer, done);
        // In either branch the store may carry the write out on this thread.
        self.session.timed(Event::WriteTime, || {
            if alone && is_last {
                let result = pool.store.write(write.rel(), write.first(), &write.pages());
                write.finish(result);
            } else {
                pool.store.start_write(write);
            }
        });
        Ok(())
    }

    /// Counts a write as in progress. Also says whether it is the only one.
    fn enter(&self, begun: Vec<Writing<'_>>) -> (Copies, bool) {
        let alone = {
            let mut state = self.shared.state.lock();
            state.writes += 1;
            state.pages += begun.len();
            state.writes == 1
        };
        let given_up = StoreError::io("write", std::io::Error::other("it was given up"));
        let copies = Copies {
            pool: Arc::clone(&self.session.pool),
            frames: begun.into_iter().map(Writing::hand_over).collect(),
            result: Err(given_up),
            shared: Arc::clone(&self.shared),
        };
        (copies, alone)
    }

    fn wait_for_room(&self, pages: usize) {
        let pool = &self.session.pool;
        let most = (pool.frames() / PART).max(pool.config.max_write_run);
        let writes = pool.config.io_max_concurrency;
        self.wait_until(|state| {
            state.writes == 0 || state.writes < writes && state.pages + pages <= most
        });
    }

    /// Waits until `enough` accepts the writes in progress, and counts what has been written.
    fn wait_until(&self, enough: impl Fn(&State) -> bool) {
        let mut state = self.shared.state.lock();
        if !enough(&state) {
            state = self.session.timed(Event::WriteTime, || {
                while !enough(&state) {
                    state = self.shared.ended.wait(state);
                }
                state
            });
        }
        let calls = std::mem::take(&mut state.succeeded);
        let pages = std::mem::take(&mut state.pages_written);
        drop(state);
        if calls > 0 {
            self.session.count(Event::WriteCall, calls);
            self.session.count(Event::Write, pages);
        }
    }

    fn failure(&self) -> Result<(), BufferError> {
        match &self.shared.state.lock().failure {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Waits until all writes have ended. Returns the first failure.
    pub(crate) fn finish(self) -> Result<(), BufferError> {
        self.wait_until(|state| state.writes == 0);
        self.failure()
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.wait_until(|state| state.writes == 0);
    }
}

/// Writes pages that are to be evicted, in file order, neighbours combined. Pages that can't be
/// written stay in memory, and the first failure is returned.
pub(crate) fn write_victims(
    session: &SessionCore,
    mut pages: Vec<(PageId, u32)>,
) -> Result<(), BufferError> {
    pages.sort_unstable();
    let window = Window::new(session);
    let (mut rest, mut failure) = (&pages[..], Ok(()));
    while !rest.is_empty() {
        let run = neighbours(rest, session.pool.config.max_write_run);
        let begun = window.write(&rest[..run], RunOf::Victims, run == rest.len());
        // After a failure the other runs are still tried: they may be in another file.
        failure = failure.and(begun.result);
        rest = &rest[begun.pages..];
    }
    window.finish().and(failure)
}

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
