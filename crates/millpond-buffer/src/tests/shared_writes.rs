//! The number of writes to shared lines that a miss makes: checks RULES.md's table by counting.
//!
//! Under the feature `audit` atomics note their writes ([`millpond_sync::audit`]). This file counts
//! those of frames, entries, freelists and the hand. A *visit* is a run of writes to one line with
//! no other line between. It may cost one transfer of the line from another processor.
use super::*;
use crate::*;
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

/// A pool full of pages that were loaded and not used since, and a table of four times its size.
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
    let (before, hand, taken) = (pool.stats(), pool.core.clock.passed(), pool.core.clock.taken());
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
    // Claimed, owned, published. The hand has also passed half of the victims, which were in the
    // pool before the queue of newcomers was full.
    assert!(about(visits.read_lines, 3.5), "{visits:?}");
    // The owner's lines: the freelist's link; when the page came, where its entry is, and what that
    // was.
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
