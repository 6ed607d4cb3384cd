//! Rows of many keys of a unique index, read together.
//!
//! A join by key may ask for one row after the other. Then it descends the index once for each of
//! them, and waits for one page after the other. Here the keys are sorted and go down the index
//! together ([`ManyLookups`]). The rows are read in the order of the table's pages, each page once.
//! Pages that are not in memory are read ahead, in the index as in the table.

use std::ops::Range;

use millpond_buffer::{BlockNumber, PAGE_SIZE, ReadStream, RelHandle};
use millpond_types::key::first_bytes;

use super::Session;
use crate::access::Tid;
use crate::access::btree::{ManyLookups, SortedKeys};
use crate::access::heap::{self, FetchedRun, HeapRelation, RowPrefetch};
use crate::catalog::{IndexDef, TableDef};
use crate::ctx::Ctx;
use crate::error::EngineResult;
use crate::table::{RowBuf, TableError};
use crate::transam::Snapshot;
use crate::types::Datum;

/// Keys to be looked up together, and the rows found. Reuse it: it keeps its memory.
///
/// Keys have numbers, from 0, in the order in which they were added.
#[derive(Debug, Default)]
pub struct LookupBatch {
    keys: Keys,
    lookups: ManyLookups,
    /// The rows to be read: a key's place in the order of keys, and the row's root.
    found: Vec<(usize, Tid)>,
    roots: Vec<Tid>,
    /// The rows by the keys' numbers.
    rows: Vec<Option<Place>>,
    bytes: Vec<u8>,
    row: Vec<u8>,
    /// `None`: no page has had two of the rows.
    run: Option<FetchedRun>,
    /// For the pages of index and table. `None`: no batch has been looked up.
    streams: Option<[ReadStream; 2]>,
}

/// Where a row is.
#[derive(Debug, Clone)]
struct Place {
    tid: Tid,
    root: Tid,
    bytes: Range<usize>,
}

#[derive(Debug, Default)]
struct Keys {
    bytes: Vec<u8>,
    /// The keys by their numbers; `None`: no row can have it.
    parts: Vec<Option<Range<usize>>>,
    /// The keys in their order: the first bytes as a number, and the key's number.
    order: Vec<(u64, usize)>,
    /// Where each different key begins in that order.
    different: Vec<usize>,
}

impl Keys {
    fn sort(&mut self) {
        let Self { bytes, parts, order, different } = self;
        order.clear();
        for (number, part) in parts.iter().enumerate() {
            let Some(key) = part.clone().and_then(|part| bytes.get(part)) else { continue };
            order.push((first_bytes(key), number));
        }
        let key = |number: usize| by_number(bytes, parts, number);
        order.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| key(one.1).cmp(key(other.1)))
        });
        different.clear();
        let mut last: Option<(u64, usize)> = None;
        for (place, &(first, number)) in order.iter().enumerate() {
            let same = |last: (u64, usize)| last.0 == first && key(last.1) == key(number);
            if !last.is_some_and(same) {
                different.push(place);
            }
            last = Some((first, number));
        }
    }

    /// The numbers of the keys that are a certain one of the different keys.
    fn numbers(&self, key: usize) -> impl Iterator<Item = usize> {
        let start = self.different.get(key).copied().unwrap_or_default();
        let end = self.different.get(key + 1).copied().unwrap_or(self.order.len());
        self.order.get(start..end).unwrap_or_default().iter().map(|&(_, number)| number)
    }
}

fn by_number<'k>(bytes: &'k [u8], parts: &[Option<Range<usize>>], number: usize) -> &'k [u8] {
    let part = parts.get(number).cloned().flatten();
    part.and_then(|part| bytes.get(part)).unwrap_or_default()
}

impl SortedKeys for Keys {
    fn count(&self) -> usize {
        self.different.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        let place = self.different.get(number);
        let number = place.and_then(|&place| self.order.get(place));
        number.map_or(&[], |&(_, number)| by_number(&self.bytes, &self.parts, number))
    }
}

impl LookupBatch {
    /// A batch without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes keys and rows.
    pub fn clear(&mut self) {
        self.keys.bytes.clear();
        self.keys.parts.clear();
        self.rows.clear();
        self.bytes.clear();
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.parts.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.parts.is_empty()
    }

    /// Adds a key of the index, with a value for each of its columns. `None`: a key that no row can
    /// have.
    pub fn push(&mut self, index: &IndexDef, key: Option<&[Datum<'_>]>) -> EngineResult<()> {
        let start = self.keys.bytes.len();
        let part = match key {
            None => None,
            Some(key) => {
                if let Err(error) = index.keys.encode(key, &mut self.keys.bytes) {
                    self.keys.bytes.truncate(start);
                    return Err(TableError::from(error).into());
                }
                Some(start..self.keys.bytes.len())
            }
        };
        self.keys.parts.push(part);
        Ok(())
    }

    /// Adds a key as the index has it: [`KeyLayout::encode`] of all its columns.
    ///
    /// [`KeyLayout::encode`]: crate::types::key::KeyLayout::encode
    pub fn push_encoded(&mut self, key: &[u8]) {
        let start = self.keys.bytes.len();
        self.keys.bytes.extend_from_slice(key);
        self.keys.parts.push(Some(start..self.keys.bytes.len()));
    }

    /// Copies the row of a key into `row`. Returns false if none is visible.
    pub fn row(&self, number: usize, row: &mut RowBuf) -> bool {
        let Some(Some(place)) = self.rows.get(number) else {
            (row.tid, row.root) = (None, None);
            return false;
        };
        row.set(place.tid, self.bytes.get(place.bytes.clone()).unwrap_or_default());
        row.root = Some(place.root);
        true
    }

    /// About how many bytes of memory it has.
    pub fn memory(&self) -> usize {
        let keys = self.keys.bytes.capacity() + 64 * self.keys.parts.capacity();
        let run = self.run.as_ref().map_or(0, |_| PAGE_SIZE);
        keys + self.bytes.capacity() + self.row.capacity() + 64 * self.rows.capacity() + run
    }

    /// Finds the rows of the keys.
    pub(super) fn look_up(
        &mut self,
        ctx: &Ctx,
        (heap, tree): (&HeapRelation, &RelHandle),
        at: &Snapshot,
    ) -> EngineResult<()> {
        let new = || ReadStream::new(ctx.bulk_access().streams);
        self.keys.sort();
        self.rows.clear();
        self.bytes.clear();
        self.found.clear();
        let [stream, _] = self.streams.get_or_insert_with(|| [new(), new()]);
        self.lookups.lookup(ctx, tree, &self.keys, stream, &mut self.found)?;
        self.fetch(ctx, heap, at)
    }

    /// Reads the rows that the index has led to.
    fn fetch(&mut self, ctx: &Ctx, heap: &HeapRelation, at: &Snapshot) -> EngineResult<()> {
        let Self { keys, found, roots, rows, bytes, row, run, streams, .. } = self;
        let Some([_, stream]) = streams else { return Ok(()) };
        found.sort_unstable_by_key(|(_, root)| root.to_u64());
        rows.resize(keys.parts.len(), None);
        stream.reset();
        let mut add = |key: usize, tid, root, columns: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(columns);
            for number in keys.numbers(key) {
                if let Some(row) = rows.get_mut(number) {
                    *row = Some(Place { tid, root, bytes: start..bytes.len() });
                }
            }
        };
        let mut blocks = found.chunk_by(on_one_page).filter_map(block);
        let (mut prefetch, mut read) = (RowPrefetch::default(), 0);
        for part in found.chunk_by(on_one_page) {
            ctx.check_interrupts()?;
            read += part.len();
            let next = |place: usize| found.get(read + place).map(|(_, root)| *root);
            prefetch.prefetch(ctx, heap, (part.len(), usize::MAX), next);
            stream.peek(ctx.buffers(), &heap.main, ctx.wait(), None, &mut || blocks.next());
            if let [(key, root)] = part {
                if let Some(tid) = heap::fetch(ctx, heap, *root, at, row)? {
                    add(*key, tid, *root, row);
                }
            } else {
                roots.clear();
                roots.extend(part.iter().map(|(_, root)| *root));
                let run = run.get_or_insert_default();
                run.fetch(ctx, heap, roots, at, None)?;
                // The rows come in the order of their roots.
                let mut part = part.iter();
                while let Some((tid, root, columns)) = run.next_row() {
                    let key = part.by_ref().find(|(_, other)| *other == root);
                    if let Some((key, _)) = key {
                        add(*key, tid, root, columns);
                    }
                }
            }
            stream.advance();
        }
        Ok(())
    }
}

fn on_one_page(one: &(usize, Tid), other: &(usize, Tid)) -> bool {
    one.1.block == other.1.block
}

fn block(part: &[(usize, Tid)]) -> Option<BlockNumber> {
    part.first().map(|(_, root)| root.block)
}

impl Session {
    /// Finds the visible rows of a batch's keys. Each key has at most one, as in
    /// [`Self::lookup`]: the index is unique, the keys are complete, and
    /// [`Self::may_see_keys_twice`] is false.
    ///
    /// Keys that are near each other share the way to their rows. Pages that have to be read are
    /// read at the same time, which takes a fraction of the time of lookups one by one.
    pub fn lookup_many(
        &self,
        table: &TableDef,
        index: &IndexDef,
        batch: &mut LookupBatch,
    ) -> EngineResult<()> {
        let snapshot = self.snapshot()?;
        self.check_usable(index, &snapshot)?;
        batch.look_up(&self.ctx, (self.heap(table)?, self.tree(index)?), &snapshot)
    }
}
