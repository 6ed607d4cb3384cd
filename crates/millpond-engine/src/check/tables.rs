//! Checks of tables with their indexes: pages, rows and entries.

use millpond_buffer::{BlockNumber, BufferError, PAGE_SIZE};

use super::Checked;
use super::entries::{self, HeapPage, Rows};
use super::watch::{Finding, Meter, Watch};
use crate::access::heap::HeapRelation;
use crate::access::heap::check::{Problem, check_block};
use crate::access::{Tid, btree};
use crate::catalog::{IndexDef, TableDef};
use crate::error::{EngineError, EngineResult};
use crate::session::Session;
use crate::transam::{CommandId, Snapshot};

/// Checks a table and its indexes. Reports damage; any other error ends the check.
pub(super) fn check_table(
    session: &Session,
    table: &TableDef,
    checked: &mut Checked,
    meter: &mut Meter<'_>,
) -> EngineResult<()> {
    checked.tables += 1;
    for index in &table.indexes {
        checked.indexes += 1;
        let outcome = check_index(session, table, index, checked, meter);
        go_on(&index.name, outcome, meter)?;
    }
    let outcome = check_rows(session, table, checked, meter);
    go_on(&table.name, outcome, meter)
}

fn go_on(relation: &str, outcome: EngineResult<()>, watch: &mut dyn Watch) -> EngineResult<()> {
    let Err(error) = outcome else { return Ok(()) };
    if !error.is_damage() {
        return Err(error);
    }
    let block = match &error {
        EngineError::Buffer(BufferError::Checksum { page, .. }) => Some(page.block()),
        _ => None,
    };
    watch.found(Finding { relation: relation.to_owned(), block, what: error.to_string() });
    Ok(())
}

/// Checks the pages of a heap and, with `rows`, the rows on them.
pub(super) fn check_heap(
    session: &Session,
    name: &str,
    heap: &HeapRelation,
    rows: Option<&Rows<'_>>,
    checked: &mut Checked,
    meter: &mut Meter<'_>,
) -> EngineResult<()> {
    let ctx = session.ctx();
    let next = ctx.txns().next_xid();
    let mut copy = Box::new([0; PAGE_SIZE]);
    for block in (0..heap.block_count()).map(BlockNumber) {
        let report = &mut |problem| meter.found(finding_of(name, problem));
        if check_block(ctx, heap, block, next, &mut copy, report)?
            && let Some(rows) = rows
        {
            rows.check_page(&copy, block, checked, meter)?;
        }
        checked.pages += 1;
        meter.step();
    }
    Ok(())
}

fn finding_of(name: &str, problem: Problem) -> Finding {
    let line = match problem.offset {
        0 => String::new(),
        offset => format!("line {offset}: "),
    };
    Finding {
        relation: name.to_owned(),
        block: Some(problem.block),
        what: format!("{line}{}", problem.what),
    }
}

fn check_rows(
    session: &Session,
    table: &TableDef,
    checked: &mut Checked,
    meter: &mut Meter<'_>,
) -> EngineResult<()> {
    let ctx = session.ctx();
    let csn = ctx.txns().snapshot(ctx);
    let snapshot = Snapshot { csn, own: None, command: CommandId::FIRST };
    let rows = Rows { session, table, snapshot };
    let outcome = session
        .heap(table)
        .and_then(|heap| check_heap(session, &table.name, heap, Some(&rows), checked, meter));
    ctx.txns().release_snapshot(ctx, csn);
    outcome
}

/// Compares the entries of an index with their rows.
struct Entries<'a, 'm> {
    session: &'a Session,
    table: &'a TableDef,
    index: &'a IndexDef,
    page: HeapPage,
    count: u64,
    meter: &'a mut Meter<'m>,
}

impl btree::Visitor for Entries<'_, '_> {
    fn entry(&mut self, key: &[u8], tid: Tid) -> EngineResult<()> {
        self.count += 1;
        let Self { session, table, index, page, .. } = self;
        let what = match entries::check_entry(session, table, index, page, (key, tid)) {
            Ok(None) => return Ok(()),
            Ok(Some(what)) => what,
            Err(error) if error.is_damage() => format!("entry for {tid}: {error}"),
            Err(error) => return Err(error),
        };
        self.meter.found(Finding { relation: self.index.name.clone(), block: None, what });
        Ok(())
    }

    fn page(&mut self) {
        self.meter.step();
    }
}

fn check_index(
    session: &Session,
    table: &TableDef,
    index: &IndexDef,
    checked: &mut Checked,
    meter: &mut Meter<'_>,
) -> EngineResult<()> {
    let tree = session.tree(index)?;
    let page = HeapPage::new();
    let mut entries = Entries { session, table, index, page, count: 0, meter };
    let structure = btree::check_for(session.ctx(), tree, &mut entries);
    checked.pages += u64::from(tree.block_count());
    checked.entries += entries.count;
    for what in structure?.problems {
        meter.found(Finding { relation: index.name.clone(), block: None, what });
    }
    Ok(())
}
