//! Read streams: reading ahead for a consumer that knows which pages come next.
//!
//! A stream asks its *source* (a callback) for block numbers in the order of their use, some way
//! ahead of the consumer. Blocks that are not in memory are read in the background, neighbours by
//! one read. The consumer takes one block after the other and reads each page as it likes. The
//! stream holds no pin and no latch, so it can be left alone at any moment, for ever, and no
//! session waits for it.
//!
//! **How far ahead** adapts, as in PostgreSQL's `read_stream.c`:
//!
//! - The distance begins at one block, so that a consumer that wants one page pays for one.
//! - It doubles whenever the consumer comes to a page that had to be fetched from the device. It
//!   stays within what the settings allow: `(io_concurrency + 1) * io_combine_limit` blocks, or
//!   four times `io_concurrency + 1` if that is more. It also stays within an eighth of the pool
//!   and half of the consumer's ring.
//! - It halves when a whole distance of blocks were in memory.
//! - Reads that the operating system answers from its cache make it grow only as far as one joined
//!   read.
//!
//! **When a read begins.** A read begins when it has as many neighbours as one read joins. It also
//! begins when the next block is no neighbour, or the source ends, and at the latest when the
//! consumer has come to it. The store has at most `io_concurrency` + 1 reads at a time. As many
//! more (up to [`MAX_BACKLOG`]) are prepared, and each begins when another ends, before the
//! consumer has seen the pages of that one. With that many prepared, the stream looks no further
//! than to the next block. If the consumer needs the only pages that are to be read, its own thread
//! reads them, whatever else is under way. This saves two thread switches.
//!
//! A read counts as under way until it has ended, not until the consumer has come to it. The device
//! answers in an order of its own. If early answers still counted, they would keep other reads from
//! beginning while the consumer waits for a late one. So the distance may be several times what is
//! under way, even if nothing is joined ([`WINDOW`]).

use crate::MAX_COMBINE;
use crate::config::Wait;
use crate::core::relation::RelHandle;
use crate::error::BufferError;
use crate::guard::PinnedPage;
use crate::ids::BlockNumber;
use crate::read::UnderWay;
use crate::read::read_ahead::{How, LoadedRun, Urgency, load_run};
use crate::replacement::ring::Ring;
use crate::session::BufferSession;
use std::collections::VecDeque;

/// One stream reads ahead at most 1/`PART` of the pool.
const PART: usize = 8;
/// For each read that may be under way, the stream looks ahead at least this number of blocks.
const WINDOW: usize = 4;
/// After a read ahead found no frame, this number of blocks is not read ahead.
const REST: u32 = 64;
/// The most reads that are prepared beyond those under way. The threads that end those begin the
/// prepared ones. (Few, since a read that fails at once begins the next on the same stack.)
const MAX_BACKLOG: u32 = 32;

/// How a stream reads. A value outside of the bounds counts as the nearest inside.
///
/// ```
/// # use millpond_buffer::*;
/// let options = StreamOptions::default().with_io_concurrency(32);
/// assert_eq!((options.io_concurrency, options.io_combine_limit), (32, 16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The number of reads that may be under way at a time, apart from that of the consumer's own
    /// page (`effective_io_concurrency`). With 0 nothing is read ahead.
    pub io_concurrency: u32,
    /// The number of neighbouring pages that one read joins (`io_combine_limit`), 1 to 32.
    pub io_combine_limit: u32,
}

impl Default for StreamOptions {
    /// PostgreSQL's defaults.
    fn default() -> Self {
        Self { io_concurrency: 16, io_combine_limit: 16 }
    }
}

impl StreamOptions {
    /// With that many reads under way at a time.
    #[must_use]
    pub const fn with_io_concurrency(mut self, reads: u32) -> Self {
        self.io_concurrency = reads;
        self
    }

    /// With that many neighbouring pages in one read.
    #[must_use]
    pub const fn with_io_combine_limit(mut self, pages: u32) -> Self {
        self.io_combine_limit = pages;
        self
    }
}

/// The consumer of a stream, as it calls it.
#[derive(Clone, Copy)]
struct Consumer<'a> {
    session: &'a BufferSession,
    rel: &'a RelHandle,
    wait: Wait,
    ring: Option<&'a Ring>,
}

/// How a block in the queue had to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fetch {
    /// No read, or the read of a block before it.
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

/// A stream of blocks of one fork, read ahead as far as the device makes the consumer wait, with
/// neighbours joined.
///
/// The *source* returns the blocks that come next, in any order. Each call must get the same
/// session, fork, ring and source. A stream holds no pin and no latch, so it can be left alone or
/// dropped at any moment.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::Arc;
/// # let store = Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 16), store, Arc::new(NoLog))?;
/// # let rel = RelationId::constant(1).main();
/// # let (_, rel, session) = (pool.create(rel)?, pool.relation(rel)?, pool.session()?);
/// # drop(session.extend(&rel, Wait::Allowed)?);
/// let mut blocks = (0..rel.block_count()).map(BlockNumber);
/// let mut stream = ReadStream::new(StreamOptions::default());
/// let mut next = || blocks.next();
/// while let Some(page) = stream.next_page(&session, &rel, Wait::Allowed, None, &mut next)? {
///     let first = page.read(|page| page.u64(16))?;
/// }
/// # Ok::<(), BufferError>(())
/// ```
#[derive(Debug)]
pub struct ReadStream {
    options: StreamOptions,
    /// Blocks that the source has given and that the consumer is not yet done with.
    queue: VecDeque<Queued>,
    /// The number of neighbours at the queue's end that wait to be read.
    pending: usize,
    distance: usize,
    /// Reads that have begun and not ended.
    under_way: UnderWay,
    /// The number of blocks in memory since the last one that wasn't.
    hits: usize,
    /// The number of blocks still to be passed without reading ahead.
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

    /// Forgets what is queued, to begin anew with another source. What has been read ahead stays in
    /// the pool. Reads that are under way or wait for their turn bring their pages there, too, and
    /// no longer count as the stream's.
    pub fn reset(&mut self) {
        self.queue.clear();
        (self.pending, self.exhausted) = (0, false);
        self.under_way = UnderWay::default();
    }

    /// Asks the source again, after it has said that it has no more blocks.
    pub fn ask_again(&mut self) {
        self.exhausted = false;
    }

    /// The number of blocks that the stream looks ahead now.
    #[must_use]
    pub fn distance(&self) -> usize {
        self.distance
    }

    /// Begins as if the stream had waited for the device before.
    #[cfg(all(test, shuttle))]
    pub(crate) fn assume_distance(&mut self, distance: usize) {
        self.distance = distance;
    }

    /// The number of reads that have been begun, or wait for their turn.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn under_way(&self) -> u32 {
        self.under_way.count()
    }

    /// The block to be used next, after beginning to read those after it; `None` at the end. It
    /// stays the next until [`ReadStream::advance`]. Errors are left to the session that reads the
    /// page. Pages are read into frames of the `ring`, if the consumer has one.
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
            self.look_ahead(Consumer { session, rel, wait, ring }, source);
        }
        self.queue.front().map(|head| head.block)
    }

    /// Tells the stream that the consumer is done with the next block.
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

    /// The next page, pinned; `None` at the end. The caller can repeat a call that fails.
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

    fn limit(&self, of: Consumer<'_>) -> usize {
        let StreamOptions { io_concurrency, io_combine_limit } = self.options;
        if io_concurrency == 0 {
            return 1;
        }
        let wanted = (io_concurrency as usize + 1) * (io_combine_limit as usize).max(WINDOW);
        let room = of.session.pool().frames() / PART;
        let room = of.ring.map_or(room, |ring| ring.read_ahead_pages().min(room));
        wanted.min(room).max(1)
    }

    /// The number of reads that the store may have at a time.
    fn at_most(&self) -> u32 {
        self.options.io_concurrency.saturating_add(1)
    }

    /// Whether to begin reads ahead, and take blocks from the source for them. They may have to
    /// wait for their turn.
    fn may_prepare(&self) -> bool {
        let at_most = self.at_most();
        self.under_way.count() < at_most.saturating_add(at_most.min(MAX_BACKLOG))
    }

    fn look_ahead(&mut self, of: Consumer<'_>, source: &mut dyn FnMut() -> Option<BlockNumber>) {
        let limit = self.limit(of);
        self.distance = self.distance.min(limit);
        if let Some(ring) = of.ring {
            ring.set_ahead(self.distance);
        }
        // The next block is asked for in any case: without one this would be the end.
        while !self.exhausted
            && self.queue.len() < self.distance
            && (self.queue.is_empty() || self.may_prepare())
        {
            match source() {
                Some(block) => self.enqueue(of, block),
                None => self.exhausted = true,
            }
        }
        if self.pending == 0 || limit == 1 {
            return;
        }
        if self.pending == self.queue.len() {
            self.begin_read(of, Urgency::Now);
        } else if self.exhausted && self.may_prepare() {
            self.begin_read(of, Urgency::Later);
        }
    }

    fn enqueue(&mut self, of: Consumer<'_>, block: BlockNumber) {
        let absent = of.session.core.is_absent(of.rel, block);
        let follows = self.queue.back().is_some_and(|last| last.block.next() == block);
        if self.pending > 0 && !(absent && follows) {
            self.begin_read(of, Urgency::Later);
        }
        self.queue.push_back(Queued { block, fetch: Fetch::None });
        if !absent {
            self.count_hit();
            return;
        }
        self.pending += 1;
        let is_full = self.pending >= self.options.io_combine_limit as usize;
        if is_full && self.distance > self.pending && self.may_prepare() {
            self.begin_read(of, Urgency::Later);
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
    fn begin_read(&mut self, of: Consumer<'_>, urgency: Urgency) {
        let Consumer { session, rel, wait, ring } = of;
        let pending = std::mem::take(&mut self.pending);
        if self.rest > 0 {
            self.rest = self.rest.saturating_sub(pending as u32);
            return;
        }
        // A single page that is needed at once is left to the consumer.
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
            let (pages, fetch) = match load_run(&session.core, rel, block, left, ring, how) {
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
