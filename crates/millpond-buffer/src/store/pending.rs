//! Reads and writes that one thread begins and another may finish.
//!
//! A [`PendingRead`] or [`PendingWrite`] owns the memory that the pages go to or come from. So no
//! thread has to wait for it, and the requester may be gone when the device answers. This memory is
//! the transfer's own. Only a read may instead have frames of the pool, which other threads may
//! look at. A store fills frames as atomic words. A store that can't do that gets other memory, and
//! the pages are copied from there ([`PendingRead::pages_mut`]).
//!
//! Each transfer is finished exactly once. A transfer that is dropped, because the store failed or
//! panicked, is finished with an error. However a read ends, it first gives up its turn, which may
//! begin the next read of its stream ([`Turn`]).

use super::{PageBuffer, PageStore, StoreError};
use crate::arena::IoFrames;
use crate::ids::{BlockNumber, RelFork};
use crate::page::PageBytes;
#[cfg(feature = "file-store")]
use millpond_sync::fill::IoTarget;
#[cfg(feature = "file-store")]
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Where pages go to or come from.
pub(crate) enum Memory {
    /// Memory that belongs to the transfer.
    Own(PageBuffer),
    /// Frames; and memory of the transfer's own, if the store has put the pages there.
    Frames(IoFrames, Option<PageBuffer>),
    /// No memory any more: that of this number of pages was left to a device.
    #[cfg_attr(
        not(any(test, all(feature = "io-uring", target_os = "linux", not(millpond_portable)))),
        allow(dead_code)
    )]
    Left(usize),
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Self::Own(buffer) => buffer.len(),
            Self::Frames(frames, _) => frames.len(),
            Self::Left(pages) => *pages,
        }
    }

    /// The transfer's own memory, if it is to be used.
    fn own(&mut self) -> Option<&mut PageBuffer> {
        match self {
            Self::Own(buffer) | Self::Frames(_, Some(buffer)) => Some(buffer),
            Self::Frames(_, None) => None,
            Self::Left(_) => None,
        }
    }
}

/// What happens when the store is done with a read that had a turn.
pub(crate) trait EndOfTurn: Send + Sync {
    /// Gives the turn to the next read, if any.
    fn end(self: Arc<Self>);
}

/// The turn of one read, of those that the store may have at a time. Dropping it ends it.
pub(crate) struct Turn(Option<Arc<dyn EndOfTurn>>);

impl Turn {
    pub(crate) fn new(of: Arc<dyn EndOfTurn>) -> Self {
        Self(Some(of))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(of) = self.0.take() {
            of.end();
        }
    }
}

/// Called with the memory, or without it if a device may still use that.
type Done = Box<dyn FnOnce(Option<Memory>, Result<(), StoreError>) + Send>;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    FromStore,
    ToStore,
}

/// Neighbouring blocks in transfer: what reads and writes have in common.
pub(crate) struct Transfer {
    way: Way,
    rel: RelFork,
    first: BlockNumber,
    parts: Option<(Memory, Done)>,
    /// Given up as soon as the store is done, before the requester is told.
    turn: Option<Turn>,
    /// The requester will wait for it, on a thread that may wait, or already does.
    #[cfg_attr(
        not(all(feature = "io-uring", target_os = "linux", not(millpond_portable))),
        allow(dead_code)
    )]
    is_awaited: bool,
}

impl Transfer {
    /// Whether the requester will come to wait for it ([`super::PageStore::wait_for_read`]).
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    #[cfg(feature = "file-store")]
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// The number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.parts.as_ref().map_or(0, |(memory, _)| memory.len())
    }

    /// The pages to be written.
    pub(crate) fn pages(&self) -> Vec<&PageBytes> {
        match &self.parts {
            Some((Memory::Own(buffer), _)) => buffer.pages().collect(),
            _ => Vec::new(),
        }
    }

    /// Memory of its own to be filled. If it has none, it gets some here. (The buffer is not kept
    /// for later reads: only stores that can't fill frames ask for it.)
    pub(crate) fn pages_mut(&mut self) -> Vec<&mut PageBytes> {
        let Some((memory, _)) = &mut self.parts else { return Vec::new() };
        if let Memory::Frames(frames, own @ None) = memory {
            *own = Some(PageBuffer::new(frames.len()));
        }
        memory.own().map(PageBuffer::pages_mut).unwrap_or_default()
    }

    /// The pages, for the kernel to fill.
    #[cfg(feature = "file-store")]
    pub(crate) fn targets(&mut self) -> SmallVec<[IoTarget<'_>; 1]> {
        match &mut self.parts {
            Some((Memory::Frames(frames, None), _)) => {
                frames.words().map(|words| IoTarget::shared(words)).collect()
            }
            Some((memory, _)) => {
                let pages = memory.own().map(PageBuffer::pages_mut).unwrap_or_default();
                pages.into_iter().map(|page| IoTarget::exclusive(page)).collect()
            }
            None => SmallVec::new(),
        }
    }

    /// The start of the pages' memory, if the pages are contiguous.
    #[cfg(all(feature = "io-uring", target_os = "linux", not(millpond_portable)))]
    pub(crate) fn start(&mut self) -> Option<*mut u8> {
        match &mut self.parts {
            Some((Memory::Frames(frames, None), _)) if frames.len() == 1 => {
                frames.words().next().map(|words| IoTarget::shared(words).start())
            }
            Some((memory, _)) => memory.own().map(PageBuffer::start),
            None => None,
        }
    }

    /// What the transfer does, for an error message.
    pub(crate) fn what(&self) -> String {
        let verb = match self.way {
            Way::FromStore => "read",
            Way::ToStore => "write",
        };
        format!("{verb} block {} of {}", self.first, self.rel)
    }

    /// Ends the turn: the store is done with this read, so the next may begin.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// Tells the requester how it went.
    pub(crate) fn finish(mut self, result: Result<(), StoreError>) {
        self.tell(result);
    }

    /// Leaves the memory to a device that may still use it. No thread ever uses it again, however
    /// the transfer then ends.
    #[cfg(any(test, all(feature = "io-uring", target_os = "linux", not(millpond_portable))))]
    pub(crate) fn leave_memory(&mut self) {
        if let Some((memory, _)) = &mut self.parts {
            let left = Memory::Left(memory.len());
            std::mem::forget(std::mem::replace(memory, left));
        }
    }

    /// Makes the transfer fail, and leaves the memory to the device.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn abandon(mut self, error: StoreError) {
        self.leave_memory();
        self.finish(Err(error));
    }

    fn tell(&mut self, result: Result<(), StoreError>) {
        self.end_turn();
        match self.parts.take() {
            None => {}
            Some((Memory::Left(_), done)) => done(None, result),
            Some((memory, done)) => done(Some(memory), result),
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if self.parts.is_some() {
            let given_up = std::io::Error::other("it was given up");
            self.tell(Err(StoreError::io(self.what(), given_up)));
        }
    }
}

/// A read of neighbouring blocks that a store was asked for with [`PageStore::start_read`].
///
/// It must be finished or dropped. A forgotten read ([`std::mem::forget`]) keeps its blocks loading
/// for ever, because it looks like a read that a device still works on. A session that asks for
/// such a block waits, and says so in the log every thirty seconds.
///
/// Finishing it may begin another read on this thread. So may dropping it, which finishes it with
/// an error. During either, the caller must hold no lock that the store's own methods take.
///
/// [`PageStore::start_read`]: super::PageStore::start_read
pub struct PendingRead(pub(crate) Transfer);

/// A write of neighbouring blocks that a store was asked for with [`PageStore::start_write`].
///
/// It must be finished or dropped. The pages of a forgotten write ([`std::mem::forget`]) stay in
/// memory. A checkpoint waits for them, and says so in the log every thirty seconds.
///
/// [`PageStore::start_write`]: super::PageStore::start_write
pub struct PendingWrite(pub(crate) Transfer);

macro_rules! pending {
    ($pending:ident, $way:expr) => {
        impl $pending {
            /// Blocks from `first`, in `buffer`; `done` is called with the buffer and the result.
            pub fn new(
                rel: RelFork,
                first: BlockNumber,
                buffer: PageBuffer,
                done: impl FnOnce(PageBuffer, Result<(), StoreError>) + Send + 'static,
            ) -> Self {
                let pages = buffer.capacity();
                let done = move |memory: Option<Memory>, result| match memory {
                    Some(Memory::Own(buffer)) => done(buffer, result),
                    _ => done(PageBuffer::new(pages), result),
                };
                let parts = Some((Memory::Own(buffer), Box::new(done) as Done));
                Self(Transfer { way: $way, rel, first, parts, turn: None, is_awaited: false })
            }

            /// The fork.
            #[must_use]
            pub fn rel(&self) -> RelFork {
                self.0.rel
            }

            /// The first block.
            #[must_use]
            pub fn first(&self) -> BlockNumber {
                self.0.first
            }

            /// The number of blocks.
            #[must_use]
            pub fn count(&self) -> usize {
                self.0.count()
            }

            /// Tells the requester that all pages have been transferred, or why not.
            ///
            /// `Ok` means that each page has been transferred whole. A wrong `Ok` for a read may
            /// stay undetected: words that were not filled keep what was there before. The checksum
            /// detects zeros or another page there. An earlier version of the same page passes for
            /// the page. After an error the contents of the pages do not count.
            ///
            /// The end of a read may begin another on this thread. So the caller must hold no lock
            /// that the store's own methods take.
            pub fn finish(self, result: Result<(), StoreError>) {
                self.0.finish(result);
            }
        }

        impl fmt::Debug for $pending {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Transfer { rel, first, .. } = &self.0;
                let name = stringify!($pending);
                write!(f, "{name}({} blocks from {first} of {rel})", self.count())
            }
        }
    };
}

pending!(PendingRead, Way::FromStore);
pending!(PendingWrite, Way::ToStore);

impl PendingRead {
    /// Blocks from `first`, into frames. `done` is called with the result, and with the frames
    /// unless a device may still write to them.
    pub(crate) fn into_frames(
        rel: RelFork,
        first: BlockNumber,
        frames: IoFrames,
        done: impl FnOnce(Option<Memory>, Result<(), StoreError>) + Send + 'static,
    ) -> Self {
        let parts = Some((Memory::Frames(frames, None), Box::new(done) as Done));
        Self(Transfer { way: Way::FromStore, rel, first, parts, turn: None, is_awaited: false })
    }

    /// Gives it a turn: it is one of the limited number of reads that may be under way.
    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.0.turn = Some(turn);
    }

    /// Notes that the requester will wait for it.
    pub(crate) fn set_awaited(&mut self) {
        self.0.is_awaited = true;
    }

    /// The frames that the pages go to.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn words(&self) -> Vec<&crate::page::words::PageWords> {
        match &self.0.parts {
            Some((Memory::Frames(frames, _), _)) => frames.words().collect(),
            _ => Vec::new(),
        }
    }

    /// Reads the pages from a store on this thread, to where they belong. For a pool that is its
    /// frames, if the store can fill them ([`PageStore::read_words`]).
    pub fn read_from(&mut self, store: &(impl PageStore + ?Sized)) -> Result<(), StoreError> {
        let (rel, first) = (self.rel(), self.first());
        if let Some((Memory::Frames(frames, None), _)) = &self.0.parts {
            return store.read_words(rel, first, &frames.words().collect::<Vec<_>>());
        }
        store.read(rel, first, &mut self.pages_mut())
    }

    /// Where the pages go: memory of the read's own. If they are for frames of a pool, they are
    /// copied there once the read has been finished. [`PendingRead::read_from`] may do without this
    /// memory. The caller fills all of it, or finishes the read with an error.
    pub fn pages_mut(&mut self) -> Vec<&mut PageBytes> {
        self.0.pages_mut()
    }
}

impl PendingWrite {
    /// The pages to be written.
    #[must_use]
    pub fn pages(&self) -> Vec<&PageBytes> {
        self.0.pages()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ids::RelationId;
    use std::sync::mpsc;

    #[test]
    fn a_read_is_finished_exactly_once() {
        let rel = RelationId::constant(3).main();
        let (told, hear) = mpsc::channel();
        let begin = || {
            let told = told.clone();
            let done = move |buffer: PageBuffer, result: Result<(), StoreError>| {
                told.send((buffer.len(), result.is_ok())).unwrap();
            };
            PendingRead::new(rel, BlockNumber(5), PageBuffer::new(2), done)
        };
        begin().finish(Ok(()));
        drop(begin());
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), [(2, true), (2, false)]);
        // Memory that is left is left for good, which is a leak to Miri.
        if !cfg!(miri) {
            let mut left = begin().0;
            left.leave_memory();
            assert_eq!((left.count(), left.pages_mut().len()), (2, 0));
            left.finish(Err(StoreError::Missing { rel }));
            assert_eq!(hear.try_iter().collect::<Vec<_>>(), [(2, false)]);
        }
    }
}
