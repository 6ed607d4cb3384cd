//! WITH.

use std::sync::Arc;

use sqlparser::ast;
use sqlparser::tokenizer::Span;

use super::Analyzer;
use super::from::{Named, renamed};
use super::level::Level;
use super::query::Typing;
use super::set_operation::span_of_target;
use super::tree::{Cte, CteId, CteQuery, FromItem, Query};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, beyond};
use crate::expr::types::{Ty, unify};
use crate::parse::{Name, ident};
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
        at: Option<Span>,
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
        with: &ast::With,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Arc<Cte>>> {
        let names: Vec<String> = with.cte_tables.iter().map(|cte| ident(&cte.alias.name)).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                let error = SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("WITH query name \"{name}\" specified more than once"),
                );
                return Err(self.source.place(error, with.cte_tables[at].alias.name.span));
            }
        }
        let first = self.ctes.borrow().len();
        let state = if with.recursive { State::Ahead } else { State::Hidden };
        let later = names.iter().map(|name| Visible { name: name.clone(), state: state.clone() });
        self.ctes.borrow_mut().extend(later);
        let mut ctes = Vec::with_capacity(names.len());
        for (at, (definition, name)) in with.cte_tables.iter().zip(&names).enumerate() {
            if definition.from.is_some() {
                return Err(beyond("this form of WITH"));
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
        definition: &ast::Cte,
        name: &str,
        place: Option<usize>,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<(Cte, Vec<ColumnDesc>)> {
        let id = self.new_cte()?;
        let materialized = definition
            .materialized
            .as_ref()
            .map(|written| *written == ast::CteAsMaterialized::Materialized);
        let cte = |query| Cte { id, name: name.to_owned(), query, materialized };
        if let Some(place) = place
            && let Some((query, columns)) =
                self.recursive(definition, name, id, place, outer, binder)?
        {
            return Ok((cte(query), columns));
        }
        let query = self.query(&definition.query, outer, binder)?;
        let (_, columns) = renamed(name, query.columns.clone(), Some(&definition.alias))
            .map_err(|error| self.given_columns(error, name, &query, definition))?;
        Ok((cte(CteQuery::Plain(query)), columns))
    }

    /// The query of WITH RECURSIVE, if it has the form of a recursive one.
    fn recursive(
        &self,
        definition: &ast::Cte,
        name: &str,
        id: CteId,
        place: usize,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Option<(CteQuery, Vec<ColumnDesc>)>> {
        let query = &definition.query;
        let ast::SetExpr::SetOperation { left, op: ast::SetOperator::Union, set_quantifier, right } =
            query.body.as_ref()
        else {
            self.set_state(
                place,
                State::Closed {
                    why: "does not have the form non-recursive-term UNION [ALL] recursive-term",
                    at: Some(definition.alias.name.span),
                },
            );
            return Ok(None);
        };
        let all = match set_quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => false,
            _ => return Err(beyond("a set operation BY NAME")),
        };
        let visible = self.ctes.borrow().len();
        let with = match &query.with {
            Some(with) => self.with(with, outer, binder)?,
            None => Vec::new(),
        };
        self.set_state(place, State::Closed { why: IN_START, at: None });
        let start = self.side(left, outer, binder)?;
        let types: Vec<_> = start.query.columns.iter().map(|column| column.ty).collect();
        let mut start = self.converted(start, &types, Some(left), binder)?;
        let (_, columns) = renamed(name, start.columns.clone(), Some(&definition.alias))
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
        if let Some(order_by) = &query.order_by {
            let span = ast::Spanned::span(order_by);
            let error = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "ORDER BY in a recursive query is not implemented",
            );
            return Err(self.source.place(error, span));
        }
        if query.limit_clause.is_some() || query.fetch.is_some() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "LIMIT in a recursive query is not implemented",
            ));
        }
        if !query.locks.is_empty() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "FOR UPDATE/SHARE in a recursive query is not implemented",
            ));
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
        (start_body, step_body): (&ast::SetExpr, &ast::SetExpr),
    ) -> Result<()> {
        let placed = |error, body, at| match span_of_target(body, at) {
            Some(span) => self.source.place(error, span),
            None => error,
        };
        if step.columns.len() != columns.len() {
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
            );
            return Err(placed(error, step_body, 0));
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
                    return Err(placed(error, start_body, at));
                }
                Err((a, b)) => {
                    let error = SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!("UNION types {} and {} cannot be matched", a.base(), b.base()),
                    );
                    return Err(placed(error, step_body, at));
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
        definition: &ast::Cte,
    ) -> SqlError {
        if error.sqlstate != SqlState::INVALID_COLUMN_REFERENCE {
            return error;
        }
        let error = SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                query.columns.len(),
                definition.alias.columns.len()
            ),
        );
        self.source.place(error, definition.alias.name.span)
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

impl Level<'_> {
    /// The query of WITH that a name means, if it means one.
    pub(super) fn named_cte(
        &self,
        name: &Name,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Option<Named>> {
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
                    error.position = analyzer.source.position_of(at.start);
                }
                Err(error)
            }
            State::Ahead | State::Hidden => Err(beyond("a query of WITH that is defined later")),
        }
    }
}
