//! The transaction status pages (PostgreSQL's clog): one bit per id, in relation 2.
//!
//! A page is a header of [`HEADER_BYTES`] (page kind 4, the rest zero) and [`CHUNKS_PER_PAGE`]
//! chunks of 1024 bits. Bit `i` of byte `b`, lowest first, stands for one id. A set bit means
//! committed. A clear bit of an id older than every status in memory means rolled back, or lost in
//! a crash.
//!
//! Bits are only ever set, so redo may be repeated. A chunk's bits are written by checkpoints and
//! when the chunk leaves memory, through the log like every other page. So a page's first change
//! after a checkpoint began carries its image, and redo restores a torn page (transam rule 9).

use millpond_buffer::{
    BlockNumber, BufferError, ExclusivePage, PAGE_SIZE, PageRead, PageView, RelFork, RelHandle,
    Wait, is_new,
};
use millpond_sync::mutant;

use super::backend::Backend;
use super::chunk::{CHUNK, ChunkBits};
use crate::error::{EngineError, EngineResult};
use crate::ids::{CLOG_RELATION, Xid};
use crate::page::KIND;
use crate::wal::{ImageMode, PageEdit, Record, RedoError, RmgrId, RmgrRedo, log_and_apply};

/// Its only fork.
pub const CLOG: RelFork = CLOG_RELATION.main();
/// The page kind of status pages, bytes 12..14.
pub const CLOG_PAGE_KIND: u16 = 4;
/// Bytes before the first chunk.
pub const HEADER_BYTES: usize = 128;
/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = CHUNK.div_ceil(8) as usize;
/// Chunks of a page.
pub const CHUNKS_PER_PAGE: u64 = ((millpond_buffer::PAGE_SIZE - HEADER_BYTES) / CHUNK_BYTES) as u64;

/// Sets the bits given in the block's data: the chunk's number in the page (2 bytes), its bytes.
pub const INFO_SET_BITS: u8 = 0;

fn block_of(chunk: u64) -> EngineResult<BlockNumber> {
    u32::try_from(chunk / CHUNKS_PER_PAGE)
        .ok()
        .filter(|block| *block < BlockNumber::INVALID.0)
        .map(BlockNumber)
        .ok_or(EngineError::LimitExceeded { what: "no more transaction ids can be recorded" })
}

/// Whether transaction `xid`, whose status has left memory, has committed.
pub(super) fn has_committed(backend: &Backend, rel: &RelHandle, xid: Xid) -> EngineResult<bool> {
    let chunk = xid.0 / CHUNK;
    let block = block_of(chunk)?;
    let bit = xid.0 % CHUNK;
    let offset =
        HEADER_BYTES + (chunk % CHUNKS_PER_PAGE) as usize * CHUNK_BYTES + (bit / 8) as usize;
    let read = |page: &PageView<'_>| (page.u16(KIND), page.u8(offset));
    match backend.buffers().read(rel, block, backend.wait(), read) {
        Ok((CLOG_PAGE_KIND, byte)) => Ok(byte & 1 << (bit % 8) != 0),
        Ok((0, _)) if mutant!("transam-zeros-are-rollbacks") => Ok(false),
        Ok((kind, _)) => Err(EngineError::Corruption {
            place: CLOG.page(block).to_string(),
            what: format!("page of kind {kind} in the transaction statuses"),
        }),
        Err(BufferError::BeyondEnd { .. }) if mutant!("transam-missing-page-is-rollback") => {
            Ok(false)
        }
        Err(BufferError::BeyondEnd { .. }) => Err(EngineError::Corruption {
            place: CLOG.to_string(),
            what: format!("block {block} with the status of transaction {xid} is missing"),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Sets the bits of a chunk, through the log. Creates the page if it does not exist, and those
/// before it. Each is written, so no status page is ever all zeros (transam rule 9).
pub(super) fn set_bits(
    backend: &Backend,
    rel: &RelHandle,
    chunk: u64,
    bits: &ChunkBits,
) -> EngineResult<()> {
    let block = block_of(chunk)?;
    while rel.block_count() <= block.0 {
        let new = backend.buffers().extend(rel, Wait::Allowed)?;
        if !mutant!("transam-status-page-left-zero") {
            log_bits(backend, new, 0, &ChunkBits::default())?;
        }
    }
    let page = backend.buffers().pin(rel, block, Wait::Allowed)?.into_exclusive()?;
    log_bits(backend, page, (chunk % CHUNKS_PER_PAGE) as u16, bits)
}

/// Sets the bits of one chunk in a page, through the log.
fn log_bits(
    backend: &Backend,
    mut page: ExclusivePage<'_>,
    chunk: u16,
    bits: &ChunkBits,
) -> EngineResult<()> {
    let mut data = [0; 2 + CHUNK_BYTES];
    data[..2].copy_from_slice(&chunk.to_le_bytes());
    data[2..].copy_from_slice(&bits.bytes);
    let record = Record::new(Xid::INVALID, RmgrId::Clog, INFO_SET_BITS, &[]).block(
        page.page_id(),
        ImageMode::IfNeeded,
        &data,
    );
    log_and_apply(backend, &mut [&mut page], record)?;
    Ok(())
}

/// Fails if the status pages have commits from `next` on: then ids would be given out again that
/// already have rows in tables. (Checks the page of `next` and the page after it.)
pub(super) fn check_unused(backend: &Backend, rel: &RelHandle, next: Xid) -> EngineResult<()> {
    let chunk = next.0 / CHUNK;
    let first = block_of(chunk)?;
    let mut offset = HEADER_BYTES + (chunk % CHUNKS_PER_PAGE) as usize * CHUNK_BYTES;
    // If `next` lies inside a chunk, that chunk is partly used; ids begin again after it.
    if !next.0.is_multiple_of(CHUNK) {
        offset += CHUNK_BYTES;
    }
    for block in [first.0, first.0.saturating_add(1)] {
        if block >= rel.block_count() {
            break;
        }
        let page = backend.buffers().pin(rel, BlockNumber(block), Wait::Allowed)?.into_shared()?;
        if page.bytes()[offset.min(millpond_buffer::PAGE_SIZE)..].iter().any(|byte| *byte != 0) {
            return Err(EngineError::Corruption {
                place: CLOG.to_string(),
                what: format!("block {block} knows of commits after the next transaction, {next}"),
            });
        }
        offset = HEADER_BYTES;
    }
    Ok(())
}

/// What is wrong with a status page, checked alone. `next` is above every id that has been drawn.
pub(crate) fn page_problem(
    page: &[u8; PAGE_SIZE],
    block: BlockNumber,
    next: Xid,
) -> Option<String> {
    match page.u16(12) {
        // A page without any commit yet.
        0 if is_new(page) => return None,
        CLOG_PAGE_KIND => {}
        kind => return Some(format!("page of kind {kind} in the status pages")),
    }
    if page[14..HEADER_BYTES].iter().any(|&byte| byte != 0) {
        return Some("the page's header is not empty".to_owned());
    }
    let first = u64::from(block.0) * CHUNKS_PER_PAGE * CHUNK;
    let mut bits = page[HEADER_BYTES..].iter().enumerate();
    let (at, byte) = bits.rfind(|(_, byte)| **byte != 0)?;
    let xid = first + 8 * at as u64 + u64::from(7 - byte.leading_zeros());
    (xid >= next.0).then(|| format!("transaction {xid} has committed, and the next is {next}"))
}

/// Applies records to status pages.
pub struct ClogRedo;

impl RmgrRedo for ClogRedo {
    fn redo(
        &self,
        info: u8,
        _block_index: usize,
        block_data: &[u8],
        _payload: &[u8],
        page: &mut PageEdit<'_>,
    ) -> Result<(), RedoError> {
        if info != INFO_SET_BITS {
            return Err(RedoError::new(format!("unknown kind {info} of status record")));
        }
        let Some((chunk, bits)) = block_data.split_first_chunk::<2>() else {
            return Err(RedoError::new("status record without bits"));
        };
        let chunk = u16::from_le_bytes(*chunk);
        if bits.len() != CHUNK_BYTES || u64::from(chunk) >= CHUNKS_PER_PAGE {
            return Err(RedoError::new("status record of the wrong size"));
        }
        match page.bytes().u16(12) {
            0 => page.write(12, &CLOG_PAGE_KIND.to_le_bytes())?,
            CLOG_PAGE_KIND => {}
            kind => return Err(RedoError::new(format!("page of kind {kind} in the status pages"))),
        }
        let offset = HEADER_BYTES + chunk as usize * CHUNK_BYTES;
        let mut merged = [0; CHUNK_BYTES];
        for ((to, old), new) in merged.iter_mut().zip(&page.bytes()[offset..]).zip(bits) {
            *to = old | new;
        }
        page.write(offset, &merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(page: &mut [u8; PAGE_SIZE], info: u8, data: &[u8]) -> Result<(), RedoError> {
        ClogRedo.redo(info, 0, data, &[], &mut PageEdit::new(CLOG.page(BlockNumber(0)), page))
    }

    #[test]
    fn bits_are_added_and_redo_may_repeat() {
        let mut page = [0; PAGE_SIZE];
        let mut data = [0; 2 + CHUNK_BYTES];
        data[0] = 62;
        data[2] = 0b101;
        apply(&mut page, INFO_SET_BITS, &data).unwrap();
        data[2] = 0b010;
        apply(&mut page, INFO_SET_BITS, &data).unwrap();
        apply(&mut page, INFO_SET_BITS, &data).unwrap();
        assert_eq!(page[HEADER_BYTES + 62 * CHUNK_BYTES], 0b111);
        assert_eq!(page.u16(12), CLOG_PAGE_KIND);
    }

    #[test]
    fn a_page_is_checked_for_its_kind_and_for_commits_to_come() {
        let mut page = [0; PAGE_SIZE];
        let problem = |page: &_, next| page_problem(page, BlockNumber(1), Xid(next));
        assert_eq!(problem(&page, 0), None);
        let mut data = [0; 2 + CHUNK_BYTES];
        data[2] = 0b101;
        apply(&mut page, INFO_SET_BITS, &data).unwrap();
        let first = CHUNKS_PER_PAGE * CHUNK;
        assert_eq!(problem(&page, first + 3), None);
        let told = problem(&page, first + 2).unwrap();
        assert!(told.contains(&format!("transaction {} has committed", first + 2)), "{told}");
        page[20] = 1;
        assert!(problem(&page, first + 3).unwrap().contains("header"));
        page[12] = 1;
        assert!(problem(&page, first + 3).unwrap().contains("kind 1"));
    }

    #[test]
    fn odd_records_and_pages_are_errors() {
        let mut page = [0; PAGE_SIZE];
        assert!(apply(&mut page, 9, &[0; 2 + CHUNK_BYTES]).is_err());
        assert!(apply(&mut page, INFO_SET_BITS, &[]).is_err());
        assert!(apply(&mut page, INFO_SET_BITS, &[0; CHUNK_BYTES]).is_err());
        let mut beyond = [0; 2 + CHUNK_BYTES];
        beyond[0] = 63;
        assert!(apply(&mut page, INFO_SET_BITS, &beyond).is_err());
        page[12] = 1;
        assert!(apply(&mut page, INFO_SET_BITS, &[0; 2 + CHUNK_BYTES]).is_err());
    }
}
