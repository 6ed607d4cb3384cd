//! A read or write with its files: what whoever carries it out needs of it, and how it ends.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::segment::Segment;
use super::super::unsynced::Unsynced;
use super::worker;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
use crate::PAGE_SIZE;
use crate::contained::contained;
use crate::store::{StoreError, Transfer, Way};

/// A part of a transfer: pages that follow each other in one file.
pub(in crate::store::file) struct Piece {
    pub(in crate::store::file) segment: Arc<Segment>,
    /// The first page in the file.
    pub(in crate::store::file) within: u32,
    /// How many pages.
    pub(in crate::store::file) length: usize,
}

/// Mostly one.
pub(in crate::store::file) type Pieces = SmallVec<[Piece; 1]>;

/// A transfer with the files it is from or goes to.
pub(in crate::store::file) struct Job {
    pub(in crate::store::file) transfer: Transfer,
    pub(in crate::store::file) pieces: Pieces,
    /// Where the files of a write are noted.
    pub(in crate::store::file) unsynced: Option<Arc<Unsynced>>,
}

impl Job {
    /// Where to go on after `done` bytes: the file, the offset in it, and how many bytes are left there.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
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

    /// The kernel is done with it, and the next may begin. A panic on its way stays here.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    pub(super) fn end_turn(&mut self) {
        contained("the beginning of a read in the background", || self.transfer.end_turn());
    }

    /// Finishes it. A panic of whoever is told stays here.
    pub(super) fn finish(self, result: std::io::Result<()>) {
        contained("the end of a read or write in the background", || {
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

    /// The kernel may never be done with it: its memory and files are never given back, however it ends.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    pub(super) fn leave_memory(&mut self) {
        self.transfer.leave_memory();
        self.pieces.iter().for_each(|piece| std::mem::forget(Arc::clone(&piece.segment)));
    }

    /// Finishes a job whose memory has been left with an error. A panic on its way stays here: the others are
    /// to be told, too.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    pub(super) fn abandon(self) {
        contained("the end of a read or write that was given up", || {
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

    /// What becomes of it when no thread serves the queue.
    pub(super) fn without_thread(self) {
        match self.transfer.way() {
            Way::FromStore => self.finish(Err(std::io::Error::other("no thread reads"))),
            Way::ToStore => worker::carry_out(self),
        }
    }
}
