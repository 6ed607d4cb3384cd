//! UPDATE and DELETE whose condition or values are beyond expressions over one row: subqueries, FROM, USING.
//!
//! The query engine selects the places of the rows and their new values; the engine below applies them. In READ COMMITTED a
//! row that has changed meanwhile is looked at again as PostgreSQL does (EvalPlanQual): the query runs once more with
//! the row's newest version as the only row of the table to be changed, all else under the statement's snapshot, and of
//! what it selects only that counts which joins the same rows of the other tables as at first. For this it selects their
//! places, too: those of the tables in FROM or USING. (Which row of a subquery there it was, nobody knows: of several that
//! are joined now, the first is taken. PostgreSQL keeps copies of such rows.)

use std::fmt::Write;

use sqlparser::ast;

use super::external::{ExternalPlan, JOINED_COLUMN, Places, TID_COLUMN};
use super::{ChangePlan, Planner, Target};
use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed};
use crate::expr::types::{Ty, is_assignable};
use crate::parse::{self, Statement};
use crate::{DataType, Wait};

impl Planner<'_> {
    /// Plans what [`Planner::update`] can't.
    pub(super) fn update_selected(
        &self,
        update: &ast::Update,
        binder: &mut Binder<'_>,
        given: &[Option<DataType>],
        error: SqlError,
    ) -> Result<ChangePlan> {
        if self.external.is_none() || !update.table.joins.is_empty() || update.limit.is_some() {
            return Err(error);
        }
        let (table, alias) = self.table_factor(&update.table.relation)?;
        let mut columns = Vec::new();
        let mut list = String::new();
        for assignment in &update.assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(error);
            };
            let column = self.target_column(&table, name)?;
            let ty = table.columns[column].ty.base();
            let value = &assignment.value;
            // A parameter on its own has no type but its column's.
            let bare = matches!(value, ast::Expr::Value(v) if matches!(v.value, ast::Value::Placeholder(_)));
            let _ = if bare {
                write!(list, ", CAST({value} AS {ty})")
            } else {
                write!(list, ", {value}")
            };
            columns.push(column);
        }
        let joined = match &update.from {
            None => &[],
            Some(
                ast::UpdateTableFromKind::BeforeSet(from)
                | ast::UpdateTableFromKind::AfterSet(from),
            ) => from.as_slice(),
        };
        let target = (table.oid, &*alias);
        let query =
            self.target_query(target, &list, &update.table, joined, &update.selection, given)?;
        let mut set = Vec::with_capacity(columns.len());
        let described = query.columns();
        for (place, column) in columns.into_iter().enumerate() {
            let def = &table.columns[column];
            let own = described.get(place + 1).map_or(def.ty, |desc| desc.ty);
            if !is_assignable(own, def.ty) {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "column \"{}\" is of type {} but expression is of type {own}",
                        def.name, def.ty
                    ),
                ));
            }
            let typed = Typed { expr: Expr::Column(place + 1), ty: Ty::Known(own) };
            set.push((column, binder.coerce(typed, def.ty, Coercion::Assignment)?));
        }
        let returning = self.returning(update.returning.as_ref(), &table, &alias, binder)?;
        Ok(ChangePlan { table, rows: Target::Selected(query), set: Some(set), returning })
    }

    /// Plans what [`Planner::delete`] can't.
    pub(super) fn delete_selected(
        &self,
        delete: &ast::Delete,
        binder: &mut Binder<'_>,
        given: &[Option<DataType>],
        error: SqlError,
    ) -> Result<ChangePlan> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &delete.from;
        let ([one], true) = (from.as_slice(), self.external.is_some()) else { return Err(error) };
        if !one.joins.is_empty() || delete.limit.is_some() || !delete.tables.is_empty() {
            return Err(error);
        }
        let (table, alias) = self.table_factor(&one.relation)?;
        let joined = delete.using.as_deref().unwrap_or_default();
        let target = (table.oid, &*alias);
        let query = self.target_query(target, "", one, joined, &delete.selection, given)?;
        let returning = self.returning(delete.returning.as_ref(), &table, &alias, binder)?;
        Ok(ChangePlan { table, rows: Target::Selected(query), set: None, returning })
    }

    /// The query that selects the places of the rows to be changed, what else is in `list`, and the places of the rows that
    /// they are joined with.
    fn target_query(
        &self,
        (oid, alias): (u32, &str),
        list: &str,
        table: &ast::TableWithJoins,
        joined: &[ast::TableWithJoins],
        selection: &Option<ast::Expr>,
        given: &[Option<DataType>],
    ) -> Result<ExternalPlan> {
        let mut others = Vec::new();
        for from in joined {
            self.joined_tables(from, &mut others);
        }
        let mut sql = format!("SELECT {}.{TID_COLUMN}{list}", quoted(alias));
        for (_, alias) in &others {
            let _ = write!(sql, ", {}.{JOINED_COLUMN}", quoted(alias));
        }
        let _ = write!(sql, " FROM {table}");
        for from in joined {
            let _ = write!(sql, ", {from}");
        }
        if let Some(selection) = selection {
            let _ = write!(sql, " WHERE {selection}");
        }
        if let Some(what) = parse::misunderstood(&sql) {
            return Err(SqlError::unsupported(what));
        }
        let mut parsed = parse::parse(&sql)?;
        let (Some(planner), Some(Statement::Query(query))) =
            (self.external, parsed.pop().map(|parsed| parsed.statement))
        else {
            return Err(SqlError::internal("a change could not be written as a query"));
        };
        if self.wait == Wait::Never {
            return Err(would_block());
        }
        let others: Vec<u32> = others.into_iter().map(|(oid, _)| oid).collect();
        let places = Places { target: Some(oid), joined: &others };
        planner.plan(self.catalog, &query, given, places, self.zone).map_err(|mut error| {
            // Positions would be those of another text.
            error.position = None;
            error
        })
    }

    /// Tables in a part of FROM, by what the statement calls them. None where NATURAL would join them by their places.
    fn joined_tables(&self, from: &ast::TableWithJoins, found: &mut Vec<(u32, String)>) {
        use ast::JoinOperator as J;
        let mut factors = vec![&from.relation];
        for join in &from.joins {
            let (J::Join(on)
            | J::Inner(on)
            | J::Left(on)
            | J::LeftOuter(on)
            | J::Right(on)
            | J::RightOuter(on)
            | J::FullOuter(on)
            | J::CrossJoin(on)) = &join.join_operator
            else {
                return;
            };
            if let ast::JoinConstraint::Natural = on {
                return;
            }
            factors.push(&join.relation);
        }
        let tables = factors.into_iter().filter_map(|factor| self.table_factor(factor).ok());
        found.extend(tables.map(|(table, alias)| (table.oid, alias)));
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
