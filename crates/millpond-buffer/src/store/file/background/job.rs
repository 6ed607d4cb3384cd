//! A job: a read or write with its files, how a thread carries it out, and how it ends.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::segment::{Attempt, Segment};
use super::super::unsynced::Unsynced;
#[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
use crate::PAGE_SIZE;
use crate::incidents::catch_panic;
use crate::store::{StoreError, Transfer, Way};

/// A part of a transfer: pages that follow each other in one file.
pub(in crate::store::file) struct Piece {
    pub(in crate::store::file) segment: Arc<Segment>,
    /// The first page in the file.
    pub(in crate::store::file) within: u32,
    /// The number of pages.
    pub(in crate::store::file) length: usize,
}

/// The parts of a transfer, mostly one.
pub(in crate::store::file) type Pieces = SmallVec<[Piece; 1]>;

/// A transfer with the files that it reads or writes.
pub(in crate::store::file) struct Job {
    pub(in crate::store::file) transfer: Transfer,
    pub(in crate::store::file) pieces: Pieces,
    /// Notes the files of a write as unsynced.
    pub(in crate::store::file) unsynced: Option<Arc<Unsynced>>,
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
    pub(super) fn finish(self, result: std::io::Result<()>) {
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
            let failed = || std::io::Error::other("io_uring failed");
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
            Way::FromStore => self.finish(Err(std::io::Error::other("no thread reads"))),
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
