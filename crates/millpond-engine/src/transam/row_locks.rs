//! Row locks: their four strengths, and the holders for which a row version has no room.
//!
//! **Role.** A row version names one transaction, its xmax, which locked, replaced or deleted it.
//! Locks that do not exclude each other can have several holders at a time. All holders but the one
//! in xmax are here; PostgreSQL uses multixacts for this. The version's flag XMAX_IS_MULTI says
//! that there may be some. A row without that flag is never looked up.
//!
//! **State.** A table from row versions to further holders, in memory only. A version is named by
//! its place and its xmin. A line pointer is reused only after the transaction that made the old
//! version has ended, hence by another transaction. So no version gets the holders of another.
//!
//! **Invariants.**
//! - An entry counts only while its version has the flag. Flag and entry change together under the
//!   exclusive latch of the version's page, and are read only under that latch. A thread takes a
//!   shard's mutex inside the latch, and waits for nothing while it holds the mutex.
//! - xmax is not among the entry's holders, and no transaction is there twice.
//! - A holder whose transaction has ended holds nothing, wherever it is listed. The end of a
//!   transaction changes nothing here; readers of an entry leave out ended holders. A shard is
//!   swept when it has doubled, and sometimes by upkeep. So the table is never much larger than
//!   twice what running transactions hold.
//!
//! **Failure.** Nothing here outlives a crash, and nothing has to: a lock ends with its
//! transaction, and a crash ends all transactions. After it a version with the flag and no entry
//! has no further holders. What must outlive it, the transaction that replaced or deleted the
//! version, is always xmax itself (ADR 13).

use std::collections::HashMap;
use std::hash::BuildHasher;

use millpond_buffer::PageId;
use millpond_sync::CachePadded;
use millpond_sync::sync::Mutex;
use smallvec::SmallVec;

use crate::error::{EngineError, EngineResult};
use crate::ids::Xid;
use crate::lock::TagHash;

const SHARDS: usize = 16;
/// The most rows with several holders at a time; some 100 bytes each.
pub const MAX_SHARED_ROWS: usize = 1 << 20;
/// A shard with fewer rows is not swept.
const SWEEP_FROM: usize = 64;

/// How strongly a row is locked. Updates and deletions take row locks, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockStrength {
    /// `FOR KEY SHARE`: the row stays, and so do the values of its unique keys.
    KeyShare,
    /// `FOR SHARE`: the row stays as it is.
    Share,
    /// `FOR NO KEY UPDATE`, and updates that leave all unique keys alone.
    NoKeyUpdate,
    /// `FOR UPDATE`, deletions, and updates of a unique key.
    Update,
}

impl LockStrength {
    /// All strengths, the weakest first.
    pub const ALL: [LockStrength; 4] = [
        LockStrength::KeyShare,
        LockStrength::Share,
        LockStrength::NoKeyUpdate,
        LockStrength::Update,
    ];

    /// Whether two transactions cannot hold these at the same time.
    #[inline]
    pub const fn conflicts(self, other: LockStrength) -> bool {
        // Each conflicts with its counterpart and all stronger ones.
        self as u8 + other as u8 >= 3
    }

    /// As two bits.
    #[inline]
    pub const fn bits(self) -> u16 {
        self as u16
    }

    /// From two bits; the other bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u16) -> LockStrength {
        Self::ALL[(bits & 0b11) as usize]
    }
}

/// A transaction and how strongly it holds a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locker {
    /// The transaction.
    pub xid: Xid,
    /// How strongly.
    pub strength: LockStrength,
}

/// The holders of a row.
pub type Lockers = SmallVec<[Locker; 2]>;

/// A row version: its place, and the transaction that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowVersion {
    /// Its page.
    pub page: PageId,
    /// Its line pointer.
    pub offset: u16,
    /// The transaction that made it.
    pub xmin: Xid,
}

#[derive(Default)]
struct Shard {
    rows: HashMap<RowVersion, Lockers>,
    /// With this many rows, `set` sweeps the shard: it removes rows whose holders have all ended.
    sweep_at: usize,
}

impl Shard {
    /// Removes rows whose holders have all ended.
    fn sweep(&mut self, is_running: impl Fn(Xid) -> bool) {
        self.rows.retain(|_, lockers| lockers.iter().any(|locker| is_running(locker.xid)));
        self.sweep_at = 2 * self.rows.len();
        self.rows.shrink_to(self.sweep_at);
    }
}

/// The further holders of row versions.
pub struct RowLocks {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    rows_per_shard: usize,
}

impl RowLocks {
    /// A table for this many rows.
    pub fn new(rows: usize) -> Self {
        RowLocks {
            shards: std::array::from_fn(|_| CachePadded::new(Mutex::default())),
            rows_per_shard: rows.div_ceil(SHARDS),
        }
    }

    fn shard(&self, row: &RowVersion) -> &Mutex<Shard> {
        &self.shards[(TagHash::default().hash_one(row) >> 40) as usize % SHARDS]
    }

    /// The recorded holders of a version, including those whose transactions have ended.
    pub fn get(&self, row: &RowVersion) -> Lockers {
        self.shard(row).lock().rows.get(row).cloned().unwrap_or_default()
    }

    /// Replaces the recorded holders of a version. If there is no room, it fails and changes
    /// nothing.
    pub fn set(
        &self,
        row: RowVersion,
        lockers: Lockers,
        is_running: impl Fn(Xid) -> bool,
    ) -> EngineResult<()> {
        let mut shard = self.shard(&row).lock();
        if lockers.is_empty() {
            shard.rows.remove(&row);
            return Ok(());
        }
        let at = shard.sweep_at.max(SWEEP_FROM).min(self.rows_per_shard);
        if shard.rows.len() >= at && !shard.rows.contains_key(&row) {
            shard.sweep(&is_running);
            // The holders to record may have ended meanwhile, and the sweep may have removed their
            // rows. Then there is nothing to record.
            if lockers.iter().all(|locker| !is_running(locker.xid)) {
                return Ok(());
            }
            if shard.rows.len() >= self.rows_per_shard {
                return Err(EngineError::LimitExceeded {
                    what: "too many rows are locked by several transactions at a time; end some of these and try again",
                });
            }
        }
        shard.rows.insert(row, lockers);
        Ok(())
    }

    /// Removes all rows whose holders have all ended.
    pub fn sweep(&self, is_running: impl Fn(Xid) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            if !shard.rows.is_empty() {
                shard.sweep(&is_running);
            }
        }
    }

    /// The number of rows in the table.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().rows.len()).sum()
    }

    /// Whether no row is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockStrength::{KeyShare, NoKeyUpdate, Share, Update};
    use millpond_buffer::{BlockNumber, Fork, RelFork, RelationId};

    #[test]
    fn strengths_conflict_as_in_postgresql() {
        let conflicts = [
            (KeyShare, vec![Update]),
            (Share, vec![NoKeyUpdate, Update]),
            (NoKeyUpdate, vec![Share, NoKeyUpdate, Update]),
            (Update, vec![KeyShare, Share, NoKeyUpdate, Update]),
        ];
        for (strength, with) in conflicts {
            for other in LockStrength::ALL {
                assert_eq!(
                    strength.conflicts(other),
                    with.contains(&other),
                    "{strength:?} {other:?}"
                );
                assert_eq!(other.conflicts(strength), strength.conflicts(other));
            }
            assert_eq!(LockStrength::from_bits(strength.bits()), strength);
        }
    }

    fn row(n: u32) -> RowVersion {
        let fork = RelFork { relation: RelationId::constant(7), fork: Fork::Main };
        RowVersion { page: PageId::new(fork, BlockNumber(n)), offset: 1, xmin: Xid(5) }
    }

    fn by(xid: u64) -> Lockers {
        std::iter::once(Locker { xid: Xid(xid), strength: Share }).collect()
    }

    #[test]
    fn a_version_of_another_maker_has_holders_of_its_own() {
        let locks = RowLocks::new(1000);
        locks.set(row(1), by(10), |_| true).unwrap();
        let other = RowVersion { xmin: Xid(6), ..row(1) };
        assert!(locks.get(&other).is_empty());
        assert_eq!(locks.get(&row(1)), by(10));
        locks.set(row(1), Lockers::new(), |_| true).unwrap();
        assert!(locks.is_empty());
    }

    #[test]
    fn row_locks_of_ended_transactions_are_swept() {
        let locks = RowLocks::new(1 << 20);
        for n in 0..100_000 {
            // The last hundred transactions run.
            locks.set(row(n), by(u64::from(n)), |xid| xid.0 + 100 > u64::from(n)).unwrap();
        }
        assert!(locks.len() <= SHARDS * SWEEP_FROM + 200, "{}", locks.len());
        for n in 99_950..100_000 {
            assert_eq!(locks.get(&row(n)), by(u64::from(n)));
        }
        locks.sweep(|xid| xid.0 == 99_999);
        assert_eq!(locks.len(), 1);
        assert_eq!(locks.get(&row(99_999)), by(99_999));
    }

    #[test]
    fn full_row_lock_table_accepts_ended_lockers() {
        let locks = RowLocks::new(SHARDS);
        let full =
            (0..1000).filter(|&n| locks.set(row(n), by(3), |_| true).is_err()).collect::<Vec<_>>();
        assert!(!full.is_empty());
        for n in full {
            locks.set(row(n), by(9), |xid| xid == Xid(3)).unwrap();
            assert!(locks.get(&row(n)).is_empty());
        }
    }

    #[test]
    fn a_full_table_refuses_rows_and_recovers_when_transactions_end() {
        let locks = RowLocks::new(SHARDS * 8);
        let refused = (0..1000).filter(|&n| locks.set(row(n), by(3), |_| true).is_err()).count();
        assert_eq!(locks.len(), 1000 - refused);
        assert!(locks.len() <= SHARDS * 8, "{}", locks.len());
        // A row that is in the table may get more holders.
        let known = (0..1000).find(|&n| !locks.get(&row(n)).is_empty()).unwrap();
        locks.set(row(known), by(4), |_| true).unwrap();
        for n in 1000..1100 {
            locks.set(row(n), by(9), |xid| xid == Xid(n.into())).unwrap();
        }
    }
}
