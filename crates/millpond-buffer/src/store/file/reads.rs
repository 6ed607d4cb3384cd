//! Reads on the calling thread, into pages of the caller's own or straight into frames.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use millpond_sync::fill::IoTarget;
use smallvec::SmallVec;

use super::FileStore;
use super::segment::{Attempt, Segment, is_aligned};
use crate::PAGE_SIZE;
use crate::ids::{BlockNumber, RelFork};
#[cfg(not(any(miri, copying)))]
use crate::page::words::{self, PageWords};
use crate::store::{PageBuffer, StoreError};

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
        match self.with_fork(rel, what, |fork| fork.read(first.0, &mut pages, true))? {
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
        match self.with_fork(rel, what, |fork| fork.read(first.0, &mut pages, false))? {
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
