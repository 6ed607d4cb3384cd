//! How many rows lie between two keys: asked of the index itself, as there are no statistics of
//! columns ([`Session::index_share`], an index dive).
//!
//! Values that are not there yet, those of parameters, are guessed at. A plan that is kept notes
//! what it was made for. Before it runs, it is seen whether that still holds for the values that
//! have come; if not, another plan is made that knows them (ADR 30).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use millpond_engine::EngineError;
use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::session::Session;
use millpond_engine::table::{Direction, KeyRange};

use super::IndexRange;
use super::access::{Bounds, IndexPart};
use super::query::bounds_rows;
use crate::Value;
use crate::error::{Result, SqlError};
use crate::exec::key::KeyRanges;
use crate::expr::{Env, Expr, Facts, Row};

/// In a smaller table no range matters much.
const FEWEST_ROWS: f64 = 10_000.0;
/// So many times more or less rows are another case, for which another plan may be better.
const ANOTHER_CASE: f64 = 4.0;
/// All that is smaller is one case.
const FEW: f64 = 200.0;
/// More are not looked at before each execution.
const MOST_NOTED: usize = 16;
/// More than this part of a table is found faster by reading the whole table: an index leads to its
/// rows one by one, all over the table, and threads may share a scan of pages.
const READ_WHOLE: f64 = 0.25;
/// A plan stays when ranges are so much larger or smaller than the size at which it would be
/// another, so that sizes near that don't make a new plan each time.
const SLACK: f64 = 1.5;

/// What a plan was made for: how many rows are within a part of an index.
#[derive(Debug)]
pub(crate) struct NotedRange {
    range: IndexRange,
    rows: f64,
    /// Its values were known. If not, the rows are a guess.
    is_known: bool,
    /// The rows of the table.
    live: f64,
    /// Each execution may have other values for it.
    varies: bool,
}

/// The estimates of one planning.
pub struct RangeEstimates<'a> {
    session: &'a Session,
    facts: &'a Facts<'a>,
    /// The values of parameters, if they are there.
    params: Option<&'a [Value]>,
    noted: RefCell<Vec<NotedRange>>,
    would_block: Cell<bool>,
}

impl<'a> RangeEstimates<'a> {
    pub fn new(session: &'a Session, facts: &'a Facts<'a>, params: Option<&'a [Value]>) -> Self {
        let (noted, would_block) = (RefCell::default(), Cell::new(false));
        Self { session, facts, params, noted, would_block }
    }

    /// Whether an estimate was not made because the session would have had to wait for a page.
    pub fn would_block(&self) -> bool {
        self.would_block.get()
    }

    /// Whether a table of so many rows is large enough to look.
    pub(super) fn matter(&self, live: f64) -> bool {
        live >= FEWEST_ROWS
    }

    /// The rows within bounds of an index, in a table of `live` rows. `None` if that can't be known
    /// yet; a guess takes its place.
    pub(super) fn rows(
        &self,
        table: &TableDef,
        index: &Arc<IndexDef>,
        bounds: &Bounds<'_>,
        live: f64,
    ) -> Option<f64> {
        if !self.matter(live) || bounds.list.is_some() || bounds.exprs().next().is_none() {
            return None;
        }
        if !bounds.exprs().all(Expr::is_same_for_all_rows) {
            return None;
        }
        let any_of = vec![bounds.made(index, table)];
        let range = IndexRange { index: Arc::clone(index), any_of, direction: Direction::Forward };
        let mut noted = self.noted.borrow_mut();
        if let Some(known) = noted.iter().find(|known| known.range.is_same(&range)) {
            return known.is_known.then_some(known.rows);
        }
        if noted.len() >= MOST_NOTED {
            return None;
        }
        let varies = range.parts().any(|part| varies(&part.expr));
        let share = match self.params {
            None if varies => None,
            params => self.share(&range, params.unwrap_or_default()),
        };
        let known = share.map(|share| share * live);
        let rows = known.unwrap_or_else(|| bounds_rows(index, bounds, live, |_| live.sqrt()).0);
        noted.push(NotedRange { range, rows, is_known: known.is_some(), live, varies });
        known
    }

    /// The rows that a part of an index leads to, likewise.
    pub(super) fn rows_of_part(
        &self,
        table: &TableDef,
        part: &IndexPart<'_>,
        live: f64,
    ) -> Option<f64> {
        let rows = part.any_of.iter().map(|bounds| self.rows(table, part.index, bounds, live));
        rows.sum::<Option<f64>>().map(|rows| rows.min(live))
    }

    fn share(&self, range: &IndexRange, params: &[Value]) -> Option<f64> {
        let env = Env { row: Row::None, params, facts: self.facts, subplans: None };
        match share(self.session, range, &env, &mut KeyRanges::default()) {
            Ok(share) => share,
            Err(_) => {
                self.would_block.set(true);
                None
            }
        }
    }

    /// What the plan was made for, as far as executions may differ.
    pub(super) fn noted(&self) -> Box<[NotedRange]> {
        let mut noted = self.noted.borrow_mut();
        noted.drain(..).filter(|range| range.varies).collect()
    }
}

/// Whether so many rows of a table are found faster by reading all of it.
pub(in crate::plan) fn is_read_whole(rows: f64, live: f64) -> bool {
    live >= FEWEST_ROWS && rows > live * READ_WHOLE
}

impl NotedRange {
    pub(super) fn is_guess(&self) -> bool {
        !self.is_known
    }

    /// Whether it has about as many rows as the plan was made for. It has, too, if that can't be
    /// told.
    pub(crate) fn holds(
        &self,
        session: &Session,
        env: &Env<'_>,
        ranges: &mut KeyRanges,
    ) -> Result<bool> {
        let Some(share) = share(session, &self.range, env, ranges)? else { return Ok(true) };
        let now = share * self.live;
        let slack = if self.is_known { SLACK } else { 1.0 };
        let is_as_whole = match self.is_known && is_read_whole(self.rows, self.live) {
            true => is_read_whole(now * slack, self.live),
            false => !is_read_whole(now / slack, self.live),
        };
        let (then, now) = (self.rows.max(FEW), now.max(FEW));
        Ok(is_as_whole && then <= now * ANOTHER_CASE && now <= then * ANOTHER_CASE)
    }
}

impl IndexRange {
    fn is_same(&self, other: &IndexRange) -> bool {
        self.index.oid == other.index.oid && self.any_of == other.any_of
    }
}

/// The part of an index that is within a range. `None` if that can't be told: the values are none
/// for the index, the index is damaged or has just been dropped. Running the plan shows it.
fn share(
    session: &Session,
    range: &IndexRange,
    env: &Env<'_>,
    ranges: &mut KeyRanges,
) -> Result<Option<f64>> {
    if ranges.fill(range, env).is_err() {
        return Ok(None);
    }
    let (mut share, mut keys) = (0.0, KeyRange::default());
    while ranges.next(&mut keys) {
        match session.index_share(&range.index, &keys) {
            Ok(part) => share += part,
            Err(error @ EngineError::WouldBlock) => return Err(SqlError::from(error)),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(share))
}

/// Whether an expression may have another value when the plan is used again.
fn varies(expr: &Expr) -> bool {
    let mut varies = false;
    expr.walk(&mut |e| {
        varies |= match e {
            Expr::Param(_) => true,
            Expr::Func(func, _) => !func.is_immutable(),
            _ => false,
        };
    });
    varies
}
