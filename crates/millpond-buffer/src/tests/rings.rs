//! Bulk work in rings (rule 11): what it occupies, what it leaves alone, what it gives up.

use super::*;
use crate::core::page_table::{frame_of, is_absent, left_at};
use crate::policy;
use crate::*;
use std::sync::atomic::Ordering;

const FRAMES: u32 = 128;
/// The number of blocks that point readers use; the others are for bulk work.
const OURS: u32 = FRAMES;
const ALL: u32 = if cfg!(miri) { 4 } else { 12 } * FRAMES;
/// The number of pages of a scan that is several times as long as any ring.
const LONG: u32 = if cfg!(miri) { 60 } else { 200 };
/// The number of blocks that are used often.
const HOT: u32 = FRAMES / 2;

/// Which of these blocks are in memory.
fn resident(rel: &RelHandle, blocks: std::ops::Range<u32>) -> Vec<u32> {
    let is_there = |block: &u32| {
        let entry = rel.0.translation.get(BlockNumber(*block));
        entry.is_some_and(|entry| frame_of(entry.load(Ordering::Acquire)).is_some())
    };
    blocks.filter(is_there).collect()
}

fn usage(bench: &Bench, rel: &RelHandle, block: u32) -> Option<u8> {
    let entry = rel.0.translation.get(BlockNumber(block))?.load(Ordering::Acquire);
    Some(policy::usage_count(bench.pool.core.frames[frame_of(entry)? as usize].usage()))
}

struct World {
    bench: Bench,
    session: BufferSession,
    rel: RelHandle,
}

/// A pool full of pages that point readers have used, half of them often.
fn world() -> World {
    let bench = bench(FRAMES as usize, ALL);
    let (session, rel) = bench.pool.open();
    for blocks in [OURS, HOT, HOT, HOT, HOT] {
        (0..blocks).for_each(|block| assert_eq!(number(&session, &rel, block), u64::from(block)));
    }
    World { bench, session, rel }
}

impl World {
    fn ring(&self, strategy: AccessStrategy) -> Ring {
        Ring::new(&self.bench.pool, strategy).unwrap()
    }

    fn scan(&self, ring: &Ring, blocks: std::ops::Range<u32>) {
        for block in blocks {
            let (at, wait) = (BlockNumber(block), Wait::Allowed);
            let read = self.session.read_with(&self.rel, at, wait, Some(ring), |page| page.u64(16));
            assert_eq!(read.unwrap(), u64::from(block));
        }
    }

    fn pin(&self, ring: &Ring, block: u32) -> PinnedPage<'_> {
        let (block, wait) = (BlockNumber(block), Wait::Allowed);
        self.session.pin_with(&self.rel, block, wait, Some(ring)).unwrap()
    }

    /// Changes a byte of each page that no test looks at.
    fn change(&self, ring: &Ring, blocks: std::ops::Range<u32>, lsn: u64) {
        for block in blocks {
            let mut page = self.pin(ring, block).into_exclusive().unwrap();
            let mut change = page.change();
            change.write(PAGE_SIZE - 192, &[1]);
            change.publish(Lsn(lsn));
        }
    }

    fn reads(&self) -> u64 {
        self.bench.store.reads.load(Ordering::Relaxed)
    }

    fn bulk_pages(&self) -> usize {
        resident(&self.rel, OURS..self.rel.block_count()).len()
    }
}

#[test]
fn a_scan_of_several_pools_occupies_its_ring() {
    let world = world();
    let ring = world.ring(AccessStrategy::BulkRead);
    world.scan(&ring, OURS..ALL);
    assert!(ring.len() <= ring.capacity());
    assert_eq!(world.bulk_pages(), ring.len());
    // The sweep gave that many frames to the ring, and it gives in batches.
    let ours = resident(&world.rel, 0..OURS).len();
    assert!(ours + 2 * ring.capacity() >= OURS as usize, "{ours} pages are left");
    let pages: Vec<u32> = resident(&world.rel, OURS..ALL);
    drop(ring);
    // The job has ended, so its pages are the next to go.
    assert!(pages.iter().all(|&block| usage(&world.bench, &world.rel, block) == Some(0)));
}

#[test]
fn point_readers_beside_a_scan_miss_nothing_that_they_use() {
    const AT_A_TIME: u32 = if cfg!(miri) { 32 } else { 8 };
    let world = world();
    let ring = world.ring(AccessStrategy::BulkRead);
    let mut scanned = OURS;
    // Half of the pool is in steady use; the scan gets its frames from the rest.
    let before = world.reads();
    while scanned < ALL {
        world.scan(&ring, scanned..scanned + AT_A_TIME);
        scanned += AT_A_TIME;
        for block in (0..HOT).rev() {
            assert_eq!(number(&world.session, &world.rel, block), u64::from(block));
        }
    }
    assert_eq!(world.reads() - before, u64::from(ALL - OURS), "a page in use was read again");
}

#[test]
fn what_others_use_leaves_the_ring() {
    let world = world();
    let other = world.bench.pool.session().unwrap();
    let ring = world.ring(AccessStrategy::BulkRead);
    let (used, pinned) = (OURS + 20, OURS + 21);
    world.scan(&ring, OURS..OURS + 24);
    assert_eq!(number(&other, &world.rel, used), u64::from(used));
    let pin = other.pin(&world.rel, BlockNumber(pinned), Wait::Allowed).unwrap();
    world.scan(&ring, OURS + 24..OURS + 100);
    assert!(resident(&world.rel, used..used + 2).len() == 2);
    assert!(ring.len() <= ring.capacity());
    assert_eq!(world.bulk_pages(), ring.len() + 2);
    drop(pin);
}

#[test]
fn scans_do_not_make_a_page_look_wanted() {
    let world = world();
    let block = OURS + 3;
    for scans in 0..10 {
        let ring = world.ring(AccessStrategy::BulkRead);
        world.scan(&ring, block..block + 1);
        drop(world.pin(&ring, block));
        // The first scan has brought the page.
        let expected = u8::from(scans == 0);
        assert_eq!(usage(&world.bench, &world.rel, block), Some(expected));
    }
    // Reading through a pin is part of the use that the pin was counted as.
    let pin = world.session.pin(&world.rel, BlockNumber(block), Wait::Allowed).unwrap();
    let counted = usage(&world.bench, &world.rel, block);
    (0..9).for_each(|_| assert_eq!(pin.read(|page| page.u64(16)).unwrap(), u64::from(block)));
    assert_eq!(usage(&world.bench, &world.rel, block), counted);
}

/// The time when a page left is remembered while scans take the page through their rings. So a
/// session that soon comes back for the page finds it admitted. A scan does not count as such a
/// return.
#[test]
fn scans_do_not_make_absent_pages_forgotten() {
    let world = world();
    // Twice as many pages as there is room for, each used once.
    for block in FRAMES..3 * FRAMES {
        number(&world.session, &world.rel, block);
    }
    let entry = |block| {
        world.rel.0.translation.get(BlockNumber(block)).map(|entry| entry.load(Ordering::Acquire))
    };
    let left = |block| entry(block).filter(|entry| is_absent(*entry)).and_then(left_at);
    let away: Vec<_> = (0..3 * FRAMES).filter_map(|block| Some((block, left(block)?))).collect();
    assert!(away.len() > FRAMES as usize, "{} pages have left", away.len());
    let before = world.bench.pool.stats();
    for _ in 0..2 {
        let ring = world.ring(AccessStrategy::BulkRead);
        world.scan(&ring, 0..ALL);
    }
    let after = world.bench.pool.stats();
    assert_eq!((after.regret, after.regret_age), (before.regret, before.regret_age));
    // Rings take a few frames from the pool, and the pages that were there last are still there.
    let same = away.iter().filter(|&&(block, then)| left(block) == Some(then)).count();
    assert_eq!(same, away.len());
    assert_eq!(left(3 * FRAMES), None, "it was in no ring");
    let &(last, _) = away.iter().max_by_key(|(_, then)| *then).unwrap();
    number(&world.session, &world.rel, last);
    assert_eq!(world.bench.pool.stats().regret, after.regret + 1);
}

/// A load's ring has 1 MB. While its log is not flushed it has up to 2 MB or a 128th of the pool,
/// if that much was asked for. Beyond that the load waits for the log.
#[test]
#[cfg_attr(miri, ignore = "a load's ring of more than 128 pages needs thousands of frames")]
fn load_waits_for_the_log_only_when_its_ring_is_full() {
    let bench = bench(8192, 0);
    let (session, rel) = bench.pool.open();
    // No frame is free, so that none comes from outside the ring.
    let filled = RelationId::constant(8).main();
    bench.pool.create(filled).unwrap();
    let other = bench.pool.relation(filled).unwrap();
    (0..8192).for_each(|_| drop(session.extend(&other, Wait::Allowed).unwrap()));
    let ring = Ring::new(&bench.pool, AccessStrategy::BulkWrite).unwrap();
    assert_eq!(ring.capacity(), 1024);
    let load = |pages: u64, flushes: bool| {
        let mut most = 0;
        for lsn in 1..=pages {
            let mut page = session.extend_with(&rel, Wait::Allowed, Some(&ring)).unwrap();
            page.change().publish(Lsn(lsn));
            drop(page);
            if flushes {
                bench.log.flushed.fetch_max(lsn, Ordering::Relaxed);
            }
            most = most.max(ring.len());
        }
        most
    };
    assert_eq!(load(2000, true), 128);
    bench.log.flushed.store(0, Ordering::Relaxed);
    let most = load(100, false);
    assert!((180..=256).contains(&most), "{most} pages");
    assert_eq!(bench.log.flushed.load(Ordering::Relaxed), 0, "it has waited for the log");
    let most = load(2000, false);
    assert!((250..=256).contains(&most), "{most} pages");
    assert!(bench.log.flushed.load(Ordering::Relaxed) > 0);
}

/// A ring for pages in no order begins small, and becomes longer for pages that come back.
#[test]
fn a_ring_widens_for_pages_that_come_back() {
    let world = world();
    let ring = Ring::widening(&world.bench.pool, AccessStrategy::BulkRead, 4).unwrap();
    assert_eq!(ring.capacity(), 16);
    world.scan(&ring, OURS..OURS + LONG);
    assert_eq!(ring.len() + ring.spare_frames(), 4);
    // Ten pages again and again: at first they don't fit, and then they do.
    (0..10).for_each(|_| world.scan(&ring, OURS + 2 * LONG..OURS + 2 * LONG + 10));
    let before = world.reads();
    world.scan(&ring, OURS + 2 * LONG..OURS + 2 * LONG + 10);
    assert_eq!(world.reads(), before);
    assert!((10..=16).contains(&ring.len()));
}

/// Room for read-ahead is used only by jobs that read ahead.
#[test]
fn a_ring_is_no_longer_than_its_job_reads_ahead() {
    let world = world();
    let ring = Ring::with_read_ahead(&world.bench.pool, AccessStrategy::BulkRead, 4, 12).unwrap();
    world.scan(&ring, OURS..OURS + LONG);
    assert_eq!((ring.capacity(), ring.len() + ring.spare_frames()), (16, 4));
    ring.set_ahead(7);
    world.scan(&ring, OURS + LONG..OURS + 2 * LONG);
    assert_eq!(ring.len() + ring.spare_frames(), 14);
    ring.set_ahead(1);
    world.scan(&ring, OURS + 2 * LONG..OURS + 3 * LONG);
    assert_eq!(ring.len() + ring.spare_frames(), 4);
}

#[test]
fn free_frames_come_first() {
    let bench = bench(FRAMES as usize, ALL);
    let (session, rel) = bench.pool.open();
    let world = World { bench, session, rel };
    let ring = world.ring(AccessStrategy::BulkRead);
    world.scan(&ring, 0..64);
    assert!(ring.is_empty());
    let before = world.reads();
    world.scan(&ring, 0..64);
    assert_eq!(world.reads(), before, "there was room to keep them");
    // The reclaimer's reserve is not for bulk work.
    world.scan(&ring, 64..ALL);
    assert!(world.bench.pool.core.free_frames() >= 16);
    assert!(!ring.is_empty() && ring.len() <= ring.capacity());
}

#[test]
fn a_load_writes_its_own_pages_and_stays_in_its_ring() {
    let world = world();
    let ring = world.ring(AccessStrategy::BulkWrite);
    let first = world.rel.block_count();
    for block in first..first + LONG {
        let mut page = world.session.extend_with(&world.rel, Wait::Allowed, Some(&ring)).unwrap();
        assert_eq!(page.block(), BlockNumber(block));
        write_number(&mut page, u64::from(block), u64::from(block));
    }
    assert!(world.bulk_pages() <= ring.capacity());
    // The log before the page, for pages that the ring has written.
    let flushed = world.bench.log.flushed.load(Ordering::Relaxed);
    assert!(flushed >= u64::from(first + LONG) - 1 - ring.capacity() as u64 - 1);
    // It writes neighbours together.
    let joined = world.bench.store.writes.lock().iter().map(|write| write.2).max();
    assert_eq!(joined, Some(4), "a quarter of the ring at a time");
    drop(ring);
    world.bench.pool.write_dirty(&world.session, |_| ()).unwrap();
    let ring = world.ring(AccessStrategy::BulkRead);
    world.scan(&ring, first..first + LONG);
}

#[test]
fn a_read_does_not_wait_for_the_log_and_gets_its_pages_back_later() {
    let world = world();
    let ring = world.ring(AccessStrategy::BulkRead);
    // It changes what it reads, as a scan that prunes does, faster than the log is flushed.
    let changed = 3 * ring.capacity() as u32;
    world.change(&ring, OURS..OURS + changed, 1000);
    assert_eq!(world.bench.log.flushed.load(Ordering::Relaxed), 0, "it has waited for the log");
    assert!(ring.len() > ring.capacity());
    world.bench.log.flushed.store(1000, Ordering::Relaxed);
    world.scan(&ring, OURS + changed..OURS + 3 * changed);
    assert!(ring.len() <= ring.capacity());
    assert!(world.bulk_pages() <= ring.capacity());
    // What the job does is counted as its own.
    let io = *world.bench.pool.stats().io_of(BackendKind::Client, IoContext::BulkRead);
    assert!(io.reads > 0 && io.reuses > 0 && io.writes > 0, "{io:?}");
}

#[test]
fn a_read_gives_up_pages_that_wait_for_the_log_for_long() {
    let world = world();
    let ring = Ring::with_pages(&world.bench.pool, AccessStrategy::BulkRead, 4).unwrap();
    world.change(&ring, OURS..OURS + 64, 1000);
    assert!(ring.len() <= 4 * ring.capacity());
    assert_eq!(world.bench.log.flushed.load(Ordering::Relaxed), 0);
}

#[test]
fn a_page_that_cannot_be_written_stays_and_is_not_lost() {
    let world = world();
    let ring = world.ring(AccessStrategy::Vacuum);
    world.scan(&ring, OURS..OURS + 16);
    set_number(&world.session, &world.rel, OURS, 7, 5);
    world.bench.store.fail_writes.store(true, Ordering::Relaxed);
    world.scan(&ring, OURS + 16..OURS + 64);
    world.bench.store.fail_writes.store(false, Ordering::Relaxed);
    world.scan(&ring, OURS + 64..OURS + 128);
    assert_eq!(number(&world.session, &world.rel, OURS), 7);
}

#[test]
fn ring_returns_would_block_if_the_caller_must_not_wait() {
    let world = world();
    let ring = world.ring(AccessStrategy::Vacuum);
    world.change(&ring, OURS..OURS + 16, 9);
    let (block, never) = (BlockNumber(OURS + 20), Wait::Never);
    let read = world.session.read_with(&world.rel, block, never, Some(&ring), |_| ());
    // It does not take other sessions' frames instead.
    assert!(matches!(read, Err(BufferError::WouldBlock)), "{read:?}");
    assert_eq!(ring.len(), ring.capacity());
    assert!(world.bench.store.writes.lock().is_empty());
}

/// A long idle job does not delay the pool's shrinking, though its ring owns frames (rule 10).
#[test]
fn a_pool_shrinks_although_a_job_is_idle() {
    let world = world();
    let ring = world.ring(AccessStrategy::BulkRead);
    let next = |from: u32| {
        (from..ALL).find(|&block| {
            world.scan(&ring, block..block + 1);
            ring.spare_frames() > 0
        })
    };
    // It scans until the ring has released several pages at a time and keeps their frames.
    let idle_at = next(OURS).unwrap();
    world.bench.pool.resize(&world.session, 1).unwrap();
    assert_eq!(world.bench.pool.frames(), 1);
    assert_eq!(ring.spare_frames(), 0);
    world.bench.pool.resize(&world.session, FRAMES as usize).unwrap();
    world.scan(&ring, idle_at + 1..ALL);
}

/// Frames for a read of several pages are handed out before their pages are known.
#[test]
fn reading_ahead_keeps_to_the_ring() {
    let world = world();
    for strategy in [AccessStrategy::BulkRead, AccessStrategy::Vacuum] {
        let ring = world.ring(strategy);
        let (before, read_before) = (world.bulk_pages(), world.bench.pool.stats().reads);
        let mut stream = ReadStream::default();
        let mut source = source_of(OURS..ALL);
        let (session, rel) = (&world.session, &world.rel);
        let mut most = 0;
        while let Some(block) = stream.peek(session, rel, Wait::Allowed, Some(&ring), &mut source) {
            let pinned = session.pin_with(rel, block, Wait::Allowed, Some(&ring)).unwrap();
            if strategy == AccessStrategy::Vacuum && block.0 % 2 == 0 {
                pinned.into_exclusive().unwrap().change().publish(Lsn(3));
            }
            stream.advance();
            most = most.max(world.bulk_pages());
        }
        assert!(most <= before + ring.capacity(), "{strategy:?}: {most} after {before}");
        let read = world.bench.pool.stats().reads - read_before;
        assert!(read <= u64::from(ALL - OURS), "{strategy:?}: {read} pages were read");
    }
}
