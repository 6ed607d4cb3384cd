//! The records about files: a fork was created, or truncated.

use millpond_buffer::{Fork, RelFork, RelationId};

use super::record::Reader;
use crate::error::RedoError;

/// The payload of a record of [`RmgrId::Storage`](super::RmgrId::Storage): relation (4 bytes), fork
/// (1), kind (1). A truncation also has the number of blocks that stay (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageRecord {
    /// The fork exists from now on.
    Create(RelFork),
    /// The fork has only this many blocks from now on.
    Truncate(RelFork, u32),
}

/// [`info`](super::record::Record::info) of a creation's record.
pub const INFO_CREATE: u8 = 0;
/// [`info`](super::record::Record::info) of a truncation's record.
pub const INFO_TRUNCATE: u8 = 1;

impl StorageRecord {
    /// The record's info and payload.
    pub(super) fn encode(self) -> (u8, Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
