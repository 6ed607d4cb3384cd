//! The caches, each with the same two operations: read a word of a page, copy a page.
//!
//! A missing page is read from the file with `pread`. A cache of values gets it as an `Arc` of its
//! bytes, as its users would do. The buffer pool and the sharded pool have frames.

use std::collections::HashMap;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use millpond_buffer::{
    BlockNumber, BufferPool, BufferSession, PAGE_SIZE, PageRead, RelHandle, Wait,
};
use parking_lot::RwLock;

pub type Page = [u8; PAGE_SIZE];

/// The offset in a page of the word that is read.
pub const WORD: usize = 24;

/// The file of pages.
pub struct Source {
    file: File,
    pub reads: AtomicU64,
}

impl Source {
    pub fn new(file: File) -> Self {
        Self { file, reads: AtomicU64::new(0) }
    }

    fn page(&self, block: u32) -> Arc<Page> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let mut page = Arc::<Page>::new_uninit();
        if let Some(bytes) = Arc::get_mut(&mut page) {
            // SAFETY: `MaybeUninit` bytes may be uninitialised, so a reference to them is valid.
            let bytes = unsafe { &mut *bytes.as_mut_ptr().cast::<[MaybeUninit<u8>; PAGE_SIZE]>() };
            let at = u64::from(block) * PAGE_SIZE as u64;
            match rustix::io::pread(&self.file, &mut bytes[..], at) {
                Ok((read, [])) if read.len() == PAGE_SIZE => {}
                other => panic!("block {block}: {:?}", other.map(|(read, _)| read.len())),
            }
        }
        // SAFETY: the read has filled the whole page.
        unsafe { page.assume_init() }
    }

    fn read(&self, block: u32, to: &mut Page) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let read = self.file.read_exact_at(to, u64::from(block) * PAGE_SIZE as u64);
        assert!(read.is_ok(), "block {block}: {read:?}");
    }
}

fn word(page: &Page) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[WORD..WORD + 8]);
    u64::from_le_bytes(bytes)
}

/// A cache of pages. Each thread reads through its own reader.
pub trait Cache: Sync {
    type Reader<'a>: Reader
    where
        Self: 'a;
    fn reader(&self) -> Self::Reader<'_>;
}

pub trait Reader {
    /// Reads a word of the page.
    fn word(&mut self, block: u32) -> u64;
    /// Copies the whole page.
    fn copy(&mut self, block: u32, to: &mut Page);
}

/// The buffer pool, read optimistically.
pub struct Pool {
    pub pool: Arc<BufferPool>,
    pub rel: RelHandle,
}

pub struct PoolReader<'a>(&'a RelHandle, BufferSession);

impl Cache for Pool {
    type Reader<'a> = PoolReader<'a>;
    fn reader(&self) -> PoolReader<'_> {
        PoolReader(&self.rel, self.pool.session().expect("a session"))
    }
}

impl Reader for PoolReader<'_> {
    fn word(&mut self, block: u32) -> u64 {
        let read = self.1.read(self.0, BlockNumber(block), Wait::Allowed, |page| page.u64(WORD));
        read.expect("a page")
    }

    fn copy(&mut self, block: u32, to: &mut Page) {
        let read =
            self.1.read(self.0, BlockNumber(block), Wait::Allowed, |page| page.copy_page(to));
        read.expect("a page");
    }
}

/// The buffer pool, with pages pinned and latched for reading.
pub struct Pinned(pub Pool);

pub struct PinnedReader<'a>(PoolReader<'a>);

impl PinnedReader<'_> {
    fn with<R>(&self, block: u32, f: impl FnOnce(&Page) -> R) -> R {
        let page = self.0.1.pin_shared(self.0.0, BlockNumber(block), Wait::Allowed);
        f(page.expect("a page").bytes())
    }
}

impl Cache for Pinned {
    type Reader<'a> = PinnedReader<'a>;
    fn reader(&self) -> PinnedReader<'_> {
        PinnedReader(self.0.reader())
    }
}

impl Reader for PinnedReader<'_> {
    fn word(&mut self, block: u32) -> u64 {
        self.with(block, word)
    }

    fn copy(&mut self, block: u32, to: &mut Page) {
        self.with(block, |page| to.copy_from_slice(page));
    }
}

/// A cache of values: looks a page up and loads it if it is missing.
pub trait Values: Sync {
    fn get(&self, block: u32) -> Arc<Page>;
}

pub struct ValuesReader<'a, V>(&'a V);

/// A cache of pages on top of a cache of values.
pub struct Valued<V>(pub V);

impl<V: Values> Cache for Valued<V> {
    type Reader<'a>
        = ValuesReader<'a, V>
    where
        V: 'a;
    fn reader(&self) -> ValuesReader<'_, V> {
        ValuesReader(&self.0)
    }
}

impl<V: Values> Reader for ValuesReader<'_, V> {
    fn word(&mut self, block: u32) -> u64 {
        word(&self.0.get(block))
    }

    fn copy(&mut self, block: u32, to: &mut Page) {
        to.copy_from_slice(&*self.0.get(block));
    }
}

pub struct QuickCache(pub quick_cache::sync::Cache<u32, Arc<Page>>, pub Arc<Source>);

impl Values for QuickCache {
    fn get(&self, block: u32) -> Arc<Page> {
        let load = || Ok::<_, std::convert::Infallible>(self.1.page(block));
        match self.0.get_or_insert_with(&block, load) {
            Ok(page) => page,
            Err(never) => match never {},
        }
    }
}

pub struct Moka(pub moka::sync::Cache<u32, Arc<Page>, RandomState>, pub Arc<Source>);

impl Values for Moka {
    fn get(&self, block: u32) -> Arc<Page> {
        match self.0.get(&block) {
            Some(page) => page,
            None => self.0.get_with(block, || self.1.page(block)),
        }
    }
}

/// Foyer's own single loading is asynchronous. Here two threads may both load a missing page.
pub struct Foyer(pub foyer_memory::Cache<u32, Arc<Page>, RandomState>, pub Arc<Source>);

impl Values for Foyer {
    fn get(&self, block: u32) -> Arc<Page> {
        match self.0.get(&block) {
            Some(entry) => Arc::clone(entry.value()),
            None => Arc::clone(self.0.insert(block, self.1.page(block)).value()),
        }
    }
}

const SHARDS: usize = 64;

/// A typical home-made pool: shards of a hash table, frames, a readers-writer lock and a clock.
pub struct Sharded {
    shards: Box<[RwLock<Shard>]>,
    source: Arc<Source>,
}

struct Shard {
    frames: HashMap<u32, usize, RandomState>,
    pages: Vec<(u32, AtomicU8, Box<Page>)>,
    limit: usize,
    hand: usize,
}

impl Sharded {
    pub fn new(pages: u32, source: Arc<Source>) -> Self {
        let shard = || {
            let limit = pages as usize / SHARDS;
            RwLock::new(Shard { frames: HashMap::default(), pages: Vec::new(), limit, hand: 0 })
        };
        Self { shards: (0..SHARDS).map(|_| shard()).collect(), source }
    }

    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn with<R>(&self, block: u32, f: impl Fn(&Page) -> R) -> R {
        let shard = &self.shards[block as usize % SHARDS];
        let read = shard.read();
        if let Some(frame) = read.frames.get(&block) {
            let (_, used, page) = &read.pages[*frame];
            if used.load(Ordering::Relaxed) == 0 {
                used.store(1, Ordering::Relaxed);
            }
            return f(page);
        }
        drop(read);
        let mut shard = shard.write();
        let frame = shard.load(block, &self.source);
        f(&shard.pages[frame].2)
    }
}

impl Shard {
    /// Loads a page under the shard's lock: one load at a time in a shard, and each page once.
    fn load(&mut self, block: u32, source: &Source) -> usize {
        if let Some(frame) = self.frames.get(&block) {
            return *frame;
        }
        let frame = if self.pages.len() < self.limit {
            self.pages.push((block, AtomicU8::new(0), Box::new([0; PAGE_SIZE])));
            self.pages.len() - 1
        } else {
            while std::mem::take(self.pages[self.hand].1.get_mut()) != 0 {
                self.hand = (self.hand + 1) % self.limit;
            }
            let frame = self.hand;
            self.hand = (self.hand + 1) % self.limit;
            self.frames.remove(&self.pages[frame].0);
            frame
        };
        self.pages[frame].0 = block;
        source.read(block, &mut self.pages[frame].2);
        self.frames.insert(block, frame);
        frame
    }
}

impl Cache for Sharded {
    type Reader<'a> = &'a Sharded;
    fn reader(&self) -> &Sharded {
        self
    }
}

impl Reader for &Sharded {
    fn word(&mut self, block: u32) -> u64 {
        self.with(block, word)
    }

    fn copy(&mut self, block: u32, to: &mut Page) {
        let to = std::cell::RefCell::new(to);
        self.with(block, |page| to.borrow_mut().copy_from_slice(page));
    }
}
