//! The bytes of a log record: its parts and their encoding. `decode.rs` checks and decodes.
//!
//! A record is a header of [`HEADER_BYTES`], its block references, and a payload. A block reference
//! has its data. On the page's first change after a checkpoint began, it also has an image of the
//! page as it was *before* the change. The record's manager defines what data and payload mean.
//! docs/wal-format.md gives the layout byte by byte; the constants below are that page in code.
//!
//! Records start at multiples of eight and are padded with zeros to the next multiple. So
//! concurrent inserters never share a word of the ring (wal rule 3).
//!
//! The checksum is CRC-32C in two steps: `crc(bytes 4..20 ++ crc(bytes 20..len))`. So only 20 bytes
//! remain to be summed once the position is known. It covers the record's own position. Therefore
//! stale bytes of a recycled segment never pass (wal rule 5).

mod decode;
#[cfg(test)]
mod tests;

use millpond_buffer::{Lsn, PAGE_SIZE, PageId};
use millpond_sync::mutant;
use smallvec::SmallVec;

use crate::error::EncodeError;
use crate::ids::Xid;

pub use decode::{DecodeError, Decoded, DecodedBlock, Image, Reader, claimed_bytes, decode};

/// Bytes of a record before its first block reference.
pub const HEADER_BYTES: usize = 36;
/// Every record starts at a multiple of this.
pub const ALIGN: u64 = 8;
/// The longest record that is accepted, padding included.
pub const MAX_RECORD_BYTES: usize = 1 << 22;
/// The largest number of blocks that one record may refer to.
pub const MAX_BLOCKS: usize = 255;

const BLOCK_HEADER_BYTES: usize = 12;
const IMAGE_HEADER_BYTES: usize = 4;
const BLOCK_HAS_IMAGE: u16 = 1;
const BLOCK_WILL_INIT: u16 = 2;

/// The resource manager that redoes a record. The numbers are part of the log's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RmgrId {
    /// The log itself: checkpoints, no-ops, durability marks.
    Log = 0,
    /// Commits and aborts.
    Transaction = 1,
    /// Creation, removal and truncation of files.
    Storage = 2,
    /// Heap pages.
    Heap = 3,
    /// B+tree pages.
    BTree = 4,
    /// Transaction status pages.
    Clog = 5,
    /// The catalog; not used yet.
    Catalog = 6,
}

impl RmgrId {
    /// The manager with this number, if there is one.
    pub fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Log,
            1 => Self::Transaction,
            2 => Self::Storage,
            3 => Self::Heap,
            4 => Self::BTree,
            5 => Self::Clog,
            6 => Self::Catalog,
            _ => return None,
        })
    }
}

/// Whether a block reference carries an image of the page before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageMode {
    /// An image if this is the page's first change since the last checkpoint began.
    IfNeeded,
    /// An image in any case.
    Always,
    /// No image: redo builds the page from nothing and does not read its old content.
    Never,
}

/// One page that a record changes.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a> {
    /// The page.
    pub page: PageId,
    /// Whether the record carries an image of the page.
    pub image: ImageMode,
    /// What redo needs to know about this page: at most 65535 bytes.
    pub data: &'a [u8],
}

/// A record to be inserted.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The transaction that made the record, or [`Xid::INVALID`].
    pub xid: Xid,
    /// The resource manager that redoes it.
    pub rmgr: RmgrId,
    /// The kind of record, in the manager's own numbering.
    pub info: u8,
    /// The pages it changes.
    pub blocks: SmallVec<[BlockRef<'a>; 4]>,
    /// What redo needs to know that belongs to no single page.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record that changes no page.
    pub fn new(xid: Xid, rmgr: RmgrId, info: u8, payload: &'a [u8]) -> Self {
        Self { xid, rmgr, info, blocks: SmallVec::new(), payload }
    }

    /// Adds a page; blocks are numbered in the order in which they are added.
    pub fn block(mut self, page: PageId, image: ImageMode, data: &'a [u8]) -> Self {
        self.blocks.push(BlockRef { page, image, data });
        self
    }

    /// The most bytes that the record can take in the log, with all images and the padding.
    pub fn max_bytes(&self) -> usize {
        let blocks: usize = self
            .blocks
            .iter()
            .map(|block| {
                let image = match block.image {
                    ImageMode::Never => 0,
                    _ => IMAGE_HEADER_BYTES + PAGE_SIZE,
                };
                BLOCK_HEADER_BYTES + block.data.len() + image
            })
            .sum();
        padded(HEADER_BYTES + blocks + self.payload.len())
    }
}

/// `bytes` rounded up to where the next record may start.
pub const fn padded(bytes: usize) -> usize {
    (bytes + (ALIGN as usize - 1)) & !(ALIGN as usize - 1)
}

/// Encodes everything but the position into `out`, which is cleared first.
///
/// A given `images[i]` is the content of block `i`'s page, which the record carries. Finish the
/// record with [`seal`] once its position is known. Returns the padded length, `out.len()`.
pub fn encode(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    start_no: u32,
    images: &[Option<&[u8; PAGE_SIZE]>],
) -> Result<usize, EncodeError> {
    if record.blocks.len() > MAX_BLOCKS {
        return Err(EncodeError::TooManyBlocks(record.blocks.len()));
    }
    out.clear();
    out.resize(20, 0);
    out.extend_from_slice(&start_no.to_le_bytes());
    out.extend_from_slice(&[record.rmgr as u8, record.info, record.blocks.len() as u8, 0]);
    out.extend_from_slice(&record.xid.0.to_le_bytes());
    for (index, block) in record.blocks.iter().enumerate() {
        let Ok(data_bytes) = u16::try_from(block.data.len()) else {
            return Err(EncodeError::BlockDataTooLong(block.data.len()));
        };
        out.extend_from_slice(&block.page.raw().to_le_bytes());
        let flags_at = out.len();
        let mut flags = if block.image == ImageMode::Never { BLOCK_WILL_INIT } else { 0 };
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&data_bytes.to_le_bytes());
        if let Some(Some(page)) = images.get(index) {
            flags |= BLOCK_HAS_IMAGE;
            put_image(out, page);
        }
        out[flags_at..flags_at + 2].copy_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(block.data);
    }
    out.extend_from_slice(record.payload);
    let bytes = out.len();
    if !mutant!("wal-records-share-words") {
        out.resize(padded(bytes), 0);
    }
    if out.len() > MAX_RECORD_BYTES {
        return Err(EncodeError::TooLong { bytes, limit: MAX_RECORD_BYTES });
    }
    out[4..8].copy_from_slice(&(bytes as u32).to_le_bytes());
    // The inner sum waits in the checksum field until the position is known.
    let inner = crc_fast::crc32_iscsi(&out[20..bytes]);
    out[0..4].copy_from_slice(&inner.to_le_bytes());
    Ok(out.len())
}

/// Appends an image without its longest run of zero words.
fn put_image(out: &mut Vec<u8>, page: &[u8; PAGE_SIZE]) {
    let (start, bytes) = longest_zero_run(page);
    out.extend_from_slice(&(start as u16).to_le_bytes());
    out.extend_from_slice(&(bytes as u16).to_le_bytes());
    out.extend_from_slice(&page[..start]);
    out.extend_from_slice(&page[start + bytes..]);
}

/// Offset and length of the longest run of zero words, in bytes.
fn longest_zero_run(page: &[u8; PAGE_SIZE]) -> (usize, usize) {
    let (mut best, mut best_at, mut run) = (0, 0, 0);
    for (index, word) in page.chunks_exact(8).enumerate() {
        if word == [0; 8] {
            run += 1;
            if run > best {
                (best, best_at) = (run, index + 1 - run);
            }
        } else {
            run = 0;
        }
    }
    (best_at * 8, best * 8)
}

/// Finishes an encoded record. `start` is its position; the log is durable up to `flushed`.
pub fn seal(encoded: &mut [u8], start: Lsn, flushed: Lsn) {
    let lag = start.get().saturating_sub(flushed.get());
    encoded[8..16].copy_from_slice(&start.get().to_le_bytes());
    encoded[16..20].copy_from_slice(&u32::try_from(lag).unwrap_or(u32::MAX).to_le_bytes());
    let inner = [encoded[0], encoded[1], encoded[2], encoded[3]];
    let crc = outer_crc(&encoded[4..20], inner);
    encoded[0..4].copy_from_slice(&crc.to_le_bytes());
}

fn outer_crc(head: &[u8], inner: [u8; 4]) -> u32 {
    let mut bytes = [0; 20];
    bytes[..16].copy_from_slice(head);
    bytes[16..].copy_from_slice(&inner);
    if mutant!("wal-checksum-without-position") {
        bytes[4..12].fill(0);
    }
    crc_fast::crc32_iscsi(&bytes)
}

/// An unsealed no-op of exactly `bytes` padded bytes, for a reservation whose record became
/// outdated.
pub fn encode_noop(out: &mut Vec<u8>, bytes: usize, start_no: u32) {
    let payload = vec![0; bytes.saturating_sub(HEADER_BYTES)];
    let record = Record::new(Xid::INVALID, RmgrId::Log, super::info::NOOP, &payload);
    // No block and a length that was accepted before: this cannot fail.
    let encoded = encode(out, &record, start_no, &[]);
    debug_assert_eq!(encoded, Ok(bytes));
}
