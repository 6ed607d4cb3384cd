//! A program in execution, on one thread.
//!
//! Rows are pulled one at a time, so that the program can stop after any of them: at a full piece,
//! and to look whether its rows are still wanted. A row of the table goes up through the steps. A
//! step that may give several rows for one, or puts rows off, is a *source*. The source that was
//! entered last is asked for its next row. When it has none, the source from which it was entered
//! goes on. The scan of the table is the lowest source.
//!
//! Lookups put rows off until there are enough of them. At the end of a chunk the steps are asked
//! from the first one on for what they have put off. If a row fails, the rows that were put off
//! before it come first. So the error is that of one thread.

use std::ops::Range;
use std::sync::Arc;

use millpond_engine::session::ScanWorker;
use millpond_types::ColumnOffsets;

use super::current::{Current, stored};
use super::exchange::{Exchange, Piece};
use super::index_join::{Lookups, Ranges};
use super::probe::Probing;
use super::program::{End, Program, Step};
use crate::error::{Result, SqlError};
use crate::plan::Access;
use crate::plan::external::LocalSurroundings;
use crate::run::SlotRows;
use crate::run::aggregate::PartGroups;
use crate::run::kept;
use crate::run::sort::SortedPart;

/// Pages, and rows of joins, after which a thread looks whether its rows are still wanted.
const PAGES_BETWEEN_LOOKS: usize = 8;
const ROWS_BETWEEN_LOOKS: usize = 4096;

/// The scan of the table. The source of step `n` has the number `n + 1`.
const TABLE: usize = 0;

/// A program in execution, on one thread.
pub(super) struct Runner {
    program: Arc<Program>,
    exchange: Arc<Exchange>,
    scan: ScanWorker,
    rows: SlotRows,
    /// Of each step.
    states: Vec<StepState>,
    place: Place,
    offsets: ColumnOffsets,
    key: Vec<u8>,
    /// The groups of the chunk, if rows are aggregated.
    groups: PartGroups,
    /// Its rows, if they are sorted.
    sorted: SortedPart,
    surroundings: LocalSurroundings,
}

/// Where a program is within a chunk.
#[derive(Default)]
struct Place {
    /// The next row of the table's page.
    at: usize,
    /// The table has no more rows in this chunk, or none is wanted after a failure.
    is_at_end: bool,
    /// The source that is asked for the next row.
    source: usize,
    /// The step whose rows come before a failure that happens now, if they were put off.
    first_before: usize,
    /// What the rows that were put off come before.
    failure: Option<SqlError>,
}

/// What a step keeps from one row to the next.
enum StepState {
    /// It gives a row at most, and at once.
    Nothing,
    /// The source from which it was entered, and how far it is.
    Probe(usize, Probing),
    Lookups(usize, Box<Lookups>),
    Ranges(usize, Box<Ranges>),
}

impl StepState {
    fn of(step: &Step) -> Self {
        match step {
            Step::Filter(_) | Step::Project(..) => Self::Nothing,
            Step::Probe(_) => Self::Probe(TABLE, Probing::default()),
            Step::Index(join) => match join.scan.access {
                Access::Point { .. } => Self::Lookups(TABLE, Box::default()),
                _ => Self::Ranges(TABLE, Box::default()),
            },
        }
    }

    fn clear(&mut self) {
        if let Self::Lookups(_, lookups) = self {
            lookups.clear();
        }
    }

    fn has_put_off(&self) -> bool {
        matches!(self, Self::Lookups(_, lookups) if !lookups.is_empty())
    }
}

/// What a source has given.
enum Given {
    Row,
    /// It is time to look.
    Pause,
    End,
}

impl Runner {
    pub(super) fn new(program: &Arc<Program>, exchange: &Arc<Exchange>, scan: ScanWorker) -> Self {
        let mut rows = SlotRows::default();
        rows.fit(&program.window);
        Self {
            surroundings: program.surroundings.local(),
            states: program.steps.iter().map(StepState::of).collect(),
            program: Arc::clone(program),
            exchange: Arc::clone(exchange),
            scan,
            rows,
            place: Place::default(),
            offsets: ColumnOffsets::default(),
            key: Vec::new(),
            groups: PartGroups::default(),
            sorted: SortedPart::default(),
        }
    }

    /// Begins with other blocks.
    pub(super) fn begin(&mut self, blocks: Range<u32>) {
        self.scan.go_on_with(blocks);
        // Of the page that was read last no row is left.
        self.place = Place { at: usize::MAX, ..Place::default() };
        // A chunk that has failed may have left rows.
        self.states.iter_mut().for_each(StepState::clear);
        self.groups.clear();
        self.sorted.clear();
    }

    /// Adds rows, until a piece is full or it is time to look. False at the end of the blocks.
    pub(super) fn fill(
        &mut self,
        piece: &mut Piece,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<bool> {
        let Self {
            program,
            exchange,
            scan,
            rows,
            states,
            place,
            offsets,
            key,
            groups,
            sorted,
            surroundings,
        } = self;
        surroundings.looking(Some(look), |env| {
            let current = Current { program, exchange, scan, env, rows };
            let left = (PAGES_BETWEEN_LOOKS, ROWS_BETWEEN_LOOKS);
            let kept = (groups, sorted);
            let mut run = Run { current, states, place, offsets, key, kept, left, look };
            while !piece.is_full() {
                match run.next()? {
                    Given::Row => run.give(piece)?,
                    Given::Pause => return Ok(true),
                    Given::End => return run.give_kept(piece).map(|()| false),
                }
            }
            Ok(true)
        })
    }
}

/// One call of [`Runner::fill`].
struct Run<'r> {
    current: Current<'r>,
    states: &'r mut Vec<StepState>,
    place: &'r mut Place,
    offsets: &'r ColumnOffsets,
    key: &'r mut Vec<u8>,
    /// What is given at the end of the chunk, if rows are aggregated or sorted.
    kept: (&'r mut PartGroups, &'r mut SortedPart),
    /// Pages and rows until the next look.
    left: (usize, usize),
    /// Each row looks, too: one may take long, because expressions can be costly.
    look: &'r dyn Fn() -> Result<()>,
}

impl Run<'_> {
    /// The next row, in the slots.
    fn next(&mut self) -> Result<Given> {
        loop {
            match self.try_next() {
                Ok(Given::End) => return self.place.failure.take().map_or(Ok(Given::End), Err),
                Ok(given) => return Ok(given),
                Err(failure) => self.put_off(failure)?,
            }
        }
    }

    fn try_next(&mut self) -> Result<Given> {
        loop {
            let source = self.place.source;
            self.place.first_before = source;
            if source == TABLE {
                match self.next_of_table()? {
                    Given::End if self.look_up_rest()? => continue,
                    Given::Row => {}
                    other => return Ok(other),
                }
            } else {
                let Some(left) = self.left.1.checked_sub(1) else { return Ok(Given::Pause) };
                self.left.1 = left;
                if !self.next_of_step(source - 1)? {
                    continue;
                }
            }
            if self.pass(source)? {
                return Ok(Given::Row);
            }
        }
    }

    /// The next row of the table that meets the filter.
    fn next_of_table(&mut self) -> Result<Given> {
        let Self { current, place, offsets, left, look, .. } = self;
        if place.is_at_end {
            return Ok(Given::End);
        }
        let Current { program, scan, env, rows, .. } = current;
        loop {
            while let Some((tid, bytes)) = scan.row(place.at) {
                place.at += 1;
                look()?;
                if program.admits(bytes, env, offsets)? {
                    stored(rows, program.slot)?.set(tid, bytes);
                    return Ok(Given::Row);
                }
            }
            let Some(pages) = left.0.checked_sub(1) else { return Ok(Given::Pause) };
            left.0 = pages;
            place.at = 0;
            if !scan.advance_page()? {
                place.is_at_end = true;
                return Ok(Given::End);
            }
        }
    }

    /// The next row of a step. If it has none, the source from which it was entered is next.
    fn next_of_step(&mut self, number: usize) -> Result<bool> {
        let Self { current, states, place, .. } = self;
        current.check()?;
        let (has_row, below) = match (current.program.steps.get(number), states.get_mut(number)) {
            (Some(Step::Probe(probe)), Some(StepState::Probe(below, probing))) => {
                (probing.next(probe, current)?, *below)
            }
            (Some(Step::Index(join)), Some(StepState::Lookups(below, lookups))) => {
                (lookups.next(join, current)?, *below)
            }
            (Some(Step::Index(join)), Some(StepState::Ranges(below, ranges))) => {
                (ranges.next(join, current)?, *below)
            }
            _ => return Err(no_memory()),
        };
        if !has_row {
            place.source = below;
        }
        Ok(has_row)
    }

    /// Lets the row in the slots go through the steps from one on. True if it passes all of them.
    /// False if it is dropped, is put off, or enters a source.
    fn pass(&mut self, first: usize) -> Result<bool> {
        let Self { current, states, place, key, .. } = self;
        let program = current.program;
        for (number, step) in program.steps.iter().enumerate().skip(first) {
            place.first_before = number;
            let below = place.source;
            match (step, states.get_mut(number)) {
                (Step::Filter(condition), _) => {
                    if !condition.holds(&current.env())? {
                        return Ok(false);
                    }
                    continue;
                }
                (Step::Project(slot, exprs), _) => {
                    current.compute(*slot, exprs)?;
                    continue;
                }
                (Step::Probe(probe), Some(state)) => {
                    *state = StepState::Probe(below, Probing::begin(probe, current, key)?);
                }
                (Step::Index(join), Some(StepState::Lookups(from, lookups))) => {
                    lookups.push(join, current)?;
                    if !lookups.is_full() {
                        return Ok(false);
                    }
                    place.first_before = number + 1;
                    lookups.look_up(join, current)?;
                    *from = below;
                }
                (Step::Index(join), Some(StepState::Ranges(from, ranges))) => {
                    ranges.begin(join, current)?;
                    *from = below;
                }
                _ => return Err(no_memory()),
            }
            place.source = number + 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// Looks up what the first step with such rows has put off. False if there is none.
    fn look_up_rest(&mut self) -> Result<bool> {
        let Self { current, states, place, .. } = self;
        let steps = current.program.steps.iter().zip(states.iter_mut()).enumerate();
        for (number, (step, state)) in steps {
            if let (Step::Index(join), StepState::Lookups(below, lookups)) = (step, state)
                && !lookups.is_empty()
            {
                place.first_before = number + 1;
                lookups.look_up(join, current)?;
                (*below, place.source) = (TABLE, number + 1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps a failure for later if rows that come before it were put off.
    fn put_off(&mut self, failure: SqlError) -> Result<()> {
        let Place { first_before, .. } = *self.place;
        if !self.states.iter().skip(first_before).any(StepState::has_put_off) {
            return Err(failure);
        }
        // Those that come after it are not wanted.
        self.states.iter_mut().take(first_before).for_each(StepState::clear);
        (self.place.is_at_end, self.place.source) = (true, TABLE);
        self.place.failure = Some(failure);
        Ok(())
    }

    /// Adds the row that is in the slots, or keeps it until the end of the chunk.
    fn give(&mut self, piece: &mut Piece) -> Result<()> {
        let Self { current, kept: (groups, sorted), .. } = self;
        let (program, keeping) = (current.program, current.keeping());
        let save = |out: &mut Vec<u8>| kept::save_rows(current.rows, keeping, &program.output, out);
        let is_enough = match &program.end {
            End::Rows => {
                save(piece.bytes_mut())?;
                piece.end_row();
                return Ok(());
            }
            End::Groups(parts) => groups.add(parts, &current.env())?,
            End::Sorted(sort) => sorted.add(sort, &current.env(), save)?,
        };
        if is_enough { self.give_kept(piece) } else { Ok(()) }
    }

    /// Adds what has been kept of the rows so far.
    fn give_kept(&mut self, piece: &mut Piece) -> Result<()> {
        let (groups, sorted) = &mut self.kept;
        match &self.current.program.end {
            End::Rows => Ok(()),
            End::Groups(parts) => groups.give(parts, |keys, states| {
                piece.bytes_mut().extend_from_slice(keys);
                piece.bytes_mut().extend_from_slice(states);
                piece.end_row();
            }),
            End::Sorted(sort) => sorted.give(sort, self.look, |write| {
                write(piece.bytes_mut());
                piece.end_row();
            }),
        }
    }
}

fn no_memory() -> SqlError {
    SqlError::internal("a step without memory")
}
