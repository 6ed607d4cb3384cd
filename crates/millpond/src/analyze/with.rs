//! WITH.

use std::sync::Arc;

use millpond_syntax::tree::{self, Alias, CommonTableExpr, SelectBody, SelectStmt, WithClause};

use super::Analyzer;
use super::from::{Named, renamed};
use super::level::Level;
use super::query::Typing;
use super::set_operation::target_location;
use super::tree::{Cte, CteId, CteQuery, FromItem, Query};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, beyond, start_of};
use crate::expr::types::{Ty, unify};
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
        sublinks: usize,
        outer_joins: usize,
        uses: usize,
    },
    /// It comes later, in WITH RECURSIVE.
    Ahead,
    /// It comes later, and its name means something else so far.
    Hidden,
}

const IN_START: &str = "must not appear within its non-recursive term";

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
        for (at, (definition, name)) in with.ctes.iter().zip(&names).enumerate() {
            if definition.search_clause.is_some() || definition.cycle_clause.is_some() {
                return Err(beyond("SEARCH or CYCLE of a query of WITH"));
            }
            let place = first + at;
            let own = with.recursive.then_some(place);
            let (cte, columns) = self.cte(definition, name, own, outer, binder)?;
            let cte = Arc::new(cte);
            let state = State::Done { cte: Arc::clone(&cte), columns };
            self.set_state(place, state);
            ctes.push(cte);
        }
        Ok(ctes)
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
            return Err(beyond("WITH that changes rows"));
        };
        let cte = |query| Cte { id, name: name.to_owned(), query, materialized };
        if let Some(place) = place
            && let Some((query, columns)) =
                self.recursive(definition, name, id, place, outer, binder)?
        {
            return Ok((cte(query), columns));
        }
        let query = self.query(written, outer, binder)?;
        let (_, columns) = renamed(name, query.columns.clone(), Some(&alias_of(definition)))
            .map_err(|error| self.given_columns(error, name, &query, definition))?;
        Ok((cte(CteQuery::Plain(query)), columns))
    }

    /// The query of WITH RECURSIVE, if it has the form of a recursive one.
    fn recursive(
        &self,
        definition: &CommonTableExpr,
        name: &str,
        id: CteId,
        place: usize,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Option<(CteQuery, Vec<ColumnDesc>)>> {
        let tree::Statement::Select(query) = &definition.ctequery else { return Ok(None) };
        let SelectBody::SetOp { op: tree::SetOperation::Union, all, larg: left, rarg: right } =
            &query.body
        else {
            self.set_state(
                place,
                State::Closed {
                    why: "does not have the form non-recursive-term UNION [ALL] recursive-term",
                    at: Some(definition.location),
                },
            );
            return Ok(None);
        };
        let all = *all;
        let visible = self.ctes.borrow().len();
        let with = match &query.with_clause {
            Some(with) => self.with(with, outer, binder)?,
            None => Vec::new(),
        };
        self.set_state(place, State::Closed { why: IN_START, at: None });
        let start = self.side(left, outer, binder)?;
        let types: Vec<_> = start.query.columns.iter().map(|column| column.ty).collect();
        let mut start = self.converted(start, &types, Some(left), binder)?;
        let (_, columns) = renamed(name, start.columns.clone(), Some(&alias_of(definition)))
            .map_err(|error| self.given_columns(error, name, &start, definition))?;
        let columns: Vec<ColumnDesc> = columns
            .into_iter()
            .map(|column| ColumnDesc::computed(column.name, column.ty))
            .collect();
        self.set_state(
            place,
            State::Open {
                id,
                columns: columns.clone(),
                sublinks: self.sublinks.get(),
                outer_joins: self.outer_joins.get(),
                uses: 0,
            },
        );
        let step = self.side(right, outer, binder)?;
        let uses = match self.ctes.borrow().get(place).map(|visible| &visible.state) {
            Some(State::Open { uses, .. }) => *uses,
            _ => 0,
        };
        self.ctes.borrow_mut().truncate(visible);
        if uses == 0 {
            // It only looks like a recursive one.
            return Ok(None);
        }
        let refused = |what: &str, at: Option<u32>| {
            let what = format!("{what} in a recursive query is not implemented");
            Err(self.source.place(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what), at))
        };
        if let Some(first) = query.sort_clause.first() {
            return refused("ORDER BY", Some(start_of(&first.node)));
        }
        if let Some(offset) = &query.limit_offset {
            return refused("OFFSET", Some(start_of(offset)));
        }
        if let Some(limit) = &query.limit_count {
            return refused("LIMIT", limit.count.as_ref().map(start_of));
        }
        if let Some(lock) = query.locking_clause.first() {
            return refused("FOR UPDATE/SHARE", lock.locked_rels.first().map(|of| of.location));
        }
        self.check_step(name, &columns, &step, (left, right))?;
        let step = self.converted(step, &types, Some(right), binder)?;
        start.ctes.splice(0..0, with);
        Ok(Some((CteQuery::Recursive { start, step, all }, columns)))
    }

    /// The start decides the types.
    fn check_step(
        &self,
        name: &str,
        columns: &[ColumnDesc],
        Typing { query: step, unknown, .. }: &Typing,
        (start_query, step_query): (&SelectStmt, &SelectStmt),
    ) -> Result<()> {
        let placed = |error, query, at| self.source.place(error, target_location(query, at));
        if step.columns.len() != columns.len() {
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
            );
            return Err(placed(error, step_query, 0));
        }
        for (at, (column, other)) in columns.iter().zip(&step.columns).enumerate() {
            if unknown[at] {
                continue;
            }
            match unify([Ty::Known(column.ty), Ty::Known(other.ty)]) {
                Ok(Ty::Known(ty)) if ty == column.ty => {}
                Ok(_) => {
                    let error = SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                            at + 1,
                            column.ty,
                            other.ty
                        ),
                    )
                    .hint("Cast the output of the non-recursive term to the correct type.");
                    return Err(placed(error, start_query, at));
                }
                Err((a, b)) => {
                    let error = SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!("UNION types {} and {} cannot be matched", a.base(), b.base()),
                    );
                    return Err(placed(error, step_query, at));
                }
            }
        }
        Ok(())
    }

    /// The error of too many names for a query's columns.
    fn given_columns(
        &self,
        error: SqlError,
        name: &str,
        query: &Query,
        definition: &CommonTableExpr,
    ) -> SqlError {
        if error.sqlstate != SqlState::INVALID_COLUMN_REFERENCE {
            return error;
        }
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                query.columns.len(),
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
            return error;
        }
        let mut error = error
            .detail(format!(
                "There is a WITH item named \"{name}\", but it cannot be referenced from this part of the query."
            ))
            .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.");
        error.position = name.position.or(error.position);
        error
    }

    /// Counts a use of the query at `place` by its own recursive part; what it may not be.
    fn used(&self, place: usize) -> Option<&'static str> {
        let mut ctes = self.ctes.borrow_mut();
        let State::Open { uses, outer_joins, sublinks, .. } = &mut ctes.get_mut(place)?.state
        else {
            return None;
        };
        *uses += 1;
        if self.sublinks.get() > *sublinks {
            Some("must not appear within a subquery")
        } else if *uses > 1 {
            Some("must not appear more than once")
        } else if self.outer_joins.get() > *outer_joins {
            Some("must not appear within an outer join")
        } else {
            None
        }
    }
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
                what if what.starts_with("does not have") => {
                    format!("recursive query \"{}\" {what}", name.name)
                }
                what => format!("recursive reference to query \"{}\" {what}", name.name),
            };
            let mut error = SqlError::new(SqlState::INVALID_RECURSION, text);
            error.position = name.position;
            error
        };
        let named = |columns: Vec<ColumnDesc>| -> Result<_> {
            let (alias, columns) = renamed(&name.name, columns, alias)?;
            let kind = SlotKind::Computed(columns.len());
            let slot = analyzer.item_slot(kind, &alias, &columns)?;
            let own = super::namespace::Visible::new(
                slot,
                alias.clone(),
                Some(name.name.clone()),
                columns,
            );
            let own = self.add(slot, own);
            Ok((slot, alias, own))
        };
        match state {
            State::Done { cte, columns } => {
                let (slot, alias, own) = named(columns)?;
                Ok(Some((FromItem::Cte { slot, cte, alias }, own)))
            }
            State::Open { id, columns, .. } => {
                if let Some(what) = analyzer.used(place) {
                    return Err(refused(what));
                }
                let (slot, alias, own) = named(columns)?;
                self.reads_itself.set(true);
                Ok(Some((FromItem::WorkTable { slot, cte: id, alias }, own)))
            }
            State::Closed { why, at } => {
                let mut error = refused(why);
                if let Some(at) = at {
                    error.position = Some(analyzer.source.position(at));
                }
                Err(error)
            }
            State::Ahead | State::Hidden => Err(beyond("a query of WITH that is defined later")),
        }
    }
}
