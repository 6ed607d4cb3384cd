//! Log records of transactions: commits, aborts, and the next id.
//!
//! Payload of commits and aborts, little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | time, microseconds since 2000-01-01 UTC |
//! | 8..12 | n: number of relations whose files go |
//! | 12.. | n times 4 bytes: relation number |
//!
//! A commit lists the files of what it dropped; an abort lists the files that it had created. Redo
//! removes them. Removing a file twice does no harm.

use millpond_buffer::RelationId;

use crate::error::RedoError;
use crate::types::current_timestamp;

/// The transaction has committed.
pub const INFO_COMMIT: u8 = 0;
/// The transaction was rolled back.
pub const INFO_ABORT: u8 = 1;

/// All ids below the number in the payload's eight bytes have been drawn.
pub const INFO_NEXT_XID: u8 = 2;

/// The content of a commit or abort record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndRecord {
    /// Microseconds since 2000.
    pub time_us: i64,
    /// Relations whose files are removed.
    pub files: Vec<RelationId>,
}

impl EndRecord {
    /// A record with the current time.
    pub fn now(files: &[RelationId]) -> Self {
        EndRecord { time_us: current_timestamp(), files: files.to_vec() }
    }

    /// The payload's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 4 * self.files.len());
        bytes.extend_from_slice(&self.time_us.to_le_bytes());
        bytes.extend_from_slice(&(self.files.len() as u32).to_le_bytes());
        for file in &self.files {
            bytes.extend_from_slice(&file.get().to_le_bytes());
        }
        bytes
    }

    /// The record in these bytes.
    pub fn decode(payload: &[u8]) -> Result<Self, RedoError> {
        let bad = || RedoError::new("malformed end of transaction record");
        let (time, rest) = payload.split_first_chunk::<8>().ok_or_else(bad)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(bad)?;
        if rest.len() as u64 != 4 * u64::from(u32::from_le_bytes(*count)) {
            return Err(bad());
        }
        let file = |bytes: &[u8]| {
            let number = bytes.try_into().map(u32::from_le_bytes).map_err(|_| bad())?;
            RelationId::new(number).ok_or_else(bad)
        };
        Ok(EndRecord {
            time_us: i64::from_le_bytes(*time),
            files: rest.chunks_exact(4).map(file).collect::<Result<_, _>>()?,
        })
    }
}

/// The files that the end of a transaction removes. None for other records of transactions.
pub(crate) fn files_to_drop(info: u8, payload: &[u8]) -> Result<Vec<RelationId>, RedoError> {
    match info {
        INFO_COMMIT | INFO_ABORT => Ok(EndRecord::decode(payload)?.files),
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip(time_us: i64, files in prop::collection::vec(0u32..1 << 28, 0..9)) {
            let files = files.into_iter().filter_map(RelationId::new).collect();
            let record = EndRecord { time_us, files };
            prop_assert_eq!(EndRecord::decode(&record.encode()).unwrap(), record);
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(record) = EndRecord::decode(&bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
