//! WITH.

mod recursive;
mod search_cycle;

use std::sync::Arc;

use millpond_syntax::tree::{self, Alias, CommonTableExpr, WithClause};

use super::Analyzer;
use super::from::{Named, renamed};
use super::level::Level;
use super::modification::Written;
use super::tree::{Cte, CteId, CteQuery, FromItem};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::Binder;
use crate::parse::Name;
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;

/// A query of WITH that can be named.
#[derive(Debug, Clone)]
pub(super) struct Visible {
    name: String,
    state: State,
}

/// What is known of a query of WITH.
#[derive(Debug, Clone)]
enum State {
    Done {
        cte: Arc<Cte>,
        columns: Vec<ColumnDesc>,
    },
    /// It changes rows and returns none.
    Silent,
    /// It is being analyzed, and may not name itself.
    Closed {
        why: &'static str,
        at: Option<u32>,
    },
    /// Its recursive part is being analyzed: what was around that, and how often the part has named
    /// the query so far.
    Open {
        id: CteId,
        columns: Vec<ColumnDesc>,
        /// How many of the columns are not those of SEARCH and CYCLE.
        own: usize,
        sublinks: usize,
        outer_joins: usize,
        uses: usize,
        /// Where in the text it has named it last.
        at: Option<u32>,
    },
    /// It comes later, in WITH RECURSIVE.
    Ahead,
    /// It comes later, and its name means something else so far.
    Hidden,
}

const CHANGES: &str = "must not contain data-modifying statements";

impl Analyzer<'_> {
    /// Analyzes the queries of WITH, which can then be named.
    pub(super) fn with(
        &self,
        with: &WithClause,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Arc<Cte>>> {
        let names: Vec<String> = with.ctes.iter().map(|cte| (*cte.ctename).to_owned()).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                let error = SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("WITH query name \"{name}\" specified more than once"),
                );
                return Err(self.source.place(error, with.ctes[at].location));
            }
        }
        let first = self.ctes.borrow().len();
        let state = if with.recursive { State::Ahead } else { State::Hidden };
        let later = names.iter().map(|name| Visible { name: name.clone(), state: state.clone() });
        self.ctes.borrow_mut().extend(later);
        let mut ctes = Vec::with_capacity(names.len());
        // What is being analyzed, and what that waits for.
        let mut pending = Vec::new();
        for at in 0..names.len() {
            if !self.is_ahead(first + at, with.recursive) {
                continue;
            }
            pending.push(at);
            while let Some(at) = pending.last().copied() {
                match self.item(with, at, first, outer, binder) {
                    Ok(cte) => {
                        ctes.push(cte);
                        pending.pop();
                    }
                    Err(error) => {
                        let needed = self.needed.get().and_then(|place| place.checked_sub(first));
                        let Some(needed) = needed else { return Err(error) };
                        self.needed.set(None);
                        if pending.contains(&needed) {
                            return Err(self
                                .source
                                .place(mutual_recursion(), error_place(with, &pending)));
                        }
                        self.ctes.borrow_mut().truncate(first + names.len());
                        self.set_state(first + at, State::Ahead);
                        pending.push(needed);
                    }
                }
            }
        }
        Ok(ctes)
    }

    /// Whether a query is still to be analyzed. In WITH RECURSIVE one before it may have needed it.
    fn is_ahead(&self, place: usize, recursive: bool) -> bool {
        let ctes = self.ctes.borrow();
        !recursive || ctes.get(place).is_some_and(|cte| matches!(cte.state, State::Ahead))
    }

    /// Analyzes the query at a place of WITH, which can then be named.
    fn item(
        &self,
        with: &WithClause,
        at: usize,
        first: usize,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Arc<Cte>> {
        let Some(definition) = with.ctes.get(at) else {
            return Err(SqlError::internal("a query of WITH that is not there"));
        };
        let (place, name) = (first + at, &*definition.ctename);
        let own = with.recursive.then_some(place);
        let (cte, columns) = match Written::of(&definition.ctequery) {
            Some(written) => {
                let is_top = self.top_with.is_some_and(|top| std::ptr::eq(top, with));
                self.changing_cte(definition, name, own, written, is_top, binder)?
            }
            None => {
                let (cte, columns) = self.cte(definition, name, own, outer, binder)?;
                (cte, Some(columns))
            }
        };
        let cte = Arc::new(cte);
        let state = match columns {
            Some(columns) => State::Done { cte: Arc::clone(&cte), columns },
            None => State::Silent,
        };
        self.set_state(place, state);
        Ok(cte)
    }

    fn set_state(&self, place: usize, state: State) {
        if let Some(visible) = self.ctes.borrow_mut().get_mut(place) {
            visible.state = state;
        }
    }

    /// A query of WITH and its columns; `place`: it may be recursive, and is there under its name.
    fn cte(
        &self,
        definition: &CommonTableExpr,
        name: &str,
        place: Option<usize>,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<(Cte, Vec<ColumnDesc>)> {
        let id = self.new_cte()?;
        let materialized = definition.materialized;
        let tree::Statement::Select(written) = &definition.ctequery else {
            let message = "MERGE not supported in WITH query";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(self.source.place(error, definition.location));
        };
        let cte = |query| Cte { id, name: name.to_owned(), query, materialized };
        if let Some(place) = place
            && let Some((query, columns)) =
                self.recursive(definition, name, id, place, outer, binder)?
        {
            return Ok((cte(query), columns));
        }
        let query = self.query(written, outer, binder)?;
        if definition.search_clause.is_some() || definition.cycle_clause.is_some() {
            let error = SqlError::new(SqlState::SYNTAX_ERROR, "WITH query is not recursive");
            return Err(self.source.place(error, definition.location));
        }
        let (_, columns) = renamed(name, query.columns.clone(), Some(&alias_of(definition)))
            .map_err(|error| self.given_columns(error, name, query.columns.len(), definition))?;
        Ok((cte(CteQuery::Plain(query)), columns))
    }

    /// A query of WITH that changes rows, and the columns that it returns.
    fn changing_cte(
        &self,
        definition: &CommonTableExpr,
        name: &str,
        place: Option<usize>,
        written: Written<'_>,
        is_top: bool,
        binder: &mut Binder<'_>,
    ) -> Result<(Cte, Option<Vec<ColumnDesc>>)> {
        let id = self.new_cte()?;
        if let Some(place) = place {
            let (why, at) = (CHANGES, Some(definition.location));
            self.set_state(place, State::Closed { why, at });
        }
        let modification = self.deeper(|| self.written(written, binder))?;
        if !is_top {
            let message =
                "WITH clause containing a data-modifying statement must be at the top level";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(self.source.place(error, definition.location));
        }
        let returned = modification.returning.clone();
        let given = returned.clone().unwrap_or_default();
        let (_, columns) = renamed(name, given.clone(), Some(&alias_of(definition)))
            .map_err(|error| self.given_columns(error, name, given.len(), definition))?;
        let query = CteQuery::Modification(Box::new(modification));
        let cte = Cte { id, name: name.to_owned(), query, materialized: definition.materialized };
        Ok((cte, returned.map(|_| columns)))
    }

    /// The error of too many names for a query's columns.
    fn given_columns(
        &self,
        error: SqlError,
        name: &str,
        available: usize,
        definition: &CommonTableExpr,
    ) -> SqlError {
        if error.sqlstate != SqlState::INVALID_COLUMN_REFERENCE {
            return error;
        }
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {available} columns available but {} columns specified",
                definition.aliascolnames.len()
            ),
        );
        self.source.place(error, definition.location)
    }

    /// Says of a table that is not there that a query of WITH of its name comes later.
    pub(super) fn not_yet_defined(&self, error: SqlError, name: &Name) -> SqlError {
        let is_it = |cte: &Visible| cte.name == name.name && matches!(cte.state, State::Hidden);
        let is_undefined = error.sqlstate == SqlState::UNDEFINED_TABLE && name.schema.is_none();
        if !is_undefined || !self.ctes.borrow().iter().any(is_it) {
            return self.source.place(error, name.location);
        }
        let error = error
            .detail(format!(
                "There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."
            ))
            .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.");
        self.source.place(error, name.location)
    }
}

fn mutual_recursion() -> SqlError {
    let message = "mutual recursion between WITH items is not implemented";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// Where the first of some queries of WITH is.
fn error_place(with: &WithClause, of: &[usize]) -> Option<u32> {
    of.iter().min().and_then(|at| with.ctes.get(*at)).map(|cte| cte.location)
}

/// What a query of WITH and its columns are called.
fn alias_of(definition: &CommonTableExpr) -> Alias {
    Alias { aliasname: definition.ctename.clone(), colnames: definition.aliascolnames.clone() }
}

impl Level<'_> {
    /// The query of WITH that a name means, if it means one.
    pub(super) fn named_cte(&self, name: &Name, alias: Option<&Alias>) -> Result<Option<Named>> {
        let analyzer = self.analyzer;
        let found = {
            let ctes = analyzer.ctes.borrow();
            let is_it =
                |cte: &Visible| cte.name == name.name && !matches!(cte.state, State::Hidden);
            let place = ctes.iter().rposition(is_it);
            place.map(|place| (place, ctes[place].state.clone()))
        };
        let Some((place, state)) = found else { return Ok(None) };
        let refused = |what: &str| {
            let text = match what {
                what if what == CHANGES || what.starts_with("does not have") => {
                    format!("recursive query \"{}\" {what}", name.name)
                }
                what => format!("recursive reference to query \"{}\" {what}", name.name),
            };
            SqlError::new(SqlState::INVALID_RECURSION, text)
        };
        let named = |columns: Vec<ColumnDesc>| -> Result<_> {
            let (alias, columns) = renamed(&name.name, columns, alias)?;
            let kind = SlotKind::Computed(columns.len());
            let slot = analyzer.item_slot(kind, &alias, &columns)?;
            let own = super::namespace::Visible::new(slot, &alias, Some(&name.name), columns);
            let own = self.add(slot, own);
            Ok((slot, alias, own))
        };
        match state {
            State::Done { cte, columns } => {
                let (slot, alias, own) = named(columns)?;
                Ok(Some((FromItem::Cte { slot, cte, alias }, own)))
            }
            State::Open { id, columns, own: first, .. } => {
                if let Some(what) = analyzer.used(place, name.location) {
                    return Err(analyzer.source.place(refused(what), name.location));
                }
                let (slot, alias, own) = named(columns)?;
                let own = own.into_iter().map(|item| item.spreading(first)).collect();
                self.reads_itself.set(true);
                Ok(Some((FromItem::WorkTable { slot, cte: id, alias }, own)))
            }
            State::Closed { why, at } => {
                Err(analyzer.source.place(refused(why), at.or(name.location)))
            }
            State::Silent => {
                let text = format!("WITH query \"{}\" does not have a RETURNING clause", name.name);
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
                Err(analyzer.source.place(error, name.location))
            }
            State::Ahead => {
                analyzer.needed.set(Some(place));
                Err(SqlError::internal("a query of WITH that is analyzed later"))
            }
            State::Hidden => Err(SqlError::internal("a query of WITH of another name")),
        }
    }
}
