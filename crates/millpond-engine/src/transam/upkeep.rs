//! Service: retiring statuses, checkpoints, recovery.
//!
//! Whoever does any of it holds the `upkeep` mutex, so there is one retirement and one writer of status
//! pages at a time (transam rules 3 and 9).

use std::collections::BTreeMap;

use millpond_buffer::BufferError;
use millpond_sync::atomic::Ordering;
use millpond_sync::mutant;

use super::ids::{Csn, Xid};
use super::overflow::Spilled;
use super::record::{EndRecord, INFO_ABORT, INFO_COMMIT, INFO_NEXT_XID};
use super::ring::{CHUNK, ChunkBits};
use super::transactions::Transactions;
use super::{clog, csn_pages};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::wal::{Record, RedoError, RmgrId};

/// What the upkeep remembers between its rounds.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    rounds: u64,
    /// Chunks below are settled and in the status pages.
    logged: u64,
    /// The horizon when the overflow was last searched.
    searched_at: Csn,
    /// The commit number file has pages.
    has_csn_pages: bool,
}

/// What recovery has learned so far.
#[derive(Debug)]
pub(super) struct Recovered {
    next: Xid,
    commits: BTreeMap<u64, ChunkBits>,
}

impl Recovered {
    pub(super) fn new(next: Xid) -> Self {
        Recovered { next, commits: BTreeMap::new() }
    }

    fn saw(&mut self, xid: Xid) {
        if xid.is_normal() && xid >= self.next && !mutant!("transam-ids-of-records-forgotten") {
            self.next = Xid(xid.0 + 1);
        }
    }
}

/// Row locks that ended are looked for much more seldom than other things: nothing waits for that but memory.
const ROUNDS_PER_SWEEP: u64 = 64;

impl Transactions {
    /// A round of upkeep: refreshes the horizon, makes room in the ring, forgets what no snapshot can tell apart, removes files that
    /// were in use. For the maintenance thread, several times a second; cheap when there is nothing to do.
    pub fn maintain(&self, ctx: &Ctx) -> EngineResult<()> {
        let mut upkeep = self.upkeep.lock();
        self.horizon();
        self.retire(ctx, &mut upkeep)?;
        self.forget(ctx, &mut upkeep)?;
        self.spill(ctx, &mut upkeep)?;
        let cut = self.cut_csn_file(ctx, &mut upkeep);
        upkeep.rounds += 1;
        let sweeps = upkeep.rounds.is_multiple_of(ROUNDS_PER_SWEEP);
        drop(upkeep);
        if sweeps {
            self.sweep_row_locks();
        }
        let undropped = std::mem::take(&mut *self.undropped.lock());
        self.drop_files(ctx, &undropped);
        cut
    }

    /// Retires the oldest chunks once the ring is half full.
    pub(super) fn retire(&self, ctx: &Ctx, upkeep: &mut Upkeep) -> EngineResult<()> {
        if self.ring.room() > self.ring.size() / 2 {
            return Ok(());
        }
        let horizon = self.horizon().csn;
        while self.ring.room() <= self.ring.size() / 2 {
            let Some(chunk) = self.ring.oldest_chunk() else { break };
            let bits = self.ring.committed_in(chunk);
            if chunk >= upkeep.logged && !mutant!("transam-retire-before-status-page") {
                clog::set_bits(ctx, self.clog(ctx)?, chunk, &bits)?;
            }
            // First, so that the overflow does not grow while the file can't.
            self.spill(ctx, upkeep)?;
            self.ring.retire(chunk, &bits, horizon);
        }
        Ok(())
    }

    /// Writes the oldest chunks of the overflow to the commit number file, if there are too many in
    /// memory that a snapshot needs. An error leaves them there. Then nothing more is retired, so
    /// the memory stays bounded, and transactions get no id (see ADR 19).
    fn spill(&self, ctx: &Ctx, upkeep: &mut Upkeep) -> EngineResult<()> {
        let overflow = &self.ring.overflow;
        let limit = self.kept_chunks.load(Ordering::Relaxed);
        if overflow.len() <= limit {
            return Ok(());
        }
        // The snapshots may be gone. So a disk that stays full refuses nothing any more.
        self.forget(ctx, upkeep)?;
        let mut excess = overflow.len().saturating_sub(limit);
        if excess == 0 {
            return Ok(());
        }
        for chunk in overflow.chunks() {
            let Some((bits, _)) = overflow.bits(chunk, Csn::MAX).filter(|(bits, _)| bits.settled)
            else {
                continue;
            };
            let Some(kept) = overflow.in_memory(Xid(chunk * CHUNK)) else { continue };
            // Once the chunk is forgotten, the clog is asked.
            clog::set_bits(ctx, self.clog(ctx)?, chunk, &bits)?;
            upkeep.has_csn_pages = true;
            let place = Spilled { chunk, block: overflow.place(chunk) };
            let newest = csn_pages::write(ctx, self.csn_file(ctx.pool())?, place, &kept)?;
            overflow.set_spilled(chunk, newest);
            excess -= 1;
            if excess == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes chunks out of the overflow that everybody sees alike.
    fn forget(&self, ctx: &Ctx, upkeep: &mut Upkeep) -> EngineResult<()> {
        let chunks = self.ring.overflow.chunks();
        if chunks.is_empty() && !upkeep.has_csn_pages {
            return Ok(());
        }
        let horizon = self.horizon().csn;
        if horizon == upkeep.searched_at && chunks.len() > 16 {
            return Ok(());
        }
        upkeep.searched_at = horizon;
        for chunk in chunks {
            if let Some((bits, true)) = self.ring.overflow.bits(chunk, horizon) {
                clog::set_bits(ctx, self.clog(ctx)?, chunk, &bits)?;
                self.ring.overflow.forget(chunk);
            }
        }
        self.ring.overflow.forget_spilled(horizon);
        Ok(())
    }

    /// Gives the space of the commit number file back once nothing in it is needed. No transaction
    /// waits for that, so an error here refuses none.
    fn cut_csn_file(&self, ctx: &Ctx, upkeep: &mut Upkeep) -> EngineResult<()> {
        if !upkeep.has_csn_pages || self.ring.overflow.has_spilled() {
            return Ok(());
        }
        match ctx.pool().truncate(csn_pages::CSN_FILE, 0) {
            Ok(()) => upkeep.has_csn_pages = false,
            // A page that a reader has pinned is cut off in the next round.
            Err(BufferError::InUse { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// A checkpoint's part, after its redo point was fixed: waits for the commits whose records may lie
    /// before it, then writes all commits in memory to the status pages, and the next id to the log. The checkpoint
    /// then writes the pages.
    pub fn checkpoint(&self, ctx: &Ctx) -> EngineResult<()> {
        self.procs.wait_for_commits();
        let mut upkeep = self.upkeep.lock();
        let rel = self.clog(ctx)?;
        let next = self.ring.next();
        let first = (self.ring.retired().0 / CHUNK).max(upkeep.logged);
        upkeep.logged = first;
        for chunk in first..next.0.div_ceil(CHUNK) {
            let bits = self.ring.committed_in(chunk);
            if bits.settled || !bits.is_empty() {
                clog::set_bits(ctx, rel, chunk, &bits)?;
            }
            if bits.settled && chunk == upkeep.logged {
                upkeep.logged = chunk + 1;
            }
        }
        for chunk in self.ring.overflow.chunks() {
            if let Some((bits, _)) = self.ring.overflow.bits(chunk, Csn::MAX) {
                clog::set_bits(ctx, rel, chunk, &bits)?;
            }
        }
        // Ids drawn later have their records after the redo point, or none at all.
        let payload = self.ring.next().0.to_le_bytes();
        let record = Record::new(Xid::INVALID, RmgrId::Transaction, INFO_NEXT_XID, &payload);
        ctx.log().insert(ctx.no(), &record)?;
        Ok(())
    }

    /// A start that knows the next id from elsewhere (the control file): ids below are not given out again.
    pub fn restore_next(&self, next: Xid) {
        if let Some(recovered) = self.recovered.lock().as_mut() {
            recovered.next = recovered.next.max(next);
        }
    }

    /// Recovery: learns from any record that its transaction's id was drawn.
    pub fn redo_saw(&self, xid: Xid) {
        if let Some(recovered) = self.recovered.lock().as_mut() {
            recovered.saw(xid);
        }
    }

    /// Recovery: replays a record of [`RmgrId::Transaction`]. The files that the caller is to remove are
    /// returned. Commits are kept in memory and written to the status pages, through the log, at the end: so a
    /// page that recovery itself leaves torn has its image in the log (transam rule 9).
    pub fn redo(
        &self,
        xid: Xid,
        info: u8,
        payload: &[u8],
    ) -> Result<Vec<millpond_buffer::RelationId>, RedoError> {
        let mut recovered = self.recovered.lock();
        let Some(recovered) = recovered.as_mut() else {
            return Err(RedoError::new("transaction record after the end of recovery"));
        };
        recovered.saw(xid);
        match info {
            INFO_COMMIT => {
                let end = EndRecord::decode(payload)?;
                recovered.commits.entry(xid.0 / CHUNK).or_default().set(xid.0 % CHUNK);
                Ok(end.files)
            }
            INFO_ABORT => Ok(EndRecord::decode(payload)?.files),
            INFO_NEXT_XID => {
                let next = payload
                    .try_into()
                    .map(u64::from_le_bytes)
                    .map_err(|_| RedoError::new("malformed next transaction id"))?;
                recovered.next = recovered.next.max(Xid(next));
                Ok(Vec::new())
            }
            other => Err(RedoError::new(format!("unknown kind {other} of transaction record"))),
        }
    }

    /// Ends recovery, or begins a start without any: writes the commits that were replayed to the status pages
    /// and makes sure that these cover every id given out so far. Whoever was running is rolled back by that.
    pub fn finish_recovery(&self, ctx: &Ctx) -> EngineResult<()> {
        let mut upkeep = self.upkeep.lock();
        let mut recovered = self.recovered.lock();
        let Some(known) = recovered.as_ref() else { return Ok(()) };
        // Its numbers are the last run's. The log does not know the file, and need not: see
        // csn_pages.rs.
        if !mutant!("transam-numbers-of-the-last-run") {
            ctx.pool().drop_relation(csn_pages::CSN_RELATION)?;
        }
        let rel = self.clog(ctx)?;
        for (chunk, bits) in &known.commits {
            clog::set_bits(ctx, rel, *chunk, bits)?;
        }
        let last = (known.next.0.max(1) - 1) / CHUNK;
        clog::set_bits(ctx, rel, last, &ChunkBits::default())?;
        if !mutant!("transam-ids-given-out-again") {
            clog::check_unused(ctx, rel, known.next)?;
        }
        self.ring.restart(known.next);
        upkeep.logged = self.ring.retired().0 / CHUNK;
        *recovered = None;
        self.in_doubt.store(false, Ordering::Release);
        Ok(())
    }
}
