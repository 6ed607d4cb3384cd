//! UNION, INTERSECT and EXCEPT.

use sqlparser::ast;
use sqlparser::tokenizer::Span;

use super::Analyzer;
use super::level::Level;
use super::namespace::Visible;
use super::order::{check_order, items, place_of, sort_key};
use super::query::{Clauses, Typing, plain};
use super::targets::{Target, span_of};
use super::tree::{
    Body, Distinct, FromItem, Query, Select, SetOperation, SetOperator, Slot, column,
};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed, beyond};
use crate::expr::types::{Ty, unify};
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;

/// How many set operations may follow each other.
const MAX_CHAIN: usize = 500;

impl Analyzer<'_> {
    /// Analyzes set operations with the clauses around them.
    pub(super) fn set_operation(
        &self,
        body: &ast::SetExpr,
        clauses: &Clauses<'_>,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        // The parser leans a chain to the left as deep as it is long.
        let mut rest = Vec::new();
        let mut first = body;
        while let ast::SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            rest.push((*op, *set_quantifier, right.as_ref()));
            first = left;
            if rest.len() > MAX_CHAIN {
                return Err(super::too_complex());
            }
        }
        let mut left = self.side(first, outer, binder)?;
        while let Some((op, quantifier, right)) = rest.pop() {
            let other = self.side(right, outer, binder)?;
            left = self.combine(op, quantifier, left, other, right, binder)?;
        }
        let mut typing = left;
        if settle && typing.unknown.contains(&true) {
            return Err(SqlError::internal("a set operation without types"));
        }
        let query = &mut typing.query;
        if let (Some(order_by), Body::SetOperation(operation)) = (clauses.order_by, &query.body) {
            let targets: Vec<Target> = query
                .columns
                .iter()
                .enumerate()
                .map(|(at, desc)| Target::of_column(column(operation.slot, at), desc))
                .collect();
            for item in items(order_by)? {
                let Some(place) = place_of(&item.expr, &targets, "ORDER BY", binder)? else {
                    let level = Level::new(self, outer, &[]);
                    let named =
                        Visible::new(operation.slot, String::new(), None, query.columns.clone());
                    level.add(operation.slot, named);
                    level.visible.replace(level.items.borrow().clone());
                    binder.bind(&item.expr, &level)?;
                    let error = SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    )
                    .detail("Only result column names can be used, not expressions or functions.")
                    .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.");
                    return Err(self.source.place(error, span_of(&item.expr)));
                };
                query.order_by.push(sort_key(item, targets[place].expr.clone())?);
            }
        }
        Ok(typing)
    }

    /// A side of a set operation.
    pub(super) fn side(
        &self,
        body: &ast::SetExpr,
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let none = Clauses::default();
        self.deeper(|| match body {
            ast::SetExpr::Select(select) => self.select(select, &none, outer, false, binder),
            ast::SetExpr::Values(values) => self.values(values, &none, outer, false, binder),
            ast::SetExpr::Query(query) => self.typing(query, outer, false, binder),
            ast::SetExpr::SetOperation { .. } => {
                self.set_operation(body, &none, outer, false, binder)
            }
            ast::SetExpr::Table(table) => self.table_command(table, &none, outer, false, binder),
            _ => Err(beyond("a set operation that changes rows")),
        })
    }

    fn combine(
        &self,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        left: Typing,
        right: Typing,
        right_body: &ast::SetExpr,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let (operator, name) = operator(op)?;
        let all = match quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => false,
            _ => return Err(beyond("a set operation BY NAME")),
        };
        let types = self.common_types(name, &left, &right, right_body)?;
        if !all {
            types.iter().try_for_each(|ty| check_order(Ty::Known(*ty), "an equality"))?;
        }
        let columns: Vec<ColumnDesc> = left
            .query
            .columns
            .iter()
            .zip(&types)
            .map(|(column, ty)| ColumnDesc::computed(column.name.clone(), *ty))
            .collect();
        let left = self.converted(left, &types, None, binder)?;
        let right = self.converted(right, &types, Some(right_body), binder)?;
        let slot = self.item_slot(SlotKind::Computed(columns.len()), "*SELECT*", &columns)?;
        let operation = SetOperation { slot, operator, all, left, right };
        let unknown = vec![false; columns.len()];
        let query = plain(Body::SetOperation(Box::new(operation)), columns);
        Ok(Typing { query, visible: Vec::new(), unknown })
    }

    /// The types in which the columns of both sides meet.
    fn common_types(
        &self,
        name: &str,
        left: &Typing,
        right: &Typing,
        right_body: &ast::SetExpr,
    ) -> Result<Vec<DataType>> {
        let (a, b) = (&left.query.columns, &right.query.columns);
        let placed = |error, at| match span_of_target(right_body, at) {
            Some(span) => self.source.place(error, span),
            None => error,
        };
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

    /// A query whose columns are made to be of these types; `body`: where it is in the text.
    pub(super) fn converted(
        &self,
        typing: Typing,
        types: &[DataType],
        body: Option<&ast::SetExpr>,
        binder: &mut Binder<'_>,
    ) -> Result<Query> {
        let Typing { mut query, unknown, visible: _ } = typing;
        // Literals take the type that is wanted where they are.
        let literals = match &mut query.body {
            Body::Select(select) => Some(&mut select.targets),
            Body::Values(values) => values.rows.first_mut(),
            Body::SetOperation(_) => None,
        };
        for (at, expr) in literals.into_iter().flatten().enumerate() {
            if unknown[at] {
                let typed = Typed { expr: std::mem::replace(expr, Expr::NULL), ty: Ty::Unknown };
                *expr =
                    binder.coerce(typed, types[at], Coercion::Implicit).map_err(
                        |error| match body.and_then(|body| span_of_target(body, at)) {
                            Some(span) => self.source.place(error, span),
                            None => error,
                        },
                    )?;
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
        let from = vec![FromItem::Subquery {
            slot,
            query: Box::new(query),
            lateral: false,
            alias: "*SELECT*".to_owned(),
        }];
        let select = Select {
            from,
            condition: None,
            grouping: None,
            having: None,
            windows: Vec::new(),
            targets,
            distinct: Distinct::No,
        };
        Ok(plain(Body::Select(Box::new(select)), columns))
    }
}

fn retyped(column: &ColumnDesc, ty: DataType) -> ColumnDesc {
    match column.ty == ty {
        true => column.clone(),
        false => ColumnDesc::computed(column.name.clone(), ty),
    }
}

fn operator(op: ast::SetOperator) -> Result<(SetOperator, &'static str)> {
    Ok(match op {
        ast::SetOperator::Union => (SetOperator::Union, "UNION"),
        ast::SetOperator::Intersect => (SetOperator::Intersect, "INTERSECT"),
        ast::SetOperator::Except => (SetOperator::Except, "EXCEPT"),
        ast::SetOperator::Minus => return Err(beyond("MINUS")),
    })
}

/// Where a column of a query's select list is in the text.
pub(super) fn span_of_target(body: &ast::SetExpr, at: usize) -> Option<Span> {
    match body {
        ast::SetExpr::Select(select) => match select.projection.get(at)? {
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => {
                Some(span_of(e))
            }
            ast::SelectItem::Wildcard(options) => Some(options.wildcard_token.0.span),
            _ => None,
        },
        ast::SetExpr::Values(values) => values.rows.first()?.content.get(at).map(span_of),
        ast::SetExpr::Query(query) => span_of_target(&query.body, at),
        ast::SetExpr::SetOperation { left, .. } => span_of_target(left, at),
        _ => None,
    }
}
