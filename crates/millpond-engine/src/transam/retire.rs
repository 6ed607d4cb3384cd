//! Upkeep of transactions: retiring statuses, and the parts of checkpoints and recovery.
//!
//! Each of these holds the `upkeep` mutex. So only one thread at a time retires statuses or writes
//! status pages (transam rules 3 and 9).

use millpond_buffer::BufferError;
use millpond_sync::atomic::Ordering;
use millpond_sync::mutant;

use super::backend::Backend;
use super::chunk::{CHUNK, ChunkBits};
use super::overflow::Spilled;
use super::transactions::Transactions;
use super::upkeep::Upkeep;
use super::{clog, csn_pages};
use crate::error::EngineResult;
use crate::ids::{Csn, Xid};
use crate::wal::end_record::{EndRecord, INFO_ABORT, INFO_COMMIT, INFO_NEXT_XID};
use crate::wal::{Record, RedoError, RmgrId};

/// Ended row locks are swept much less often than the other upkeep runs: they cost only memory.
const ROUNDS_PER_SWEEP: u64 = 64;

impl Transactions {
    /// A round of upkeep. It refreshes the horizon, makes room in the ring, forgets what no
    /// snapshot needs and removes files that were in use. The maintenance thread calls it several
    /// times a second. It is cheap when there is nothing to do.
    pub fn maintain(&self, backend: &Backend) -> EngineResult<()> {
        let mut upkeep = self.upkeep.lock();
        self.horizon();
        self.retire(backend, &mut upkeep)?;
        self.forget(backend, &mut upkeep)?;
        self.spill(backend, &mut upkeep)?;
        let cut = self.cut_csn_file(backend, &mut upkeep);
        upkeep.rounds += 1;
        let sweeps = upkeep.rounds.is_multiple_of(ROUNDS_PER_SWEEP);
        drop(upkeep);
        if sweeps {
            self.sweep_row_locks();
        }
        let undropped = std::mem::take(&mut *self.undropped.lock());
        self.drop_files(backend, &undropped);
        cut
    }

    /// Retires the oldest chunks once the ring is half full.
    pub(super) fn retire(&self, backend: &Backend, upkeep: &mut Upkeep) -> EngineResult<()> {
        if self.ring.room() > self.ring.size() / 2 {
            return Ok(());
        }
        let horizon = self.horizon().csn;
        while self.ring.room() <= self.ring.size() / 2 {
            let Some(chunk) = self.ring.oldest_chunk() else { break };
            let bits = self.ring.committed_in(chunk);
            if chunk >= upkeep.logged && !mutant!("transam-retire-before-status-page") {
                clog::set_bits(backend, self.clog(backend)?, chunk, &bits)?;
            }
            // First, so that the overflow does not grow while the file cannot.
            self.spill(backend, upkeep)?;
            self.ring.retire(chunk, &bits, horizon);
        }
        Ok(())
    }

    /// Writes the oldest chunks of the overflow to the commit number file, if there are more in
    /// memory than the limit. After an error they stay in memory. Then nothing more is retired, so
    /// the memory stays bounded, and transactions get no id (see ADR 19).
    fn spill(&self, backend: &Backend, upkeep: &mut Upkeep) -> EngineResult<()> {
        let overflow = &self.ring.overflow;
        let limit = self.kept_chunks.load(Ordering::Relaxed);
        if overflow.len() <= limit {
            return Ok(());
        }
        // The snapshots may have been released: then a full disk refuses no transaction.
        self.forget(backend, upkeep)?;
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
            // After the chunk is forgotten, readers ask the clog.
            clog::set_bits(backend, self.clog(backend)?, chunk, &bits)?;
            upkeep.has_csn_pages = true;
            let place = Spilled { chunk, block: overflow.place(chunk) };
            let newest = csn_pages::write(backend, self.csn_file(backend.pool())?, place, &kept)?;
            overflow.set_spilled(chunk, newest);
            self.spilled_pages.fetch_add(1, Ordering::Relaxed);
            excess -= 1;
            if excess == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes chunks out of the overflow that all snapshots see alike.
    fn forget(&self, backend: &Backend, upkeep: &mut Upkeep) -> EngineResult<()> {
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
                clog::set_bits(backend, self.clog(backend)?, chunk, &bits)?;
                self.ring.overflow.forget(chunk);
            }
        }
        self.ring.overflow.forget_spilled(horizon);
        Ok(())
    }

    /// Frees the space of the commit number file once nothing in it is needed. No transaction waits
    /// for that, so an error here refuses no transaction.
    fn cut_csn_file(&self, backend: &Backend, upkeep: &mut Upkeep) -> EngineResult<()> {
        if !upkeep.has_csn_pages || self.ring.overflow.has_spilled() {
            return Ok(());
        }
        match backend.pool().truncate(csn_pages::CSN_FILE, 0) {
            Ok(()) => upkeep.has_csn_pages = false,
            // A reader has pinned a page. The next round tries again.
            Err(BufferError::InUse { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// A checkpoint's part, after its redo point was fixed. Waits for the commits whose records may
    /// lie before it. Then writes all commits in memory to the status pages, and the next id to the
    /// log. The checkpoint then writes the pages.
    pub fn checkpoint(&self, backend: &Backend) -> EngineResult<()> {
        self.procs.wait_for_commits();
        let mut upkeep = self.upkeep.lock();
        let rel = self.clog(backend)?;
        let next = self.ring.next();
        let first = (self.ring.retired().0 / CHUNK).max(upkeep.logged);
        upkeep.logged = first;
        for chunk in first..next.0.div_ceil(CHUNK) {
            let bits = self.ring.committed_in(chunk);
            if bits.settled || !bits.is_empty() {
                clog::set_bits(backend, rel, chunk, &bits)?;
            }
            if bits.settled && chunk == upkeep.logged {
                upkeep.logged = chunk + 1;
            }
        }
        for chunk in self.ring.overflow.chunks() {
            if let Some((bits, _)) = self.ring.overflow.bits(chunk, Csn::MAX) {
                clog::set_bits(backend, rel, chunk, &bits)?;
            }
        }
        // Ids drawn later have their records after the redo point, or have none.
        let payload = self.ring.next().0.to_le_bytes();
        let record = Record::new(Xid::INVALID, RmgrId::Transaction, INFO_NEXT_XID, &payload);
        backend.log().insert(backend.no(), &record)?;
        Ok(())
    }

    /// For a start with the next id from the control file: ids below it are not given out again.
    pub fn restore_next(&self, next: Xid) {
        if let Some(recovered) = self.recovered.lock().as_mut() {
            recovered.next = recovered.next.max(next);
        }
    }

    /// Recovery: a record shows that its transaction's id was drawn.
    pub fn redo_saw(&self, xid: Xid) {
        if let Some(recovered) = self.recovered.lock().as_mut() {
            recovered.saw(xid);
        }
    }

    /// Recovery: replays a record of [`RmgrId::Transaction`]. Returns the files that the caller
    /// must remove. Commits are kept in memory, and written to the status pages through the log at
    /// the end. So a page that recovery itself leaves torn has its image there (transam rule 9).
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

    /// Ends recovery, or begins a start without it. Writes the replayed commits to the status
    /// pages, which then cover every id given out so far. That rolls back what was running.
    pub fn finish_recovery(&self, backend: &Backend) -> EngineResult<()> {
        let mut upkeep = self.upkeep.lock();
        let mut recovered = self.recovered.lock();
        let Some(known) = recovered.as_ref() else { return Ok(()) };
        // Its numbers are the last run's. The log need not know the file: see csn_pages.rs.
        if !mutant!("transam-numbers-of-the-last-run") {
            backend.pool().drop_relation(csn_pages::CSN_RELATION)?;
        }
        let rel = self.clog(backend)?;
        for (chunk, bits) in &known.commits {
            clog::set_bits(backend, rel, *chunk, bits)?;
        }
        let last = (known.next.0.max(1) - 1) / CHUNK;
        clog::set_bits(backend, rel, last, &ChunkBits::default())?;
        if !mutant!("transam-ids-given-out-again") {
            clog::check_unused(backend, rel, known.next)?;
        }
        self.ring.restart(known.next);
        upkeep.logged = self.ring.retired().0 / CHUNK;
        *recovered = None;
        self.in_doubt.store(false, Ordering::Release);
        Ok(())
    }
}
