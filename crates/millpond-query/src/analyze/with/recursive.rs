//! WITH RECURSIVE.

use millpond_syntax::tree::{self, CommonTableExpr, SelectBody, SelectStmt};

use super::super::Analyzer;
use super::super::from::renamed;
use super::super::level::Level;
use super::super::query::Typing;
use super::super::set_operation::target_location;
use super::super::tree::{CteId, CteQuery, FromItem};
use super::search_cycle::{Clauses, Part};
use super::{State, alias_of};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, start_of};
use crate::expr::types::{Ty, unify};
use crate::sink::ColumnDesc;

const IN_OUTER_JOIN: &str = "must not appear within an outer join";

const IN_START: &str = "must not appear within its non-recursive term";

impl Analyzer<'_> {
    /// The query of WITH RECURSIVE, if it has the form of a recursive one.
    pub(super) fn recursive(
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
        let is_all = *all;
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
            .map_err(|error| self.given_columns(error, name, start.columns.len(), definition))?;
        let columns: Vec<ColumnDesc> = columns
            .into_iter()
            .map(|column| ColumnDesc::computed(column.name, column.ty))
            .collect();
        let clauses = Clauses::of(self, definition, &columns, outer, binder)?;
        let further = clauses.iter().flat_map(Clauses::columns);
        let all: Vec<ColumnDesc> = columns.iter().cloned().chain(further).collect();
        self.set_state(
            place,
            State::Open {
                id,
                columns: all.clone(),
                own: columns.len(),
                sublinks: self.sublinks.get(),
                outer_joins: self.outer_joins.get(),
                uses: 0,
                at: None,
            },
        );
        let mut step = self.side(right, outer, binder)?;
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
        let mut types = types;
        if let Some(clauses) = &clauses {
            clauses.check_sides(left, right)?;
            clauses.widen_step(name, &mut step, columns.len())?;
            types.extend(all[columns.len()..].iter().map(|column| column.ty));
        }
        let mut step = self.converted(step, &types, Some(right), binder)?;
        if let Some(clauses) = &clauses {
            start = clauses.around(self, start, Part::Start, &columns, binder)?;
            step = clauses.around(self, step, Part::Step, &columns, binder)?;
        }
        start.ctes.splice(0..0, with);
        Ok(Some((CteQuery::Recursive { start, step, all: is_all }, all)))
    }

    /// Refuses the rows of the recursive part's own query in an item that an outer join may have no
    /// row of.
    pub(in crate::analyze) fn refuse_work_table(&self, item: &FromItem) -> Result<()> {
        let id = match item {
            FromItem::WorkTable { cte, .. } => cte,
            FromItem::Join(join) => {
                self.refuse_work_table(&join.left)?;
                return self.refuse_work_table(&join.right);
            }
            _ => return Ok(()),
        };
        for cte in self.ctes.borrow().iter() {
            if let State::Open { id: own, at, .. } = &cte.state
                && own == id
            {
                let text = format!("recursive reference to query \"{}\" {IN_OUTER_JOIN}", cte.name);
                let error = SqlError::new(SqlState::INVALID_RECURSION, text);
                return Err(self.source.place(error, *at));
            }
        }
        Ok(())
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
                Ok(overall) => {
                    let overall = if let Ty::Known(ty) = overall { ty } else { other.ty };
                    let error = SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                            at + 1,
                            column.ty,
                            overall.base()
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

    /// Counts a use of the query at `place` by its own recursive part; what it may not be.
    pub(super) fn used(&self, place: usize, location: Option<u32>) -> Option<&'static str> {
        let mut ctes = self.ctes.borrow_mut();
        let State::Open { uses, outer_joins, sublinks, at, .. } = &mut ctes.get_mut(place)?.state
        else {
            return None;
        };
        *uses += 1;
        *at = location;
        if self.sublinks.get() > *sublinks {
            Some("must not appear within a subquery")
        } else if *uses > 1 {
            Some("must not appear more than once")
        } else if self.outer_joins.get() > *outer_joins {
            Some(IN_OUTER_JOIN)
        } else {
            None
        }
    }
}
