//! From a parsed query to the typed query tree ([`tree`]).
//!
//! Each SELECT is a [`Level`](level::Level): the scope of its expressions. Aggregates and window
//! functions in an expression are computed elsewhere. While the expression is bound, the level sets
//! each aside, and a column of a slot stands in its place. When all of a SELECT is bound,
//! `grouping` makes what is computed for groups refer to their keys.

mod aggregate;
mod column_name;
mod definition;
mod from;
mod grouping;
mod insert;
mod join;
mod level;
mod lock;
mod modification;
mod namespace;
mod order;
mod ordered_set;
mod presence;
mod query;
mod select;
mod set_function;
mod set_operation;
mod set_step;
mod system_column;
mod table_sample;
mod targets;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod values;
mod visit;
pub(crate) mod walk;
mod window;
mod with;

pub(crate) use column_name::column_name;
pub(crate) use lock::{row_lock, row_lock_name};
pub(crate) use modification::Written;

use std::cell::{Cell, RefCell};

use millpond_engine::catalog::CatalogState;
use millpond_syntax::tree::{SelectStmt, WithClause};
use smol_str::SmolStr;

use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::Binder;
use crate::parse::{Source, too_complex};
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;
use tree::{Analyzed, AnalyzedModification, CteId, Slot};

/// Queries within queries, beyond which a statement is too complex. Half a thread's stack of 2 MiB
/// is enough for them, without optimization, too.
const MAX_DEPTH: usize = 32;

/// Analyzes a query.
pub(crate) fn analyze(
    catalog: &CatalogState,
    query: &SelectStmt,
    binder: &mut Binder<'_>,
) -> Result<Analyzed> {
    let analyzer = Analyzer::new(catalog, binder.source, query.with_clause.as_ref());
    let analyzed = analyzer.query(query, None, binder);
    let query = analyzed.map_err(|error| of_lifted(error, binder))?;
    Ok(Analyzed { query, slots: analyzer.slots.into_inner() })
}

/// Analyzes a statement that changes rows.
pub(crate) fn analyze_modification(
    catalog: &CatalogState,
    written: Written<'_>,
    binder: &mut Binder<'_>,
) -> Result<AnalyzedModification> {
    let analyzer = Analyzer::new(catalog, binder.source, written.with());
    let analyzed = analyzer.written(written, binder);
    let modification = analyzed.map_err(|error| of_lifted(error, binder))?;
    Ok(AnalyzedModification { modification, slots: analyzer.slots.into_inner() })
}

/// Whether two expressions are the same depends on their literals, which may have been lifted.
fn of_lifted(error: SqlError, binder: &Binder<'_>) -> SqlError {
    match error.sqlstate {
        SqlState::GROUPING_ERROR | SqlState::INVALID_COLUMN_REFERENCE if binder.is_lifted() => {
            SqlError::unsupported("an expression whose literals matter")
        }
        _ => error,
    }
}

/// The analysis of a statement.
struct Analyzer<'a> {
    catalog: &'a CatalogState,
    source: Source<'a>,
    /// WITH of the statement itself, whose queries may change rows.
    top_with: Option<&'a WithClause>,
    /// Of each slot what it holds.
    slots: RefCell<Vec<SlotKind>>,
    /// Of each slot what its relation and its columns are called, for errors.
    names: RefCell<Vec<SlotNames>>,
    /// The queries of WITH that can be named.
    ctes: RefCell<Vec<with::Visible>>,
    /// A query of WITH RECURSIVE that had to be there for what has failed.
    needed: Cell<Option<usize>>,
    next_cte: Cell<u16>,
    depth: Cell<usize>,
    /// Outer joins around what is being analyzed, on the side that may be without a row.
    outer_joins: Cell<usize>,
    /// Expressions around the query that is being analyzed.
    sublinks: Cell<usize>,
}

/// What a slot's relation and its columns are called.
#[derive(Debug, Clone, Default)]
struct SlotNames {
    relation: SmolStr,
    columns: Vec<SmolStr>,
}

impl<'a> Analyzer<'a> {
    fn new(
        catalog: &'a CatalogState,
        source: Source<'a>,
        top_with: Option<&'a WithClause>,
    ) -> Self {
        Analyzer {
            catalog,
            source,
            top_with,
            slots: RefCell::default(),
            names: RefCell::default(),
            ctes: RefCell::default(),
            needed: Cell::new(None),
            next_cte: Cell::new(0),
            depth: Cell::new(0),
            outer_joins: Cell::new(0),
            sublinks: Cell::new(0),
        }
    }

    /// A slot for computed rows, whose number of columns is still to be [set](Self::set_width).
    fn new_slot(&self) -> Result<Slot> {
        self.add_slot(SlotKind::Computed(0), SlotNames::default())
    }

    /// A slot of an item of FROM.
    fn item_slot(&self, kind: SlotKind, relation: &str, columns: &[ColumnDesc]) -> Result<Slot> {
        let columns = columns.iter().map(|desc| desc.name.clone()).collect();
        self.add_slot(kind, SlotNames { relation: relation.into(), columns })
    }

    /// A further slot, of rows like those of another one.
    fn copied_slot(&self, slot: Slot) -> Result<Slot> {
        let copied = |kinds: &[SlotKind], names: &[SlotNames]| {
            Some((kinds.get(slot.index())?.clone(), names.get(slot.index())?.clone()))
        };
        let copied = copied(&self.slots.borrow(), &self.names.borrow());
        let (kind, names) = copied.ok_or_else(|| SqlError::internal("a slot is not there"))?;
        self.add_slot(kind, names)
    }

    fn add_slot(&self, kind: SlotKind, names: SlotNames) -> Result<Slot> {
        let mut slots = self.slots.borrow_mut();
        let number = u16::try_from(slots.len()).map_err(|_| {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "too many range table entries")
        })?;
        slots.push(kind);
        self.names.borrow_mut().push(names);
        Ok(Slot(number))
    }

    /// Says how many columns a slot of computed rows has.
    fn set_width(&self, slot: Slot, columns: usize) {
        if let Some(kind) = self.slots.borrow_mut().get_mut(slot.index()) {
            *kind = SlotKind::Computed(columns);
        }
    }

    fn new_cte(&self) -> Result<CteId> {
        let number = self.next_cte.get();
        let next = number.checked_add(1).ok_or_else(too_complex)?;
        self.next_cte.set(next);
        Ok(CteId(number))
    }

    /// Does something one query deeper.
    fn deeper<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return Err(too_complex());
        }
        self.depth.set(depth + 1);
        let done = act();
        self.depth.set(depth);
        done
    }
}
