//! The proof of rule 1. With the arena, the descriptors and the entries mapped read-only, warm
//! optimistic reads go on. A write would be a crash.
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
        // SAFETY: these are whole pages of memory of the pool under test. Nobody writes them while
        // they are read-only, or the test crashes, as it should.
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
    let name = "tests::read_only::a_shared_write_would_be_a_crash";
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
