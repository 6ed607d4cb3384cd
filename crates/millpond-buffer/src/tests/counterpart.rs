//! The counterpart of rule 1's proof ([`super::shared_writes`]): a million reads, most of them
//! optimistic, checked against a model for torn, stale and premature data. Meanwhile pages are
//! written, evicted, written back, scanned through a ring and dropped, and the pool grows and
//! shrinks.
//!
//! A page's contents are a function of its block and its version, which only grows. The model has
//! for each block the version that was last begun and the one that was last published. A read must
//! see no older version than was published before it, and no newer one than was begun before its
//! end. Nor may it see an older one than the same reader saw before.

use super::*;
use crate::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// (With the other threads, as many as there are sessions under Miri.)
const READERS: u64 = if cfg!(miri) { 2 } else { 4 };
const READS: usize = if cfg!(miri) {
    40
} else if cfg!(tsan) {
    50_000
} else {
    1_000_000
} / READERS as usize;

/// The fork that stays. Most reads are of its first blocks, which usually are in memory.
const BLOCKS: u32 = if cfg!(miri) { 12 } else { 120 };
const HOT: u32 = BLOCKS / 4;
/// The fork that is dropped and made again.
const PASSING: RelFork = RelationId::constant(9).main();
const PASSING_BLOCKS: u32 = if cfg!(miri) { 2 } else { 10 };
const FRAMES: usize = if cfg!(miri) { 8 } else { 64 };

const WORDS: usize = 12;

/// The offsets of the words: spread over the page, its end included.
fn place(nth: usize) -> usize {
    64 + nth * ((PAGE_SIZE - 72) / (WORDS - 1) / 8 * 8)
}

/// The expected words of a page.
fn pattern(rel: RelFork, block: u32, version: u64) -> [u64; WORDS] {
    let page = rel.page(BlockNumber(block)).block().0;
    let salt = u64::from(rel.relation.get()) << 48 | u64::from(page) << 32;
    std::array::from_fn(|nth| match (version, nth) {
        (0, _) => 0,
        (_, 0) => version,
        _ => (salt ^ version).wrapping_mul(0x9E37_79B9_7F4A_7C15 + 2 * nth as u64),
    })
}

fn seen_in(page: &impl PageRead) -> [u64; WORDS] {
    std::array::from_fn(|nth| page.u64(place(nth)))
}

/// What happens in the middle of a read or a change, so that other threads run between its halves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    None,
    Spin,
    /// Rare: on a busy machine it takes long.
    Yield,
}

impl Pause {
    /// The pause of the `nth` read or change.
    fn of(nth: u64) -> Self {
        match nth {
            _ if nth % 512 == 1 => Self::Yield,
            _ if nth % 16 == 2 => Self::Spin,
            _ => Self::None,
        }
    }

    fn pause(self) {
        match self {
            Self::None => (),
            Self::Spin => (0..200).for_each(|_| std::hint::spin_loop()),
            Self::Yield => std::thread::yield_now(),
        }
    }
}

/// The words of a page, read with a pause in the middle.
fn seen_slowly(page: &impl PageRead, pause: Pause) -> [u64; WORDS] {
    std::array::from_fn(|nth| {
        if nth == WORDS / 2 {
            pause.pause();
        }
        page.u64(place(nth))
    })
}

fn write(page: &mut ExclusivePage<'_>, rel: RelFork, version: u64) {
    let lsn = page.lsn().0 + 1;
    let words = pattern(rel, page.block().0, version);
    let mut change = page.change();
    for (nth, word) in words.iter().enumerate() {
        change.write(place(nth), &word.to_le_bytes());
        if nth == WORDS / 2 {
            Pause::of(version).pause();
        }
    }
    change.publish(Lsn(lsn));
}

/// The known versions of a block of the fork that stays.
#[derive(Default)]
struct Known {
    begun: AtomicU64,
    published: AtomicU64,
}

struct World {
    bench: Bench,
    blocks: Vec<Known>,
    /// The last version of the passing fork, and the last that has been dropped.
    passing: Known,
    reads: AtomicUsize,
    over: AtomicBool,
}

/// Tells the other threads to end, when dropped, also by a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Lets this thread rest until readers have made that many more reads.
    fn rest(&self, reads: usize) {
        let until = self.reads.load(Ordering::Relaxed) + reads;
        while self.goes_on() && self.reads.load(Ordering::Relaxed) < until {
            std::thread::yield_now();
        }
    }

    /// Reads a page of the fork that stays, and checks its contents.
    fn read(&self, block: u32, latest: &mut u64, read: impl FnOnce() -> [u64; WORDS]) {
        let known = &self.blocks[block as usize];
        let at_least = known.published.load(Ordering::Acquire).max(*latest);
        let seen = read();
        let at_most = known.begun.load(Ordering::Acquire);
        assert_eq!(seen, pattern(REL, block, seen[0]), "torn: block {block}");
        assert!(seen[0] >= at_least, "stale: block {block}, {} after {at_least}", seen[0]);
        assert!(seen[0] <= at_most, "premature: block {block}, {} of {at_most}", seen[0]);
        *latest = seen[0];
    }

    fn change(&self, session: &BufferSession, rel: &RelHandle, block: u32, cancels: bool) {
        let known = &self.blocks[block as usize];
        let pinned = session.pin(rel, BlockNumber(block), Wait::Allowed).unwrap();
        let mut page = pinned.into_exclusive().unwrap();
        // The holder of the latch sees the last version.
        assert_eq!(seen_in(&page), pattern(REL, block, known.published.load(Ordering::Relaxed)));
        if cancels {
            return page.change().cancel();
        }
        let version = known.begun.fetch_add(1, Ordering::AcqRel) + 1;
        write(&mut page, REL, version);
        known.published.store(version, Ordering::Release);
    }

    /// The loop of a reader, which now and then writes.
    fn reader(&self, random: &mut SmallRng) {
        let (session, rel) = self.bench.pool.open();
        let mut latest = vec![0; BLOCKS as usize];
        let mut passing = Passing::default();
        for nth in 0..READS {
            let (hot, pause) = (random.random_range(0..16) > 0, Pause::of(random.random()));
            let block = random.random_range(0..if hot { HOT } else { BLOCKS });
            if random.random_range(0..16) == 0 {
                self.change(&session, &rel, block, random.random_range(0..8) == 0);
            }
            let (latest, at) = (&mut latest[block as usize], BlockNumber(block));
            let see = |page: &PageView<'_>| seen_slowly(page, pause);
            let latch = || session.pin_shared(&rel, at, Wait::Allowed).unwrap();
            match nth % 16 {
                3 => passing.read(self, &session, random.random_range(0..PASSING_BLOCKS), pause),
                7 => self.read(block, latest, || seen_slowly(&latch(), pause)),
                // The pin comes before the latch is released. What is read then may be newer.
                11 => self.read(block, latest, || latch().unlatch().read(see).unwrap()),
                _ => {
                    self.read(block, latest, || session.read(&rel, at, Wait::Allowed, see).unwrap())
                }
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(session.pinned_pages(), 0);
    }

    /// Evicts, writes back, makes the pool larger and smaller.
    fn disturb(&self, random: &mut SmallRng) {
        let session = self.bench.pool.session().unwrap();
        while self.goes_on() {
            match random.random_range(0..4) {
                0 => drop(self.bench.pool.write_dirty(&session, |_| ()).unwrap()),
                1 => {
                    let frames = random.random_range(FRAMES * 3 / 4..=FRAMES * 5 / 4);
                    match self.bench.pool.resize(&session, frames) {
                        Ok(()) | Err(BufferError::Shrinking { .. }) => (),
                        Err(error) => panic!("{error}"),
                    }
                }
                _ => {
                    self.bench.pool.reclaim(&session, random.random_range(1..FRAMES / 4)).unwrap();
                }
            }
            self.rest(200);
        }
    }

    /// Scans the fork through a ring.
    fn scan(&self) {
        let (session, rel) = self.bench.pool.open();
        let mut latest = vec![0; BLOCKS as usize];
        while self.goes_on() {
            let ring = Ring::with_pages(&self.bench.pool, AccessStrategy::BulkRead, 4);
            let mut stream = ReadStream::default();
            let mut source = source_of(0..BLOCKS);
            let ring = ring.as_ref();
            while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, ring, &mut source) {
                let read = || {
                    let read = |page: &PageView<'_>| seen_in(page);
                    session.read_with(&rel, block, Wait::Allowed, ring, read).unwrap()
                };
                self.read(block.0, &mut latest[block.0 as usize], read);
                stream.advance();
            }
            self.rest(1000);
        }
    }

    /// Makes and drops the passing fork, again and again, each time with the next version on its
    /// pages.
    fn come_and_go(&self) {
        let pool = &self.bench.pool;
        let session = pool.session().unwrap();
        while self.goes_on() {
            let version = self.passing.begun.fetch_add(1, Ordering::AcqRel) + 1;
            pool.create(PASSING).unwrap();
            let rel = pool.relation(PASSING).unwrap();
            for _ in 0..PASSING_BLOCKS {
                let mut page = session.extend(&rel, Wait::Allowed).unwrap();
                write(&mut page, PASSING, version);
            }
            self.rest(500);
            // A reader that has just missed has a page pinned for a moment; under Miri that is
            // long.
            while let Err(error) = pool.drop_relation(PASSING.relation) {
                assert!(matches!(error, BufferError::InUse { .. }), "{error}");
            }
            self.passing.published.store(version, Ordering::Release);
        }
    }
}

/// What a reader has seen of the passing fork.
#[derive(Default)]
struct Passing {
    rel: Option<RelHandle>,
    latest: u64,
}

impl Passing {
    /// (A read that began before a drop may end with a page of the fork that came after it. Its
    /// handle is the old one's, but both have one name.)
    fn read(&mut self, world: &World, session: &BufferSession, block: u32, pause: Pause) {
        let pool = &world.bench.pool;
        let rel = self.rel.get_or_insert_with(|| pool.relation(PASSING).unwrap());
        let dropped = world.passing.published.load(Ordering::Acquire);
        match session.read(rel, BlockNumber(block), Wait::Allowed, |p| seen_slowly(p, pause)) {
            // A new page that has not been written to.
            Ok(seen) if seen == [0; WORDS] => (),
            Ok(seen) => {
                let at_most = world.passing.begun.load(Ordering::Acquire);
                assert_eq!(seen, pattern(PASSING, block, seen[0]), "torn: passing block {block}");
                assert!(seen[0] > dropped, "of a fork that was dropped: {seen:?}");
                assert!((self.latest..=at_most).contains(&seen[0]), "{seen:?}");
                self.latest = seen[0];
            }
            Err(BufferError::BeyondEnd { .. }) => (),
            Err(BufferError::Dropped { .. }) => self.rel = None,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_million_reads_beside_writers_and_evictors() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let world = World {
        bench: bench(FRAMES, 0),
        blocks: (0..BLOCKS).map(|_| Known::default()).collect(),
        passing: Known::default(),
        reads: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    let (session, rel) = world.bench.pool.open();
    (0..BLOCKS).for_each(|_| drop(session.extend(&rel, Wait::Allowed).unwrap()));
    let random = |nth: u64| SmallRng::seed_from_u64(seed ^ nth);
    std::thread::scope(|scope| {
        let world = &world;
        let ending = || Ending(&world.over);
        let disturb = [
            scope.spawn(move || (ending(), world.disturb(&mut random(10))).1),
            scope.spawn(move || (ending(), world.scan()).1),
            scope.spawn(move || (ending(), world.come_and_go()).1),
        ];
        let readers: Vec<_> =
            (0..READERS).map(|nth| scope.spawn(move || world.reader(&mut random(nth)))).collect();
        let ending = ending();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        drop(ending);
        disturb.into_iter().for_each(|thread| thread.join().unwrap());
    });
    for (block, known) in (0..).zip(&world.blocks) {
        let last = known.published.load(Ordering::Relaxed);
        let seen = session.read(&rel, BlockNumber(block), Wait::Allowed, |p| seen_in(p)).unwrap();
        assert_eq!(seen, pattern(REL, block, last), "lost: block {block}");
    }
    let stats = world.bench.pool.stats();
    println!("{stats:?}");
    if !cfg!(miri) {
        assert!(stats.evictions > 1000 && stats.writes > 100 && stats.restarts > 10, "{stats:?}");
    }
    drop((session, rel));
    all_free_after_drop(&world.bench);
}
