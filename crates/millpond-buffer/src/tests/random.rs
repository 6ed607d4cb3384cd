//! Random operations on small pools, by one thread and by several.
//!
//! **By one thread**, against a plain vector, with a store whose operations fail now
//! and then. The pool must agree with the vector, and in the end nothing is stuck.
//!
//! **By several threads**, on pools that are too small: pages that writers keep consistent stay so.

use super::counterpart::Ending;
use super::*;
use crate::*;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Clone)]
enum Step {
    Read(u32),
    /// Through a pin and a shared latch.
    Look(u32),
    Write(u32, u64),
    /// Begins a change and cancels it.
    Cancel(u32),
    Extend(u64),
    Truncate(u32),
    Hold(u32),
    LetGo,
    Checkpoint,
    Reclaim(usize),
    FailReads(bool),
    FailWrites(bool),
    StopLog(bool),
    Cold(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let block = 0..12u32;
    let step = prop_oneof![
        8 => block.clone().prop_map(Step::Read),
        4 => block.clone().prop_map(Step::Look),
        8 => (block.clone(), any::<u64>()).prop_map(|(block, to)| Step::Write(block, to)),
        1 => block.clone().prop_map(Step::Cancel),
        3 => any::<u64>().prop_map(Step::Extend),
        1 => block.clone().prop_map(Step::Truncate),
        2 => block.prop_map(Step::Hold),
        3 => Just(Step::LetGo),
        2 => Just(Step::Checkpoint),
        1 => (0..4usize).prop_map(Step::Reclaim),
        1 => any::<bool>().prop_map(Step::FailReads),
        1 => any::<bool>().prop_map(Step::FailWrites),
        1 => any::<bool>().prop_map(Step::StopLog),
        1 => any::<bool>().prop_map(Step::Cold),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 30 } else { 200 })
}

/// Whether the steps can cause this error. A failure is allowed, a wrong answer is not.
fn expected(error: &BufferError, blocks: usize, block: u32) -> bool {
    match error {
        BufferError::BeyondEnd { .. } => block as usize >= blocks,
        BufferError::Store(StoreError::Io { .. })
        | BufferError::Log(_)
        | BufferError::NoUnpinnedBuffers { .. }
        | BufferError::WouldBlock => true,
        _ => false,
    }
}

/// Carries out one step; returns the error and the block that was meant.
fn carry_out<'s>(
    step: &Step,
    bench: &Bench,
    session: &'s BufferSession,
    rel: &RelHandle,
    model: &mut Vec<u64>,
    held: &mut Vec<PinnedPage<'s>>,
    wait: Wait,
) -> Result<(), (BufferError, u32)> {
    let pin = |block: u32| session.pin(rel, BlockNumber(block), wait).map_err(|e| (e, block));
    let at_end = u32::MAX;
    match *step {
        Step::Read(block) => {
            let read = session.read(rel, BlockNumber(block), wait, |page| page.u64(16));
            assert_eq!(read.map_err(|e| (e, block))?, model[block as usize]);
        }
        Step::Look(block) => {
            let latched = session.pin_shared(rel, BlockNumber(block), wait);
            assert_eq!(latched.map_err(|e| (e, block))?.u64(16), model[block as usize]);
            assert_eq!(pin(block)?.into_shared().unwrap().u64(16), model[block as usize]);
        }
        Step::Write(block, to) => {
            let mut page = pin(block)?.into_exclusive().unwrap();
            write_number(&mut page, to, to % 1000);
            model[block as usize] = to;
        }
        Step::Cancel(block) => pin(block)?.into_exclusive().unwrap().change().cancel(),
        Step::Extend(to) => {
            let mut page = session.extend(rel, wait).map_err(|e| (e, at_end))?;
            assert_eq!(page.block().0 as usize, model.len());
            write_number(&mut page, to, to % 1000);
            model.push(to);
        }
        Step::Truncate(blocks) => {
            held.retain(|page| page.block().0 < blocks);
            model.truncate(blocks as usize);
            bench.pool.truncate(REL, blocks).map_err(|e| (e, at_end))?;
        }
        Step::Hold(block) => held.push(pin(block)?),
        Step::LetGo => drop(held.pop()),
        Step::Checkpoint => {
            bench.pool.write_dirty(session, |_| ()).map_err(|e| (e, at_end))?;
        }
        Step::Reclaim(target) => {
            bench.pool.reclaim(session, target).map_err(|e| (e, at_end))?;
        }
        Step::FailReads(fail) => bench.store.fail_reads.store(fail, Ordering::Relaxed),
        Step::FailWrites(fail) => bench.store.fail_writes.store(fail, Ordering::Relaxed),
        Step::StopLog(stop) => bench.log.stopped.store(stop, Ordering::Relaxed),
        Step::Cold(cold) => bench.store.cold.store(cold, Ordering::Relaxed),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 400 }))]

    #[test]
    fn like_a_vector(steps in steps(), frames in 1usize..6, waits: bool) {
        let bench = bench(frames, 5);
        let mut model: Vec<u64> = (0..5).collect();
        let (session, rel) = bench.pool.open();
        let wait = if waits { Wait::Allowed } else { Wait::Never };
        let mut held = Vec::new();
        for step in &steps {
            let done = carry_out(step, &bench, &session, &rel, &mut model, &mut held, wait);
            if let Err((error, block)) = done {
                prop_assert!(expected(&error, model.len(), block), "{step:?}: {error}");
                let waited = error.is_would_block() && waits;
                prop_assert!(!waited, "{step:?}");
            }
            prop_assert_eq!(rel.block_count() as usize, model.len());
        }
        drop(held);
        prop_assert_eq!(session.pinned_pages(), 0);
        bench.store.fail_reads.store(false, Ordering::Relaxed);
        bench.store.fail_writes.store(false, Ordering::Relaxed);
        bench.log.stopped.store(false, Ordering::Relaxed);
        bench.pool.write_dirty(&session, |_| ()).unwrap();
        for (block, expected) in (0..).zip(&model) {
            prop_assert_eq!(number(&session, &rel, block), *expected);
            // The store has the value too, with its checksum.
            let mut page = [0; PAGE_SIZE];
            bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
            verify_checksum(REL.page(BlockNumber(block)), &page).unwrap();
            prop_assert_eq!(page.u64(16), *expected);
        }
        bench.pool.drop_relation(REL.relation).unwrap();
        prop_assert_eq!(bench.pool.core.free_frames(), frames);
    }
}

const THREADS: u64 = 4;
const ROUNDS: usize = if cfg!(miri) { 15 } else { 10_000 };
const BLOCKS: u32 = if cfg!(miri) { 6 } else { 40 };

/// Sixteen words, spread over the page, that a writer keeps equal.
fn place(nth: usize) -> usize {
    64 + nth * ((PAGE_SIZE - 64) / 128 * 8)
}

fn write_pattern(page: &mut ExclusivePage<'_>) -> u64 {
    let next = page.u64(64) + 1;
    let lsn = page.lsn().0 + 1;
    let mut change = page.change();
    for at in 0..16 {
        change.write(place(at), &next.to_le_bytes());
    }
    change.publish(Lsn(lsn));
    next
}

fn read_pattern(page: &impl PageRead) -> [u64; 16] {
    std::array::from_fn(|at| page.u64(place(at)))
}

/// Readers never see a torn or an older page, and writers lose no change, whatever is evicted or
/// written meanwhile. Rules 3 and 5.
#[test]
fn no_torn_no_stale_no_lost() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let Bench { pool, .. } = bench(8, BLOCKS);
    let counts: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, counts) = (&pool, &counts);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed ^ thread);
                let (session, rel) = pool.open();
                for round in 0..ROUNDS {
                    let block = random.random_range(0..BLOCKS);
                    let count = &counts[block as usize];
                    let at_least = count.load(Ordering::Acquire);
                    let pin = || pin_block(&session, &rel, block);
                    let latch = || session.pin_shared(&rel, BlockNumber(block), Wait::Allowed);
                    let seen = match random.random_range(0..10) {
                        0..3 => {
                            let new = write_pattern(&mut pin().into_exclusive().unwrap());
                            count.fetch_add(1, Ordering::AcqRel);
                            [new; 16]
                        }
                        3 => read_pattern(&pin().into_shared().unwrap()),
                        4 => read_pattern(&latch().unwrap()),
                        // The pin comes before the latch is released: what is read without the
                        // latch may be newer.
                        5 => {
                            let pin = latch().unwrap().unlatch();
                            pin.read(|page| read_pattern(page)).unwrap()
                        }
                        _ => session
                            .read(&rel, BlockNumber(block), Wait::Allowed, |p| read_pattern(p))
                            .unwrap(),
                    };
                    assert_eq!(seen, [seen[0]; 16], "torn");
                    assert!(seen[0] >= at_least, "stale");
                    if round % 512 == 5 {
                        pool.write_dirty(&session, |_| ()).unwrap();
                        pool.reclaim(&session, 2).unwrap();
                    }
                }
                assert_eq!(session.pinned_pages(), 0);
            });
        }
    });
    let (session, rel) = pool.open();
    for (block, count) in (0..).zip(&counts) {
        let seen = session.read(&rel, BlockNumber(block), Wait::Allowed, |p| read_pattern(p));
        assert_eq!(seen.unwrap(), [count.load(Ordering::Relaxed); 16]);
    }
}

/// Sessions that extend one fork get each block once.
#[test]
fn extending_together() {
    let Bench { pool, .. } = bench(16, 0);
    let each = if cfg!(miri) { 4 } else { 200 };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let pool = &pool;
            scope.spawn(move || {
                let (session, rel) = pool.open();
                for _ in 0..each {
                    let mut page = session.extend(&rel, Wait::Allowed).unwrap();
                    let mine = u64::from(page.block().0) << 8 | thread;
                    write_number(&mut page, mine, 1);
                }
            });
        }
    });
    let (session, rel) = pool.open();
    assert_eq!(u64::from(rel.block_count()), THREADS * each);
    let mut by_thread = [0; THREADS as usize];
    for block in 0..rel.block_count() {
        let seen = number(&session, &rel, block);
        assert_eq!(seen >> 8, u64::from(block));
        by_thread[(seen & 0xff) as usize] += 1;
    }
    assert_eq!(by_thread, [each; THREADS as usize]);
}

/// Forks are dropped and made again while others read them.
/// Rule 4.
#[test]
fn dropping_under_readers() {
    let Bench { pool, .. } = bench(8, 0);
    let rounds = if cfg!(miri) { 2 } else { 300 };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (pool, done) = (&pool, &done);
            scope.spawn(move || {
                let session = pool.session().unwrap();
                while !done.load(Ordering::Relaxed) {
                    let rel = pool.relation(REL).unwrap();
                    for block in 0..rel.block_count() {
                        // Optimistic reads hold nothing, so they cause `InUse` only for a moment.
                        match session.read(&rel, BlockNumber(block), Wait::Allowed, |p| p.u64(16)) {
                            Ok(seen) => assert!(seen == 0 || seen == u64::from(block) + 1),
                            Err(BufferError::Dropped { .. } | BufferError::BeyondEnd { .. }) => {
                                break;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
        // Also if this thread panics: otherwise the others would read for ever.
        let _ending = Ending(&done);
        let session = pool.session().unwrap();
        for _ in 0..rounds {
            pool.create(REL).unwrap();
            let rel = pool.relation(REL).unwrap();
            for block in 0..12u64 {
                let mut page = session.extend(&rel, Wait::Allowed).unwrap();
                write_number(&mut page, block + 1, 1);
            }
            pool.drop_relation(REL.relation).unwrap();
        }
    });
    assert_eq!(pool.core.free_frames(), 8);
}
