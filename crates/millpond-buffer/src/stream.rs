//! Read streams: reading ahead of somebody who knows which pages come next.
//!
//! A stream asks its *source* for the numbers of blocks in the order of their use, some way ahead of the consumer. Blocks
//! that are not in memory are read in the background, neighbours by one read. The consumer takes one block after
//! the other and reads each page as it likes; the stream holds no pin and no latch, so it can be left alone at any
//! moment, for ever, and nobody waits for it.
//!
//! **How far ahead** adapts, as in PostgreSQL's `read_stream.c`:
//!
//! - the distance begins at one block, so that who wants one page pays for one;
//! - it doubles whenever the consumer comes to a page that had to be fetched from the device, up to what the settings
//!   allow: `(io_concurrency + 1) * io_combine_limit` blocks (or four times the former), an eighth of the pool, and half of the consumer's ring;
//! - it halves when a whole distance of blocks were in memory;
//! - reads that the operating system answers from its cache make it grow only as far as one joined read.
//!
//! **When a read begins**: when as many neighbours have gathered as one read joins; when a block comes that is no
//! neighbour; when the source ends; at the latest when the consumer has come to it. The store has at most
//! `io_concurrency` + 1 of them at a time; as many more (up to [`MAX_BACKLOG`]) are prepared, and each begins when another ends, before
//! the consumer has seen what that has brought. With so many the stream looks no further than to the block that is next. If the consumer
//! needs the only pages that are to be read, the read is done on its own thread (whatever else is under way), which saves
//! two changes of threads.
//!
//! A read counts as under way until it has ended, not until the consumer has come to it: the device answers in an order
//! of its own, and those that are early would keep others from beginning while the consumer waits for one that is late. So
//! the distance may be several times what is under way, even if nothing is joined ([`WINDOW`]).

use crate::ahead::{How, LoadedRun, MAX_COMBINE, Urgency};
use crate::config::Wait;
use crate::error::BufferError;
use crate::guard::PinnedPage;
use crate::ids::BlockNumber;
use crate::relation::RelHandle;
use crate::ring::Ring;
use crate::session::BufferSession;
use crate::turns::UnderWay;
use std::collections::VecDeque;

/// The part of the pool that one stream reads ahead is at most one in so many.
const PART: usize = 8;
/// For each read that may be under way, the stream looks ahead so many blocks at least.
const WINDOW: usize = 4;
/// After a read ahead found no frame, so many blocks go without.
const REST: u32 = 64;
/// As many reads as may be under way are prepared besides, to be begun by the threads that end those; but no more than this. (Few,
/// since one that fails at once begins the next on the same stack.)
const MAX_BACKLOG: u32 = 32;

/// How a stream reads. What lies outside of the bounds counts as the nearest that doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// How many reads may be under way at a time besides that of the consumer's own page (`effective_io_concurrency`).
    /// With 0 nothing is read ahead.
    pub io_concurrency: u32,
    /// How many neighbouring pages one read joins (`io_combine_limit`), 1 to 32.
    pub io_combine_limit: u32,
}

impl Default for StreamOptions {
    /// PostgreSQL's defaults.
    fn default() -> Self {
        Self { io_concurrency: 16, io_combine_limit: 16 }
    }
}

/// What a block in the queue had to be fetched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetch {
    /// Nothing, or by the read of a block before it.
    None,
    /// It begins a read that needed no device.
    Cached,
    /// It begins a read that may be under way.
    Device,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    block: BlockNumber,
    fetch: Fetch,
}

/// A stream of blocks of one fork, read ahead: as far as the device makes the consumer wait, with neighbours joined.
///
/// The *source* says which blocks come next, in any order; each call gets the same session, fork, ring and source.
/// A stream holds no pin and no latch, so it can be left alone or dropped at any moment.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::Arc;
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), Arc::new(MemoryStore::new()), Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # pool.create(rel)?;
/// # let rel = pool.relation(rel)?;
/// # let session = pool.session()?;
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let mut blocks = (0..rel.block_count()).map(BlockNumber);
/// let mut stream = ReadStream::new(StreamOptions::default());
/// while let Some(page) = stream.next_page(&session, &rel, Wait::Allowed, None, &mut || blocks.next())? {
///     let first = page.read(|page| page.u64(16))?;
/// }
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug)]
pub struct ReadStream {
    options: StreamOptions,
    /// Blocks that the source has given and the consumer has not done with.
    queue: VecDeque<Queued>,
    /// How many at the queue's end are neighbours that wait to be read.
    pending: usize,
    distance: usize,
    /// Reads that have begun and not ended.
    under_way: UnderWay,
    /// Blocks in memory since the last that wasn't.
    hits: usize,
    /// Blocks to go without reading ahead.
    rest: u32,
    exhausted: bool,
}

impl Default for ReadStream {
    fn default() -> Self {
        Self::new(StreamOptions::default())
    }
}

impl ReadStream {
    /// A stream that has not begun.
    #[must_use]
    pub fn new(options: StreamOptions) -> Self {
        let combine = options.io_combine_limit.clamp(1, MAX_COMBINE);
        Self {
            options: StreamOptions { io_combine_limit: combine, ..options },
            queue: VecDeque::new(),
            pending: 0,
            distance: 1,
            under_way: UnderWay::default(),
            hits: 0,
            rest: 0,
            exhausted: false,
        }
    }

    /// Forgets what is queued, to begin anew with another source. What has been read ahead stays in the pool; what is
    /// being read, or waits for its turn, comes there, too, and no longer counts as the stream's.
    pub fn reset(&mut self) {
        self.queue.clear();
        (self.pending, self.exhausted) = (0, false);
        self.under_way = UnderWay::default();
    }

    /// The source may have more after it has said that there are none.
    pub fn ask_again(&mut self) {
        self.exhausted = false;
    }

    /// How many blocks the stream looks ahead now.
    #[must_use]
    pub fn distance(&self) -> usize {
        self.distance
    }

    /// Begins as if the device had been waited for before.
    #[cfg(all(test, shuttle))]
    pub(crate) fn assume_distance(&mut self, distance: usize) {
        self.distance = distance;
    }

    /// How many reads have been begun, or wait for their turn.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn under_way(&self) -> u32 {
        self.under_way.count()
    }

    /// The block to be used next, after having begun to read those after it; `None` at the end. It stays the next
    /// until [`ReadStream::advance`]. Errors are left to whoever reads the page. Pages are read into frames of the
    /// `ring`, if the consumer has one.
    #[inline]
    pub fn peek(
        &mut self,
        session: &BufferSession,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
        source: &mut dyn FnMut() -> Option<BlockNumber>,
    ) -> Option<BlockNumber> {
        if self.queue.len() < self.distance || self.queue.len() == self.pending {
            self.look_ahead(session, rel, wait, ring, source);
        }
        self.queue.front().map(|head| head.block)
    }

    /// The consumer is done with the block that is next.
    #[inline]
    pub fn advance(&mut self) {
        let Some(done) = self.queue.pop_front() else { return };
        self.pending = self.pending.min(self.queue.len());
        if done.fetch == Fetch::None {
            return;
        }
        self.hits = 0;
        let combine = self.options.io_combine_limit as usize;
        match done.fetch {
            Fetch::Device => self.distance *= 2,
            _ if self.distance < combine => self.distance = (self.distance * 2).min(combine),
            _ => self.distance = (self.distance / 2).max(combine),
        }
    }

    /// The next page, pinned; `None` at the end. A call that fails can be repeated.
    pub fn next_page<'s>(
        &mut self,
        session: &'s BufferSession,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
        source: &mut dyn FnMut() -> Option<BlockNumber>,
    ) -> Result<Option<PinnedPage<'s>>, BufferError> {
        let Some(block) = self.peek(session, rel, wait, ring, source) else { return Ok(None) };
        let page = session.pin_with(rel, block, wait, ring)?;
        self.advance();
        Ok(Some(page))
    }

    fn limit(&self, session: &BufferSession, ring: Option<&Ring>) -> usize {
        let StreamOptions { io_concurrency, io_combine_limit } = self.options;
        if io_concurrency == 0 {
            return 1;
        }
        let wanted = (io_concurrency as usize + 1) * (io_combine_limit as usize).max(WINDOW);
        let room = session.pool().frames() / PART;
        let room = ring.map_or(room, |ring| ring.read_ahead_pages().min(room));
        wanted.min(room).max(1)
    }

    /// How many reads the store may have at a time.
    fn at_most(&self) -> u32 {
        self.options.io_concurrency.saturating_add(1)
    }

    /// Whether to begin reads ahead, and take blocks from the source for them, though they may have to wait for their turn.
    fn may_prepare(&self) -> bool {
        let at_most = self.at_most();
        self.under_way.count() < at_most.saturating_add(at_most.min(MAX_BACKLOG))
    }

    fn look_ahead(
        &mut self,
        session: &BufferSession,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
        source: &mut dyn FnMut() -> Option<BlockNumber>,
    ) {
        let limit = self.limit(session, ring);
        self.distance = self.distance.min(limit);
        if let Some(ring) = ring {
            ring.set_ahead(self.distance);
        }
        // The block that is next is asked for in any case: without one this would be the end.
        while !self.exhausted
            && self.queue.len() < self.distance
            && (self.queue.is_empty() || self.may_prepare())
        {
            match source() {
                Some(block) => self.enqueue(session, rel, wait, ring, block),
                None => self.exhausted = true,
            }
        }
        if self.pending == 0 || limit == 1 {
            return;
        }
        if self.pending == self.queue.len() {
            self.begin_read(session, rel, wait, ring, Urgency::Now);
        } else if self.exhausted && self.may_prepare() {
            self.begin_read(session, rel, wait, ring, Urgency::Later);
        }
    }

    fn enqueue(
        &mut self,
        session: &BufferSession,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
        block: BlockNumber,
    ) {
        let absent = session.is_absent(rel, block);
        let follows = self.queue.back().is_some_and(|last| last.block.next() == block);
        if self.pending > 0 && !(absent && follows) {
            self.begin_read(session, rel, wait, ring, Urgency::Later);
        }
        self.queue.push_back(Queued { block, fetch: Fetch::None });
        if !absent {
            self.count_hit();
            return;
        }
        self.pending += 1;
        let is_full = self.pending >= self.options.io_combine_limit as usize;
        if is_full && self.distance > self.pending && self.may_prepare() {
            self.begin_read(session, rel, wait, ring, Urgency::Later);
        }
    }

    fn count_hit(&mut self) {
        self.hits += 1;
        if self.hits >= self.distance {
            self.distance = (self.distance / 2).max(1);
            self.hits = 0;
        }
    }

    /// Begins to read the pending blocks. Those that can't be read ahead are left to the consumer.
    #[cold]
    #[inline(never)]
    fn begin_read(
        &mut self,
        session: &BufferSession,
        rel: &RelHandle,
        wait: Wait,
        ring: Option<&Ring>,
        urgency: Urgency,
    ) {
        let pending = std::mem::take(&mut self.pending);
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(pending as u32);
            return;
        }
        // One page that is needed at once is the consumer's own affair.
        if pending == 1 && urgency == Urgency::Now {
            if let Some(head) = self.queue.front_mut() {
                head.fetch = Fetch::Device;
            }
            return;
        }
        let mut at = self.queue.len() - pending;
        while let Some(&Queued { block, .. }) = self.queue.get(at) {
            let left = (self.queue.len() - at).min(self.options.io_combine_limit as usize);
            let (under_way, at_most) = (&self.under_way, self.at_most());
            let how = How { wait, urgency, under_way, at_most };
            let (pages, fetch) = match session.load_run(rel, block, left, ring, how) {
                LoadedRun::AtHand(pages) => (pages, Fetch::Cached),
                LoadedRun::FromDevice(pages) => (pages, Fetch::Device),
                LoadedRun::Taken => (1, Fetch::None),
                LoadedRun::Refused => {
                    self.rest = REST;
                    return;
                }
            };
            self.queue[at].fetch = fetch;
            at += pages;
        }
    }
}
