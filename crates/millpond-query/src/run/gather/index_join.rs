//! Joins by an index, as the threads of a fragment do them: see [`nested_loop`] and [`ahead`] for
//! the same in the session.
//!
//! [`nested_loop`]: crate::run::nested_loop
//! [`ahead`]: crate::run::ahead

use std::mem;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::session::{IndexScan, LookupBatch};
use millpond_engine::table::KeyRange;

use super::current::{Current, stored};
use super::settled;
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::Result;
use crate::exec::key::{self, KeyRanges};
use crate::expr::Expr;
use crate::plan::query::node::Scan;
use crate::plan::{Access, IndexRange, KeyPart};
use crate::run::{Context, kept};

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

impl IndexJoin {
    /// Whether the inner row in its slot matches.
    fn is_match(&self, current: &Current<'_>) -> Result<bool> {
        Ok(current.holds(self.scan.filter.as_ref())? && current.holds(self.on.as_ref())?)
    }

    /// Whether an outer row gives a row that has the only inner row there may be, or no match.
    fn has_row(&self, has_match: bool, current: &mut Current<'_>) -> Result<bool> {
        match (self.kind, has_match) {
            (JoinKind::Anti, _) => Ok(!has_match),
            (JoinKind::Left, false) => current.nullify(&[self.scan.slot]).map(|()| true),
            _ => Ok(has_match),
        }
    }
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
            Access::Nothing | Access::Heap | Access::Tids(_) => {}
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
    /// The next outer row.
    at: usize,
}

impl Lookups {
    /// Adds the row that is in the slots.
    pub(super) fn push(&mut self, join: &IndexJoin, current: &Current<'_>) -> Result<()> {
        let Access::Point { index, key } = &join.scan.access else { return Ok(()) };
        let mut held = key::KeyVals::new();
        self.found.push(index, key::exact(key, &current.env(), &mut held)?.as_deref())?;
        kept::save_rows(current.rows, current.keeping(), &join.outer, &mut self.rows)?;
        self.ends.push(self.rows.len());
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= MOST_ROWS || self.rows.len() >= MOST_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn look_up(&mut self, join: &IndexJoin, current: &Current<'_>) -> Result<()> {
        let Access::Point { index, .. } = &join.scan.access else { return Ok(()) };
        self.at = 0;
        Ok(current.scan.lookup_many(&join.scan.table, index, &mut self.found)?)
    }

    /// Puts the next row of the join into the slots, when they have been looked up. False at the
    /// end. Then there is room for other outer rows.
    pub(super) fn next(&mut self, join: &IndexJoin, current: &mut Current<'_>) -> Result<bool> {
        while let Some(end) = self.ends.get(self.at) {
            let start = self.at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
            let outer = self.rows.get(start.unwrap_or(0)..*end).unwrap_or_default();
            current.load(outer, &join.outer)?;
            let number = self.at;
            self.at += 1;
            let is_found = self.found.row(number, current.stored(join.scan.slot)?);
            if join.has_row(is_found && join.is_match(current)?, current)? {
                return Ok(true);
            }
        }
        self.clear();
        Ok(false)
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
    /// No more inner rows are wanted.
    is_over: bool,
    /// What the outer row gives without a match is not wanted, or has been given.
    has_match: bool,
}

impl Ranges {
    /// Begins with the outer row in the slots.
    pub(super) fn begin(&mut self, join: &IndexJoin, current: &Current<'_>) -> Result<()> {
        (self.is_running, self.is_over) = (false, false);
        self.has_match = matches!(join.kind, JoinKind::Inner | JoinKind::Semi);
        match &join.scan.access {
            Access::Range(range) => self.ranges.fill(range, &current.env()),
            _ => Ok(()),
        }
    }

    /// Puts the next inner row, or NULLs, into the slot. False at the end.
    pub(super) fn next(&mut self, join: &IndexJoin, current: &mut Current<'_>) -> Result<bool> {
        while !self.is_over && self.next_inner(join, current)? {
            if !join.is_match(current)? {
                continue;
            }
            self.has_match = true;
            self.is_over = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
            return Ok(join.kind != JoinKind::Anti);
        }
        if mem::replace(&mut self.has_match, true) {
            return Ok(false);
        }
        join.has_row(false, current)
    }

    /// The next inner row, whether it matches or not.
    fn next_inner(&mut self, join: &IndexJoin, current: &mut Current<'_>) -> Result<bool> {
        let Access::Range(range) = &join.scan.access else { return Ok(false) };
        let IndexRange { index, direction, .. } = &**range;
        loop {
            if self.is_running {
                let row = stored(current.rows, join.scan.slot)?;
                self.is_running = current.scan.next_of_index(&mut self.scan, row)?;
            }
            if self.is_running {
                return Ok(true);
            }
            current.check()?;
            if !self.ranges.next(&mut self.range) {
                return Ok(false);
            }
            let (table, scan) = (&join.scan.table, &mut self.scan);
            current.scan.start_index_scan(table, index, &self.range, *direction, scan)?;
            self.is_running = true;
        }
    }
}
