//! Joins by an index, as the threads of a fragment do them: see [`nested_loop`] and [`ahead`] for
//! the same in the session.
//!
//! [`nested_loop`]: crate::run::nested_loop
//! [`ahead`]: crate::run::ahead

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::session::{IndexScan, LookupBatch, ScanWorker};
use millpond_engine::table::{KeyRange, RowBuf};

use super::settled;
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::Result;
use crate::exec::key::{self, KeyRanges};
use crate::expr::{Env, Expr};
use crate::plan::query::node::Scan;
use crate::plan::{Access, IndexRange, KeyPart};
use crate::run::kept::{self, Keeping};
use crate::run::{Context, SlotRow};

/// How many rows are looked up together, and of which size in bytes at most.
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 256 << 10;

/// A join whose inner rows an index finds.
pub(crate) struct IndexJoin {
    /// Inner, Left, Semi or Anti.
    pub(crate) kind: JoinKind,
    /// The slots that hold something by then.
    pub(crate) outer: Vec<Slot>,
    pub(crate) scan: Inner,
    /// What else must hold.
    pub(crate) on: Option<Expr>,
}

/// The inner side.
pub(crate) struct Inner {
    pub(crate) slot: Slot,
    pub(crate) table: Arc<TableDef>,
    pub(crate) access: Access,
    pub(crate) filter: Option<Expr>,
}

impl Inner {
    /// That of a scan, with constants computed.
    pub(crate) fn of(scan: &Scan, cx: &Context<'_>) -> Result<Self> {
        let mut access = scan.access.clone();
        let settle = |part: &mut KeyPart| -> Result<()> {
            part.expr = settled(&part.expr, cx)?;
            Ok(())
        };
        match &mut access {
            Access::Nothing | Access::Heap => {}
            Access::Point { key, .. } => key.iter_mut().try_for_each(settle)?,
            Access::Range(range) => range.parts_mut().try_for_each(settle)?,
        }
        let filter = scan.filter.as_ref().map(|filter| settled(filter, cx)).transpose()?;
        Ok(Self { slot: scan.slot, table: Arc::clone(&scan.table), access, filter })
    }
}

/// Outer rows, and the inner rows that their keys lead to.
#[derive(Default)]
pub(super) struct Lookups {
    rows: Vec<u8>,
    ends: Vec<usize>,
    found: LookupBatch,
}

impl Lookups {
    /// Adds the row that is in the slots.
    pub(super) fn push(
        &mut self,
        join: &IndexJoin,
        env: &Env<'_>,
        (rows, keeping): (&[SlotRow], Keeping<'_>),
    ) -> Result<()> {
        let Access::Point { index, key } = &join.scan.access else { return Ok(()) };
        let values = key::values(key, env)?;
        self.found.push(index, key::exact(key, &values).as_deref())?;
        kept::save_rows(rows, keeping, &join.outer, &mut self.rows)?;
        self.ends.push(self.rows.len());
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= MOST_ROWS || self.rows.len() >= MOST_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn look_up(&mut self, join: &IndexJoin, scan: &ScanWorker) -> Result<()> {
        let Access::Point { index, .. } = &join.scan.access else { return Ok(()) };
        Ok(scan.lookup_many(&join.scan.table, index, &mut self.found)?)
    }

    /// An outer row.
    pub(super) fn outer(&self, number: usize) -> &[u8] {
        let end = self.ends.get(number).copied().unwrap_or_default();
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.rows.get(start.unwrap_or(0)..end).unwrap_or_default()
    }

    /// Copies its inner row. False if there is none.
    pub(super) fn found(&self, number: usize, row: &mut RowBuf) -> bool {
        self.found.row(number, row)
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.found.clear();
    }
}

/// A scan of the ranges of an index that an outer row leads to.
#[derive(Default)]
pub(super) struct Ranges {
    ranges: KeyRanges,
    range: KeyRange,
    scan: IndexScan,
    is_running: bool,
}

impl Ranges {
    pub(super) fn start(&mut self, join: &IndexJoin, env: &Env<'_>) -> Result<()> {
        self.is_running = false;
        match &join.scan.access {
            Access::Range(range) => self.ranges.fill(range, env),
            _ => Ok(()),
        }
    }

    /// Copies the next inner row. False at the end.
    pub(super) fn next(
        &mut self,
        join: &IndexJoin,
        worker: &ScanWorker,
        row: &mut RowBuf,
    ) -> Result<bool> {
        let Access::Range(range) = &join.scan.access else { return Ok(false) };
        let IndexRange { index, direction, .. } = &**range;
        loop {
            if self.is_running {
                self.is_running = worker.next_of_index(&mut self.scan, row)?;
            }
            if self.is_running {
                return Ok(true);
            }
            if !self.ranges.next(&mut self.range) {
                return Ok(false);
            }
            let (table, scan) = (&join.scan.table, &mut self.scan);
            worker.start_index_scan(table, index, &self.range, *direction, scan)?;
            self.is_running = true;
        }
    }
}
