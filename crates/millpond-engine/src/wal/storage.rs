//! Records about files: a fork came into being, or was cut.
//!
//! Files that go are listed in the record that ends their transaction, so that they go exactly when it commits
//! (or, if it had made them, when it does not).
//!
//! A truncation is done once the file has been cut. Until then no checkpoint may make its record too old to be redone: one waits for
//! those under way whose records may be older than its redo point, and logs anew what is still owed of those that failed
//! (wal rule 16).

use millpond_buffer::{BufferPool, Fork, RelFork, RelationId};

use super::apply::{Logging, RedoError};
use super::log::Log;
use super::record::{Reader, Record, RmgrId};
use crate::error::EngineResult;
use crate::transam::{SessionNo, Xid};

/// The payload of a [`RmgrId::Storage`] record: relation (4 bytes), fork (1), kind (1), and for a
/// truncation the number of blocks that stay (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageRecord {
    /// The fork exists from now on.
    Create(RelFork),
    /// The fork has only so many blocks from now on.
    Truncate(RelFork, u32),
}

/// [`Record::info`] of a creation.
pub const INFO_CREATE: u8 = 0;
/// [`Record::info`] of a truncation.
pub const INFO_TRUNCATE: u8 = 1;

impl StorageRecord {
    fn encode(self) -> (u8, Vec<u8>) {
        let (rel, kind) = match self {
            Self::Create(rel) => (rel, INFO_CREATE),
            Self::Truncate(rel, _) => (rel, INFO_TRUNCATE),
        };
        let mut out = rel.relation.get().to_le_bytes().to_vec();
        out.extend_from_slice(&[rel.fork as u8, kind]);
        if let Self::Truncate(_, blocks) = self {
            out.extend_from_slice(&blocks.to_le_bytes());
        }
        (kind, out)
    }

    /// Decodes a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, RedoError> {
        Self::decode_parts(payload).ok_or_else(|| RedoError::new("malformed storage record"))
    }

    fn decode_parts(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader(payload);
        let relation = RelationId::new(reader.u32()?)?;
        let rel = relation.fork(Fork::from_number(reader.u8()?)?);
        match reader.u8()? {
            INFO_CREATE => Some(Self::Create(rel)),
            INFO_TRUNCATE => Some(Self::Truncate(rel, reader.u32()?)),
            _ => None,
        }
    }
}

/// Creates a fork: first in the log, then in the store.
pub fn create_fork(
    session: &impl Logging,
    pool: &BufferPool,
    xid: Xid,
    rel: RelFork,
) -> EngineResult<()> {
    let (info, payload) = StorageRecord::Create(rel).encode();
    let record = Record::new(xid, RmgrId::Storage, info, &payload);
    session.log().insert(session.stripe(), &record)?;
    Ok(pool.create(rel)?)
}

/// Cuts a fork down to `blocks` blocks. The record is durable before the file is cut: afterwards no
/// older record could be redone.
pub fn truncate_fork(
    session: &impl Logging,
    pool: &BufferPool,
    rel: RelFork,
    blocks: u32,
) -> EngineResult<()> {
    let (info, payload) = StorageRecord::Truncate(rel, blocks).encode();
    let record = Record::new(Xid::INVALID, RmgrId::Storage, info, &payload);
    let _not_done = session.log().cuts.read();
    let inserted = session.log().insert(session.stripe(), &record)?;
    session.log().flush(inserted.end)?;
    Ok(pool.truncate(rel, blocks)?)
}

/// For a checkpoint that has its redo point: returns once no truncation whose record may be older is under way, having logged anew those
/// that failed and have left more in a file than belongs there.
pub fn settle_truncations(log: &Log, stripe: SessionNo, pool: &BufferPool) -> EngineResult<()> {
    drop(log.cuts.write());
    pool.for_each_owed_cut(|rel, blocks| {
        let (info, payload) = StorageRecord::Truncate(rel, blocks).encode();
        log.insert(stripe, &Record::new(Xid::INVALID, RmgrId::Storage, info, &payload))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_read_as_written() {
        let rel = RelationId::constant(77).fork(Fork::Fsm);
        for record in [StorageRecord::Create(rel), StorageRecord::Truncate(rel, 9)] {
            assert_eq!(StorageRecord::decode(&record.encode().1).unwrap(), record);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = StorageRecord::decode(&bytes);
        }
    }
}
