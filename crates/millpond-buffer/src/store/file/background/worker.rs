//! Threads that read with `preadv` and write with `pwritev`.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;

use super::super::segment::Attempt;
use super::{Job, Piece, Shared};
use crate::store::Way;

/// Takes one job after the other, until told to stop.
pub(super) fn run(shared: &Shared) {
    while let Some(job) = next(shared) {
        carry_out(job);
    }
}

/// Does a job here and now.
pub(super) fn carry_out(mut job: Job) {
    let done = catch_unwind(AssertUnwindSafe(|| match job.transfer.way() {
        Way::FromStore => read(&mut job),
        Way::ToStore => write(&job),
    }));
    job.finish(done.unwrap_or_else(|_| Err(io::Error::other("a panic on the way"))));
}

fn next(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue.lock();
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.stop {
            return None;
        }
        queue = shared.work.wait(queue);
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

/// Reads from files without descriptors, which only fill memory that nobody else looks at.
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
