//! Joins: which items of FROM a condition may name, and columns that two sides have in common.

use sqlparser::ast;

use super::from::{Named, renamed};
use super::level::{Clause, Level};
use super::namespace::{NamedColumn, Visible, check_aliases};
use super::tree::{FromItem, Join, JoinKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Coercion, Typed, beyond};
use crate::expr::types::{Ty, unify};
use crate::expr::{Compare, Expr};
use crate::parse::ident;
use crate::sink::ColumnDesc;

impl Level<'_> {
    /// Joins an item to what is on its left.
    pub(super) fn join(
        &self,
        (left, left_names): Named,
        join: &ast::Join,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let (kind, constraint) = kind_of(join)?;
        // The right side may use the left one if no row of it can be without one of the left.
        let mut seen = lateral.to_vec();
        let is_barred = matches!(kind, JoinKind::Right | JoinKind::Full);
        seen.extend(left_names.iter().cloned().map(|mut item| {
            item.is_barred |= is_barred;
            item
        }));
        let optional = self.analyzer.outer_joins.get();
        self.analyzer
            .outer_joins
            .set(optional + usize::from(kind == JoinKind::Left || kind == JoinKind::Full));
        let right = self.factor(&join.relation, &seen, binder);
        self.analyzer.outer_joins.set(optional);
        let (right, mut right_names) = right?;
        check_aliases(&left_names, &right_names)?;
        let mut left_names = left_names;
        let nullable = |names: &mut Vec<Visible>| {
            names.iter_mut().for_each(|item| item.is_nullable = true);
        };
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            nullable(&mut right_names);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            nullable(&mut left_names);
        }
        let (on, columns) = match constraint {
            ast::JoinConstraint::None
                if !matches!(join.join_operator, ast::JoinOperator::CrossJoin(_)) =>
            {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input"));
            }
            ast::JoinConstraint::None => (None, concatenated(&left_names, &right_names)),
            ast::JoinConstraint::On(condition) => {
                let both = left_names.iter().chain(&right_names).cloned().collect();
                let on = self.seeing(both, || {
                    self.within(Clause::Join, || binder.condition(condition, "JOIN/ON", self))
                })?;
                (Some(on), concatenated(&left_names, &right_names))
            }
            ast::JoinConstraint::Using(names) => {
                let names = using_names(names)?;
                self.merged(kind, &names, &left_names, &right_names, binder)?
            }
            ast::JoinConstraint::Natural => {
                let names = common_names(&left_names, &right_names);
                self.merged(kind, &names, &left_names, &right_names, binder)?
            }
        };
        let mut names: Vec<Visible> = left_names.into_iter().chain(right_names).collect();
        for item in &mut names {
            item.has_columns = false;
        }
        names.push(Visible {
            alias: None,
            name: None,
            schema: None,
            columns: columns.into(),
            has_columns: true,
            is_barred: false,
            is_nullable: false,
        });
        let join = Join { kind, left, right, on };
        Ok((FromItem::Join(Box::new(join)), names))
    }

    /// A join under a name of its own, which hides the names of its sides.
    pub(super) fn join_alias(
        &self,
        item: FromItem,
        names: Vec<Visible>,
        alias: &ast::TableAlias,
    ) -> Result<Named> {
        let columns = spread(&names);
        let descs = columns.iter().map(|column| column.desc.clone()).collect();
        let (alias, descs) = renamed("", descs, Some(alias))?;
        let columns = columns
            .into_iter()
            .zip(descs)
            .map(|(column, desc)| NamedColumn { desc, ..column })
            .collect();
        let visible = Visible {
            alias: Some(alias),
            name: None,
            schema: None,
            columns,
            has_columns: true,
            is_barred: false,
            is_nullable: false,
        };
        self.items.borrow_mut().push(visible.clone());
        Ok((item, vec![visible]))
    }

    /// The condition of USING, and the columns of the join: those in common, then the others of the
    /// left side, then those of the right.
    fn merged(
        &self,
        kind: JoinKind,
        names: &[String],
        left: &[Visible],
        right: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<(Option<Expr>, Vec<NamedColumn>)> {
        let (mut left, mut right) = (spread(left), spread(right));
        let mut conditions = Vec::with_capacity(names.len());
        let mut columns = Vec::with_capacity(left.len() + right.len());
        for name in names {
            let a = take(&mut left, name, "left")?;
            let b = take(&mut right, name, "right")?;
            let typed = |column: &NamedColumn| Typed {
                expr: column.expr.clone(),
                ty: Ty::Known(column.ty()),
            };
            let (left, right) = (typed(&a), typed(&b));
            columns.push(merge(kind, a, b, binder)?);
            conditions.push(binder.compare(Compare::Eq, left, right)?);
        }
        columns.append(&mut left);
        columns.append(&mut right);
        let on = match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(Expr::And(conditions)),
        };
        Ok((on, columns))
    }
}

fn kind_of(join: &ast::Join) -> Result<(JoinKind, &ast::JoinConstraint)> {
    use ast::JoinOperator as Op;
    Ok(match &join.join_operator {
        _ if join.global => return Err(beyond("this join")),
        Op::Join(on) | Op::Inner(on) | Op::CrossJoin(on) => (JoinKind::Inner, on),
        Op::Left(on) | Op::LeftOuter(on) => (JoinKind::Left, on),
        Op::Right(on) | Op::RightOuter(on) => (JoinKind::Right, on),
        Op::FullOuter(on) => (JoinKind::Full, on),
        _ => return Err(beyond("this join")),
    })
}

/// The columns that `*` stands for.
fn spread(items: &[Visible]) -> Vec<NamedColumn> {
    let with_columns = items.iter().filter(|item| item.has_columns);
    with_columns.flat_map(|item| item.columns.iter().cloned()).collect()
}

fn concatenated(left: &[Visible], right: &[Visible]) -> Vec<NamedColumn> {
    let mut columns = spread(left);
    columns.append(&mut spread(right));
    columns
}

fn using_names(names: &[ast::ObjectName]) -> Result<Vec<String>> {
    let mut folded: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
            return Err(beyond("this name in USING"));
        };
        let name = ident(name);
        if folded.contains(&name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column name \"{name}\" appears more than once in USING clause"),
            ));
        }
        folded.push(name);
    }
    Ok(folded)
}

fn common_names(left: &[Visible], right: &[Visible]) -> Vec<String> {
    let right = spread(right);
    let mut names: Vec<String> = Vec::new();
    for column in spread(left) {
        let name = column.desc.name;
        if !names.contains(&name) && right.iter().any(|other| other.desc.name == name) {
            names.push(name);
        }
    }
    names
}

/// Takes the only column of a name out of a side's.
fn take(columns: &mut Vec<NamedColumn>, name: &str, side: &str) -> Result<NamedColumn> {
    let is_it = |column: &NamedColumn| column.desc.name == name;
    let Some(at) = columns.iter().position(is_it) else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        ));
    };
    let column = columns.remove(at);
    if columns.iter().any(is_it) {
        return Err(SqlError::new(
            SqlState::AMBIGUOUS_COLUMN,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        ));
    }
    Ok(column)
}

/// The column that stands for two that are equal where both sides have a row.
fn merge(
    kind: JoinKind,
    a: NamedColumn,
    b: NamedColumn,
    binder: &mut Binder<'_>,
) -> Result<NamedColumn> {
    let (left, right) = (a.ty(), b.ty());
    let ty = match unify([Ty::Known(left), Ty::Known(right)]) {
        Ok(Ty::Known(ty)) => ty,
        _ => {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("JOIN/USING types {left} and {right} cannot be matched"),
            ));
        }
    };
    let mut converted = |column: &NamedColumn| {
        let typed = Typed { expr: column.expr.clone(), ty: Ty::Known(column.ty()) };
        binder.coerce(typed, ty, Coercion::Implicit)
    };
    let name = a.desc.name.clone();
    let computed = |expr| NamedColumn { expr, desc: ColumnDesc::computed(name.clone(), ty) };
    Ok(match kind {
        JoinKind::Full => {
            let both = vec![converted(&a)?, converted(&b)?];
            computed(Expr::Coalesce(both))
        }
        JoinKind::Right if right == ty => b,
        JoinKind::Right => computed(converted(&b)?),
        JoinKind::Left if left != ty => computed(converted(&a)?),
        _ if left == ty => a,
        _ if right == ty => b,
        _ => computed(converted(&a)?),
    })
}
