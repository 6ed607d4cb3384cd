//! The proof of rule 1: with the arena, the descriptors and the entries mapped read-only, warm
//! optimistic reads go on. A write would be a crash.
#![allow(unsafe_code, clippy::unwrap_used)]

use super::support::*;
use crate::translation::Translation;
use crate::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::mm::{MprotectFlags, mprotect};

const MEMORY_PAGE: usize = 4096;
const THREADS: u64 = 3;
const READS: usize = 1_000_000;

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
        // SAFETY: whole pages of memory of the pool under test, which nobody writes while they are
        // read-only, or the test crashes, as it should.
        unsafe { mprotect(self.start as *mut _, self.len, flags).unwrap() };
    }
}

fn chunk_of(translation: &Translation, block: u32) -> Region {
    let entry = std::ptr::from_ref(translation.get(BlockNumber(block)).unwrap()) as usize;
    Region { start: entry / MEMORY_PAGE * MEMORY_PAGE, len: MEMORY_PAGE }
}

#[test]
fn warm_reads_write_nothing_shared() {
    const BLOCKS: u32 = 1500;
    let Bench { pool, .. } = bench(2000, BLOCKS);
    let rel = pool.relation(REL).unwrap();
    let sessions: Vec<_> = (0..THREADS).map(|_| pool.session().unwrap()).collect();
    // Warm: in memory, and used so often that one more use changes no count.
    for _ in 0..=policy::MAX_USAGE {
        for block in 0..BLOCKS {
            assert_eq!(number(&sessions[0], &rel, block), u64::from(block));
        }
    }
    let before = pool.stats();

    let descriptors = Region::inside(&pool.frames);
    let mut regions: Vec<Region> =
        (0..BLOCKS).step_by(512).map(|block| chunk_of(&rel.0.translation, block)).collect();
    let arena = (0..pool.frames() as u32).map(|frame| Region::inside(pool.words(frame)));
    regions.extend(arena.filter(|page| page.len == PAGE_SIZE));
    // Pages whose descriptors share memory with something else are left out.
    let readable: Vec<u32> = (0..BLOCKS)
        .filter(|block| {
            let entry = rel.0.translation.get(BlockNumber(*block)).unwrap();
            let entry = entry.load(millpond_sync::atomic::Ordering::Relaxed);
            let frame = crate::translation::frame_of(entry).unwrap();
            descriptors.holds(&pool.frames[frame as usize])
        })
        .collect();
    assert!(readable.len() > 1400, "only {} pages can be protected", readable.len());
    regions.push(descriptors);
    regions.retain(|region| region.len > 0);

    regions.iter().for_each(|region| region.allow(MprotectFlags::READ));
    std::thread::scope(|scope| {
        for (seed, session) in (0..).zip(sessions) {
            let (rel, readable) = (rel.clone(), &readable);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                for _ in 0..READS {
                    let block = readable[random.random_range(0..readable.len())];
                    assert_eq!(number(&session, &rel, block), u64::from(block));
                }
            });
        }
    });
    regions.iter().for_each(|region| region.allow(MprotectFlags::READ | MprotectFlags::WRITE));

    let after = pool.stats();
    assert_eq!(after.hits - before.hits, THREADS * READS as u64);
    assert_eq!((after.misses, after.latched_reads), (before.misses, before.latched_reads));
}
