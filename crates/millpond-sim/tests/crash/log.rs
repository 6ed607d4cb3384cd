//! Crashes and failing I/O under the log, the checkpointer and recovery.
//!
//! A workload writes numbers into slots of pages, and records what it did and what was
//! acknowledged. Then the power fails at a random I/O call, or a call fails. The disk keeps a
//! random, torn part of the unsynced changes. Recovery, too, is interrupted at random. After it the
//! pages must be those of some prefix of the work, and the prefix must include everything
//! acknowledged.

use millpond_buffer::{
    BlockNumber, BufferSession, ExclusivePage, Lsn, PageRead, RelHandle, RelationId, Wait,
};
use millpond_engine::EngineResult;
use millpond_engine::maintenance::checkpointer::Cause;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::storage::{create_fork, truncate_fork};
use millpond_engine::wal::{ImageMode, Record, RmgrId, info, log_and_apply};
use millpond_sim::vfs::{SimFs, VfsFault};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::machine::{
    IO_ERROR, Machine, One, POWER_LOSS, Startable, for_each_seed, recover, start,
};

const SEGMENT: u64 = 1 << 16;
const BLOCKS: u32 = 12;
const SLOTS: usize = 6;

fn slot_offset(slot: usize) -> usize {
    64 + slot * 1300
}

/// The log and the pool, and a fork of a few pages.
struct Pages(Machine);

impl std::ops::Deref for Pages {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl Startable for Pages {
    fn start(disk: &SimFs, log_end: &mut Option<Lsn>) -> EngineResult<Self> {
        Machine::recovered(disk, SEGMENT, 10, log_end).map(Pages)
    }

    fn abandon(self) {
        self.log.abandon();
    }
}

/// Starts on a new disk and creates the pages durably.
fn created(disk: &SimFs, ledger: &mut Ledger) -> Pages {
    let pages: Pages = start(disk);
    ledger.acknowledged = pages.create().unwrap();
    pages.log.flush(ledger.acknowledged).unwrap();
    pages
}

impl Pages {
    fn session(&self) -> EngineResult<(BufferSession, RelHandle)> {
        let rel = RelationId::constant(5).main();
        Ok((self.pool.session()?, self.pool.relation(rel)?))
    }

    fn create(&self) -> EngineResult<Lsn> {
        let rel = RelationId::constant(5).main();
        let one = One(&self.log, SessionNo(0));
        if self.pool.relation(rel)?.block_count() < BLOCKS {
            create_fork(&one, &self.pool, Xid(1), rel)?;
            let (session, handle) = self.session()?;
            while handle.block_count() < BLOCKS {
                drop(session.extend(&handle, Wait::Allowed)?);
            }
        }
        Ok(self.log.insert_position())
    }
}

/// Which blocks and which log stripe a session uses.
#[derive(Clone, Copy)]
struct Mine {
    no: u16,
    of: u32,
}

/// One step of work: `number` was written to a slot of some pages.
#[derive(Clone)]
struct Step {
    number: u64,
    blocks: Vec<u32>,
    slot: usize,
    end: Lsn,
}

/// All steps in log order, and what was acknowledged.
#[derive(Default)]
struct Ledger {
    steps: Vec<Step>,
    acknowledged: Lsn,
    next: u64,
}

fn work_once(
    machine: &Pages,
    session: &BufferSession,
    handle: &RelHandle,
    ledger: &mut Ledger,
    rng: &mut StdRng,
) -> EngineResult<()> {
    work_on(machine, session, handle, ledger, rng, Mine { no: 0, of: 1 })
}

fn work_on(
    machine: &Pages,
    session: &BufferSession,
    handle: &RelHandle,
    ledger: &mut Ledger,
    rng: &mut StdRng,
    mine: Mine,
) -> EngineResult<()> {
    let my_block = |n: u32| n * mine.of + u32::from(mine.no);
    let mut blocks: Vec<u32> = (0..rng.random_range(1..=3))
        .map(|_| my_block(rng.random_range(0..BLOCKS / mine.of)))
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    let slot = rng.random_range(0..SLOTS);
    let number = ledger.next;
    ledger.next += 1;
    let mut data = Vec::new();
    data.extend_from_slice(&(slot_offset(slot) as u16).to_le_bytes());
    data.extend_from_slice(&8u16.to_le_bytes());
    data.extend_from_slice(&number.to_le_bytes());
    let mut pages = Vec::new();
    for block in &blocks {
        while handle.block_count() <= *block {
            machine.pool.create(handle.rel())?;
            drop(session.extend(handle, Wait::Allowed)?);
        }
        pages.push(session.pin(handle, BlockNumber(*block), Wait::Allowed)?.into_exclusive()?);
    }
    let payload = vec![0x77; rng.random_range(0..600)];
    let mut record = Record::new(Xid(number), RmgrId::Log, info::WRITE, &payload);
    for page in &pages {
        record = record.block(page.page_id(), ImageMode::IfNeeded, &data);
    }
    let mut latched: Vec<&mut ExclusivePage<'_>> = pages.iter_mut().collect();
    let end = log_and_apply(&One(&machine.log, SessionNo(mine.no)), &mut latched, record)?;
    drop(pages);
    ledger.steps.push(Step { number, blocks, slot, end });
    if rng.random_bool(0.3) {
        machine.log.flush(end)?;
        ledger.acknowledged = end;
    }
    Ok(())
}

/// Works until something fails or `steps` are done.
fn work(machine: &Pages, ledger: &mut Ledger, rng: &mut StdRng, steps: usize) -> EngineResult<()> {
    let (session, handle) = machine.session()?;
    for _ in 0..steps {
        work_once(machine, &session, &handle, ledger, rng)?;
        if rng.random_bool(0.02) {
            machine.checkpoints.run(Cause::Requested)?;
        }
    }
    Ok(())
}

/// Checks the pages against the steps up to the end of the recovered log, and drops the others.
fn check(machine: &Pages, ledger: &mut Ledger, end: Lsn) {
    assert!(
        end >= ledger.acknowledged,
        "lost: the log ends at {end}, before what was acknowledged"
    );
    ledger.steps.retain(|step| step.end <= end);
    let mut expected = vec![[0u64; SLOTS]; BLOCKS as usize];
    for step in &ledger.steps {
        for block in &step.blocks {
            expected[*block as usize][step.slot] = step.number;
        }
    }
    let (session, handle) = machine.session().unwrap();
    for (block, slots) in expected.iter().enumerate() {
        // The file is only as long as the surviving changes made it.
        if block as u32 >= handle.block_count() && slots.iter().all(|number| *number == 0) {
            continue;
        }
        let page = session.pin(&handle, BlockNumber(block as u32), Wait::Allowed).unwrap();
        let page = page.into_shared().unwrap();
        for (slot, number) in slots.iter().enumerate() {
            assert_eq!(page.u64(slot_offset(slot)), *number, "block {block} slot {slot}");
        }
    }
}

#[test]
fn power_loss_at_any_call_loses_nothing_acknowledged() {
    for_each_seed(60, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut ledger = Ledger { next: 1, ..Ledger::default() };
        let mut machine = created(&disk, &mut ledger);
        for _ in 0..4 {
            disk.fail_after(rng.random_range(0..400), POWER_LOSS);
            let _ = work(&machine, &mut ledger, rng, 600);
            machine.abandon();
            disk.crash();
            let end;
            (machine, end) = recover(&disk, rng);
            check(&machine, &mut ledger, end);
        }
        machine.abandon();
    });
}

/// Several sessions, each with its own blocks, with concurrent checkpoints and small log buffers.
#[test]
fn many_sessions_lose_nothing_acknowledged() {
    const SESSIONS: u32 = 3;
    for_each_seed(25, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut machine: Pages = start(&disk);
        let created = machine.create().unwrap();
        machine.log.flush(created).unwrap();
        let mut ledgers: Vec<Ledger> = (0..SESSIONS)
            .map(|_| Ledger { next: 1, acknowledged: created, ..Ledger::default() })
            .collect();
        for _ in 0..3 {
            disk.fail_after(rng.random_range(0..600), POWER_LOSS);
            std::thread::scope(|scope| {
                for (no, ledger) in ledgers.iter_mut().enumerate() {
                    let mut rng = StdRng::seed_from_u64(rng.random());
                    let machine = &machine;
                    scope.spawn(move || {
                        let (session, handle) = machine.session()?;
                        let mine = Mine { no: no as u16, of: SESSIONS };
                        for _ in 0..400 {
                            work_on(machine, &session, &handle, ledger, &mut rng, mine)?;
                        }
                        EngineResult::Ok(())
                    });
                }
                scope.spawn(|| while machine.checkpoints.run(Cause::Requested).is_ok() {});
                // A checkpoint may be the call that hits the power loss, when all of the log is on
                // disk. Then the log does not stop.
                scope.spawn(|| {
                    while machine.log.is_stopped().is_none() && !disk.is_powered_off() {
                        let _ = machine.log.flush(machine.log.insert_position());
                        std::thread::yield_now();
                    }
                });
            });
            machine.abandon();
            disk.crash();
            let end;
            (machine, end) = recover(&disk, rng);
            let mut all = Ledger::default();
            for ledger in &mut ledgers {
                assert!(end >= ledger.acknowledged, "lost: the log ends at {end}");
                ledger.steps.retain(|step| step.end <= end);
                all.steps.extend(ledger.steps.iter().cloned());
            }
            check(&machine, &mut all, end);
        }
        machine.abandon();
    });
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    for_each_seed(30, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut ledger = Ledger { next: 1, ..Ledger::default() };
        let mut machine = created(&disk, &mut ledger);
        for _ in 0..3 {
            let steps = rng.random_range(0..500);
            work(&machine, &mut ledger, rng, steps).unwrap();
            disk.kill();
            machine.abandon();
            let mut end = None;
            machine = Pages::start(&disk, &mut end).unwrap();
            check(&machine, &mut ledger, end.unwrap());
        }
        machine.abandon();
    });
}

fn one_failing_call(fault: VfsFault, rounds: u64) {
    for_each_seed(rounds, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut ledger = Ledger { next: 1, ..Ledger::default() };
        let machine = created(&disk, &mut ledger);
        disk.fail_after(rng.random_range(0..300), fault);
        // Errors are expected; after each, the work continues as far as it can.
        for _ in 0..5 {
            let _ = work(&machine, &mut ledger, rng, 150);
        }
        machine.abandon();
        disk.crash();
        let (machine, end) = recover(&disk, rng);
        check(&machine, &mut ledger, end);
        work(&machine, &mut ledger, rng, 20).unwrap();
        machine.abandon();
    });
}

#[test]
fn one_failed_call_loses_nothing_acknowledged() {
    one_failing_call(IO_ERROR, 60);
}

#[test]
fn a_disk_that_fails_for_good_loses_nothing_acknowledged() {
    one_failing_call(VfsFault::Dead, 30);
}

#[test]
fn a_full_disk_loses_nothing_acknowledged() {
    one_failing_call(VfsFault::DiskFull, 30);
}

#[test]
fn commits_succeed_again_after_a_full_disk() {
    let disk = SimFs::new(1);
    let mut rng = StdRng::seed_from_u64(1);
    let mut ledger = Ledger { next: 1, ..Ledger::default() };
    let machine = created(&disk, &mut ledger);
    let one = One(&machine.log, SessionNo(0));
    // This truncation fails, so the checkpoint below must log it again (wal rule 16).
    {
        let (session, handle) = machine.session().unwrap();
        drop(session.extend(&handle, Wait::Allowed).unwrap());
        let _pinned = session.pin(&handle, BlockNumber(BLOCKS), Wait::Allowed).unwrap();
        let refused = truncate_fork(&one, &machine.pool, handle.rel(), BLOCKS);
        assert!(refused.is_err());
    }
    disk.fail_after(0, VfsFault::DiskFull);
    let error = loop {
        let (session, handle) = machine.session().unwrap();
        if let Err(error) = work_once(&machine, &session, &handle, &mut ledger, &mut rng) {
            break error.to_string();
        }
    };
    assert!(error.contains("No space left"), "{error}");
    assert_eq!(machine.log.is_stopped(), None);
    // Fill the log until even the shortest record is refused. Creating an existing fork logs one.
    let rel = RelationId::constant(5).main();
    while create_fork(&one, &machine.pool, Xid(1), rel).is_ok() {}
    // The transaction that met the full disk can still be ended.
    let abort = Record::new(Xid(1), RmgrId::Transaction, 1, &[0; 12]);
    let end = machine.log.insert(SessionNo(0), &abort).unwrap().end;
    machine.log.flush(end).unwrap();
    // A checkpoint recycles segments, so work continues although the disk is still full.
    machine.checkpoints.run(Cause::Requested).unwrap();
    work(&machine, &mut ledger, &mut rng, 3).unwrap();
    disk.heal();
    work(&machine, &mut ledger, &mut rng, 500).unwrap();
    disk.kill();
    machine.abandon();
    let mut end = None;
    let machine = Pages::start(&disk, &mut end).unwrap();
    check(&machine, &mut ledger, end.unwrap());
    machine.abandon();
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let disk = SimFs::new(2);
    let machine: Pages = start(&disk);
    machine.create().unwrap();
    machine.log.flush(machine.log.insert_position()).unwrap();
    let record = Record::new(Xid(1), RmgrId::Transaction, 0, &[0; 12]);
    let mut stopped = false;
    for _ in 0..20 {
        let end = machine.log.insert(SessionNo(0), &record).unwrap().end;
        // The fault hits the write, or the sync after it.
        disk.fail_after(1, IO_ERROR);
        if machine.log.flush(end).is_err() {
            stopped = true;
            break;
        }
    }
    assert!(stopped);
    disk.heal();
    let error = machine.log.insert(SessionNo(0), &record).unwrap_err().to_string();
    assert!(error.contains("Input/output error"), "{error}");
    assert!(machine.log.flush(machine.log.insert_position()).is_err());
    assert!(machine.checkpoints.run(Cause::Requested).is_err());
    machine.abandon();
}

/// Flips a bit of the byte at a log position, durably, unless its segment has been recycled.
fn flip_log_bit(disk: &SimFs, at: u64, bit: u32) {
    let path = format!("/wal/{:016x}", at / SEGMENT);
    let Ok(mut bytes) = disk.bytes(path.as_ref()) else { return };
    bytes[(at % SEGMENT) as usize] ^= 1 << bit;
    disk.put(path.as_ref(), bytes).unwrap();
}

#[test]
fn a_flipped_bit_in_acknowledged_log_is_an_error_or_harmless() {
    for_each_seed(60, |seed, rng| {
        let disk = SimFs::new(seed);
        let mut ledger = Ledger { next: 1, ..Ledger::default() };
        let machine = created(&disk, &mut ledger);
        let from = machine.log.insert_position();
        work(&machine, &mut ledger, rng, 40).unwrap();
        let end = machine.log.insert_position();
        machine.log.flush(end).unwrap();
        let until = ledger.acknowledged.get().max(from.get() + 1);
        ledger.acknowledged = end;
        // One more record notes that everything before it is durable.
        let last = Record::new(Xid(1), RmgrId::Transaction, 0, &[0; 12]);
        let last = machine.log.insert(SessionNo(0), &last).unwrap().end;
        machine.log.flush(last).unwrap();
        disk.kill();
        machine.abandon();
        flip_log_bit(&disk, rng.random_range(from.get()..until), rng.random_range(0..8));
        let mut end = None;
        match Pages::start(&disk, &mut end) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("corrupt"), "{error}");
            }
            // The bit was in padding, or before a checkpoint's redo point: not needed.
            Ok(machine) => {
                check(&machine, &mut ledger, end.unwrap());
                machine.abandon();
            }
        }
    });
}

#[test]
fn truncation_and_creation_are_redone() {
    for_each_seed(30, |seed, rng| {
        let disk = SimFs::new(seed);
        let machine: Pages = start(&disk);
        let rel = RelationId::constant(9).main();
        let one = One(&machine.log, SessionNo(1));
        create_fork(&one, &machine.pool, Xid(1), rel).unwrap();
        let session = machine.pool.session().unwrap();
        let handle = machine.pool.relation(rel).unwrap();
        for n in 0..10u8 {
            let mut page = session.extend(&handle, Wait::Allowed).unwrap();
            let data = [100, 0, 1, 0, n + 1];
            let record = Record::new(Xid(1), RmgrId::Log, info::WRITE, &[]).block(
                page.page_id(),
                ImageMode::IfNeeded,
                &data,
            );
            log_and_apply(&one, &mut [&mut page], record).unwrap();
            if rng.random_bool(0.1) {
                drop(page);
                machine.checkpoints.run(Cause::Requested).unwrap();
            }
        }
        truncate_fork(&one, &machine.pool, rel, 4).unwrap();
        machine.log.flush(machine.log.insert_position()).unwrap();
        drop((session, handle));
        machine.abandon();
        disk.crash();
        let (machine, _) = recover::<Pages>(&disk, rng);
        let handle = machine.pool.relation(rel).unwrap();
        let session = machine.pool.session().unwrap();
        assert_eq!(handle.block_count(), 4);
        for n in 0..4u8 {
            let page = session.pin(&handle, BlockNumber(n.into()), Wait::Allowed).unwrap();
            assert_eq!(page.into_shared().unwrap().u8(100), n + 1);
        }
        machine.abandon();
    });
}
