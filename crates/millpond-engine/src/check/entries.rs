//! Index entries against rows, and rows against index entries.

use millpond_buffer::{BlockNumber, BufferError, PAGE_SIZE};

use crate::access::heap::page::{self, Chain};
use crate::access::{Tid, btree};
use crate::catalog::{IndexDef, TableDef};
use crate::error::EngineResult;
use crate::page::item::{self, LineState};
use crate::session::{Session, index_key};
use crate::transam::visibility::{Deadness, dead_to_all, visible};
use crate::transam::{CommandId, Snapshot};
use crate::types::Datum;

use super::{Checked, Finding};

/// The values of a stored row; `None` if it does not decode.
fn decode<'d>(table: &TableDef, payload: &'d [u8]) -> Option<Vec<Datum<'d>>> {
    table.layout.verify(payload).ok()?;
    let mut values = Vec::with_capacity(table.columns.len());
    table.layout.decode(payload, |_, datum| values.push(datum)).ok()?;
    Some(values)
}

fn copy_page(
    session: &Session,
    table: &TableDef,
    block: BlockNumber,
    copy: &mut [u8; PAGE_SIZE],
) -> EngineResult<bool> {
    let ctx = session.ctx();
    let heap = session.heap(table)?;
    match ctx.buffers().read(&heap.main, block, ctx.wait(), |view| view.copy_page(copy)) {
        Ok(()) => Ok(true),
        Err(BufferError::BeyondEnd { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What is wrong with an entry: it must name the root of a chain (or a dead line pointer, until vacuum comes
/// by), and all versions of the chain that are alive must have its key. (Dead ones may have another: from before
/// the index was built.)
pub(super) fn check_entry(
    session: &Session,
    table: &TableDef,
    index: &IndexDef,
    key: &[u8],
    root: Tid,
) -> EngineResult<Option<String>> {
    let mut copy = Box::new([0; PAGE_SIZE]);
    if !copy_page(session, table, root.block, &mut copy)? {
        return Ok(Some(format!("an entry for {root}, behind the table's end")));
    }
    if !page::is_heap(&*copy) || root.offset == 0 || root.offset > item::line_count(&*copy) {
        return Ok(Some(format!("an entry for {root}, where no row is")));
    }
    match item::line(&*copy, root.offset).state() {
        LineState::Dead => return Ok(None),
        LineState::Unused => return Ok(Some(format!("an entry for {root}, which is unused"))),
        LineState::Normal | LineState::Redirect => {}
    }
    let ctx = session.ctx();
    let horizon = ctx.txns().recent_horizon();
    let mut chain = Chain::from_root(root.offset);
    let mut own = Vec::new();
    while let Some(member) = chain.next(&*copy) {
        let deadness = dead_to_all(&member.header, &horizon, ctx)?;
        if matches!(deadness, Deadness::Dead | Deadness::RecentlyDead(_)) {
            continue;
        }
        let payload = copy.get(member.payload()).unwrap_or_default();
        let Some(values) = decode(table, payload) else {
            return Ok(Some(format!("an entry for {root}, whose row is damaged")));
        };
        if index_key(index, &values, &mut own).is_err() || own != key {
            return Ok(Some(format!("an entry for {root}, whose row has another key")));
        }
    }
    Ok(None)
}

/// Every visible row has an entry in every index, and decodes.
pub(super) fn check_rows(
    session: &Session,
    table: &TableDef,
    checked: &mut Checked,
    report: &mut dyn FnMut(Finding),
) -> EngineResult<()> {
    let ctx = session.ctx();
    let csn = ctx.txns().snapshot(ctx);
    let snapshot = Snapshot { csn, own: None, command: CommandId::FIRST };
    let mut copy = Box::new([0; PAGE_SIZE]);
    let blocks = session.heap(table)?.block_count();
    for block in (0..blocks).map(BlockNumber) {
        // What can't be read was reported with the pages.
        if !matches!(copy_page(session, table, block, &mut copy), Ok(true))
            || !page::is_heap(&*copy)
        {
            continue;
        }
        for root in 1..=item::line_count(&*copy) {
            let mut problem = |what: String| {
                report(Finding { relation: table.name.clone(), block: Some(block), what });
            };
            match check_row(session, table, &snapshot, &copy, Tid::new(block, root)) {
                Ok(Row::None) => {}
                Ok(Row::Good) => checked.rows += 1,
                Ok(Row::Bad(what)) => problem(format!("line {root}: {what}")),
                Err(error) => problem(format!("line {root}: {error}")),
            }
        }
    }
    ctx.txns().release_snapshot(ctx, csn);
    Ok(())
}

enum Row {
    None,
    Good,
    Bad(String),
}

fn check_row(
    session: &Session,
    table: &TableDef,
    snapshot: &Snapshot,
    copy: &[u8; PAGE_SIZE],
    root: Tid,
) -> EngineResult<Row> {
    let is_root = match item::line(copy, root.offset).state() {
        LineState::Redirect => true,
        LineState::Normal => {
            page::header(copy, root.offset).is_some_and(|header| !header.is_heap_only())
        }
        _ => false,
    };
    if !is_root {
        return Ok(Row::None);
    }
    let mut chain = Chain::from_root(root.offset);
    while let Some(member) = chain.next(copy) {
        if !visible(&member.header, snapshot, session.ctx())? {
            continue;
        }
        let payload = copy.get(member.payload()).unwrap_or_default();
        let Some(values) = decode(table, payload) else {
            return Ok(Row::Bad("the row does not decode".to_owned()));
        };
        let (mut key, mut tids) = (Vec::new(), btree::Tids::new());
        for index in &table.indexes {
            index_key(index, &values, &mut key)?;
            tids.clear();
            btree::lookup(session.ctx(), session.tree(index)?, &key, &mut tids)?;
            if !tids.contains(&root) {
                return Ok(Row::Bad(format!("no entry in index {}", index.name)));
            }
        }
        return Ok(Row::Good);
    }
    Ok(Row::None)
}
