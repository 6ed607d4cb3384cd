//! How many rows lie between two keys: asked of the index itself, as there are no statistics of
//! columns ([`Session::index_share`], an index dive).
//!
//! Values that are not there yet, those of parameters, are guessed at. A plan that is kept notes
//! what it was made for. Before each execution, the session asks the indexes again. If a range has
//! changed too much, it makes another plan, which knows the values (ADR 30).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::ids::Oid;
use millpond_engine::session::Session;
use millpond_engine::table::{Direction, KeyRange};
use millpond_engine::{EngineError, EngineResult};

use super::access::{Bounds, IndexPart, List};
use super::query::bounds_rows;
use super::{IndexRange, KeyBounds, KeyList};
use crate::Value;
use crate::error::{Result, SqlError};
use crate::exec::key::KeyRanges;
use crate::expr::{Env, Expr, Facts, Row};

/// In a smaller table no range matters much.
const FEWEST_ROWS: f64 = 10_000.0;
/// An index of fewer blocks is of a smaller table.
const FEWEST_BLOCKS: u32 = 12;
/// This many times more or fewer rows are another case, for which another plan may be better.
const ANOTHER_CASE: f64 = 4.0;
/// All that is smaller is one case. It is more than a leaf has: only plans that follow an order
/// look at leaves again before an execution.
pub(super) const FEW: f64 = 1_000.0;
/// Of a longer list this many values stand for all.
const LONGEST_LIST: usize = 16;
/// More ranges than this are not looked at before each execution.
const MOST_NOTED: usize = 16;
/// More than this part of a table is found faster by reading the whole table: an index leads to its
/// rows one by one, all over the table, and threads may share a scan of pages.
const READ_WHOLE: f64 = 0.25;
/// How far a range must pass the size at which another plan is better before one is made. Without
/// this, sizes near that limit would make a new plan each time.
const SLACK: f64 = 1.5;
/// Reading a page takes as long as looking at this many of its rows.
const ROWS_OF_PAGE: f64 = 20.0;

/// What an estimate decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Whether the whole table is read instead.
    Whole,
    /// That, and other things for which the number of rows counts.
    Rows,
    /// That, and whether an order is followed until enough rows are found. Of few rows it might be
    /// followed to its end.
    Order,
}

/// What a plan was made for: how many rows are within a part of an index.
#[derive(Debug)]
pub(crate) struct NotedRange {
    range: IndexRange,
    rows: f64,
    /// Of a long list the range has a few values. This is how many each of them stands for.
    stands_for: f64,
    /// Its values were known. If not, the rows are a guess.
    is_known: bool,
    size: TableSize,
    /// The blocks of the index.
    blocks: u32,
    decides: Use,
    /// Each execution may have other values for it.
    varies: bool,
}

/// The size of a table.
#[derive(Debug, Clone, Copy)]
struct TableSize {
    live: f64,
    /// The cost of reading it whole, in rows looked at.
    whole: f64,
}

/// The first or last groups of an index: see [`RangeEstimates::rows_of_groups`].
#[derive(Clone, Copy, PartialEq)]
struct Groups {
    index: Oid,
    columns: usize,
    groups: f64,
    direction: Direction,
}

/// The estimates of one planning.
pub struct RangeEstimates<'a> {
    session: &'a Session,
    facts: &'a Facts<'a>,
    /// The values of parameters, if they are there.
    params: Option<&'a [Value]>,
    noted: RefCell<Vec<NotedRange>>,
    /// What has been asked about groups. A join is looked at many times until it has its order.
    groups: RefCell<Vec<(Groups, Option<f64>)>>,
    would_block: Cell<bool>,
    is_unsure: Cell<bool>,
}

impl<'a> RangeEstimates<'a> {
    pub fn new(session: &'a Session, facts: &'a Facts<'a>, params: Option<&'a [Value]>) -> Self {
        let (noted, groups, would_block, is_unsure) = Default::default();
        Self { session, facts, params, noted, groups, would_block, is_unsure }
    }

    /// Whether an estimate is missing because a page was not in memory. No later check makes up for
    /// it, so the plan must not be kept.
    pub fn is_unsure(&self) -> bool {
        self.is_unsure.get()
    }

    /// Whether an estimate was not made because the session would have had to wait for a page.
    pub fn would_block(&self) -> bool {
        self.would_block.get()
    }

    /// Whether the index of a table of `live` rows is worth asking.
    pub(super) fn is_large_enough(&self, live: f64) -> bool {
        is_large_enough(live)
    }

    /// The rows within bounds of an index, in a table of `live` rows. `None` if that can't be known
    /// yet; a guess takes its place.
    pub(super) fn known_rows(
        &self,
        table: &TableDef,
        index: &Arc<IndexDef>,
        bounds: &Bounds<'_>,
        live: f64,
        decides: Use,
    ) -> Option<f64> {
        if matches!(bounds.list, Some(List::Array(_)))
            || bounds.list.is_some() && bounds.are_keys_of(index)
            || bounds.are_none()
            || !bounds.exprs().all(Expr::is_same_for_all_rows)
        {
            return None;
        }
        let needs_values = bounds.exprs().any(differs_by_execution);
        // How many rows are NULL says what state they are in (they wait, they were deleted), and
        // that changes with time.
        let varies = needs_values || bounds.are_of_nulls();
        let is_large = self.is_large_enough(live);
        if !varies && !is_large {
            return None;
        }
        let mut made = bounds.made(index, table);
        let stands_for = shortened(&mut made);
        let any_of = vec![made];
        let range = IndexRange { index: Arc::clone(index), any_of, direction: Direction::Forward };
        let mut noted = self.noted.borrow_mut();
        if let Some(found) = noted.iter_mut().find(|found| found.range.is_same(&range)) {
            found.decides = found.decides.max(decides);
            return found.is_known.then_some(found.rows);
        }
        if noted.iter().filter(|found| found.varies).count() >= MOST_NOTED {
            return None;
        }
        let known = match self.params {
            _ if !is_large && !bounds.are_of_nulls() => None,
            None if needs_values => None,
            params => self.rows_within(&range, params.unwrap_or_default(), live),
        };
        let known = known.map(|rows| rows * stands_for);
        let rows = known.unwrap_or_else(|| bounds_rows(index, bounds, live, |_| live.sqrt()).0);
        let is_known = known.is_some();
        let (size, blocks) = match is_large || is_known {
            true => (self.size(table, live), self.session.index_blocks(index).unwrap_or(0)),
            // It is looked at again when it has grown to this.
            false => (TableSize { live: FEWEST_ROWS, whole: FEWEST_ROWS }, FEWEST_BLOCKS),
        };
        noted.push(NotedRange { range, rows, stands_for, is_known, size, blocks, decides, varies });
        known
    }

    /// The rows that a part of an index leads to, likewise.
    pub(super) fn known_rows_of_part(
        &self,
        table: &TableDef,
        part: &IndexPart<'_>,
        live: f64,
        decides: Use,
    ) -> Option<f64> {
        let of_bounds = |bounds| self.known_rows(table, part.index, bounds, live, decides);
        let rows: Option<f64> = part.any_of.iter().map(of_bounds).sum();
        rows.map(|rows| rows.min(live))
    }

    /// Whether reading the whole table is faster than reading a part of an index.
    pub(super) fn is_read_whole(
        &self,
        table: &TableDef,
        part: &IndexPart<'_>,
        live: f64,
        decides: Use,
    ) -> bool {
        let known = self.known_rows_of_part(table, part, live, decides);
        known.is_some_and(|rows| self.size(table, live).is_read_whole(rows))
    }

    /// How many rows the first `groups` groups of an index have, read in a direction. A group is
    /// the rows that are equal in its first columns. `None` if that is not known, or matters
    /// little.
    pub(super) fn rows_of_groups(
        &self,
        index: &IndexDef,
        columns: usize,
        (groups, direction): (f64, Direction),
        live: f64,
    ) -> Option<f64> {
        if !self.is_large_enough(live) {
            return None;
        }
        let asked = Groups { index: index.oid, columns, groups, direction };
        let known = self.groups.borrow().iter().find(|known| known.0 == asked).map(|known| known.1);
        if let Some(rows) = known {
            return rows;
        }
        let found = self.session.index_group_rows(index, columns, (groups, direction), live);
        if let Err(EngineError::WouldBlock) = &found {
            self.would_block.set(true);
            self.is_unsure.set(true);
        }
        let rows = found.ok().flatten();
        self.groups.borrow_mut().push((asked, rows));
        rows
    }

    fn size(&self, table: &TableDef, live: f64) -> TableSize {
        let blocks = self.session.block_count(table).unwrap_or(0);
        TableSize { live, whole: live.max(f64::from(blocks) * ROWS_OF_PAGE) }
    }

    /// The rows within a range, of `live`. `None` also if the session would have to wait.
    fn rows_within(&self, range: &IndexRange, params: &[Value], live: f64) -> Option<f64> {
        let env = Env { row: Row::None, params, facts: self.facts, subplans: None };
        let (mut ranges, mut keys) = (KeyRanges::default(), KeyRange::default());
        let ask = |keys: &KeyRange| self.session.index_rows(&range.index, keys, live);
        match sum_of_keys(range, &env, (&mut ranges, &mut keys), &ask) {
            Ok(rows) => rows,
            Err(_) => {
                self.would_block.set(true);
                None
            }
        }
    }

    /// The plan follows the order of a table until enough rows are found. What other ranges have
    /// decides how soon that is. `is_contested`: also other ranges of the table.
    pub(super) fn follow_order(&self, table: &TableDef, is_contested: bool) {
        for noted in &mut *self.noted.borrow_mut() {
            let is_own = table.indexes.iter().any(|index| index.oid == noted.range.index.oid);
            if !is_own || is_contested {
                noted.decides = Use::Order;
            }
        }
    }

    /// What the plan was made for, as far as an execution may differ.
    pub(super) fn noted(&self) -> Box<[NotedRange]> {
        let mut noted = self.noted.borrow_mut();
        noted.drain(..).filter(|range| range.varies || !range.is_known).collect()
    }
}

/// Whether the indexes of a table of `live` rows are worth asking.
pub(super) fn is_large_enough(live: f64) -> bool {
    live >= FEWEST_ROWS
}

impl TableSize {
    fn is_read_whole(self, rows: f64) -> bool {
        rows > self.whole * READ_WHOLE
    }
}

impl NotedRange {
    pub(super) fn is_guess(&self) -> bool {
        !self.is_known
    }

    /// Whether it has about as many rows as the plan was made for; also if that is unknown. An
    /// error only if the session would have to wait for a page.
    pub(crate) fn holds(
        &self,
        session: &Session,
        env: &Env<'_>,
        scratch: (&mut KeyRanges, &mut KeyRange),
    ) -> Result<bool> {
        let blocks = session.index_blocks(&self.range.index).unwrap_or(0);
        if blocks < FEWEST_BLOCKS {
            return Ok(true);
        }
        // The table has grown as the index has.
        let growth = f64::from(blocks) / f64::from(self.blocks.max(1));
        let TableSize { live, whole } = self.size;
        let (live, whole) = (live * growth, whole * growth);
        let index = &self.range.index;
        let ask = |keys: &KeyRange| match self.decides {
            Use::Order => session.index_rows(index, keys, live),
            _ => session.index_share(index, keys, live).map(|share| share * live),
        };
        let Some(rows) = sum_of_keys(&self.range, env, scratch, &ask)? else {
            return Ok(true);
        };
        let (now, size) = (rows * self.stands_for, TableSize { live, whole });
        let slack = if self.is_known { SLACK } else { 1.0 };
        let is_as_whole = match self.is_known && self.size.is_read_whole(self.rows) {
            true => size.is_read_whole(now * slack),
            false => !size.is_read_whole(now / slack),
        };
        let few = if self.decides == Use::Order { 1.0 } else { FEW };
        let is_less = self.rows.max(few) > now.max(few) * ANOTHER_CASE;
        let is_more = now.max(FEW) > self.rows.max(FEW) * ANOTHER_CASE;
        Ok(is_as_whole && (!is_less && !is_more || self.decides == Use::Whole))
    }
}

impl IndexRange {
    fn is_same(&self, other: &IndexRange) -> bool {
        self.index.oid == other.index.oid && self.any_of == other.any_of
    }
}

/// What an index answers for the keys of a range, added up. `None` if there is no answer: the
/// values are none for the index, the index is damaged or has just been dropped. Running the plan
/// shows it.
fn sum_of_keys(
    range: &IndexRange,
    env: &Env<'_>,
    (ranges, keys): (&mut KeyRanges, &mut KeyRange),
    ask: &dyn Fn(&KeyRange) -> EngineResult<f64>,
) -> Result<Option<f64>> {
    if ranges.fill(range, env).is_err() {
        return Ok(None);
    }
    let mut sum = 0.0;
    while ranges.next(keys) {
        match ask(keys) {
            Ok(part) => sum += part,
            Err(error @ EngineError::WouldBlock) => return Err(SqlError::from(error)),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// Leaves a few values of a long list, from all over it. Says how many each of them stands for.
fn shortened(bounds: &mut KeyBounds) -> f64 {
    let Some(KeyList::Items(items)) = &mut bounds.list else { return 1.0 };
    let all = items.len();
    let step = all.div_ceil(LONGEST_LIST).max(1);
    let mut place = 0..;
    items.retain(|_| place.next().is_some_and(|place: usize| place.is_multiple_of(step)));
    all as f64 / items.len().max(1) as f64
}

/// Whether an expression may have another value when the plan is used again.
fn differs_by_execution(expr: &Expr) -> bool {
    let mut differs = false;
    expr.walk(&mut |e| {
        differs |= match e {
            Expr::Param(_) => true,
            Expr::Func(func, _) => !func.is_immutable(),
            _ => false,
        };
    });
    differs
}
