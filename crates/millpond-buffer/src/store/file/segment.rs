//! One file: whole-transfer reads and writes, growth, and the mark that it needs a sync.
//!
//! # The dirty mark
//! `dirty` says that the file is in the list of files to sync. A writer sets it *after* its system call
//! returned and, if it was clear, appends the segment to the list. The syncer takes the list, clears the mark,
//! and only then calls fdatasync. So a write that returned before the sync began is either covered by this
//! fdatasync or is still in the list. Ordering: the swap is AcqRel, the clear is SeqCst by way of a swap too;
//! what counts is that both happen on one word, so one of the two sees the other.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_sync::fill::{self, IoTarget};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::near::{Near, Spare};
use crate::PAGE_SIZE;
use crate::page::AlignedPage;
use crate::store::PageBuffer;

/// The kernel takes at most this many pieces in one vectored call.
const MAX_VECTORS: usize = 1024;
/// Up to this many pages growth writes zeros, which leaves ordinary written blocks. Above it allocates.
const ZERO_WRITE_PAGES: u32 = 16;
const PAGE_BYTES: u64 = PAGE_SIZE as u64;

/// Memory for direct I/O is aligned to this; devices want 512 or 4096.
const ALIGNMENT: usize = 4096;

static ZEROS: AlignedPage = AlignedPage([0; PAGE_SIZE]);

/// What an attempt to read without waiting found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// All bytes are there.
    Done,
    /// The device would have to be waited for.
    WouldWait,
    /// The kernel or the file system can't read without waiting.
    Unsupported,
    /// The file ends before the last byte asked for.
    End,
}

/// An open file of a relation fork.
#[derive(Debug)]
pub(super) struct Segment {
    file: OwnedFd,
    /// For reads on the calling thread.
    near: Near,
    path: PathBuf,
    /// The system's cache is passed by.
    direct: bool,
    dirty: AtomicBool,
    removed: AtomicBool,
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Segment {
    /// Opens the file, or says `None` when it is not there and `create` is false.
    pub(super) fn open(
        path: PathBuf,
        create: bool,
        direct: bool,
        spare: &Arc<Spare>,
    ) -> io::Result<Option<Self>> {
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
        if direct {
            flags |= OFlags::DIRECT;
        }
        if create {
            flags |= OFlags::CREATE;
        }
        match retry(|| rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)) {
            Ok(file) => Ok(Some(Self {
                file,
                near: Near::new(Arc::clone(spare)),
                path,
                direct,
                dirty: AtomicBool::new(false),
                removed: AtomicBool::new(false),
            })),
            Err(Errno::NOENT) if !create => Ok(None),
            Err(Errno::INVAL) if direct => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this file system does not support direct I/O",
            )),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whole pages in the file. A torn last page, which a crash may leave, doesn't count.
    pub(super) fn block_count(&self) -> io::Result<u32> {
        let stat = retry(|| rustix::fs::fstat(&self.file))?;
        let pages = u64::try_from(stat.st_size).unwrap_or(0) / PAGE_BYTES;
        u32::try_from(pages).map_err(|_| io::Error::other("file is larger than any segment"))
    }

    /// What to read by, on this thread.
    fn file_to_read(&self) -> BorrowedFd<'_> {
        // A read that waits for the device anyway has nothing to gain.
        if self.direct { self.file.as_fd() } else { self.near.choose(&self.file) }
    }

    /// Reads whole pages, one into each target; false if the file ends before the last one. For direct I/O the targets are
    /// aligned ([`is_aligned`]).
    pub(super) fn read(&self, first: u32, targets: &mut [IoTarget<'_>]) -> io::Result<bool> {
        let (file, mut offset) = (self.file_to_read(), byte_offset(first));
        for group in targets.chunks_mut(MAX_VECTORS) {
            let mut rest = group;
            while !rest.is_empty() {
                match retry(|| fill::read_at(file, rest, offset).map_err(errno))? {
                    0 => return Ok(false),
                    done => {
                        offset += done as u64;
                        IoTarget::advance(&mut rest, done);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Reads whole pages if that needs no waiting for the device.
    pub(super) fn try_read(&self, first: u32, targets: &mut [IoTarget<'_>]) -> io::Result<Attempt> {
        if self.direct {
            return Ok(Attempt::WouldWait);
        }
        let (file, mut offset) = (self.file_to_read(), byte_offset(first));
        for group in targets.chunks_mut(MAX_VECTORS) {
            let mut rest = group;
            while !rest.is_empty() {
                match retry(|| fill::read_at_hand(file, rest, offset).map_err(errno)) {
                    Ok(0) => return Ok(Attempt::End),
                    Ok(done) => {
                        offset += done as u64;
                        IoTarget::advance(&mut rest, done);
                    }
                    Err(Errno::AGAIN) => return Ok(Attempt::WouldWait),
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                        return Ok(Attempt::Unsupported);
                    }
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        Ok(Attempt::Done)
    }

    /// Writes whole pages. The caller marks the segment dirty afterwards, whatever the outcome.
    pub(super) fn write(&self, first: u32, pages: &[&[u8; PAGE_SIZE]]) -> io::Result<()> {
        if self.direct && !pages.iter().all(|page| is_aligned(page.as_ptr())) {
            let mut buffer = PageBuffer::new(pages.len());
            for (copy, page) in buffer.pages_mut().into_iter().zip(pages) {
                copy.copy_from_slice(&page[..]);
            }
            return self.write(first, &buffer.pages().collect::<Vec<_>>());
        }
        let mut offset = byte_offset(first);
        for group in pages.chunks(MAX_VECTORS) {
            let mut vectors: Vec<IoSlice<'_>> =
                group.iter().map(|page| IoSlice::new(&page[..])).collect();
            let mut rest = &mut vectors[..];
            while !rest.is_empty() {
                let done = retry(|| rustix::io::pwritev(&self.file, rest, offset))?;
                if done == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                offset += done as u64;
                IoSlice::advance_slices(&mut rest, done);
            }
        }
        Ok(())
    }

    /// Makes the file at least `blocks` pages long; what is new reads as zeros and has its space on the device.
    pub(super) fn grow(&self, blocks: u32) -> io::Result<()> {
        let old = self.block_count()?;
        if old >= blocks {
            return Ok(());
        }
        let grown = self.grow_from(old, blocks);
        if grown.is_err() {
            // A full device: give back what was gained, so that the next attempt starts from the same end.
            let _ = retry(|| rustix::fs::ftruncate(&self.file, byte_offset(old)));
        }
        grown
    }

    fn grow_from(&self, old: u32, blocks: u32) -> io::Result<()> {
        // Cut a torn last page off first, or allocation would leave its bytes in place.
        self.shrink(old)?;
        if blocks - old > ZERO_WRITE_PAGES {
            let (offset, length) = (byte_offset(old), byte_offset(blocks - old));
            match retry(|| {
                rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, length)
            }) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let mut next = old;
        while next < blocks {
            let count = (blocks - next).min(MAX_VECTORS as u32);
            self.write(next, &vec![&ZEROS.0; count as usize])?;
            next += count;
        }
        Ok(())
    }

    /// Makes the file exactly `blocks` pages long, or leaves it if it is shorter.
    pub(super) fn shrink(&self, blocks: u32) -> io::Result<()> {
        let stat = retry(|| rustix::fs::fstat(&self.file))?;
        if u64::try_from(stat.st_size).unwrap_or(0) > byte_offset(blocks) {
            retry(|| rustix::fs::ftruncate(&self.file, byte_offset(blocks)))?;
        }
        Ok(())
    }

    pub(super) fn sync_data(&self) -> io::Result<()> {
        // Not retried on EINTR alone: fdatasync has reported and forgotten the error after the first failure.
        rustix::fs::fdatasync(self.file.as_fd()).map_err(Into::into)
    }

    /// Sets the dirty mark; true for the caller that set it and must put the segment on the list.
    pub(super) fn set_dirty(&self) -> bool {
        !self.dirty.swap(true, Ordering::AcqRel)
    }

    /// Clears the dirty mark, before the sync that covers what was written until now.
    pub(super) fn clear_dirty(&self) {
        self.dirty.swap(false, Ordering::AcqRel);
    }

    /// Notes that the file was unlinked: it needs no sync any more.
    pub(super) fn set_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

/// Whether memory that begins there will do for direct I/O.
pub(super) fn is_aligned(start: *const u8) -> bool {
    start.addr().is_multiple_of(ALIGNMENT)
}

fn byte_offset(block: u32) -> u64 {
    u64::from(block) * PAGE_BYTES
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
