//! Write-back: dirty pages reach the store, the log before them.
//!
//! A write has three parts (rule 7):
//!
//! 1. Under the shared latch, which keeps changes away, the page's DIRTY flag becomes WRITING and its
//!    bytes are copied out. The latch is given back: nobody waits for a device on account of a latch.
//! 2. The log is flushed up to the copy's LSN; the copy gets its checksum and goes to the store.
//! 3. WRITING ends. If anything failed the page is DIRTY again, as if nothing had happened.
//!
//! The frame stays pinned throughout, so that it can't leave memory while the store has an old version.
//! There is at most one write of a page at a time, so that an older copy never overtakes a newer one.
//!
//! Who needs one frame writes one page and waits for it; who has many to write has several joined writes under way
//! ([`crate::behind`]).
//!
//! **Checkpoints** ([`BufferPool::write_dirty`]) first mark every page that is dirty or being written,
//! then write the marked ones in file order, neighbours joined. Whoever copies a marked page out removes
//! the mark, so a page that was dirty at the call is written once, by the checkpoint or by another. A page
//! whose write was under way at the call is waited for: if it failed, the page is dirty again.

use crate::behind::Window;
use crate::error::BufferError;
use crate::frame::{CHECKPOINT, DAMAGED, DIRTY, Frame, OWNED, RawPin, WRITING};
use crate::ids::{Lsn, PageId};
use crate::page::{PageBytes, page_lsn, set_checksum};
use crate::pool::BufferPool;
use crate::scratch::with_scratch;
use crate::session::{BufferSession, SharedLatch};
use crate::stats::Event;
use crate::words;
use millpond_sync::mutant;

/// How far to go to write a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Not if somebody has it latched exclusively, or is writing it.
    IfEasy,
    /// Wait for both.
    Surely,
}

/// Which pages a run consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOf {
    /// Those that a checkpoint has marked: each must be written.
    Marked,
    /// Those that the sweep would take if they were clean: each may be passed over.
    Victims,
}

/// How far a [`BufferPool::write_dirty`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteProgress {
    /// Pages that were dirty at the call.
    pub total: usize,
    /// How many of them have been dealt with, or are being written.
    pub done: usize,
}

/// What became of an attempt to begin a write.
pub(crate) enum Begun<'a> {
    /// The page has been copied out.
    Copied(Writing<'a>),
    /// There is nothing to write.
    Clean,
    /// Somebody has it.
    Busy,
}

/// A write that is under way. Dropped before [`Writing::succeed`], the page is as dirty as before.
pub(crate) struct Writing<'a> {
    frame: &'a Frame,
    /// Given back after the write has ended.
    _pin: RawPin<'a>,
    number: u32,
    /// The flags that the copy has taken off.
    restore: u64,
    page: PageId,
    lsn: Lsn,
}

impl Writing<'_> {
    pub(crate) fn page(&self) -> PageId {
        self.page
    }

    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The store has the copy.
    pub(crate) fn succeed(mut self) {
        self.restore = 0;
    }

    /// Leaves the write to whoever ends it ([`Writing::end`]): the frame, and the flags to restore if it fails.
    pub(crate) fn hand_over(self) -> (u32, u64) {
        let handed = (self.number, self.restore);
        std::mem::forget(self);
        handed
    }

    /// Ends a write that was handed over.
    pub(crate) fn end(frame: &Frame, restore: u64) {
        let _pin = RawPin::resume(frame);
        frame.end_write(restore);
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.frame.end_write(self.restore);
    }
}

/// Begins to write the page in a frame, if it has the flags that it `needs` to be written (and is
/// `only` that page). `copy` is called once at most, while nobody stores to the frame: it copies
/// the page out and returns its LSN.
pub(crate) fn begin_write<'a>(
    (frame, number): (&'a Frame, u32),
    how: Attempt,
    only: Option<PageId>,
    needs: u64,
    mut copy: impl FnMut() -> Lsn,
) -> Result<Begun<'a>, BufferError> {
    let in_the_way = match mutant!("pool-two-writes-of-a-page") {
        true => DAMAGED | OWNED,
        false => WRITING | DAMAGED | OWNED,
    };
    let is_wanted = |page: &PageId| only.is_none_or(|only| only == *page);
    loop {
        let Ok(pin) = frame.pin_any() else {
            // It may be another page by now that is damaged.
            return match frame.page().filter(is_wanted) {
                Some(page) if frame.state() & DAMAGED != 0 && frame.holds(page) => {
                    Err(BufferError::Damaged { page })
                }
                _ => Ok(Begun::Clean),
            };
        };
        let Some(page) = frame.page().filter(is_wanted) else {
            return Ok(Begun::Clean);
        };
        let latch = match how {
            Attempt::IfEasy => match SharedLatch::try_take(frame.latch()) {
                Some(latch) => latch,
                None => return Ok(Begun::Busy),
            },
            Attempt::Surely => SharedLatch::take(frame.latch()),
        };
        let begun = frame.update(|state| {
            let ready = state & in_the_way == 0 && state & needs == needs;
            ready.then_some(state & !(DIRTY | CHECKPOINT) | WRITING)
        });
        match begun {
            Ok(before) => {
                let restore = before & (DIRTY | CHECKPOINT);
                let lsn = Lsn::ZERO;
                let mut writing = Writing { frame, _pin: pin, number, restore, page, lsn };
                writing.lsn = copy();
                return Ok(Begun::Copied(writing));
            }
            Err(state) if state & WRITING != 0 => {
                drop(latch);
                if how == Attempt::IfEasy {
                    return Ok(Begun::Busy);
                }
                frame.wait_for_write();
            }
            Err(state) if state & DAMAGED != 0 => return Err(BufferError::Damaged { page }),
            Err(_) => return Ok(Begun::Clean),
        }
    }
}

impl BufferSession {
    /// Writes a page if it is dirty. `false`: it could not be done easily.
    pub(crate) fn write_frame(&self, number: u32, how: Attempt) -> Result<bool, BufferError> {
        with_scratch(1, |scratch| {
            let bytes = &mut scratch[0].0;
            match self.begin_write(number, how, None, DIRTY, bytes)? {
                Begun::Clean => Ok(true),
                Begun::Busy => Ok(false),
                Begun::Copied(writing) => {
                    self.pool.log_first(writing.lsn)?;
                    set_checksum(writing.page, bytes);
                    let page = writing.page;
                    let write = || self.pool.store.write(page.rel_fork(), page.block(), &[bytes]);
                    self.timed(Event::WriteTime, write)?;
                    writing.succeed();
                    self.count(Event::Write, 1);
                    self.count(Event::WriteCall, 1);
                    Ok(true)
                }
            }
        })
    }

    /// Copies a page out, if it has the flags that it `needs` to be written (and is `only` that page).
    fn begin_write(
        &self,
        number: u32,
        how: Attempt,
        only: Option<PageId>,
        needs: u64,
        to: &mut PageBytes,
    ) -> Result<Begun<'_>, BufferError> {
        let frame = &self.pool.frames[number as usize];
        begin_write((frame, number), how, only, needs, || {
            words::copy_out(self.pool.words(number), to);
            page_lsn(to)
        })
    }

    /// Copies out the pages at the beginning of a run. Fails if the first can't be written.
    pub(crate) fn begin_run(
        &self,
        run: &[(PageId, u32)],
        of: RunOf,
        copies: &mut [&mut PageBytes],
    ) -> Result<Vec<Writing<'_>>, BufferError> {
        let needs = if of == RunOf::Marked { DIRTY | CHECKPOINT } else { DIRTY };
        let mut begun = Vec::with_capacity(run.len());
        for (&(page, number), to) in run.iter().zip(copies) {
            // Only the first may be waited for: then nothing of ours is waited for by others.
            let must = begun.is_empty() && of == RunOf::Marked;
            let how = if must { Attempt::Surely } else { Attempt::IfEasy };
            match self.begin_write(number, how, Some(page), needs, to) {
                Ok(Begun::Copied(writing)) => begun.push(writing),
                Err(error) if begun.is_empty() => return Err(error),
                // The run ends before it; it is dealt with as the first of another.
                Ok(Begun::Clean | Begun::Busy) | Err(_) => break,
            }
        }
        Ok(begun)
    }
}

impl BufferPool {
    /// Nothing reaches the store before its log. A page without an LSN needs none; but once the log has
    /// stopped, no page is written any more.
    pub(crate) fn log_first(&self, lsn: Lsn) -> Result<(), BufferError> {
        Ok(self.log.flush_to(lsn)?)
    }

    /// Writes every page that is dirty at the call, once, begun in file order with neighbours joined, several writes at
    /// a time; for a checkpoint. Returns how many there were. `pace` is called after each write has begun and may take
    /// its time.
    ///
    /// When it returns no write is under way. The session must hold no exclusive latch: it would wait for itself for ever (in
    /// debug builds, panics). After an error the remaining pages are
    /// dirty as before; the call can be repeated.
    pub fn write_dirty(
        &self,
        session: &BufferSession,
        mut pace: impl FnMut(WriteProgress),
    ) -> Result<usize, BufferError> {
        self.check_session(session)?;
        session.must_not_wait_for_itself();
        let _alone = self.writing_all.lock();
        let mut dirty = self.mark_for_checkpoint();
        dirty.sort_unstable();
        let total = dirty.len();
        let window = Window::new(session);
        let mut rest = &dirty[..];
        while !rest.is_empty() {
            let run = neighbours(rest, self.config.max_write_run);
            let begun = window.write(&rest[..run], RunOf::Marked, run == rest.len());
            begun.result?;
            rest = &rest[begun.pages..];
            pace(WriteProgress { total, done: total - rest.len() });
        }
        window.finish()?;
        Ok(total)
    }

    /// Marks the pages that a checkpoint must write, and lists them.
    fn mark_for_checkpoint(&self) -> Vec<(PageId, u32)> {
        let mut dirty = Vec::new();
        for (number, frame) in self.frames.iter().enumerate().take(self.size.occupied()) {
            let marked = frame.update(|state| {
                let must = state & (DIRTY | WRITING) != 0 && state & OWNED == 0;
                must.then_some(state | CHECKPOINT)
            });
            // A frame that has got another page meanwhile has lost the mark, and is passed over.
            if marked.is_ok()
                && let Some(page) = frame.page()
            {
                dirty.push((page, number as u32));
            }
        }
        dirty
    }
}

/// How many pages at the beginning follow each other in one file.
pub(crate) fn neighbours(pages: &[(PageId, u32)], limit: usize) -> usize {
    let follows = |pair: &[(PageId, u32)]| {
        pair[1].0.raw() == pair[0].0.raw() + 1 && pair[1].0.rel_fork() == pair[0].0.rel_fork()
    };
    let run = 1 + pages.windows(2).take_while(|pair| follows(pair)).count();
    run.min(limit.max(1))
}
