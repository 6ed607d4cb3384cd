//! The table of forks in the log: the payloads of [`info::FORKS`](super::super::info::FORKS) and of
//! the checkpoint's end. docs/wal-format.md gives the bytes.

use std::collections::BTreeMap;

use millpond_buffer::{Fork, Lsn, RelFork, RelationId};

use super::KnownFork;
use crate::ids::Xid;
use crate::wal::record::Reader;

/// Forks in order.
pub type ForkList = BTreeMap<RelFork, KnownFork>;

/// The longest payload. It fits the smallest ring.
const PAYLOAD_BYTES: usize = 8192;
/// The longest entry, apart from its runs.
const ENTRY_BYTES: usize = 20;
const RUN_BYTES: usize = 8;
/// The most runs in an entry. A fork with more has several entries.
const RUNS: usize = 256;
/// The most LSNs in an entry. The block number of the first one stands before them.
const LSNS: usize = 512;

const DROPPED: u8 = 1;
const HAS_MAKER: u8 = 2;
const HAS_LSNS: u8 = 4;

/// What an entry says in addition to its fork's length.
enum Part<'a> {
    /// Blocks that have not been written to, as (first, count).
    Unwritten(&'a [(u32, u32)]),
    /// The LSNs of blocks, and the number of the first block.
    Lsns(u32, &'a [Lsn]),
}

impl Part<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Unwritten(runs) => runs.len() * RUN_BYTES,
            Self::Lsns(_, lsns) => 4 + lsns.len() * 8,
        }
    }
}

/// What the last record of a checkpoint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointEnd {
    /// Where recovery begins.
    pub redo: Lsn,
    /// The number of entries in all of the checkpoint's lists of forks.
    pub forks: u64,
}

impl CheckpointEnd {
    /// The payload.
    pub fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.redo.get().to_le_bytes());
        bytes[8..].copy_from_slice(&self.forks.to_le_bytes());
        bytes
    }

    /// Decodes a payload.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader(payload);
        Some(Self { redo: Lsn(reader.u64()?), forks: reader.u64()? })
    }
}

/// The payloads that list the forks, for a checkpoint with this redo point. Counts the entries.
pub(in crate::wal) fn encode(redo: Lsn, forks: &ForkList, entries: &mut u64) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut payload = redo.get().to_le_bytes().to_vec();
    for (rel, fork) in forks {
        let runs = runs(fork);
        // At least one entry, also for a fork without runs.
        let unwritten = runs.chunks(RUNS).chain(runs.is_empty().then_some(&[][..]));
        let lsns = fork.lsns.chunks(LSNS).zip((0..).step_by(LSNS));
        let lsns = lsns.map(|(lsns, first)| Part::Lsns(first, lsns));
        for part in unwritten.map(Part::Unwritten).chain(lsns) {
            if payload.len() + ENTRY_BYTES + part.bytes() > PAYLOAD_BYTES {
                let next = redo.get().to_le_bytes().to_vec();
                payloads.push(std::mem::replace(&mut payload, next));
            }
            encode_entry(&mut payload, *rel, fork, &part);
            *entries += 1;
        }
    }
    payloads.push(payload);
    payloads
}

fn encode_entry(out: &mut Vec<u8>, rel: RelFork, fork: &KnownFork, part: &Part<'_>) {
    let has_maker = fork.made_by.is_valid();
    let (kind, count) = match part {
        Part::Unwritten(runs) => (0, runs.len()),
        Part::Lsns(_, lsns) => (HAS_LSNS, lsns.len()),
    };
    let flags = if fork.dropped { DROPPED } else { 0 } | if has_maker { HAS_MAKER } else { 0 };
    out.extend_from_slice(&rel.relation.get().to_le_bytes());
    out.extend_from_slice(&[rel.fork as u8, flags | kind]);
    out.extend_from_slice(&(count as u16).to_le_bytes());
    out.extend_from_slice(&fork.blocks.to_le_bytes());
    if has_maker {
        out.extend_from_slice(&fork.made_by.0.to_le_bytes());
    }
    match part {
        Part::Unwritten(runs) => {
            for (first, count) in *runs {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
        }
        Part::Lsns(first, lsns) => {
            out.extend_from_slice(&first.to_le_bytes());
            lsns.iter().for_each(|lsn| out.extend_from_slice(&lsn.get().to_le_bytes()));
        }
    }
}

/// The unwritten blocks as (first, count).
fn runs(fork: &KnownFork) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &block in &fork.unwritten {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == block => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

/// Adds what a payload lists to `into`, and returns the number of entries. `None` if the payload is
/// malformed; `Some(0)` also if it belongs to another checkpoint.
pub(crate) fn decode(payload: &[u8], redo: Lsn, into: &mut ForkList) -> Option<u64> {
    let mut reader = Reader(payload);
    if Lsn(reader.u64()?) != redo {
        return Some(0);
    }
    let mut entries = 0;
    while !reader.0.is_empty() {
        decode_entry(&mut reader, into)?;
        entries += 1;
    }
    Some(entries)
}

fn decode_entry(reader: &mut Reader<'_>, into: &mut ForkList) -> Option<()> {
    let relation = RelationId::new(reader.u32()?)?;
    let rel = relation.fork(Fork::from_number(reader.u8()?)?);
    let flags = reader.u8()?;
    let count = reader.u16()?;
    let fork = into.entry(rel).or_default();
    fork.blocks = reader.u32()?;
    fork.dropped = flags & DROPPED != 0;
    if flags & HAS_MAKER != 0 {
        fork.made_by = Xid(reader.u64()?);
    }
    if flags & HAS_LSNS != 0 {
        return decode_lsns(reader, fork, count);
    }
    for _ in 0..count {
        let (first, count) = (reader.u32()?, reader.u32()?);
        let end = first.checked_add(count).filter(|end| *end <= fork.blocks)?;
        fork.unwritten.extend(first..end);
    }
    Some(())
}

fn decode_lsns(reader: &mut Reader<'_>, fork: &mut KnownFork, count: u16) -> Option<()> {
    // Entries come in order, so the block number of the first LSN is known.
    let first = reader.u32()? as usize;
    let end = first + usize::from(count);
    if first != fork.lsns.len() || end > fork.blocks as usize {
        return None;
    }
    for _ in 0..count {
        fork.lsns.push(Lsn(reader.u64()?));
    }
    Some(())
}
