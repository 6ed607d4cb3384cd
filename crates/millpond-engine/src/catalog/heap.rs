//! The table that holds the catalog. It is read and changed like any other table, by the rules of
//! snapshots and command ids.

use crate::access::Tid;
use crate::access::heap::{self, HeapRelation, HeapScan, NewRow};
use crate::access::heap::{ChangeOutcome, Changer};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{CommandId, Snapshot};

use super::rows::{CatalogRow, LAYOUT};
use crate::ids::Oid;

/// Hands over every row that is committed or was written by the running transaction.
pub(crate) fn scan(
    ctx: &Ctx,
    heap: &HeapRelation,
    each: &mut dyn FnMut(Tid, CatalogRow) -> EngineResult<()>,
) -> EngineResult<()> {
    let csn = ctx.txns().snapshot(ctx);
    // All changes of the transaction are visible, whatever command made them.
    let snapshot = Snapshot { csn, own: ctx.proc().xid(), command: CommandId(u32::MAX) };
    let result = scan_under(ctx, heap, &snapshot, each);
    ctx.txns().release_snapshot(ctx, csn);
    result
}

fn scan_under(
    ctx: &Ctx,
    heap: &HeapRelation,
    snapshot: &Snapshot,
    each: &mut dyn FnMut(Tid, CatalogRow) -> EngineResult<()>,
) -> EngineResult<()> {
    let mut scan = HeapScan::new(heap.clone());
    while let Some(rows) = scan.next_page(ctx, snapshot)? {
        for (tid, bytes) in rows.iter() {
            each(tid, CatalogRow::decode(bytes)?)?;
        }
    }
    Ok(())
}

pub(crate) fn load(ctx: &Ctx, heap: &HeapRelation) -> EngineResult<Vec<CatalogRow>> {
    let mut rows = Vec::new();
    scan(ctx, heap, &mut |_, row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

pub(crate) fn insert(
    ctx: &Ctx,
    heap: &HeapRelation,
    rows: &[CatalogRow],
    command: CommandId,
) -> EngineResult<()> {
    let xid = ctx.assign_xid()?;
    let mut payload = Vec::new();
    for row in rows {
        payload.clear();
        row.encode(&mut payload)?;
        let natts = LAYOUT.types().len() as u16;
        heap::insert(ctx, heap, NewRow { payload: &payload, natts }, xid, command)?;
    }
    Ok(())
}

/// Deletes the rows of a table that `which` chooses, and returns them.
pub(crate) fn delete(
    ctx: &Ctx,
    heap: &HeapRelation,
    table: Oid,
    command: CommandId,
    which: impl Fn(&CatalogRow) -> bool,
) -> EngineResult<Vec<CatalogRow>> {
    let mut found = Vec::new();
    scan(ctx, heap, &mut |tid, row| {
        if row.table() == table && which(&row) {
            found.push((tid, row));
        }
        Ok(())
    })?;
    let by = Changer { xid: ctx.assign_xid()?, cid: command };
    let mut deleted = Vec::with_capacity(found.len());
    for (tid, row) in found {
        match heap::delete(ctx, heap, tid, by)? {
            ChangeOutcome::Done { .. } => deleted.push(row),
            // Locks on names and tables keep other transactions away from these rows.
            _ => {
                return Err(EngineError::Internal { what: "a catalog row changed under its lock" });
            }
        }
    }
    Ok(deleted)
}
