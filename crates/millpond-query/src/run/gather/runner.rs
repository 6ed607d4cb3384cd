//! A program in execution, on one thread.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use millpond_engine::session::ScanWorker;
use millpond_engine::table::RowBuf;
use millpond_types::ColumnOffsets;

use super::exchange::{Exchange, Piece, stopped};
use super::index_join::{IndexJoin, Lookups, Ranges};
use super::program::{Probe, Program, Step, only_drops};
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::{Result, SqlError};
use crate::expr::{Env, Expr, Row};
use crate::plan::Access;
use crate::plan::external::LocalSurroundings;
use crate::run::hash_join::{NONE, set_key};
use crate::run::kept::{self, Keeping};
use crate::run::{SlotRow, Slots};

/// Pages after which a thread looks whether its rows are still wanted.
const PAGES_BETWEEN_LOOKS: usize = 8;

/// Where full pieces go.
pub(super) type HandOver<'h> = &'h mut dyn FnMut(&mut Piece) -> Result<()>;

/// A program in execution, on one thread.
pub(super) struct Runner {
    program: Arc<Program>,
    exchange: Arc<Exchange>,
    scan: ScanWorker,
    /// The next row of the page.
    at: usize,
    rows: Vec<SlotRow>,
    /// Of each step.
    states: Vec<StepState>,
    offsets: ColumnOffsets,
    key: Vec<u8>,
    surroundings: LocalSurroundings,
}

/// What a step keeps from one row to the next.
#[derive(Default)]
enum StepState {
    #[default]
    Nothing,
    /// Rows whose inner rows will be looked up together.
    Lookups(Box<Lookups>),
    /// Memory of a scan.
    Ranges(Box<Ranges>),
}

impl StepState {
    fn of(step: &Step) -> Self {
        match step {
            Step::Index(join) => match join.scan.access {
                Access::Point { .. } => Self::Lookups(Box::default()),
                _ => Self::Ranges(Box::default()),
            },
            _ => Self::Nothing,
        }
    }
}

impl Runner {
    pub(super) fn new(program: &Arc<Program>, exchange: &Arc<Exchange>, scan: ScanWorker) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(program.kinds.len(), SlotRow::default);
        Self {
            surroundings: program.surroundings.local(),
            states: program.steps.iter().map(StepState::of).collect(),
            program: Arc::clone(program),
            exchange: Arc::clone(exchange),
            scan,
            at: 0,
            rows,
            offsets: ColumnOffsets::default(),
            key: Vec::new(),
        }
    }

    /// Begins with other blocks.
    pub(super) fn begin(&mut self, blocks: Range<u32>) {
        self.scan.go_on_with(blocks);
    }

    /// Adds rows, until a piece is full or some pages have been read. False at the end of the
    /// blocks. A row of the table may give more than a piece has room for: full pieces go to
    /// `hand_over`.
    pub(super) fn fill(&mut self, piece: &mut Piece, hand_over: HandOver<'_>) -> Result<bool> {
        let Self { program, exchange, scan, at, rows, states, offsets, key, surroundings } = self;
        surroundings.with(|env| {
            let mut row =
                OneRow { program, exchange, scan, env, rows, states, key, piece, hand_over };
            for _ in 0..PAGES_BETWEEN_LOOKS {
                while let Some((tid, bytes)) = row.scan.row(*at) {
                    *at += 1;
                    if !program.admits(bytes, env, offsets)? {
                        continue;
                    }
                    stored(row.rows, program.slot)?.set(tid, bytes);
                    row.step(0)?;
                    if row.piece.is_full() {
                        return Ok(true);
                    }
                }
                if !row.scan.advance_page()? {
                    return row.finish().map(|()| false);
                }
                *at = 0;
            }
            Ok(true)
        })
    }
}

/// What a program does with a row of the table.
struct OneRow<'r> {
    program: &'r Program,
    exchange: &'r Exchange,
    scan: &'r mut ScanWorker,
    env: &'r Env<'r>,
    rows: &'r mut Vec<SlotRow>,
    states: &'r mut Vec<StepState>,
    key: &'r mut Vec<u8>,
    piece: &'r mut Piece,
    hand_over: HandOver<'r>,
}

impl OneRow<'_> {
    /// Does what has been put off, when there are no more rows of the table.
    fn finish(&mut self) -> Result<()> {
        for (number, step) in self.program.steps.iter().enumerate() {
            if let Step::Index(join) = step {
                self.look_up(join, number)?;
            }
        }
        Ok(())
    }

    /// Does what is left from a step on.
    fn step(&mut self, number: usize) -> Result<()> {
        let program = self.program;
        match program.steps.get(number) {
            None => self.give(),
            Some(Step::Filter(condition)) => match condition.holds(&self.env())? {
                true => self.step(number + 1),
                false => Ok(()),
            },
            Some(Step::Project(slot, exprs)) => {
                let mut values = kept::take_values(self.slot(*slot)?);
                for expr in exprs {
                    values.push(expr.eval(&self.env())?.into_value());
                }
                *self.slot(*slot)? = SlotRow::Values(values);
                self.step(number + 1)
            }
            Some(Step::Probe(probe)) => self.probe(probe, number + 1),
            Some(Step::Index(join)) => self.index(join, number),
        }
    }

    fn probe(&mut self, probe: &Probe, next: usize) -> Result<()> {
        let (table, mut has_match) = (&probe.table, false);
        let mut key = mem::take(self.key);
        let has_key = set_key(probe.keys.iter(), &self.env(), &mut key);
        let mut entry = if has_key? { table.first(&key) } else { NONE };
        *self.key = key;
        while let Some(row) = table.row(entry) {
            self.check()?;
            kept::load(row, &probe.inner, self.rows)?;
            if probe.gives_inner {
                if !table.has_match(entry) && self.holds(probe.on.as_ref())? {
                    table.set_match(entry);
                }
            } else if self.holds(probe.on.as_ref())? {
                has_match = true;
                match probe.kind {
                    JoinKind::Semi | JoinKind::Anti => break,
                    _ => self.step(next)?,
                }
            }
            entry = table.next(entry);
        }
        match probe.gives_inner {
            true => Ok(()),
            false => self.after_matches(probe.kind, has_match, &probe.inner, next),
        }
    }

    /// Goes on with an outer row when its inner rows have been looked at, if it does then.
    fn after_matches(
        &mut self,
        kind: JoinKind,
        has_match: bool,
        inner: &[Slot],
        next: usize,
    ) -> Result<()> {
        match (kind, has_match) {
            (JoinKind::Semi, true) | (JoinKind::Anti, false) => self.step(next),
            (JoinKind::Left, false) => {
                for slot in inner {
                    *self.slot(*slot)? = SlotRow::Null;
                }
                self.step(next)
            }
            _ => Ok(()),
        }
    }

    fn index(&mut self, join: &IndexJoin, number: usize) -> Result<()> {
        match self.states.get_mut(number) {
            Some(StepState::Lookups(lookups)) => {
                let slots = Slots { kinds: &self.program.kinds, rows: self.rows };
                let env = self.env.with_row(Row::Slots(slots));
                let Program { kinds, kept, .. } = self.program;
                lookups.push(join, &env, (self.rows, Keeping { kinds, kept }))?;
                if lookups.is_full() { self.look_up(join, number) } else { Ok(()) }
            }
            Some(StepState::Ranges(ranges)) => {
                let mut ranges = mem::take(ranges);
                let result = self.read_ranges(join, &mut ranges, number + 1);
                self.put_back(number, StepState::Ranges(ranges));
                result
            }
            _ => Err(SqlError::internal("a step without memory")),
        }
    }

    fn put_back(&mut self, number: usize, state: StepState) {
        if let Some(place) = self.states.get_mut(number) {
            *place = state;
        }
    }

    /// Looks up the inner rows of the rows so far, and goes on with each of them.
    fn look_up(&mut self, join: &IndexJoin, number: usize) -> Result<()> {
        let Some(StepState::Lookups(lookups)) = self.states.get_mut(number) else { return Ok(()) };
        if lookups.is_empty() {
            return Ok(());
        }
        let mut lookups = mem::take(lookups);
        let result = self.each_looked_up(join, &mut lookups, number + 1);
        lookups.clear();
        self.put_back(number, StepState::Lookups(lookups));
        result
    }

    fn each_looked_up(
        &mut self,
        join: &IndexJoin,
        lookups: &mut Lookups,
        next: usize,
    ) -> Result<()> {
        lookups.look_up(join, self.scan)?;
        let slot = join.scan.slot;
        for number in 0..lookups.len() {
            self.check()?;
            kept::load(lookups.outer(number), &join.outer, self.rows)?;
            let is_found = lookups.found(number, self.stored(slot)?);
            let has_match = is_found && self.is_match(join)?;
            if has_match && !only_drops(join.kind) {
                self.step(next)?;
            }
            self.after_matches(join.kind, has_match, &[slot], next)?;
        }
        Ok(())
    }

    /// Goes on with the inner rows that ranges of an index lead to.
    fn read_ranges(&mut self, join: &IndexJoin, ranges: &mut Ranges, next: usize) -> Result<()> {
        let slot = join.scan.slot;
        ranges.start(join, &self.env())?;
        let mut has_match = false;
        while ranges.next(join, self.scan, stored(self.rows, slot)?)? {
            self.check()?;
            if self.is_match(join)? {
                has_match = true;
                if only_drops(join.kind) {
                    break;
                }
                self.step(next)?;
            }
        }
        self.after_matches(join.kind, has_match, &[slot], next)
    }

    fn is_match(&self, join: &IndexJoin) -> Result<bool> {
        Ok(self.holds(join.scan.filter.as_ref())? && self.holds(join.on.as_ref())?)
    }

    fn holds(&self, condition: Option<&Expr>) -> Result<bool> {
        condition.map_or(Ok(true), |condition| condition.holds(&self.env()))
    }

    /// An error if nobody wants the rows any more.
    fn check(&self) -> Result<()> {
        if self.exchange.is_stopped() {
            return Err(stopped());
        }
        Ok(self.scan.check_stop()?)
    }

    /// Adds the row that is in the slots.
    fn give(&mut self) -> Result<()> {
        let Program { kinds, kept, output, .. } = self.program;
        kept::save_rows(self.rows, Keeping { kinds, kept }, output, self.piece.bytes_mut())?;
        self.piece.end_row();
        if self.piece.is_full() { (self.hand_over)(self.piece) } else { Ok(()) }
    }

    fn env(&self) -> Env<'_> {
        self.env.with_row(Row::Slots(Slots { kinds: &self.program.kinds, rows: self.rows }))
    }

    fn slot(&mut self, slot: Slot) -> Result<&mut SlotRow> {
        self.rows.get_mut(slot.index()).ok_or_else(kept::out_of_range)
    }

    fn stored(&mut self, slot: Slot) -> Result<&mut RowBuf> {
        stored(self.rows, slot)
    }
}

/// A table's row in its slot, for the next one.
fn stored(rows: &mut [SlotRow], slot: Slot) -> Result<&mut RowBuf> {
    let row = rows.get_mut(slot.index()).ok_or_else(kept::out_of_range)?;
    if !matches!(row, SlotRow::Stored(_)) {
        *row = SlotRow::Stored(RowBuf::default());
    }
    match row {
        SlotRow::Stored(row) => Ok(row),
        _ => Err(kept::out_of_range()),
    }
}
