//! Threads that read with `preadv` and write with `pwritev`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Job, Shared};
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
        shared.work.wait(&mut queue);
    }
}

fn read(job: &mut Job) -> io::Result<()> {
    let mut targets = job.transfer.targets();
    let mut rest = &mut targets[..];
    for piece in &job.pieces {
        let (now, later) = rest.split_at_mut(piece.length);
        if !piece.segment.read(piece.within, now)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        rest = later;
    }
    Ok(())
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
