//! A heap as a session holds it: the handles of its forks, its fill factor, its counters.

use std::sync::{Arc, OnceLock};

use millpond_buffer::{BufferError, BufferPool, Fork, RelHandle, RelationId};
use millpond_sync::counters::StripedCounters;
use millpond_sync::mutant;
use millpond_sync::sync::Mutex;

use super::sync_scan::ScanPositions;
use crate::transam::SessionNo;

/// What each heap counts, for statistics and for autovacuum's decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum HeapEvent {
    /// Rows inserted.
    Inserted = 0,
    /// Rows replaced, whether or not the transaction commits.
    Updated = 1,
    /// Rows replaced within their page (also counted as updated).
    HotUpdated = 2,
    /// Rows deleted.
    Deleted = 3,
    /// Versions removed by pruning on access.
    Pruned = 4,
}

const EVENTS: usize = 5;

/// Counters of one heap, and the positions of its scans. Each session has a stripe of its own (heap
/// rule 11). The stripes are allocated when the first event is counted.
#[derive(Debug)]
pub struct HeapCounters {
    stripes: usize,
    counters: OnceLock<StripedCounters<EVENTS>>,
    last_vacuum: Mutex<LastVacuum>,
    scans: ScanPositions,
}

/// What the last vacuum left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastVacuum {
    /// The counts when it began.
    pub counts: HeapCounts,
    /// Dead versions that it could not remove.
    pub dead: u64,
    /// Rows that it left; `None` before the first vacuum.
    pub live: Option<u64>,
}

/// The counters' sums since the engine started. Callers that want differences keep earlier sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapCounts {
    /// Rows inserted.
    pub inserted: u64,
    /// Rows replaced.
    pub updated: u64,
    /// Rows replaced within their page.
    pub hot_updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Versions removed by pruning on access.
    pub pruned: u64,
}

impl HeapCounts {
    /// An estimate of the versions that have died and that only vacuum will remove, for
    /// `autovacuum_vacuum_threshold`.
    pub fn dead(&self) -> u64 {
        (self.updated + self.deleted).saturating_sub(self.pruned)
    }
}

impl HeapCounters {
    fn new(stripes: usize) -> Self {
        Self {
            stripes,
            counters: OnceLock::new(),
            last_vacuum: Mutex::default(),
            scans: ScanPositions::default(),
        }
    }

    pub(super) fn scans(&self) -> &ScanPositions {
        &self.scans
    }

    /// Counts `n` events of the session.
    #[inline]
    pub fn add(&self, session: SessionNo, event: HeapEvent, n: u64) {
        let counters = self.counters.get_or_init(|| StripedCounters::new(self.stripes));
        let stripe = if mutant!("heap-counts-in-one-stripe") { 0 } else { session.index() };
        counters.add(stripe, event as usize, n);
    }

    /// Notes what a vacuum left. `counts` are the counts when it began.
    pub fn note_vacuum(&self, counts: HeapCounts, live: u64, dead: u64) {
        *self.last_vacuum.lock() = LastVacuum { counts, dead, live: Some(live) };
    }

    /// What the last vacuum left.
    pub fn last_vacuum(&self) -> LastVacuum {
        *self.last_vacuum.lock()
    }

    /// An estimate of the versions that a vacuum might remove now. Autovacuum compares it with
    /// `autovacuum_vacuum_threshold` plus `autovacuum_vacuum_scale_factor` of the rows.
    pub fn dead_estimate(&self) -> u64 {
        let last = self.last_vacuum();
        last.dead + self.counts().dead().saturating_sub(last.counts.dead())
    }

    /// An estimate of the rows in the heap; `None` if no vacuum has counted them yet.
    pub fn live_estimate(&self) -> Option<u64> {
        let (last, now) = (self.last_vacuum(), self.counts());
        let inserted = now.inserted.saturating_sub(last.counts.inserted);
        let deleted = now.deleted.saturating_sub(last.counts.deleted);
        last.live.map(|live| (live + inserted).saturating_sub(deleted))
    }

    /// The sums over all sessions.
    pub fn counts(&self) -> HeapCounts {
        let sums = self.counters.get().map_or([0; EVENTS], StripedCounters::sums);
        let sum = |event: HeapEvent| sums[event as usize];
        HeapCounts {
            inserted: sum(HeapEvent::Inserted),
            updated: sum(HeapEvent::Updated),
            hot_updated: sum(HeapEvent::HotUpdated),
            deleted: sum(HeapEvent::Deleted),
            pruned: sum(HeapEvent::Pruned),
        }
    }
}

/// A heap. Clones share the handles and the counters.
#[derive(Clone)]
pub struct HeapRelation {
    /// The rows.
    pub main: RelHandle,
    /// The free space map.
    pub fsm: RelHandle,
    id: RelationId,
    fillfactor: u8,
    counters: Arc<HeapCounters>,
}

impl HeapRelation {
    /// Opens the heap in relation `id`, whose main and map forks exist. All session numbers that
    /// count are below `max_sessions`; `fillfactor` is in percent.
    pub fn open(
        pool: &BufferPool,
        id: RelationId,
        fillfactor: u8,
        max_sessions: usize,
    ) -> Result<Self, BufferError> {
        Ok(Self {
            main: pool.relation(id.fork(Fork::Main))?,
            fsm: pool.relation(id.fork(Fork::Fsm))?,
            id,
            fillfactor: fillfactor.clamp(10, 100),
            counters: Arc::new(HeapCounters::new(max_sessions)),
        })
    }

    /// Creates the files of a heap. The caller logs the creation.
    pub fn create(pool: &BufferPool, id: RelationId) -> Result<(), BufferError> {
        pool.create(id.fork(Fork::Main))?;
        pool.create(id.fork(Fork::Fsm))
    }

    /// The relation's number.
    pub fn id(&self) -> RelationId {
        self.id
    }

    /// The number of blocks with rows.
    #[inline]
    pub fn block_count(&self) -> u32 {
        self.main.block_count()
    }

    /// The number of blocks of the free space map.
    pub fn map_block_count(&self) -> u32 {
        self.fsm.block_count()
    }

    /// The share of a page, in percent, that insertions fill.
    pub fn fillfactor(&self) -> u8 {
        self.fillfactor
    }

    /// Bytes of a page that insertions leave free.
    pub fn reserve(&self) -> usize {
        super::page::reserve_for(self.fillfactor)
    }

    /// The counters.
    pub fn counters(&self) -> &Arc<HeapCounters> {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (heap rule 11)
    #[test]
    fn each_session_counts_in_a_stripe_of_its_own() {
        let counters = HeapCounters::new(3);
        for session in 0..3 {
            counters.add(SessionNo(session), HeapEvent::Deleted, u64::from(session) + 1);
        }
        let stripes = counters.counters.get().unwrap();
        let counted = [0, 1, 2].map(|stripe| stripes.get(stripe, HeapEvent::Deleted as usize));
        assert_eq!(counted, [1, 2, 3]);
        assert_eq!(counters.counts().deleted, 6);
    }
}
