//! Write-back: dirty pages reach the store, the log before them.
//!
//! A write has three parts (rule 7):
//!
//! 1. Under the shared latch, which keeps changes away, the page's DIRTY flag becomes WRITING and
//!    its bytes are copied out. Then the latch is given back, so a device never keeps a session
//!    waiting for a latch.
//! 2. The log is flushed up to the copy's LSN. The copy gets its checksum and goes to the store.
//! 3. WRITING ends. If anything failed, the page is DIRTY again, as if nothing had happened.
//!
//! The frame stays pinned throughout, so the page can't leave memory while the store has an old
//! version. A page has at most one write at a time, so an older copy never overtakes a newer one.
//!
//! A session that needs one frame writes one page and waits for it. A session with many pages to
//! write has several joined writes under way ([`crate::write_back::async_write`]).

use crate::core::frame::{CHECKPOINT, DAMAGED, DIRTY, Frame, OWNED, RawPin, WRITING};
use crate::core::session::{SessionCore, SharedLatch};
use crate::error::BufferError;
use crate::ids::{Lsn, PageId};
use crate::page::{PageBytes, page_lsn, set_checksum, with_scratch, words};
use crate::stats::Event;
use millpond_sync::mutant;

pub(crate) mod async_write;

/// How much effort to make to write a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Give up if the page is latched exclusively or being written.
    IfEasy,
    /// Wait for the latch and for a write.
    Surely,
}

/// Which pages a run consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOf {
    /// Pages that a checkpoint has marked: each must be written.
    Marked,
    /// Pages that the sweep would take if they were clean: each may be passed over.
    Victims,
}

/// The result of an attempt to begin a write.
pub(crate) enum Begun<'a> {
    /// The page has been copied out.
    Copied(Writing<'a>),
    /// There is nothing to write.
    Clean,
    /// The page is latched exclusively or being written.
    Busy,
}

/// A write that is under way. If it is dropped before [`Writing::succeed`], the page is as dirty as
/// before.
pub(crate) struct Writing<'a> {
    frame: &'a Frame,
    /// Given back after the write has ended.
    _pin: RawPin<'a>,
    number: u32,
    /// The flags that the copy has cleared.
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

    /// Notes that the store has the copy.
    pub(crate) fn succeed(mut self) {
        self.restore = 0;
    }

    /// Leaves the write to the thread that ends it ([`Writing::end`]). Returns the frame, and the
    /// flags to restore if the write fails.
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
/// `only` that page). Calls `copy` at most once, while no thread stores to the frame. `copy` copies
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
            // By now the frame may hold another page, and that one may be damaged.
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

/// Writes a page if it is dirty. `false`: it could not be done easily.
pub(crate) fn write_frame(
    session: &SessionCore,
    number: u32,
    how: Attempt,
) -> Result<bool, BufferError> {
    with_scratch(1, |scratch| {
        let bytes = &mut scratch[0].0;
        match copy_page_out(session, number, how, None, DIRTY, bytes)? {
            Begun::Clean => Ok(true),
            Begun::Busy => Ok(false),
            Begun::Copied(writing) => {
                session.pool.log_first(writing.lsn)?;
                set_checksum(writing.page, bytes);
                let page = writing.page;
                let write = || session.pool.store.write(page.rel_fork(), page.block(), &[bytes]);
                session.timed(Event::WriteTime, write)?;
                writing.succeed();
                session.count(Event::Write, 1);
                session.count(Event::WriteCall, 1);
                Ok(true)
            }
        }
    })
}

/// Copies a page out, if it has the flags that it `needs` to be written (and is `only` that
/// page).
fn copy_page_out<'a>(
    session: &'a SessionCore,
    number: u32,
    how: Attempt,
    only: Option<PageId>,
    needs: u64,
    to: &mut PageBytes,
) -> Result<Begun<'a>, BufferError> {
    let frame = &session.pool.frames[number as usize];
    begin_write((frame, number), how, only, needs, || {
        words::copy_out(session.pool.words(number), to);
        page_lsn(to)
    })
}

/// Copies out the pages at the beginning of a run. Fails if the first can't be written.
pub(crate) fn begin_run<'a>(
    session: &'a SessionCore,
    run: &[(PageId, u32)],
    of: RunOf,
    copies: &mut [&mut PageBytes],
) -> Result<Vec<Writing<'a>>, BufferError> {
    let needs = if of == RunOf::Marked { DIRTY | CHECKPOINT } else { DIRTY };
    let mut begun = Vec::with_capacity(run.len());
    for (&(page, number), to) in run.iter().zip(copies) {
        // Only the first may be waited for: at that time other sessions wait for nothing of
        // ours.
        let must = begun.is_empty() && of == RunOf::Marked;
        let how = if must { Attempt::Surely } else { Attempt::IfEasy };
        match copy_page_out(session, number, how, Some(page), needs, to) {
            Ok(Begun::Copied(writing)) => begun.push(writing),
            Err(error) if begun.is_empty() => return Err(error),
            // The run ends before this page, which is dealt with as the first of another run.
            Ok(Begun::Clean | Begun::Busy) | Err(_) => break,
        }
    }
    Ok(begun)
}

/// The number of pages at the beginning that follow each other in one file.
pub(crate) fn neighbours(pages: &[(PageId, u32)], limit: usize) -> usize {
    let follows = |pair: &[(PageId, u32)]| {
        pair[1].0.raw() == pair[0].0.raw() + 1 && pair[1].0.rel_fork() == pair[0].0.rel_fork()
    };
    let run = 1 + pages.windows(2).take_while(|pair| follows(pair)).count();
    run.min(limit.max(1))
}
