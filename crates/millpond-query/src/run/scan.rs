//! Scan: rows of a table by an access path.

use std::mem;
use std::sync::Arc;

use millpond_engine::access::Tid;
use millpond_engine::catalog::IndexDef;
use millpond_engine::session::HeapScan;
use millpond_engine::table::RowBuf;

use super::folded::Folded;
use super::gather::{Begun, Fragment, can_settle, workers_of};
use super::pool::{Pool, PooledScan};
use super::tids::tids_of;
use super::{Context, SlotRow, Work};
use crate::convert::would_block;
use crate::error::{Result, SqlError};
use crate::exec::{MAX_BLOCKS_UNWAITING, is_long_scan, key};
use crate::expr::Expr;
use crate::plan::query::node::Scan;
use crate::plan::{Access, IndexRange, KeyPart};

/// A scan in execution.
#[derive(Default)]
pub(super) struct ScanState {
    source: Source,
    /// The scan of the index: its number in the pool.
    index_scan: Option<usize>,
    heap: Option<Box<HeapState>>,
    /// Threads read the pages.
    fragment: Option<Box<Fragment>>,
    /// The filter of rows that an index gives.
    filter: Folded,
    /// A key as a range: see [`ScanState::start_key`].
    key_range: Option<Box<IndexRange>>,
    /// The places that are still to be read, the first one last.
    tids: Vec<Tid>,
}

/// What is read next.
#[derive(Default)]
enum Source {
    /// It has not begun.
    #[default]
    Start,
    Ranges,
    Heap,
    Tids,
    Fragment,
    End,
}

/// A scan of pages.
struct HeapState {
    scan: HeapScan,
    /// The next row of the page.
    next: usize,
    /// The filter of a long scan, with what is the same for all rows computed.
    filter: Option<Expr>,
}

impl ScanState {
    pub(super) fn rescan(&mut self) {
        self.source = Source::Start;
        self.fragment = None;
    }

    /// The next row that meets the filter. What is rare is in functions of its own: most calls take
    /// the next row of a range.
    pub(super) fn next(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            let is_found = match self.source {
                Source::Ranges => self.next_of_range(scan, cx)? || self.next_range(scan, cx)?,
                Source::Heap => return self.next_of_heap(scan, cx),
                Source::Tids => self.next_of_tids(scan, cx)?,
                Source::Fragment => return self.next_of_fragment(cx),
                Source::Start => match self.start(scan, cx)? {
                    Some(is_found) => is_found,
                    None => continue,
                },
                Source::End => false,
            };
            if !is_found {
                return Ok(false);
            }
            cx.work().count_row()?;
            if scan.filter.is_none() || self.filter.holds(scan.filter.as_ref(), cx)? {
                return Ok(true);
            }
        }
    }

    /// Begins to read. A key gives its row, or none, at once.
    #[inline(never)]
    fn start(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<Option<bool>> {
        match &scan.access {
            Access::Nothing => self.source = Source::End,
            Access::Heap => self.start_heap(scan, cx)?,
            Access::Point { index, key } => {
                if cx.work().session()?.may_see_keys_twice() {
                    self.start_key(scan, index, key, cx)?;
                    return Ok(None);
                }
                self.source = Source::End;
                let mut row = cx.take_stored(scan.slot)?;
                let found = look_up(scan, index, key, cx, &mut row);
                cx.set(scan.slot, SlotRow::Stored(row))?;
                return found.map(Some);
            }
            Access::Range(range) => self.start_range(scan, range, cx)?,
            Access::Tids(tids) => {
                self.tids = tids_of(tids, &cx.env())?;
                self.source = Source::Tids;
            }
        }
        Ok(None)
    }

    /// All rows that have a key which should be one row's: see [`Session::may_see_keys_twice`].
    ///
    /// [`Session::may_see_keys_twice`]: millpond_engine::session::Session::may_see_keys_twice
    #[cold]
    fn start_key(
        &mut self,
        scan: &Scan,
        index: &Arc<IndexDef>,
        parts: &[KeyPart],
        cx: &Context<'_>,
    ) -> Result<()> {
        if !cx.work().may_wait {
            return Err(would_block());
        }
        let range = self
            .key_range
            .take()
            .unwrap_or_else(|| Box::new(IndexRange::of_key(index, parts.to_vec())));
        let result = self.start_range(scan, &range, cx);
        self.key_range = Some(range);
        result
    }

    fn start_range(&mut self, scan: &Scan, plan: &IndexRange, cx: &Context<'_>) -> Result<()> {
        let work = cx.work();
        let number = match self.index_scan {
            Some(number) => number,
            None => *self.index_scan.insert(work.pool()?.take_scan(&plan.index)),
        };
        let mut pool = work.pool()?;
        let mut ranges = mem::take(&mut pooled(&mut pool, number)?.ranges);
        // A key may have a subplan, which has scans of its own.
        drop(pool);
        let filled = ranges.fill(plan, &cx.env());
        let mut pool = work.pool()?;
        let own = pooled(&mut pool, number)?;
        own.ranges = ranges;
        self.source = Source::End;
        filled?;
        if start_next(own, scan, plan, work)? {
            self.source = Source::Ranges;
        }
        Ok(())
    }

    /// Puts the next row of the range that is being read into the slot.
    #[inline(always)]
    fn next_of_range(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        let Some(number) = self.index_scan else { return Ok(false) };
        let work = cx.work();
        let row = cx.stored_mut(scan.slot)?;
        let mut pool = work.pool()?;
        let own = pooled(&mut pool, number)?;
        if own.is_running {
            own.is_running = own.scan.next(work.session()?, row)?;
        }
        Ok(own.is_running)
    }

    /// The first row of the next range that has one.
    #[inline(never)]
    fn next_range(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        let work = cx.work();
        // The rows of a key are one range.
        while let (Access::Range(plan), Some(number)) = (&scan.access, self.index_scan) {
            if !start_next(pooled(&mut *work.pool()?, number)?, scan, plan, work)? {
                break;
            }
            // A range may have no row, and a list may have many of them.
            work.count_row()?;
            if self.next_of_range(scan, cx)? {
                return Ok(true);
            }
        }
        self.source = Source::End;
        Ok(false)
    }

    fn start_heap(&mut self, scan: &Scan, cx: &Context<'_>) -> Result<()> {
        let work = cx.work();
        let session = work.session()?;
        if !work.may_wait && session.block_count(&scan.table)? > MAX_BLOCKS_UNWAITING {
            return Err(would_block());
        }
        if scan.gathers
            && workers_of(scan, work)? > 0
            && can_settle(scan.filter.iter(), &[], cx)?
            && let Some(begun) = Begun::of_scan(scan, work)?
        {
            self.fragment = Some(begun.start(cx)?);
            self.source = Source::Fragment;
            return Ok(());
        }
        let filter = match &scan.filter {
            Some(filter) if is_long_scan(session, &scan.table)? => {
                Some(filter.clone().folded(&cx.env())?)
            }
            _ => None,
        };
        let heap = session.heap_scan(&scan.table)?;
        self.heap = Some(Box::new(HeapState { scan: heap, next: 0, filter }));
        self.source = Source::Heap;
        Ok(())
    }

    /// The next row that is at one of the places. A version that an update
    /// replaced is not visible, so its place gives no row.
    #[inline(never)]
    fn next_of_tids(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        let work = cx.work();
        let row = cx.stored_mut(scan.slot)?;
        while let Some(tid) = self.tids.pop() {
            if work.session()?.fetch(&scan.table, tid, row)? {
                return Ok(true);
            }
            work.count_row()?;
        }
        self.source = Source::End;
        Ok(false)
    }

    fn next_of_fragment(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        match &mut self.fragment {
            Some(fragment) => fragment.next(cx),
            None => Ok(false),
        }
    }

    /// The next row of a page that meets the filter. A row is copied once, to its slot.
    #[inline(never)]
    fn next_of_heap(&mut self, scan: &Scan, cx: &mut Context<'_>) -> Result<bool> {
        let Some(heap) = &mut self.heap else { return Ok(false) };
        loop {
            let Some((tid, bytes)) = heap.scan.row(heap.next) else {
                if heap.scan.advance_page(cx.work().session()?)? {
                    heap.next = 0;
                    continue;
                }
                self.source = Source::End;
                return Ok(false);
            };
            heap.next += 1;
            cx.stored_mut(scan.slot)?.set(tid, bytes);
            cx.work().count_row()?;
            if cx.holds(heap.filter.as_ref().or(scan.filter.as_ref()))? {
                return Ok(true);
            }
        }
    }
}

fn pooled(pool: &mut Pool, number: usize) -> Result<&mut PooledScan> {
    pool.scans.get_mut(number).ok_or_else(|| SqlError::internal("a scan without a number"))
}

/// Begins to read the next range of a plan; false when there is none.
#[inline(never)]
fn start_next(
    own: &mut PooledScan,
    scan: &Scan,
    plan: &IndexRange,
    work: &Work<'_>,
) -> Result<bool> {
    let (session, direction) = (work.session()?, plan.direction);
    if work.may_wait {
        let wanted = scan.demand.at_first();
        own.ranges.read_ahead(session, (&scan.table, &plan.index), wanted);
    }
    if !own.ranges.next(&mut own.range) {
        return Ok(false);
    }
    session.start_index_scan(&scan.table, &plan.index, &own.range, direction, &mut own.scan)?;
    own.scan.expect(scan.demand.at_first());
    own.is_running = true;
    Ok(true)
}

/// Looks for the row of a whole key.
fn look_up(
    scan: &Scan,
    index: &Arc<IndexDef>,
    parts: &[KeyPart],
    cx: &Context<'_>,
    row: &mut RowBuf,
) -> Result<bool> {
    let mut held = key::KeyVals::new();
    let Some(key) = key::exact(parts, &cx.env(), &mut held)? else { return Ok(false) };
    Ok(cx.work().session()?.lookup(&scan.table, index, &key, row)?)
}
