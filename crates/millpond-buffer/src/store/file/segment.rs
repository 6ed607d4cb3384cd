//! An open file of a relation fork ([`Segment`]): it reads and writes whole pages, grows and
//! shrinks.
//!
//! New pages have their space on the device before growth returns. If the device is full, the file
//! gets its old length back. A segment also carries the mark that it is on the list of files to be
//! synced; [`super::changes`] has that list and its rules.

use super::layout::{Budget, Counted};
use crate::PAGE_SIZE;
use crate::page::AlignedPage;
use crate::store::PageBuffer;
use millpond_sync::atomic::{AtomicBool, Ordering};
use millpond_sync::fill::{self, IoTarget};
use millpond_vfs::{OpenFlags, Vfs, VfsFile, retry};
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most pieces that the kernel takes in one vectored call.
const MAX_VECTORS: usize = 1024;
/// Growth by up to this many pages writes zeros, which leaves ordinary written blocks. Growth by
/// more allocates.
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

/// The directory that all forks of a store are in, and how their files are opened.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) path: PathBuf,
    pub(super) segment_blocks: u32,
    /// Files bypass the system's cache.
    pub(super) direct: bool,
    pub(super) budget: Budget,
}

/// An open file of a relation fork.
#[derive(Debug)]
pub(super) struct Segment {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    /// The file bypasses the system's cache.
    direct: bool,
    /// The file is on the list of files to be synced. The list's lock guards this flag.
    listed: AtomicBool,
    removed: AtomicBool,
    _counted: Counted,
}

impl Segment {
    #[cfg(all(test, shuttle))]
    pub(super) fn of_file(file: Arc<dyn VfsFile>, path: PathBuf) -> Self {
        Self::new(file, path, false)
    }

    fn new(file: Arc<dyn VfsFile>, path: PathBuf, direct: bool) -> Self {
        let (listed, removed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { file, path, direct, listed, removed, _counted: Counted::new() }
    }

    /// Opens the file. Returns `None` when it is not there and `create` is false.
    pub(super) fn open(folder: &Folder, path: PathBuf, create: bool) -> io::Result<Option<Self>> {
        let flags = OpenFlags { create, direct: folder.direct, ..OpenFlags::WRITE };
        match retry(|| folder.vfs.open(&path, flags)) {
            Ok(file) => {
                let opened = Self::new(file, path, folder.direct);
                folder.budget.note_opened();
                Ok(Some(opened))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The kernel's descriptor, if the file is the kernel's.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn block_count(&self) -> io::Result<u32> {
        retry(|| self.file.len()).and_then(whole_pages)
    }

    /// Reads whole pages by the file's descriptor, one into each target. For direct I/O the targets
    /// must be aligned ([`is_aligned`]).
    pub(super) fn read(
        &self,
        file: BorrowedFd<'_>,
        first: u32,
        targets: &mut [IoTarget<'_>],
    ) -> io::Result<Attempt> {
        fill_all(first, targets, |rest, offset| fill::read_at(file, rest, offset))
    }

    /// Reads whole pages by the file's descriptor if no device has to be waited for.
    pub(super) fn try_read(
        &self,
        file: BorrowedFd<'_>,
        first: u32,
        targets: &mut [IoTarget<'_>],
    ) -> io::Result<Attempt> {
        if self.direct {
            return Ok(Attempt::WouldWait);
        }
        let read = fill_all(first, targets, |rest, at| fill::read_at_hand(file, rest, at));
        read.or_else(|error| match Errno::from_io_error(&error) {
            Some(Errno::AGAIN) => Ok(Attempt::WouldWait),
            Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(Attempt::Unsupported),
            _ => Err(error),
        })
    }

    /// Reads whole pages without a descriptor.
    pub(super) fn read_pages(
        &self,
        first: u32,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> io::Result<Attempt> {
        let mut offset = byte_offset(first);
        for group in pages.chunks_mut(MAX_VECTORS) {
            let mut vectors: Vec<IoSliceMut<'_>> =
                group.iter_mut().map(|page| IoSliceMut::new(&mut page[..])).collect();
            let mut rest = &mut vectors[..];
            while !rest.is_empty() {
                match retry(|| self.file.read_at(rest, offset))? {
                    0 => return Ok(Attempt::End),
                    done => {
                        offset += done as u64;
                        IoSliceMut::advance_slices(&mut rest, done);
                    }
                }
            }
        }
        Ok(Attempt::Done)
    }

    /// Writes whole pages. The caller puts the file on the list of those to be synced, whatever the
    /// outcome.
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
                let done = retry(|| self.file.write_at(rest, offset))?;
                if done == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                offset += done as u64;
                IoSlice::advance_slices(&mut rest, done);
            }
        }
        Ok(())
    }

    /// Makes the file at least `blocks` pages long. The new pages read as zeros and have their
    /// space on the device.
    pub(super) fn grow(&self, blocks: u32) -> io::Result<()> {
        let old = self.block_count()?;
        if old >= blocks {
            return Ok(());
        }
        let grown = self.grow_from(old, blocks);
        if grown.is_err() {
            // The device is full: give back what was gained, so that the next attempt starts from
            // the same end.
            let _ = retry(|| self.file.set_len(byte_offset(old)));
        }
        grown
    }

    fn grow_from(&self, old: u32, blocks: u32) -> io::Result<()> {
        // Cut off a torn last page first: allocation would leave its bytes in place.
        self.shrink(old)?;
        if blocks - old > ZERO_WRITE_PAGES {
            let (offset, length) = (byte_offset(old), byte_offset(blocks - old));
            match retry(|| self.file.allocate(offset, length)) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                other => return other,
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
        if retry(|| self.file.len())? > byte_offset(blocks) {
            retry(|| self.file.set_len(byte_offset(blocks)))?;
        }
        Ok(())
    }

    pub(super) fn sync_data(&self) -> io::Result<()> {
        // Not repeated after a signal either: the kernel reports an error once and forgets it.
        self.file.sync_data()
    }

    /// Notes whether the file is on the list of files to be synced; returns whether it was. The
    /// caller holds the list's lock.
    pub(super) fn set_listed(&self, listed: bool) -> bool {
        self.listed.swap(listed, Ordering::Relaxed)
    }

    /// Notes that the file was unlinked: it needs no sync any more.
    pub(super) fn set_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

/// Fills all targets from block `first` on. `read` fills some of those that are left.
fn fill_all(
    first: u32,
    targets: &mut [IoTarget<'_>],
    read: impl Fn(&mut [IoTarget<'_>], u64) -> io::Result<usize>,
) -> io::Result<Attempt> {
    let mut offset = byte_offset(first);
    for group in targets.chunks_mut(MAX_VECTORS) {
        let mut rest = group;
        while !rest.is_empty() {
            match retry(|| read(rest, offset))? {
                0 => return Ok(Attempt::End),
                done => {
                    offset += done as u64;
                    IoTarget::advance(&mut rest, done);
                }
            }
        }
    }
    Ok(Attempt::Done)
}

/// The number of whole pages in a file of that length. A torn last page, which a crash may leave,
/// doesn't count.
pub(super) fn whole_pages(bytes: u64) -> io::Result<u32> {
    let pages = bytes / PAGE_BYTES;
    u32::try_from(pages).map_err(|_| io::Error::other("file is larger than any segment"))
}

/// Whether memory that begins there is aligned for direct I/O.
pub(super) fn is_aligned(start: *const u8) -> bool {
    start.addr().is_multiple_of(ALIGNMENT)
}

fn byte_offset(block: u32) -> u64 {
    u64::from(block) * PAGE_BYTES
}
