//! UNION, INTERSECT and EXCEPT.

use millpond_syntax::tree::{self, Node, SelectBody, SelectStmt, SimpleSelect};

use super::Analyzer;
use super::level::Level;
use super::namespace::Visible;
use super::order::{Needed, check_order, place_of, sort_key};
use super::query::{Typing, plain};
use super::targets::Target;
use super::tree::{
    Body, Distinct, FromItem, Query, Select, SetOperation, SetOperator, Slot, column,
};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, start_of};
use crate::expr::types::{Ty, unify};
use crate::parse::too_complex;
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;

/// How many set operations may follow each other.
const MAX_CHAIN: usize = 500;

impl Analyzer<'_> {
    /// Analyzes set operations with the clauses around them.
    pub(super) fn set_operation(
        &self,
        query: &SelectStmt,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        // The parser leans a chain to the left as deep as it is long.
        let mut rest = Vec::new();
        let mut first = query;
        while let SelectBody::SetOp { op, all, larg, rarg } = &first.body
            && (rest.is_empty() || is_bare(first))
        {
            rest.push((*op, *all, rarg.as_ref()));
            first = larg;
            if rest.len() > MAX_CHAIN {
                return Err(too_complex());
            }
        }
        let mut left = self.side(first, outer, binder)?;
        while let Some((op, all, right)) = rest.pop() {
            let other = self.side(right, outer, binder)?;
            left = self.combine(op, all, left, other, right, binder)?;
        }
        let mut typing = left;
        if settle && typing.unknown.contains(&true) {
            return Err(SqlError::internal("a set operation without types"));
        }
        let order_by = &query.sort_clause;
        let query = &mut typing.query;
        if let Body::SetOperation(operation) = &query.body {
            let targets: Vec<Target> = query
                .columns
                .iter()
                .enumerate()
                .map(|(at, desc)| Target::of_column(column(operation.slot, at), desc))
                .collect();
            for item in order_by {
                let Some(place) = place_of(&item.node, &targets, "ORDER BY", binder)? else {
                    let level = Level::new(self, outer, &[]);
                    let named = Visible::new(operation.slot, "", None, query.columns.clone());
                    level.add(operation.slot, named);
                    level.visible.replace(level.items.borrow().clone());
                    binder.bind(&item.node, &level)?;
                    let error = SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    )
                    .detail("Only result column names can be used, not expressions or functions.")
                    .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.");
                    return Err(binder.place_at(error, &item.node));
                };
                query.order_by.push(sort_key(item, targets[place].expr.clone())?);
            }
        }
        Ok(typing)
    }

    /// A side of a set operation.
    pub(super) fn side(
        &self,
        query: &SelectStmt,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        if !is_bare(query) {
            return self.typing(query, outer, false, binder);
        }
        self.deeper(|| match &query.body {
            SelectBody::Select(select) => self.select(select, &[], outer, false, binder),
            SelectBody::Values(rows) => self.values(rows, &[], outer, false, binder),
            SelectBody::SetOp { .. } => self.set_operation(query, outer, false, binder),
        })
    }

    fn combine(
        &self,
        op: tree::SetOperation,
        all: bool,
        left: Typing,
        right: Typing,
        right_query: &SelectStmt,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let (operator, name) = match op {
            tree::SetOperation::Union => (SetOperator::Union, "UNION"),
            tree::SetOperation::Intersect => (SetOperator::Intersect, "INTERSECT"),
            tree::SetOperation::Except => (SetOperator::Except, "EXCEPT"),
        };
        let types = self.common_types(name, &left, &right, right_query)?;
        if !all {
            types.iter().try_for_each(|ty| check_order(Ty::Known(*ty), Needed::Equality))?;
        }
        let columns: Vec<ColumnDesc> = left
            .query
            .columns
            .iter()
            .zip(&types)
            .map(|(column, ty)| ColumnDesc::computed(column.name.clone(), *ty))
            .collect();
        let left = self.converted(left, &types, None, binder)?;
        let right = self.converted(right, &types, Some(right_query), binder)?;
        let slot = self.item_slot(SlotKind::Computed(columns.len()), "*SELECT*", &columns)?;
        let operation = SetOperation { slot, operator, all, left, right };
        let unknown = vec![false; columns.len()];
        let query = plain(Body::SetOperation(Box::new(operation)), columns);
        Ok(Typing { query, visible: Vec::new(), unknown, marked: Vec::new() })
    }

    /// The types in which the columns of both sides meet.
    fn common_types(
        &self,
        name: &str,
        left: &Typing,
        right: &Typing,
        right_query: &SelectStmt,
    ) -> Result<Vec<DataType>> {
        let (a, b) = (&left.query.columns, &right.query.columns);
        let placed = |error, at| self.source.place(error, target_location(right_query, at));
        if a.len() != b.len() {
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("each {name} query must have the same number of columns"),
            );
            return Err(placed(error, 0));
        }
        let ty = |side: &Typing, at: usize| match side.unknown[at] {
            true => Ty::Unknown,
            false => Ty::Known(side.query.columns[at].ty),
        };
        (0..a.len())
            .map(|at| match unify([ty(left, at), ty(right, at)]) {
                Ok(Ty::Known(ty)) => Ok(ty),
                Ok(Ty::Unknown) => Ok(DataType::Text),
                Err((x, y)) => {
                    let error = SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!("{name} types {} and {} cannot be matched", x.base(), y.base()),
                    );
                    Err(placed(error, at))
                }
            })
            .collect()
    }

    /// A query whose columns are made to be of these types; `written`: where it is in the text.
    pub(super) fn converted(
        &self,
        typing: Typing,
        types: &[DataType],
        written: Option<&SelectStmt>,
        binder: &mut Binder<'_>,
    ) -> Result<Query> {
        let Typing { mut query, unknown, visible: _, marked: _ } = typing;
        // Literals take the type that is wanted where they are.
        let literals = match &mut query.body {
            Body::Select(select) => Some(&mut select.targets),
            Body::Values(values) => values.rows.first_mut(),
            Body::SetOperation(_) => None,
        };
        for (at, expr) in literals.into_iter().flatten().enumerate() {
            if unknown[at] {
                let typed = Typed { expr: std::mem::replace(expr, Expr::NULL), ty: Ty::Unknown };
                let place = written.and_then(|written| target_location(written, at));
                *expr = binder
                    .coerce(typed, types[at], Coercion::Implicit)
                    .map_err(|error| self.source.place(error, place))?;
                query.columns[at] = retyped(&query.columns[at], types[at]);
            }
        }
        let is_same = query.columns.iter().zip(types).all(|(column, ty)| column.ty == *ty);
        if is_same {
            return Ok(query);
        }
        if let Body::Select(select) = &mut query.body
            && matches!(select.distinct, Distinct::No)
        {
            for (at, ty) in types.iter().enumerate() {
                let expr = std::mem::replace(&mut select.targets[at], Expr::NULL);
                let typed = Typed { expr, ty: Ty::Known(query.columns[at].ty) };
                select.targets[at] = binder.coerce(typed, *ty, Coercion::Implicit)?;
                query.columns[at] = retyped(&query.columns[at], *ty);
            }
            return Ok(query);
        }
        self.wrapped(query, types, binder)
    }

    /// A query over another one that converts its columns.
    fn wrapped(&self, query: Query, types: &[DataType], binder: &mut Binder<'_>) -> Result<Query> {
        let slot: Slot =
            self.item_slot(SlotKind::Computed(types.len()), "*SELECT*", &query.columns)?;
        let mut targets = Vec::with_capacity(types.len());
        let mut columns = Vec::with_capacity(types.len());
        for (at, (own, ty)) in query.columns.iter().zip(types).enumerate() {
            let typed = Typed { expr: Expr::Column(column(slot, at)), ty: Ty::Known(own.ty) };
            targets.push(binder.coerce(typed, *ty, Coercion::Implicit)?);
            columns.push(retyped(own, *ty));
        }
        let from =
            vec![FromItem::Subquery { slot, query: Box::new(query), alias: "*SELECT*".to_owned() }];
        let select = Select::of(from, targets);
        Ok(plain(Body::Select(Box::new(select)), columns))
    }
}

fn retyped(column: &ColumnDesc, ty: DataType) -> ColumnDesc {
    match column.ty == ty {
        true => column.clone(),
        false => ColumnDesc::computed(column.name.clone(), ty),
    }
}

/// Whether a query has no clauses but those of its body.
fn is_bare(query: &SelectStmt) -> bool {
    query.with_clause.is_none()
        && query.sort_clause.is_empty()
        && query.limit_offset.is_none()
        && query.limit_count.is_none()
        && query.locking_clause.is_empty()
}

/// Where a column of a query's select list is in the text.
pub(super) fn target_location(query: &SelectStmt, at: usize) -> Option<u32> {
    let mut query = query;
    loop {
        match &query.body {
            SelectBody::Select(select) => return target_of(select, at).map(start_of),
            SelectBody::Values(rows) => return rows.first()?.get(at).map(start_of),
            SelectBody::SetOp { larg, .. } => query = larg,
        }
    }
}

fn target_of(select: &SimpleSelect, at: usize) -> Option<&tree::Expr> {
    // The columns behind a star are not counted yet.
    let is_star = |e: &tree::Expr| match &e.node {
        Node::ColumnRef(fields) => fields.contains(&tree::Field::Star),
        _ => false,
    };
    let values = || select.target_list.iter().filter_map(|target| target.val.as_ref());
    match values().position(is_star) {
        Some(star) if star < at => None,
        _ => values().nth(at),
    }
}
