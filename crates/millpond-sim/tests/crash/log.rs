//! Crashes and failing I/O under the log, the checkpointer and recovery.
//!
//! While the work of [`pages`] runs, the power fails at a random I/O call, or a call fails. The
//! disk keeps a random, torn part of the unsynced changes. Recovery, too, is interrupted at random.
//! After it the pages must be those of some prefix of the work, and the prefix must include
//! everything acknowledged.

mod pages;

use millpond_buffer::{BlockNumber, PageRead, RelationId, Wait};
use millpond_engine::EngineResult;
use millpond_engine::maintenance::checkpointer::Cause;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::storage::{create_fork, truncate_fork};
use millpond_engine::wal::{ImageMode, Record, RmgrId, info, log_and_apply};
use millpond_sim::vfs::{SimFs, VfsFault};
use pages::{ALL, BLOCKS, Mine, Pages, SEGMENT, check, work, work_on};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::machine::{IO_ERROR, One, POWER_LOSS, Startable, for_each_seed, recover, start};

#[test]
fn power_loss_at_any_call_loses_nothing_acknowledged() {
    for_each_seed(60, |seed, rng| {
        let disk = SimFs::new(seed);
        let (mut machine, mut ledger) = Pages::created(&disk);
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
        let (mut machine, ledger) = Pages::created(&disk);
        let mut ledgers = vec![ledger.clone(); SESSIONS as usize];
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
            let mut all = ledger.clone();
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
        let (mut machine, mut ledger) = Pages::created(&disk);
        for _ in 0..3 {
            let steps = rng.random_range(0..500);
            work(&machine, &mut ledger, rng, steps).unwrap();
            disk.kill();
            machine.abandon();
            machine = Pages::restarted(&disk, &mut ledger).unwrap();
        }
        machine.abandon();
    });
}

fn one_failing_call(fault: VfsFault, rounds: u64) {
    for_each_seed(rounds, |seed, rng| {
        let disk = SimFs::new(seed);
        let (machine, mut ledger) = Pages::created(&disk);
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
    let (machine, mut ledger) = Pages::created(&disk);
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
        if let Err(error) = work_on(&machine, &session, &handle, &mut ledger, &mut rng, ALL) {
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
    Pages::restarted(&disk, &mut ledger).unwrap().abandon();
}

#[test]
fn a_failed_sync_stops_the_log_for_good() {
    let disk = SimFs::new(2);
    let (machine, _) = Pages::created(&disk);
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
        let (machine, mut ledger) = Pages::created(&disk);
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
        match Pages::restarted(&disk, &mut ledger) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("corrupt"), "{error}");
            }
            // The bit was in padding, or before a checkpoint's redo point: not needed.
            Ok(machine) => machine.abandon(),
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
