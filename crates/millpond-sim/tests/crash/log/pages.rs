//! The work under the crashes of `log.rs`: numbers are written into slots of a few pages. A ledger
//! keeps what was done and what was acknowledged.

use millpond_buffer::{
    BlockNumber, BufferSession, ExclusivePage, Lsn, PageRead, RelHandle, RelationId, Wait,
};
use millpond_engine::EngineResult;
use millpond_engine::maintenance::checkpointer::Cause;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::storage::create_fork;
use millpond_engine::wal::{ImageMode, Record, RmgrId, info, log_and_apply};
use millpond_sim::vfs::SimFs;
use rand::Rng;
use rand::rngs::StdRng;

use super::super::machine::{Machine, One, Startable, start};

pub const SEGMENT: u64 = 1 << 16;
pub const BLOCKS: u32 = 12;
const SLOTS: usize = 6;

fn slot_offset(slot: usize) -> usize {
    64 + slot * 1300
}

/// The log and the pool, and a fork of a few pages.
pub struct Pages(Machine);

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

impl Pages {
    /// Starts on a new disk and creates the pages durably.
    pub fn created(disk: &SimFs) -> (Self, Ledger) {
        let pages: Self = start(disk);
        let acknowledged = pages.create().unwrap();
        pages.log.flush(acknowledged).unwrap();
        (pages, Ledger { steps: Vec::new(), acknowledged, next: 1 })
    }

    /// Starts again after the process was killed, and checks the pages.
    pub fn restarted(disk: &SimFs, ledger: &mut Ledger) -> EngineResult<Self> {
        let mut end = None;
        let pages = Self::start(disk, &mut end)?;
        check(&pages, ledger, end.unwrap());
        Ok(pages)
    }

    pub fn session(&self) -> EngineResult<(BufferSession, RelHandle)> {
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
pub struct Mine {
    pub no: u16,
    pub of: u32,
}

pub const ALL: Mine = Mine { no: 0, of: 1 };

/// One step of work: `number` was written to a slot of some pages.
#[derive(Clone)]
pub struct Step {
    number: u64,
    blocks: Vec<u32>,
    slot: usize,
    pub end: Lsn,
}

/// All steps in log order, and what was acknowledged.
#[derive(Clone)]
pub struct Ledger {
    pub steps: Vec<Step>,
    pub acknowledged: Lsn,
    next: u64,
}

pub fn work_on(
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
pub fn work(
    machine: &Pages,
    ledger: &mut Ledger,
    rng: &mut StdRng,
    steps: usize,
) -> EngineResult<()> {
    let (session, handle) = machine.session()?;
    for _ in 0..steps {
        work_on(machine, &session, &handle, ledger, rng, ALL)?;
        if rng.random_bool(0.02) {
            machine.checkpoints.run(Cause::Requested)?;
        }
    }
    Ok(())
}

/// Checks the pages against the steps up to the end of the recovered log, and drops the others.
pub fn check(machine: &Pages, ledger: &mut Ledger, end: Lsn) {
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
