//! Rows by access path.

use std::sync::Arc;

use millpond_engine::access::Tid;
use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::{KeyRange, RowBuf};

use super::key::KeyRanges;
use super::{Exec, MAX_BLOCKS_UNWAITING, MAX_ROWS_UNWAITING, key};
use crate::convert::would_block;
use crate::error::{Result, SqlError};
use crate::expr::Env;
use crate::plan::{Access, IndexRange, KeyPart};

/// Takes a row's bytes and place; says whether to go on.
type EachRow<'e> = &'e mut dyn FnMut(&mut Exec<'_>, &mut RowBuf) -> Result<bool>;

/// Where an access path's rows go.
struct Out<'o> {
    row: &'o mut RowBuf,
    each: EachRow<'o>,
    /// How many more may be looked at where the statement must not wait.
    left: usize,
    /// How many are wanted.
    wanted: usize,
}

impl Exec<'_> {
    /// Calls a function for every row of an access path. About `wanted` of them will be read.
    pub(super) fn rows(
        &mut self,
        table: &Arc<TableDef>,
        (access, wanted): (&Access, usize),
        env: &Env<'_>,
        each: EachRow<'_>,
    ) -> Result<()> {
        let mut row = std::mem::take(&mut self.scratch.row);
        let mut out = Out { row: &mut row, each, left: MAX_ROWS_UNWAITING, wanted };
        let result = match access {
            Access::Nothing => Ok(()),
            Access::Point { index, key } => self.point(table, index, key, env, &mut out),
            Access::Range(range) => self.range(table, range, env, &mut out),
            Access::Heap => self.heap_rows(table, &mut out),
            Access::Tids(_) => Err(SqlError::internal("only plans of nodes know places of rows")),
        };
        self.scratch.row = row;
        result
    }

    fn point(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        parts: &[KeyPart],
        env: &Env<'_>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        if self.session.may_see_keys_twice() {
            return self.rows_of_key(table, index, parts, env, out);
        }
        let mut held = key::KeyVals::new();
        let Some(key) = key::exact(parts, env, &mut held)? else { return Ok(()) };
        if self.session.lookup(table, index, &key, out.row)? {
            (out.each)(self, out.row)?;
        }
        Ok(())
    }

    /// All rows that have a key which should be one row's: see [`Session::may_see_keys_twice`].
    ///
    /// [`Session::may_see_keys_twice`]: millpond_engine::Session::may_see_keys_twice
    #[cold]
    fn rows_of_key(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        parts: &[KeyPart],
        env: &Env<'_>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        // They might be changed, and what has changed one row can't be taken back.
        self.need_wait()?;
        let plan = IndexRange::of_key(index, parts.to_vec());
        self.range(table, &plan, env, out)
    }

    fn range(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        env: &Env<'_>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let mut ranges = std::mem::take(&mut self.scratch.ranges);
        let result = ranges.fill(plan, env);
        let result = result.and_then(|()| self.each_range(table, plan, &mut ranges, out));
        ranges.trim();
        self.scratch.ranges = ranges;
        result
    }

    fn each_range(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        ranges: &mut KeyRanges,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let mut range = std::mem::take(&mut self.scratch.range);
        let mut result = Ok(true);
        while let Ok(true) = result {
            if self.may_wait() {
                ranges.read_ahead(self.session, (table, &plan.index), out.wanted);
            }
            if !ranges.next(&mut range) {
                break;
            }
            result = if ranges.is_key() && !self.session.may_see_keys_twice() {
                self.one_key(table, plan, &range.lower, out)
            } else {
                self.one_range(table, plan, &range, out)
            };
        }
        self.scratch.range = range;
        result.map(|_| ())
    }

    /// The row of a whole key of a unique index.
    fn one_key(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        key: &[u8],
        out: &mut Out<'_>,
    ) -> Result<bool> {
        self.session.check_cancel()?;
        self.count(out)?;
        if !self.session.lookup_encoded(table, &plan.index, key, out.row)? {
            return Ok(true);
        }
        self.count(out)?;
        (out.each)(self, out.row)
    }

    fn one_range(
        &mut self,
        table: &Arc<TableDef>,
        plan: &IndexRange,
        range: &KeyRange,
        out: &mut Out<'_>,
    ) -> Result<bool> {
        let mut scan = std::mem::take(&mut self.scratch.scan);
        let mut run = || -> Result<bool> {
            // A range may have no row, and a list may have many of them.
            self.session.check_cancel()?;
            self.count(out)?;
            self.session.start_index_scan(table, &plan.index, range, plan.direction, &mut scan)?;
            scan.expect(out.wanted);
            while scan.next(self.session, out.row)? {
                self.count(out)?;
                if !(out.each)(self, out.row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let result = run();
        if !matches!(result, Ok(true)) {
            // Left early: what a long scan holds is not for the connection to keep.
            scan.end();
        }
        self.scratch.scan = scan;
        result
    }

    /// Counts what a statement looks at that must not wait.
    fn count(&self, out: &mut Out<'_>) -> Result<()> {
        if !self.may_wait() {
            out.left = out.left.checked_sub(1).ok_or_else(would_block)?;
        }
        Ok(())
    }

    /// All rows of a table, each copied before it is looked at, so that the table can be changed
    /// meanwhile.
    fn heap_rows(&mut self, table: &Arc<TableDef>, out: &mut Out<'_>) -> Result<()> {
        self.check_heap_size(table)?;
        let mut scan = self.session.heap_scan(table)?;
        let mut page: Vec<(Tid, usize)> = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            page.clear();
            bytes.clear();
            let more = scan.next_page(self.session, &mut |tid, tuple| {
                bytes.extend_from_slice(tuple);
                page.push((tid, bytes.len()));
                Ok(())
            })?;
            let mut start = 0;
            for (tid, end) in &page {
                out.row.set(*tid, &bytes[start..*end]);
                start = *end;
                if !(out.each)(self, out.row)? {
                    return Ok(());
                }
            }
            if !more {
                return Ok(());
            }
            self.session.check_cancel()?;
        }
    }

    /// All rows of a table, in place.
    pub(super) fn scan_heap(
        &mut self,
        table: &Arc<TableDef>,
        each: &mut dyn FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        self.check_heap_size(table)?;
        let mut scan = self.session.heap_scan(table)?;
        let mut outcome: Result<bool> = Ok(true);
        loop {
            let more = scan.next_page(self.session, &mut |_, tuple| {
                if let Ok(true) = outcome {
                    outcome = each(tuple);
                }
                Ok(())
            })?;
            match outcome {
                Ok(true) if more => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.session.check_cancel()?;
        }
    }

    /// How many rows a table has, a page at a time.
    pub(super) fn count_heap(
        &mut self,
        table: &Arc<TableDef>,
        each: &mut dyn FnMut(usize),
    ) -> Result<()> {
        self.check_heap_size(table)?;
        let mut scan = self.session.heap_scan(table)?;
        while let Some(rows) = scan.count_page(self.session)? {
            each(rows);
            self.session.check_cancel()?;
        }
        Ok(())
    }

    fn check_heap_size(&self, table: &TableDef) -> Result<()> {
        if self.may_wait() || self.session.block_count(table)? <= MAX_BLOCKS_UNWAITING {
            return Ok(());
        }
        Err(would_block())
    }
}
