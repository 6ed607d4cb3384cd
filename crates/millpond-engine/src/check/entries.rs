//! Checks index entries against rows, and rows against index entries.

use millpond_buffer::{BlockNumber, BufferError, PAGE_SIZE};

use crate::access::heap::page::{self, Chain};
use crate::access::heap::visibility::{Deadness, dead_to_all, visible};
use crate::access::{Tid, btree};
use crate::catalog::{IndexDef, TableDef};
use crate::error::EngineResult;
use crate::page::item::{self, LineState};
use crate::session::Session;
use crate::table::index_key::encode_key as index_key;
use crate::transam::Snapshot;
use crate::types::Datum;

use super::{Checked, Finding, Watch};

/// The values of a stored row; `None` if it does not decode.
fn decode<'d>(table: &TableDef, payload: &'d [u8]) -> Option<Vec<Datum<'d>>> {
    table.layout.verify(payload).ok()?;
    let mut values = Vec::with_capacity(table.columns.len());
    table.layout.decode(payload, |_, datum| values.push(datum)).ok()?;
    Some(values)
}

/// The heap page that was read last. Consecutive index entries often lead to the same page.
pub(super) struct HeapPage {
    block: Option<BlockNumber>,
    copy: Box<[u8; PAGE_SIZE]>,
}

impl HeapPage {
    pub(super) fn new() -> Self {
        Self { block: None, copy: Box::new([0; PAGE_SIZE]) }
    }

    /// A copy of a block; `None` if the heap ends before it.
    fn of(
        &mut self,
        session: &Session,
        table: &TableDef,
        block: BlockNumber,
    ) -> EngineResult<Option<&[u8; PAGE_SIZE]>> {
        if self.block != Some(block) {
            self.block = None;
            let ctx = session.ctx();
            let (main, copy) = (&session.heap(table)?.main, &mut self.copy);
            match ctx.buffers().read(main, block, ctx.wait(), |view| view.copy_page(copy)) {
                Ok(()) => self.block = Some(block),
                Err(BufferError::BeyondEnd { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(&self.copy))
    }
}

/// Returns what is wrong with an entry, if anything. It must name the root of a version chain, or a
/// dead line pointer that vacuum has not removed yet. All versions of the chain that are alive must
/// have its key. Dead versions may have another key, from before the index was built.
pub(super) fn check_entry(
    session: &Session,
    table: &TableDef,
    index: &IndexDef,
    page: &mut HeapPage,
    (key, root): (&[u8], Tid),
) -> EngineResult<Option<String>> {
    let Some(copy) = page.of(session, table, root.block)? else {
        return Ok(Some(format!("an entry for {root}, which is beyond the end of the table")));
    };
    if !page::is_heap(copy) || root.offset == 0 || root.offset > item::line_count(copy) {
        return Ok(Some(format!("an entry for {root}, where no row is")));
    }
    match item::line(copy, root.offset).state() {
        LineState::Dead => return Ok(None),
        LineState::Unused => {
            return Ok(Some(format!("an entry for {root}, which is an unused line pointer")));
        }
        LineState::Normal | LineState::Redirect => {}
    }
    let ctx = session.ctx();
    let horizon = ctx.txns().recent_horizon();
    let mut chain = Chain::from_root(root.offset);
    let mut own = Vec::new();
    while let Some(member) = chain.next(copy) {
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

/// Checks the rows of one page of a table against its indexes, under a snapshot.
pub(super) struct Rows<'s> {
    pub(super) session: &'s Session,
    pub(super) table: &'s TableDef,
    pub(super) snapshot: Snapshot,
}

impl Rows<'_> {
    /// Checks that every row of the page that the snapshot sees decodes and has an entry in every
    /// index.
    pub(super) fn check_page(
        &self,
        copy: &[u8; PAGE_SIZE],
        block: BlockNumber,
        checked: &mut Checked,
        watch: &mut dyn Watch,
    ) -> EngineResult<()> {
        if !page::is_heap(copy) {
            return Ok(());
        }
        for root in 1..=item::line_count(copy) {
            let what = match check_row(self, copy, Tid::new(block, root)) {
                Ok(Row::None) => continue,
                Ok(Row::Good) => {
                    checked.rows += 1;
                    continue;
                }
                Ok(Row::Bad(what)) => what,
                Err(error) if error.is_damage() => error.to_string(),
                Err(error) => return Err(error),
            };
            let what = format!("line {root}: {what}");
            watch.found(Finding { relation: self.table.name.clone(), block: Some(block), what });
        }
        Ok(())
    }
}

enum Row {
    None,
    Good,
    Bad(String),
}

fn check_row(rows: &Rows<'_>, copy: &[u8; PAGE_SIZE], root: Tid) -> EngineResult<Row> {
    let Rows { session, table, snapshot } = rows;
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
        let mut key = Vec::new();
        for index in &table.indexes {
            index_key(index, &values, &mut key)?;
            // One descent, however many rows have the key.
            if !btree::contains(session.ctx(), session.tree(index)?, &key, root)? {
                return Ok(Row::Bad(format!("no entry in index {}", index.name)));
            }
        }
        return Ok(Row::Good);
    }
    Ok(Row::None)
}
