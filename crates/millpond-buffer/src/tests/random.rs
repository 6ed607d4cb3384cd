//! Random operations on small pools, against a plain vector, with a store whose operations fail now
//! and then. The pool must agree with the vector, and in the end nothing is stuck.

use super::*;
use crate::*;
use proptest::prelude::*;
use std::sync::atomic::Ordering;

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
