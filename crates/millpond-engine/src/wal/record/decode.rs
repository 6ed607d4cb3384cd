//! Checking and decoding records that were read from the log.
//!
//! Decoding accepts any bytes: it never panics, and reads only inside the slice it is given.

use millpond_buffer::{Lsn, PAGE_SIZE, PageId};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::{
    BLOCK_HAS_IMAGE, BLOCK_WILL_INIT, HEADER_BYTES, MAX_RECORD_BYTES, RmgrId, outer_crc, padded,
};
use crate::ids::Xid;

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the record does. It needs this many.
    #[error("the record needs {0} bytes")]
    Incomplete(usize),
    /// The record carries another position than the one where it was found.
    #[error("the record carries position {0}")]
    Position(u64),
    /// The length is impossible.
    #[error("impossible length {0}")]
    Length(u32),
    /// The checksum does not match.
    #[error("checksum mismatch")]
    Checksum,
    /// The checksum matches, but the parts contradict each other.
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

/// A page image inside a record.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    hole_start: usize,
    hole_bytes: usize,
    bytes: &'a [u8],
}

impl Image<'_> {
    /// Rebuilds the page.
    pub fn restore(&self, page: &mut [u8; PAGE_SIZE]) {
        page.fill(0);
        let (head, tail) = self.bytes.split_at(self.hole_start);
        page[..self.hole_start].copy_from_slice(head);
        page[self.hole_start + self.hole_bytes..].copy_from_slice(tail);
    }
}

/// A block reference inside a record.
#[derive(Clone, Copy, Debug)]
pub struct DecodedBlock<'a> {
    /// The page.
    pub page: PageId,
    /// Redo builds the page from nothing.
    pub will_init: bool,
    /// The page as it was before the change.
    pub image: Option<Image<'a>>,
    /// What redo needs to know about this page.
    pub data: &'a [u8],
}

/// A record as found in the log.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// Where it starts.
    pub start: Lsn,
    /// Where the next one starts; the LSN of the pages it changed.
    pub end: Lsn,
    /// The log was durable up to here, or further, when this record was inserted.
    pub flushed: Lsn,
    /// The number of the start of the engine that wrote it.
    pub start_no: u32,
    /// The transaction.
    pub xid: Xid,
    /// The resource manager that redoes it.
    pub rmgr: RmgrId,
    /// The kind of record.
    pub info: u8,
    /// The pages it changes.
    pub blocks: SmallVec<[DecodedBlock<'a>; 4]>,
    /// The rest.
    pub payload: &'a [u8],
}

/// The padded length that the record at the front of `bytes` claims. An error if the length is
/// impossible, or if the record's position is not `at`. Needs the first 16 bytes.
pub fn claimed_bytes(bytes: &[u8], at: Lsn) -> Result<usize, DecodeError> {
    let mut reader = Reader(bytes);
    let (Some(_), Some(length), Some(position)) = (reader.u32(), reader.u32(), reader.u64()) else {
        return Err(DecodeError::Incomplete(HEADER_BYTES));
    };
    if position != at.get() && !mutant!("wal-record-of-another-place") {
        return Err(DecodeError::Position(position));
    }
    let bytes = length as usize;
    if !(HEADER_BYTES..=MAX_RECORD_BYTES).contains(&bytes) || padded(bytes) > MAX_RECORD_BYTES {
        return Err(DecodeError::Length(length));
    }
    Ok(padded(bytes))
}

/// Decodes the record at the front of `bytes`, which were read at position `at`.
pub fn decode(bytes: &[u8], at: Lsn) -> Result<Decoded<'_>, DecodeError> {
    let total = claimed_bytes(bytes, at)?;
    if bytes.len() < total {
        return Err(DecodeError::Incomplete(total));
    }
    let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    let inner = crc_fast::crc32_iscsi(&bytes[20..length]);
    let stored = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if outer_crc(&bytes[4..20], inner.to_le_bytes()) != stored {
        return Err(DecodeError::Checksum);
    }
    decode_checked(&bytes[..length], at, total).ok_or(DecodeError::Malformed("parts"))?
}

/// Decodes the parts of a record whose checksum matched. `None`: some part reaches beyond the end.
fn decode_checked(bytes: &[u8], at: Lsn, total: usize) -> Option<Result<Decoded<'_>, DecodeError>> {
    let mut reader = Reader(bytes.get(16..)?);
    let lag = reader.u32()?;
    let start_no = reader.u32()?;
    let (rmgr, info, block_count, _flags) =
        (reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?);
    let xid = Xid(reader.u64()?);
    let Some(rmgr) = RmgrId::from_u8(rmgr) else {
        return Some(Err(DecodeError::Malformed("unknown resource manager")));
    };
    let mut blocks = SmallVec::new();
    for _ in 0..block_count {
        blocks.push(decode_block(&mut reader)?);
    }
    Some(Ok(Decoded {
        start: at,
        end: Lsn(at.get() + total as u64),
        flushed: match lag {
            u32::MAX => Lsn::ZERO,
            lag => Lsn(at.get().saturating_sub(u64::from(lag))),
        },
        start_no,
        xid,
        rmgr,
        info,
        blocks,
        payload: reader.0,
    }))
}

fn decode_block<'a>(reader: &mut Reader<'a>) -> Option<DecodedBlock<'a>> {
    let page = PageId::from_raw(reader.u64()?)?;
    let flags = reader.u16()?;
    let data_bytes = usize::from(reader.u16()?);
    let image = if flags & BLOCK_HAS_IMAGE != 0 {
        let hole_start = usize::from(reader.u16()?);
        let hole_bytes = usize::from(reader.u16()?);
        let kept = PAGE_SIZE.checked_sub(hole_bytes)?;
        if hole_start > kept {
            return None;
        }
        Some(Image { hole_start, hole_bytes, bytes: reader.take(kept)? })
    } else {
        None
    };
    let data = reader.take(data_bytes)?;
    Some(DecodedBlock { page, will_init: flags & BLOCK_WILL_INIT != 0, image, data })
}

/// Reads little-endian numbers off the front of a slice.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `bytes` bytes.
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(bytes)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
