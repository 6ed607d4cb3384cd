//! The commit number file: relation 3. It has a page for each chunk of transactions whose commit
//! numbers an old snapshot still needs, and that no longer fits into memory ([`super::overflow`]).
//!
//! docs/file-format.md ("Commit numbers") gives the bytes.
//!
//! Commit numbers mean nothing after a restart (transam rule 10). So nothing of this is logged, and
//! a start removes the file before it looks for files that nothing names.
//!
//! # Why the log need not know the file
//! The log's table of forks does not have relation 3. So the pool accepts any length for it and any
//! page of zeros (wal rule 18). No start moves it to `quarantine/` (wal rule 19). That is safe:
//!
//! - Each page says which chunk it holds, and a chunk is written once. A page of zeros, a missing
//!   page and the page of another chunk are an error for the reader ([`Transactions::status`]). A
//!   flipped bit fails the checksum.
//! - The directory of the file is in memory only, and empty after a start. So no run reads what an
//!   earlier one left.
//! - Numbers below [`FIRST_NORMAL_OID`] are the engine's own: the file never holds a user's rows.
//!
//! [`Transactions::status`]: super::transactions::Transactions::status
//! [`FIRST_NORMAL_OID`]: crate::catalog::FIRST_NORMAL_OID

use millpond_buffer::{BufferError, PAGE_SIZE, PageRead, RelFork, RelHandle, RelationId, Wait};
use millpond_sync::mutant;

use super::backend::Backend;
use super::chunk::CHUNK;
use super::overflow::{Kept, Spilled};
use super::snapshot::XidStatus;
use crate::error::EngineResult;
use crate::ids::{Csn, Xid};
use crate::page::{PageKind, kind};

/// The relation of commit numbers.
pub(super) const CSN_RELATION: RelationId = RelationId::constant(3);
/// Its only fork.
pub(super) const CSN_FILE: RelFork = CSN_RELATION.main();

const CHUNK_AT: usize = 16;
const SMALLEST_AT: usize = 24;
const NUMBERS_AT: usize = 32;
const NUMBER_BYTES: usize = 7;
const NUMBER_MASK: u64 = (1 << (8 * NUMBER_BYTES)) - 1;

/// Writes a chunk whose transactions have all ended. Returns its largest commit number.
pub(super) fn write(
    backend: &Backend,
    rel: &RelHandle,
    place: Spilled,
    kept: &Kept,
) -> EngineResult<Csn> {
    while rel.block_count() <= place.block.0 {
        drop(backend.buffers().extend(rel, Wait::Allowed)?);
    }
    let (bytes, newest) = encode(place.chunk, kept);
    let mut page = backend.buffers().pin(rel, place.block, Wait::Allowed)?.into_exclusive()?;
    let mut change = page.change();
    change.write_page(&bytes);
    change.publish_unlogged();
    Ok(newest)
}

fn encode(chunk: u64, kept: &Kept) -> (Box<[u8; PAGE_SIZE]>, Csn) {
    let mut bytes = Box::new([0; PAGE_SIZE]);
    let smallest = kept.numbers().flatten().min().unwrap_or(Csn::INVALID);
    bytes[12..14].copy_from_slice(&(PageKind::CommitNumbers as u16).to_le_bytes());
    bytes[CHUNK_AT..SMALLEST_AT].copy_from_slice(&chunk.to_le_bytes());
    bytes[SMALLEST_AT..NUMBERS_AT].copy_from_slice(&smallest.0.to_le_bytes());
    let mut newest = Csn::INVALID;
    for (slot, number) in bytes[NUMBERS_AT..].chunks_exact_mut(NUMBER_BYTES).zip(kept.numbers()) {
        let Some(csn) = number else { continue };
        newest = newest.max(csn);
        slot.copy_from_slice(&(csn.0 - smallest.0 + 1).to_le_bytes()[..NUMBER_BYTES]);
    }
    (bytes, newest)
}

/// The status of a transaction whose chunk is in the file; `None` if the page is another chunk's.
pub(super) fn read(
    backend: &Backend,
    rel: &RelHandle,
    place: Spilled,
    xid: Xid,
) -> EngineResult<Option<XidStatus>> {
    let at = NUMBERS_AT + NUMBER_BYTES * (xid.0 % CHUNK) as usize;
    let read = backend.buffers().read(rel, place.block, backend.wait(), |page| {
        let is_of_chunk =
            page.u64(CHUNK_AT) == place.chunk || mutant!("transam-page-of-another-chunk");
        let is_its = kind(page) == PageKind::CommitNumbers as u16 && is_of_chunk;
        is_its.then(|| (page.u64(SMALLEST_AT), page.u64(at) & NUMBER_MASK))
    });
    match read {
        Ok(Some((_, 0))) => Ok(Some(XidStatus::Aborted)),
        Ok(Some((smallest, number))) => {
            Ok(Some(XidStatus::Committed(Csn(smallest.saturating_add(number - 1)))))
        }
        // The file was cut, because nothing in it was needed any more.
        Ok(None) | Err(BufferError::BeyondEnd { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
