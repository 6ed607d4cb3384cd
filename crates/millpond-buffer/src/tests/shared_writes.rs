//! What the pool's operations write to shared memory.
//!
//! **The proof of rule 1.** With the arena, the descriptors and the entries mapped read-only, warm
//! optimistic reads go on. A write would be a crash.
//!
//! **The writes of a miss** ([`counted`]) are those of RULES.md's table: a test counts them.
#![allow(unsafe_code, clippy::unwrap_used)]

use super::*;
use crate::core::page_table::PageTable;
use crate::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::mm::{MprotectFlags, mprotect};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const MEMORY_PAGE: usize = 4096;
const THREADS: u64 = 3;
const READS: usize = 1_000_000;
const SIGSEGV: i32 = 11;

/// The whole pages of memory inside a value.
struct Region {
    start: usize,
    len: usize,
}

impl Region {
    fn inside<T>(values: &[T]) -> Self {
        let start = values.as_ptr() as usize;
        let end = (start + size_of_val(values)) / MEMORY_PAGE * MEMORY_PAGE;
        let start = start.next_multiple_of(MEMORY_PAGE);
        Self { start, len: end.saturating_sub(start) }
    }

    fn holds<T>(&self, value: &T) -> bool {
        let at = std::ptr::from_ref(value) as usize;
        at >= self.start && at + size_of::<T>() <= self.start + self.len
    }

    fn allow(&self, flags: MprotectFlags) {
        // SAFETY: these are whole pages of memory of the pool under test. No thread writes them
        // while they are read-only, or the test crashes, as it should.
        unsafe { mprotect(self.start as *mut _, self.len, flags).unwrap() };
    }
}

fn chunk_of(translation: &PageTable, block: u32) -> Region {
    let entry = std::ptr::from_ref(translation.get(BlockNumber(block)).unwrap()) as usize;
    Region { start: entry / MEMORY_PAGE * MEMORY_PAGE, len: MEMORY_PAGE }
}

/// A pool whose pages are all in memory, and used so often that one more use changes no count.
struct Warm {
    bench: Bench,
    rel: RelHandle,
    sessions: Vec<BufferSession>,
    /// Blocks whose pages, descriptors and entries can be made read-only.
    readable: Vec<u32>,
    regions: Vec<Region>,
}

impl Warm {
    fn new() -> Self {
        const BLOCKS: u32 = 1500;
        let bench = bench(2000, BLOCKS);
        let pool = &bench.pool;
        let rel = pool.relation(REL).unwrap();
        let sessions: Vec<_> = (0..THREADS).map(|_| pool.session().unwrap()).collect();
        for _ in 0..=policy::MAX_USAGE {
            for block in 0..BLOCKS {
                assert_eq!(number(&sessions[0], &rel, block), u64::from(block));
            }
        }
        let descriptors = Region::inside(&pool.core.frames);
        let mut regions: Vec<Region> =
            (0..BLOCKS).step_by(512).map(|block| chunk_of(&rel.0.translation, block)).collect();
        let arena = (0..pool.frames() as u32).map(|frame| Region::inside(pool.core.words(frame)));
        regions.extend(arena.filter(|page| page.len == PAGE_SIZE));
        // Pages whose descriptors share memory with something else are left out.
        let readable: Vec<u32> = (0..BLOCKS)
            .filter(|block| descriptors.holds(&pool.core.frames[frame_of_block(&rel, *block)]))
            .collect();
        assert!(readable.len() > 1400, "only {} pages can be protected", readable.len());
        regions.push(descriptors);
        regions.retain(|region| region.len > 0);
        Self { bench, rel, sessions, readable, regions }
    }

    fn allow(&self, flags: MprotectFlags) {
        self.regions.iter().for_each(|region| region.allow(flags));
    }
}

fn frame_of_block(rel: &RelHandle, block: u32) -> usize {
    let entry = rel.0.translation.get(BlockNumber(block)).unwrap();
    let entry = entry.load(millpond_sync::atomic::Ordering::Relaxed);
    crate::core::page_table::frame_of(entry).unwrap() as usize
}

#[test]
fn warm_reads_write_nothing_shared() {
    let mut warm = Warm::new();
    let before = warm.bench.pool.stats();
    let sessions = std::mem::take(&mut warm.sessions);
    warm.allow(MprotectFlags::READ);
    std::thread::scope(|scope| {
        for (seed, session) in (0..).zip(sessions) {
            let (rel, readable) = (warm.rel.clone(), &warm.readable);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                for _ in 0..READS {
                    let block = readable[random.random_range(0..readable.len())];
                    assert_eq!(number(&session, &rel, block), u64::from(block));
                }
            });
        }
    });
    warm.allow(MprotectFlags::READ | MprotectFlags::WRITE);

    let after = warm.bench.pool.stats();
    assert_eq!(after.hits - before.hits, THREADS * READS as u64);
    assert_eq!((after.misses, after.latched_reads), (before.misses, before.latched_reads));
}

/// The control: each of the three is indeed read-only, so one write to it ends the process.
#[test]
fn a_shared_write_would_be_a_crash() {
    const WRITE: &str = "MILLPOND_TEST_WRITE_TO";
    let name = "tests::shared_writes::a_shared_write_would_be_a_crash";
    let Ok(to) = std::env::var(WRITE) else {
        for to in ["nothing", "arena", "descriptor", "entry"] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            // ThreadSanitizer would turn the signal into an exit.
            child.env(WRITE, to).env("TSAN_OPTIONS", "handle_segv=0");
            child.args([name, "--exact", "--test-threads=1"]);
            let signal = child.output().unwrap().status.signal();
            assert_eq!(signal, (to != "nothing").then_some(SIGSEGV), "a write to the {to}");
        }
        return;
    };
    let warm = Warm::new();
    let (block, relaxed) = (warm.readable[700], millpond_sync::atomic::Ordering::Relaxed);
    let frame = frame_of_block(&warm.rel, block);
    warm.allow(MprotectFlags::READ);
    match &*to {
        "arena" => warm.bench.pool.core.words(frame as u32)[3].store(0, relaxed),
        "descriptor" => warm.bench.pool.core.frames[frame].set_usage(0),
        "entry" => warm.rel.0.translation.entry(BlockNumber(block)).store(0, relaxed),
        _ => {}
    }
    warm.allow(MprotectFlags::READ | MprotectFlags::WRITE);
}

/// The number of writes to shared lines. Under the feature `audit`, atomics note their writes
/// ([`millpond_sync::audit`]). Those of frames, entries, freelists and the hand are counted. A
/// *visit* is a run of writes to one line with no other line between. It may cost one transfer of
/// the line from another processor.
#[cfg(feature = "audit")]
mod counted {
    use super::*;
    use millpond_sync::audit::writes::{Kind, Subsystem, Write};

    /// The writes of `f` to shared words of the pool's own, without latches, mutexes and bytes of
    /// pages.
    fn writes_of(f: impl FnOnce()) -> Vec<Write> {
        let mut writes = millpond_sync::audit::writes::writes_of(f);
        writes.retain(|write| {
            let pool = [Subsystem::PageTable, Subsystem::Descriptors, Subsystem::Replacement];
            pool.contains(&write.subsystem()) && !matches!(write.kind, Kind::Load | Kind::Lock)
        });
        writes
    }

    const FRAMES: usize = 2048;
    /// The number of frames that are examined and taken together.
    const BATCH: u64 = 32;
    const MISSES: u32 = 2 * FRAMES as u32;
    const BLOCKS: u32 = 4 * FRAMES as u32;

    /// The table's blocks in an order in which no block follows a neighbour: entries of neighbours
    /// share a line.
    fn block(nth: u32) -> BlockNumber {
        BlockNumber(nth * 1025 % BLOCKS)
    }

    /// The number of visits to lines of each kind.
    #[derive(Debug, Default, PartialEq)]
    struct Visits {
        entries: f64,
        freelists: f64,
        hand: f64,
        /// Frames' lines: those that optimistic readers load, and those that only the owner or a
        /// latch's holder writes.
        read_lines: f64,
        latch_lines: f64,
        /// These are writes, not visits.
        read_modify: f64,
        stores: f64,
    }

    impl Visits {
        fn of(writes: &[Write], pool: &BufferPool, operations: f64) -> Self {
            let mut visits = Self::default();
            let frames = pool.core.frames.as_ptr_range();
            let in_frames = frames.start as usize / 64..frames.end as usize / 64;
            let hand = std::ptr::from_ref(&pool.core.clock) as usize / 64;
            let mut last = None;
            for write in writes {
                let kind = match write.kind {
                    Kind::ReadModifyWrite => &mut visits.read_modify,
                    _ => &mut visits.stores,
                };
                *kind += 1.0 / operations;
                if last.replace(write.line) == Some(write.line) {
                    continue;
                }
                let kind = if in_frames.contains(&write.line) {
                    match (write.line - in_frames.start) % 2 {
                        0 => &mut visits.read_lines,
                        _ => &mut visits.latch_lines,
                    }
                } else if pool.core.free.is_at(write.line * 64) {
                    &mut visits.freelists
                } else if write.line.abs_diff(hand) <= 1 {
                    &mut visits.hand
                } else {
                    &mut visits.entries
                };
                *kind += 1.0 / operations;
            }
            visits
        }
    }

    /// A pool full of pages that were loaded and not used since, and a table of four times its
    /// size.
    fn warm() -> (Bench, BufferSession, RelHandle) {
        let bench = bench(FRAMES, BLOCKS);
        let (session, rel) = bench.pool.open();
        // Until a sweep has freed every frame that is used, and all entries have their chunks.
        for nth in 0..FRAMES as u32 {
            drop(session.pin(&rel, block(nth), Wait::Allowed).unwrap());
        }
        for block in 0..BLOCKS {
            let _ = rel.0.translation.entry(BlockNumber(block));
        }
        (bench, session, rel)
    }

    #[test]
    fn a_miss_that_takes_a_clean_victim() {
        let (Bench { pool, .. }, session, rel) = warm();
        let (before, hand, taken) =
            (pool.stats(), pool.core.clock.passed(), pool.core.clock.taken());
        let writes = writes_of(|| {
            for nth in 0..MISSES {
                drop(session.pin(&rel, block(FRAMES as u32 + nth), Wait::Allowed).unwrap());
            }
        });
        let after = pool.stats();
        assert_eq!(after.misses - before.misses, u64::from(MISSES));
        let examined = after.frames_examined - before.frames_examined;
        let visits = Visits::of(&writes, &pool, f64::from(MISSES));
        println!("a miss: {visits:.2?}");
        let about = |found: f64, expected: f64| (found - expected).abs() < 0.15;
        // The table of RULES.md: absent to loading, the victim's to absent, loading to resident.
        assert!(about(visits.entries, 3.0), "{visits:?}");
        // A pop, and a push for each 32 misses.
        assert!(about(visits.freelists, 1.0), "{visits:?}");
        // An advance for each 32 frames examined, and a count for each 32 frames taken.
        assert!(visits.hand < 0.15, "{visits:?}");
        // Claimed, owned, published. The hand has also passed half of the victims, which were in
        // the pool before the queue of newcomers was full.
        assert!(about(visits.read_lines, 3.5), "{visits:?}");
        // The owner's lines: the freelist's link; when the page came, where its entry is, and what
        // that was.
        assert!(about(visits.latch_lines, 2.0), "{visits:?}");
        assert!(about(visits.read_modify, 5.0) && about(visits.stores, 10.5), "{visits:?}");
        // The hand's line gets two kinds of writes. The hand advances, at most once for 32 frames
        // examined; newcomers are examined without it.
        let advances = (pool.core.clock.passed() - hand) / BATCH;
        assert!(0 < advances && advances <= examined / BATCH, "{advances} for {examined} examined");
        // The other kind counts the frames taken, once for 32.
        let counts = (pool.core.clock.taken() - taken) / BATCH;
        let updates = writes.iter().filter(|write| write.file.ends_with("policy/mod.rs")).count();
        assert_eq!(updates as u64, advances + counts);
    }

    #[test]
    fn a_miss_that_finds_a_free_frame() {
        let (Bench { pool, .. }, session, rel) = warm();
        assert!(pool.reclaim(&session, 64).unwrap() >= 64);
        for nth in 0..20 {
            let block = block(FRAMES as u32 + nth);
            let writes = writes_of(|| drop(session.pin(&rel, block, Wait::Allowed).unwrap()));
            let found = Visits::of(&writes, &pool, 1.0);
            let expected = Visits {
                entries: 2.0,
                freelists: 1.0,
                hand: 0.0,
                read_lines: 1.0,
                latch_lines: 1.0,
                read_modify: 3.0,
                stores: 7.0,
            };
            assert_eq!(found, expected, "{writes:?}");
        }
    }

    #[test]
    fn a_hit() {
        let (_, session, rel) = warm();
        let block = block(FRAMES as u32 - 1);
        for _ in 0..=policy::MAX_USAGE {
            drop(session.pin(&rel, block, Wait::Allowed).unwrap());
        }
        let writes = writes_of(|| {
            drop(session.pin(&rel, block, Wait::Allowed).unwrap());
            session.read(&rel, block, Wait::Allowed, |page| page.u64(16)).unwrap();
        });
        assert_eq!(writes, []);
    }
}
