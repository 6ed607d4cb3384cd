//! Index build: the keys of a table's rows, sorted by [`crate::sort`], become the pages of a new
//! index.
//!
//! The table is locked against writers, so the fate of every version is settled, except those of
//! the building transaction. An entry names the root of a row's chain. Entries are made for the
//! versions that the newest snapshot sees.
//!
//! Older versions that some snapshot may still see have no entries. If there are any, snapshots
//! from before the build must not use the index ([`Built::valid_from`]). The same applies to
//! versions that the building transaction itself has replaced or deleted: all others see them until
//! it commits ([`Built::valid_after`]).

use millpond_buffer::{AccessStrategy, BlockNumber, BufferError, PAGE_SIZE, RelHandle};

use super::index_key::encode_key as index_key;
use crate::access::heap::HeapRelation;
use crate::access::heap::page::{self, Chain};
use crate::access::heap::visibility::{Deadness, dead_to_all, visible};
use crate::access::{Tid, btree};
use crate::catalog::{IndexDef, TableDef};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::page::item::{self, LineState};
use crate::sort::{Entry, Sorter};
use crate::transam::{CommandId, Csn, Snapshot, Xid};
use crate::types::{Datum, Value};

use super::TableError;

/// The result of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Built {
    /// Snapshots below this number must not use the index.
    pub(crate) valid_from: Csn,
    /// Snapshots that do not see this transaction's commit must not use the index.
    pub(crate) valid_after: Option<Xid>,
}

/// Builds an index in its empty file. No row may have NULL in a column of `refuse_null`.
pub(crate) fn build(
    ctx: &Ctx,
    table: &TableDef,
    heap: &HeapRelation,
    index: &IndexDef,
    tree: &RelHandle,
    refuse_null: &[usize],
) -> EngineResult<Built> {
    let make_file = || ctx.shared().temp_files.make(ctx.temp_space());
    let mut sorter = Sorter::new(ctx.bulk_access().maintenance_work_bytes, &make_file);
    let csn = ctx.txns().snapshot(ctx);
    let result = collect(ctx, table, heap, index, refuse_null, csn, &mut sorter);
    ctx.txns().release_snapshot(ctx, csn);
    let Hidden { to_old_snapshots, by_own_changes } = result?;
    let mut entries = sorter.finish(&|| ctx.check_interrupts())?;
    let ring = ctx.ring(AccessStrategy::BulkWrite);
    let mut builder = btree::Builder::new(ctx, tree, ring.as_ref(), index.fillfactor)?;
    let mut done = 0u64;
    while let Some(entry) = entries.next()? {
        if done.is_multiple_of(1024) {
            ctx.check_interrupts()?;
        }
        done += 1;
        let tid = Tid::from_u64(entry.tid);
        if builder.add(entry.key, tid)? && index.unique && entry.unique {
            return Err(not_unique(ctx, table, heap, index, tid)?);
        }
    }
    builder.finish()?;
    Ok(Built {
        valid_from: if to_old_snapshots { csn } else { Csn::INVALID },
        valid_after: if by_own_changes { ctx.proc().xid() } else { None },
    })
}

/// Which versions without entries some snapshot may see.
#[derive(Default)]
struct Hidden {
    /// Versions that died before the build began.
    to_old_snapshots: bool,
    /// Versions that the building transaction replaced or deleted.
    by_own_changes: bool,
}

/// Adds entries for all rows to the sorter. Returns whether some snapshot may see versions without
/// entries.
fn collect(
    ctx: &Ctx,
    table: &TableDef,
    heap: &HeapRelation,
    index: &IndexDef,
    refuse_null: &[usize],
    csn: Csn,
    sorter: &mut Sorter<'_>,
) -> EngineResult<Hidden> {
    let snapshot = Snapshot { csn, own: ctx.proc().xid(), command: CommandId(u32::MAX) };
    let horizon = ctx.txns().horizon();
    let mut hidden = Hidden::default();
    let mut copy = Box::new([0; PAGE_SIZE]);
    let mut key = Vec::new();
    let ring = ctx.read_ring(heap.block_count());
    let (session, main, ring) = (ctx.buffers(), &heap.main, ring.as_ref());
    let (mut stream, mut rest) = (ctx.maintenance_stream(), 0..heap.block_count());
    let mut source = || rest.next().map(BlockNumber);
    while let Some(block) = stream.peek(session, main, ctx.wait(), ring, &mut source) {
        ctx.check_interrupts()?;
        let read = session.read_with(main, block, ctx.wait(), ring, |view| {
            view.copy_page(&mut copy);
        });
        stream.advance();
        match read {
            Ok(()) => {}
            Err(BufferError::BeyondEnd { .. }) => break,
            Err(error) => return Err(error.into()),
        }
        let copy = &*copy;
        let mut values = Vec::with_capacity(table.columns.len());
        for root in roots(copy) {
            let mut chain = Chain::from_root(root);
            while let Some(member) = chain.next(copy) {
                if !visible(&member.header, &snapshot, ctx)? {
                    match dead_to_all(&member.header, &horizon, ctx)? {
                        Deadness::RecentlyDead(_) => hidden.to_old_snapshots = true,
                        // The lock keeps other writers out, so this is a change of the building
                        // transaction.
                        Deadness::DeleteInProgress(_) => hidden.by_own_changes = true,
                        _ => {}
                    }
                    continue;
                }
                let payload = copy.get(member.payload()).unwrap_or_default();
                decode(table, payload, &mut values)?;
                check_nulls(table, refuse_null, &values)?;
                index_key(index, &values, &mut key)?;
                let unique = index.unique && !has_null(index, &values);
                let tid = Tid::new(block, root).to_u64();
                sorter.add(Entry { key: &key, tid, unique })?;
                break;
            }
        }
    }
    Ok(hidden)
}

/// Line pointers at which version chains begin: the targets of index entries.
fn roots(copy: &[u8; PAGE_SIZE]) -> impl Iterator<Item = u16> + '_ {
    let count = if page::is_heap(copy) { item::line_count(copy) } else { 0 };
    (1..=count).filter(move |&offset| match item::line(copy, offset).state() {
        LineState::Redirect => true,
        LineState::Normal => {
            page::header(copy, offset).is_some_and(|header| !header.is_heap_only())
        }
        _ => false,
    })
}

fn decode<'d>(
    table: &TableDef,
    payload: &'d [u8],
    values: &mut Vec<Datum<'d>>,
) -> EngineResult<()> {
    values.clear();
    table
        .layout
        .decode(payload, |_, datum| values.push(datum))
        .map_err(|source| TableError::Damaged { table: table.name.clone(), source }.into())
}

fn check_nulls(table: &TableDef, columns: &[usize], values: &[Datum<'_>]) -> EngineResult<()> {
    for &column in columns {
        if values.get(column).is_none_or(Datum::is_null) {
            let name = table.columns.get(column).map(|column| column.name.clone());
            return Err(TableError::ContainsNulls {
                table: table.name.clone(),
                column: name.unwrap_or_default(),
            }
            .into());
        }
    }
    Ok(())
}

fn has_null(index: &IndexDef, values: &[Datum<'_>]) -> bool {
    index.columns.iter().any(|column| values.get(column.column).is_none_or(Datum::is_null))
}

/// The error that a row has the same key as another.
#[cold]
fn not_unique(
    ctx: &Ctx,
    table: &TableDef,
    heap: &HeapRelation,
    index: &IndexDef,
    row: Tid,
) -> EngineResult<EngineError> {
    let name = |column: usize| table.columns.get(column).map(|c| c.name.clone());
    Ok(EngineError::from(TableError::NotUnique {
        table: table.name.clone(),
        index: index.name.clone(),
        columns: index.columns.iter().filter_map(|c| name(c.column)).collect(),
        values: key_of(ctx, table, heap, index, row)?,
    }))
}

/// The key of a row, for an error message.
fn key_of(
    ctx: &Ctx,
    table: &TableDef,
    heap: &HeapRelation,
    index: &IndexDef,
    root: Tid,
) -> EngineResult<Vec<Value>> {
    let csn = ctx.txns().snapshot(ctx);
    let snapshot = Snapshot { csn, own: ctx.proc().xid(), command: CommandId(u32::MAX) };
    let mut bytes = Vec::new();
    let found = crate::access::heap::fetch(ctx, heap, root, &snapshot, &mut bytes);
    ctx.txns().release_snapshot(ctx, csn);
    let mut values = Vec::new();
    if found?.is_some() {
        let mut row = Vec::new();
        decode(table, &bytes, &mut row)?;
        let value = |column: usize| row.get(column).map(Datum::to_value).unwrap_or_default();
        values.extend(index.columns.iter().map(|column| value(column.column)));
    }
    Ok(values)
}
