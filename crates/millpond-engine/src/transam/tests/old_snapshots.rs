//! Snapshots that are held for long: how much memory their statuses take, and where they are found.

use std::collections::BTreeMap;

use millpond_buffer::{MemoryStore, PageBuffer};

use super::*;
use crate::transam::chunk::CHUNK;
use crate::transam::csn_pages::CSN_FILE;

/// The chunks that the tests allow in memory.
const IN_MEMORY: usize = 3;

struct World {
    fixture: Fixture,
    worker: Ctx,
    /// The outcome of each transaction.
    fates: BTreeMap<Xid, Option<Csn>>,
    rng: StdRng,
}

impl World {
    fn new(seed: u64) -> Self {
        // Reading a page that is not in the pool requires waiting.
        let fixture = Fixture::on(MemoryStore::cold(), 8, 64, 1);
        let worker = fixture.ctx();
        worker.txns().kept_chunks.store(IN_MEMORY, Ordering::Relaxed);
        World { fixture, worker, fates: BTreeMap::new(), rng: StdRng::seed_from_u64(seed) }
    }

    fn chunks_in_memory(&self) -> usize {
        self.worker.txns().ring.overflow.len()
    }

    fn file_blocks(&self) -> u32 {
        self.fixture.shared.pool.relation(CSN_FILE).unwrap().block_count()
    }

    /// Runs as many transactions as there are ids in `chunks` chunks.
    fn run(&mut self, chunks: u64) {
        for _ in 0..chunks * CHUNK {
            let xid = self.worker.assign_xid().unwrap();
            let fate = match self.rng.random_range(0..3) {
                0 => {
                    self.worker.txns().abort(&self.worker, &[]);
                    None
                }
                _ => commit(&self.worker),
            };
            self.fates.insert(xid, fate);
        }
    }

    /// Checks that the status of a transaction is the right one for the snapshots.
    fn expect(&self, reader: &Ctx, xid: Xid, snapshots: &[Csn]) {
        let found = status(reader, xid);
        let Some(csn) = self.fates[&xid] else { return assert_eq!(found, XidStatus::Aborted) };
        let XidStatus::Committed(seen) = found else { panic!("{xid}: {found:?}") };
        for &snapshot in snapshots {
            assert_eq!(seen <= snapshot, csn <= snapshot, "{xid}, {csn} for {snapshot}: {seen}");
        }
    }

    fn expect_some(&mut self, reader: &Ctx, snapshots: &[Csn], count: usize) {
        let xids: Vec<Xid> = self.fates.keys().copied().collect();
        for _ in 0..count {
            let xid = xids[self.rng.random_range(0..xids.len())];
            self.expect(reader, xid, snapshots);
        }
    }
}

#[test]
fn memory_of_a_held_snapshot_is_bounded() {
    let mut world = World::new(3);
    let (reader, long) = (world.fixture.ctx(), world.fixture.ctx());
    world.run(1);
    let long_running = long.assign_xid().unwrap();
    let held = reader.txns().snapshot(&reader);
    for _ in 0..10 {
        world.run(4);
        assert!(world.chunks_in_memory() <= IN_MEMORY + 1, "{}", world.chunks_in_memory());
        world.expect_some(&reader, &[held], 300);
    }
    assert!(world.file_blocks() >= 30, "{} blocks", world.file_blocks());
    assert_eq!(status(&reader, long_running), XidStatus::InProgress);
    world.fates.insert(long_running, commit(&long));
    world.expect(&reader, long_running, &[held]);
    // The file is cut when the snapshot is released.
    reader.txns().release_snapshot(&reader, held);
    world.worker.txns().maintain(&world.worker).unwrap();
    assert_eq!((world.chunks_in_memory(), world.file_blocks()), (0, 0));
    world.expect_some(&reader, &[], 1000);
}

#[test]
fn successive_snapshots_reuse_places_in_the_file() {
    let mut world = World::new(4);
    let readers = [world.fixture.ctx(), world.fixture.ctx()];
    let mut held = readers.each_ref().map(|reader| reader.txns().snapshot(reader));
    let mut most = 0;
    // Some snapshot is always held, so the file is never empty.
    for round in 0..12 {
        world.run(64);
        world.expect_some(&readers[0], &held, 200);
        let reader = &readers[round % 2];
        reader.txns().release_snapshot(reader, held[round % 2]);
        held[round % 2] = reader.txns().snapshot(reader);
        world.worker.txns().maintain(&world.worker).unwrap();
        most = most.max(world.file_blocks());
    }
    assert!(most <= 4 * 64, "{most} blocks for two snapshots of at most 128 chunks");
}

/// The log does not know the file, so the pool accepts zeros and old pages. The reader does not.
#[test]
fn lost_commit_number_page_is_an_error() {
    let mut world = World::new(7);
    let reader = world.fixture.ctx();
    let held = reader.txns().snapshot(&reader);
    // More chunks than the pool has frames.
    world.run(100);
    let pool = &world.fixture.shared.pool;
    pool.write_dirty(reader.buffers(), |_| ()).unwrap();
    let store = &world.fixture.store;
    let mut first = PageBuffer::new(1);
    store.read(CSN_FILE, BlockNumber(0), &mut first.pages_mut()).unwrap();
    let zeros = PageBuffer::new(1);
    let blocks = world.file_blocks();
    for block in 0..blocks {
        let other = if block % 2 == 0 { &zeros } else { &first };
        let pages: Vec<_> = other.pages().collect();
        store.write(CSN_FILE, BlockNumber(block), &pages).unwrap();
    }
    let mut errors = 0;
    for (xid, csn) in world.fates.iter().step_by(31) {
        match reader.txns().status(&reader, *xid) {
            Ok(XidStatus::Committed(seen)) => {
                assert_eq!(Some(seen <= held), csn.map(|csn| csn <= held))
            }
            Ok(status) => assert_eq!((status, *csn), (XidStatus::Aborted, None)),
            Err(EngineError::Corruption { .. } | EngineError::Buffer(_)) => errors += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(errors > 100, "{errors} errors");
}

#[test]
fn a_status_on_disk_is_not_read_where_waiting_is_forbidden() {
    let mut world = World::new(5);
    let reader = world.fixture.ctx();
    let held = reader.txns().snapshot(&reader);
    let first = world.worker.txns().next_xid();
    // More chunks than the pool has frames.
    world.run(100);
    let (mut refused, cold) = (0, world.fixture.ctx());
    for chunk in 0..90 {
        let xid = Xid(first.0 + chunk * CHUNK + 7);
        cold.set_wait(Wait::Never);
        match cold.txns().status(&cold, xid) {
            Err(EngineError::WouldBlock) => refused += 1,
            other => drop(other.unwrap()),
        }
        cold.set_wait(Wait::Allowed);
        world.expect(&cold, xid, &[held]);
    }
    assert!(refused > 0);
}

#[test]
fn readers_get_correct_statuses_during_upkeep() {
    let mut world = World::new(6);
    world.run(1);
    let readers: Vec<Ctx> = (0..3).map(|_| world.fixture.ctx()).collect();
    let known = Arc::new(parking_lot::Mutex::new(Vec::<(Xid, Option<Csn>)>::new()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, reader) in readers.into_iter().enumerate() {
            let (known, is_over) = (Arc::clone(&known), &is_over);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(number as u64);
                while !is_over.load(Ordering::Relaxed) {
                    let held = reader.txns().snapshot(&reader);
                    for _ in 0..rng.random_range(1..2000) {
                        let (xid, csn) = {
                            let known = known.lock();
                            if known.is_empty() {
                                break;
                            }
                            known[rng.random_range(0..known.len())]
                        };
                        let sees = match status(&reader, xid) {
                            XidStatus::Committed(seen) => seen <= held,
                            _ => false,
                        };
                        assert_eq!(
                            sees,
                            csn.is_some_and(|csn| csn <= held),
                            "{xid} {csn:?} {held}"
                        );
                    }
                    reader.txns().release_snapshot(&reader, held);
                }
            });
        }
        for _ in 0..60 {
            world.run(2);
            known.lock().extend(std::mem::take(&mut world.fates));
            world.worker.txns().maintain(&world.worker).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
