//! How a thread carries out reads and writes: at once for its caller ([`Pages`]), or as a [`Job`].
//!
//! A read at once goes into pages of the caller's own or straight into frames. A job is a read or
//! write with its files, which any thread may carry out and end.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_sync::fill::IoTarget;
use smallvec::SmallVec;

use super::FileStore;
use super::changes::Unsynced;
use super::fork::{FileError, ForkFiles};
use super::segment::{Attempt, Segment, is_aligned};
use crate::PAGE_SIZE;
use crate::ids::{BlockNumber, RelFork};
#[cfg(not(any(miri, copying)))]
use crate::page::words::{self, PageWords};
use crate::store::{PageBuffer, StoreError, Transfer, Way};
use crate::threads::catch_panic;

/// The destination of the pages of a read.
pub(super) enum Pages<'p, 'a> {
    Exclusive(&'p mut [&'a mut [u8; PAGE_SIZE]]),
    /// Other threads may look at them meanwhile.
    #[cfg(not(any(miri, copying)))]
    Shared(&'p [&'a PageWords]),
}

impl<'a> Pages<'_, 'a> {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Exclusive(pages) => pages.len(),
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => pages.len(),
        }
    }

    pub(super) fn part(&mut self, range: Range<usize>) -> Pages<'_, 'a> {
        match self {
            Self::Exclusive(pages) => Pages::Exclusive(&mut pages[range]),
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => Pages::Shared(&pages[range]),
        }
    }

    /// Reads all of them, from block `first` of a file on. `wait` says whether it may wait for the
    /// device.
    pub(super) fn read_from(
        mut self,
        segment: &Segment,
        first: u32,
        wait: bool,
    ) -> io::Result<Attempt> {
        let Some(file) = segment.descriptor() else {
            return if wait { self.read_copied(segment, first) } else { Ok(Attempt::WouldWait) };
        };
        let mut targets = self.targets();
        if wait {
            segment.read(file, first, &mut targets)
        } else {
            segment.try_read(file, first, &mut targets)
        }
    }

    /// Reads from a file without a descriptor, which only fills memory that no other thread looks
    /// at.
    fn read_copied(self, segment: &Segment, first: u32) -> io::Result<Attempt> {
        match self {
            Self::Exclusive(pages) => segment.read_pages(first, pages),
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => {
                let mut buffer = PageBuffer::new(pages.len());
                let attempt = segment.read_pages(first, &mut buffer.pages_mut())?;
                if attempt == Attempt::Done {
                    Pages::Shared(pages).copy_from(&buffer);
                }
                Ok(attempt)
            }
        }
    }

    fn targets(&mut self) -> SmallVec<[IoTarget<'_>; 2]> {
        match self {
            Self::Exclusive(pages) => {
                pages.iter_mut().map(|page| IoTarget::exclusive(&mut page[..])).collect()
            }
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => pages.iter().map(|words| IoTarget::shared(&words[..])).collect(),
        }
    }

    /// Whether all are aligned for direct I/O, as the frames of a pool are.
    fn are_aligned(&mut self) -> bool {
        self.targets().iter().all(|target| is_aligned(target.start()))
    }

    fn copy_from(self, buffer: &PageBuffer) {
        match self {
            Self::Exclusive(pages) => {
                pages
                    .iter_mut()
                    .zip(buffer.pages())
                    .for_each(|(to, page)| to.copy_from_slice(page));
            }
            #[cfg(not(any(miri, copying)))]
            Self::Shared(pages) => {
                pages.iter().zip(buffer.pages()).for_each(|(to, page)| words::copy_in(to, page));
            }
        }
    }
}

/// Reads a run of pages; `End` if the run goes beyond the end of the fork.
fn read_run(
    fork: &ForkFiles,
    first: u32,
    pages: &mut Pages<'_, '_>,
    wait: bool,
) -> Result<Attempt, FileError> {
    for (index, within, start, length) in fork.pieces(first, pages.count()) {
        let Some((segment, _)) = fork.segment(index, false)? else { return Ok(Attempt::End) };
        match pages.part(start..start + length).read_from(segment, within, wait) {
            Ok(Attempt::Done) => {}
            Ok(other) => return Ok(other),
            Err(source) => return Err(FileError::new("read", segment.path(), source)),
        }
    }
    Ok(Attempt::Done)
}

impl FileStore {
    pub(super) fn read_into(
        &self,
        rel: RelFork,
        first: BlockNumber,
        mut pages: Pages<'_, '_>,
    ) -> Result<(), StoreError> {
        if self.folder.direct && !pages.are_aligned() {
            let mut buffer = PageBuffer::new(pages.count());
            self.read_into(rel, first, Pages::Exclusive(&mut buffer.pages_mut()))?;
            pages.copy_from(&buffer);
            return Ok(());
        }
        let what = || format!("read block {first} of {rel}");
        match self.with_fork(rel, what, |fork| read_run(fork, first.0, &mut pages, true))? {
            Attempt::Done => Ok(()),
            _ => Err(self.beyond_end(rel, first, pages.count())),
        }
    }

    /// Reads blocks from `first` if no device has to be waited for; otherwise returns `false`.
    pub(super) fn try_read_into(
        &self,
        rel: RelFork,
        first: BlockNumber,
        mut pages: Pages<'_, '_>,
    ) -> Result<bool, StoreError> {
        if !self.nowait.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let what = || format!("read block {first} of {rel}");
        match self.with_fork(rel, what, |fork| read_run(fork, first.0, &mut pages, false))? {
            Attempt::Done => Ok(true),
            Attempt::WouldWait => Ok(false),
            Attempt::Unsupported => {
                self.nowait.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Attempt::End => Err(self.beyond_end(rel, first, pages.count())),
        }
    }
}

/// A part of a transfer: pages that follow each other in one file.
pub(super) struct Piece {
    pub(super) segment: Arc<Segment>,
    /// The first page in the file.
    pub(super) within: u32,
    /// The number of pages.
    pub(super) length: usize,
}

/// The parts of a transfer, mostly one.
pub(super) type Pieces = SmallVec<[Piece; 1]>;

/// A transfer with the files that it reads or writes.
pub(super) struct Job {
    pub(super) transfer: Transfer,
    pub(super) pieces: Pieces,
    /// Notes the files of a write as unsynced.
    pub(super) unsynced: Option<Arc<Unsynced>>,
}

impl Job {
    /// Where to go on after `done` bytes: the file, the offset in it, and the number of bytes left
    /// there.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(super) fn rest(&self, done: usize) -> Option<(&Arc<Segment>, u64, usize)> {
        let mut before = 0;
        for piece in &self.pieces {
            let bytes = piece.length * PAGE_SIZE;
            if done < before + bytes {
                let into = done - before;
                let offset = u64::from(piece.within) * PAGE_SIZE as u64 + into as u64;
                return Some((&piece.segment, offset, bytes - into));
            }
            before += bytes;
        }
        None
    }

    /// Ends the turn: the kernel is done with the job, and the next may begin. Catches a panic on
    /// the way.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(super) fn end_turn(&mut self) {
        catch_panic("the beginning of a read in the background", || self.transfer.end_turn());
    }

    /// Finishes the job. Catches a panic of the requester's callback.
    pub(super) fn finish(self, result: io::Result<()>) {
        catch_panic("the end of a read or write in the background", || {
            self.note_files();
            let Self { transfer, .. } = self;
            let result = result.map_err(|error| StoreError::io(transfer.what(), error));
            transfer.finish(result);
        });
    }

    fn note_files(&self) {
        if let Some(unsynced) = &self.unsynced {
            self.pieces.iter().for_each(|piece| unsynced.add(&piece.segment));
        }
    }

    /// Leaves the job's memory and files to the kernel, which may never be done with them. They are
    /// never freed, however the job ends.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(super) fn leave_memory(&mut self) {
        self.transfer.leave_memory();
        self.pieces.iter().for_each(|piece| std::mem::forget(Arc::clone(&piece.segment)));
    }

    /// Finishes, with an error, a job whose memory has been left. Catches a panic, because the
    /// requesters of other jobs are to be told, too.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(super) fn abandon(self) {
        catch_panic("the end of an abandoned read or write", || {
            self.note_files();
            let Self { transfer, unsynced, .. } = self;
            let failed = || io::Error::other("io_uring failed");
            let error = match unsynced {
                Some(unsynced) => unsynced.stop(transfer.what(), failed()),
                None => StoreError::io(transfer.what(), failed()),
            };
            transfer.finish(Err(error));
        });
    }

    /// Ends a job when no thread serves the queue: a read fails, a write is done at once.
    pub(super) fn without_thread(self) {
        match self.transfer.way() {
            Way::FromStore => self.finish(Err(io::Error::other("no thread reads"))),
            Way::ToStore => self.carry_out(),
        }
    }

    /// Does the job on this thread, with `preadv` or `pwritev`, and finishes it.
    pub(super) fn carry_out(mut self) {
        let done = catch_unwind(AssertUnwindSafe(|| match self.transfer.way() {
            Way::FromStore => read(&mut self),
            Way::ToStore => write(&self),
        }));
        self.finish(done.unwrap_or_else(|_| Err(io::Error::other("a panic on the way"))));
    }
}

fn read(job: &mut Job) -> io::Result<()> {
    let Some(files) = descriptors(&job.pieces) else { return read_copied(job) };
    let mut targets = job.transfer.targets();
    let mut rest = &mut targets[..];
    for (piece, file) in job.pieces.iter().zip(files) {
        let (now, later) = rest.split_at_mut(piece.length);
        or_end(piece.segment.read(file, piece.within, now)?)?;
        rest = later;
    }
    Ok(())
}

/// The descriptors of all files; `None` if one of them has none.
fn descriptors(pieces: &[Piece]) -> Option<SmallVec<[BorrowedFd<'_>; 1]>> {
    pieces.iter().map(|piece| piece.segment.descriptor()).collect()
}

/// Reads from files without descriptors, which only fill memory that no other thread looks at.
fn read_copied(job: &mut Job) -> io::Result<()> {
    let mut pages = job.transfer.pages_mut();
    let mut rest = &mut pages[..];
    for piece in &job.pieces {
        let (now, later) = rest.split_at_mut(piece.length);
        or_end(piece.segment.read_pages(piece.within, now)?)?;
        rest = later;
    }
    Ok(())
}

fn or_end(attempt: Attempt) -> io::Result<()> {
    match attempt {
        Attempt::Done => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn write(job: &Job) -> io::Result<()> {
    let pages = job.transfer.pages();
    let mut rest = &pages[..];
    for piece in &job.pieces {
        let (now, later) = rest.split_at(piece.length);
        piece.segment.write(piece.within, now)?;
        rest = later;
    }
    Ok(())
}
