//! Several joined writes under way at a time.
//!
//! Who writes many pages (a checkpoint, the reclaimer, a job with a ring) begins one joined write after the other and goes on
//! while the store carries them out. A write that has begun belongs to itself, as a load ahead does ([`crate::ahead`]): its
//! [`Copies`] own the right to write each page (WRITING and a raw pin) and a reference to the pool, the request owns the
//! bytes, and whoever finishes it gives all that back. So nobody ever waits for a writer that is idle or gone (rule 10).
//!
//! ```text
//! writer      copy out -> flush the log -> checksum -> start_write .... the next run .... finish
//! store                                                   write, finish
//! any thread                                                  WRITING ends (DIRTY again if it failed), unpin, wake
//! ```
//!
//! Invariants:
//!
//! - The log is flushed up to a copy's LSN before its write begins (rule 7).
//! - There is at most one write of a page at a time (WRITING), so the order in which the store ends writes does not matter.
//!   They begin in the order in which the writer comes with them.
//! - A writer has at most `PoolConfig::io_max_concurrency` writes under way, of at most an eighth of the pool's pages (but
//!   of one run): they are pinned.
//! - When [`Window::finish`] returns, or the window is dropped, all its writes have ended; a sync that begins then
//!   covers them.
//! - A writer that waits for its writes needs no latch for that, and they end without one, by themselves.
//!
//! **Failure.** A write that fails makes its pages as dirty as before; the others are not touched by that. The first
//! failure is kept for the writer, who begins no other if all must be written ([`Window::write`], [`Window::finish`]). One whose store panics on its way is a
//! failure, too. A last run with nothing under way is written by the writer itself, which saves two changes of threads.
//!
//! **Memory ordering.** What is shared is under a mutex. WRITING ends before the writer hears that a write has ended.

use crate::error::BufferError;
use crate::ids::PageId;
use crate::page::set_checksum;
use crate::pool::BufferPool;
use crate::session::BufferSession;
use crate::stats::Event;
use crate::store::{PageBuffer, PendingWrite, StoreError};
use crate::write::{RunOf, Writing, neighbours};
use millpond_sync::sync::{Condvar, Mutex};
use std::sync::Arc;

/// The part of the pool that one writer may have under way is one in so many.
const PART: usize = 8;

/// What became of a run, or its beginning.
pub(crate) struct RunBegun {
    /// How many of its pages have been dealt with: are being written, need not be, or can't be.
    pub(crate) pages: usize,
    pub(crate) result: Result<(), BufferError>,
}

/// One writer's writes.
pub(crate) struct Window<'s> {
    session: &'s BufferSession,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A write has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Writes under way, and their pages.
    writes: usize,
    pages: usize,
    /// Writes that have succeeded, and their pages, which the writer has not counted yet.
    succeeded: u64,
    pages_written: u64,
    failure: Option<StoreError>,
}

/// Pages that have been copied out and are on their way. Dropped before they have been written, they are as dirty as before.
struct Copies {
    pool: Arc<BufferPool>,
    /// Their frames, and the flags that copying has taken off.
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
    pub(crate) fn new(session: &'s BufferSession) -> Self {
        Self { session, shared: Arc::default() }
    }

    /// Begins to write the pages at the beginning of `run`, which follow each other in a file, once there is room for them.
    /// Says how many have been dealt with, at least one: a page that can't be written ends the run before it, or fails
    /// alone. `is_last`: the writer has no other.
    pub(crate) fn write(&self, run: &[(PageId, u32)], of: RunOf, is_last: bool) -> RunBegun {
        self.wait_for_room(run.len());
        // What must be written all is given up at the first failure.
        if of == RunOf::Marked
            && let Err(error) = self.failure()
        {
            return RunBegun { pages: 1, result: Err(error) };
        }
        let pool = &self.session.pool;
        let mut buffer = pool.buffers.take(run.len());
        let begun = self.session.begin_run(run, of, &mut buffer.pages_mut());
        let begun = match begun {
            Ok(begun) if !begun.is_empty() => begun,
            // A run of none: the first page was clean, or somebody's.
            other => {
                pool.buffers.keep(buffer);
                return RunBegun { pages: 1, result: other.map(|_| ()) };
            }
        };
        let pages = begun.len();
        buffer.set_len(pages);
        RunBegun { pages, result: self.send(begun, buffer, is_last) }
    }

    /// Sends copies on their way, the log first.
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
        // Whichever it is, the store may carry the write out here and now.
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

    /// Counts a write as under way. Also says whether it is the only one.
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

    /// Waits until what is under way is as `enough` says, and counts what has been written.
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

    /// The first failure of a write so far.
    fn failure(&self) -> Result<(), BufferError> {
        match &self.shared.state.lock().failure {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Waits until all writes have ended. Fails with the first failure.
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

impl BufferSession {
    /// Writes pages that are to leave, in file order, neighbours joined. What can't be written stays; why, is the answer.
    pub(crate) fn write_victims(&self, mut pages: Vec<(PageId, u32)>) -> Result<(), BufferError> {
        pages.sort_unstable();
        let window = Window::new(self);
        let (mut rest, mut failure) = (&pages[..], Ok(()));
        while !rest.is_empty() {
            let run = neighbours(rest, self.pool.config.max_write_run);
            let begun = window.write(&rest[..run], RunOf::Victims, run == rest.len());
            // After a failure the others are tried all the same: they may be another file's.
            failure = failure.and(begun.result);
            rest = &rest[begun.pages..];
        }
        window.finish().and(failure)
    }
}
