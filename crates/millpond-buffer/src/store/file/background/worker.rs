//! Threads that read with `preadv`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Job, Shared};

/// Takes one read after the other, until told to stop.
pub(super) fn run(shared: &Shared) {
    while let Some(mut job) = next(shared) {
        let read = catch_unwind(AssertUnwindSafe(|| read(&mut job)));
        job.finish(read.unwrap_or_else(|_| Err(io::Error::other("a panic while reading"))));
    }
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
    let mut pages = job.read.pages_mut();
    let mut rest = &mut pages[..];
    for piece in &job.pieces {
        let (now, later) = rest.split_at_mut(piece.length);
        if !piece.segment.read(piece.within, now)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        rest = later;
    }
    Ok(())
}
