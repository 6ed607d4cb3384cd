//! Joins: which items of FROM a condition may name, and columns that two sides have in common.

use millpond_syntax::tree::{self, Alias, JoinExpr, JoinType, TableRef};

use super::from::{Named, renamed};
use super::level::{Clause, Level};
use super::namespace::{NamedColumn, Visible, check_aliases};
use super::tree::{FromItem, Join, JoinKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Coercion, Typed};
use crate::expr::types::{Ty, unify};
use crate::expr::{Compare, Expr};
use crate::parse::too_complex;
use crate::sink::ColumnDesc;

/// How many joins may follow each other.
const MAX_CHAIN: usize = 500;

impl Level<'_> {
    /// A chain of joins. The parser leans it to the left as deep as it is long.
    pub(super) fn joins(
        &self,
        item: &TableRef,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let mut rest = Vec::new();
        let mut first = item;
        while let TableRef::Join(join) = first {
            rest.push(join);
            first = &join.larg;
            if rest.len() > MAX_CHAIN {
                return Err(too_complex());
            }
        }
        let mut joined = self.table_ref(first, lateral, binder)?;
        while let Some(join) = rest.pop() {
            joined = self.join(joined, join, lateral, binder)?;
            if let Some(alias) = &join.alias {
                joined = self.join_alias(joined.0, joined.1, alias)?;
            }
        }
        Ok(joined)
    }

    /// Joins an item to what is on its left.
    fn join(
        &self,
        (left, left_names): Named,
        join: &JoinExpr,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let kind = match join.jointype {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::Full => JoinKind::Full,
            JoinType::Right => JoinKind::Right,
        };
        // The right side may use the left one if no row of it can be without one of the left.
        let mut seen = lateral.to_vec();
        let is_barred = matches!(kind, JoinKind::Right | JoinKind::Full);
        seen.extend(left_names.iter().cloned().map(|mut item| {
            item.is_barred |= is_barred;
            item
        }));
        if is_barred {
            self.analyzer.refuse_work_table(&left)?;
        }
        let optional = self.analyzer.outer_joins.get();
        self.analyzer
            .outer_joins
            .set(optional + usize::from(kind == JoinKind::Left || kind == JoinKind::Full));
        let right = self.analyzer.deeper(|| self.table_ref(&join.rarg, &seen, binder));
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
        let (on, columns) = if join.is_natural {
            let names = common_names(&left_names, &right_names);
            self.merged(kind, &names, &left_names, &right_names, binder)?
        } else if !join.using_clause.is_empty() {
            let names = using_names(&join.using_clause)?;
            self.merged(kind, &names, &left_names, &right_names, binder)?
        } else {
            let on = match &join.quals {
                Some(condition) => {
                    Some(self.condition(condition, &left_names, &right_names, binder)?)
                }
                None => None,
            };
            (on, concatenated(&left_names, &right_names))
        };
        let mut names: Vec<Visible> = left_names.into_iter().chain(right_names).collect();
        for item in &mut names {
            item.has_columns = false;
        }
        if let Some(alias) = &join.join_using_alias {
            // It names the columns in common, which come first.
            let common = columns[..join.using_clause.len()].into();
            let using = Visible::of_columns(Some(alias.clone()), common, false);
            check_aliases(&names, std::slice::from_ref(&using))?;
            names.push(using);
        }
        names.push(Visible::of_columns(None, columns.into(), true));
        let join = Join { kind, left, right, on };
        Ok((FromItem::Join(Box::new(join)), names))
    }

    fn condition(
        &self,
        condition: &tree::Expr,
        left: &[Visible],
        right: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Expr> {
        let both = left.iter().chain(right).cloned().collect();
        self.seeing(both, || {
            self.within(Clause::Join, || binder.condition(condition, "JOIN/ON", self))
        })
    }

    /// A join under a name of its own, which hides the names of its sides.
    fn join_alias(&self, item: FromItem, names: Vec<Visible>, alias: &Alias) -> Result<Named> {
        let columns = spread(&names);
        let descs = columns.iter().map(|column| column.desc.clone()).collect();
        let (alias, descs) = renamed("", descs, Some(alias))?;
        let columns = columns
            .into_iter()
            .zip(descs)
            .map(|(column, desc)| NamedColumn { desc, ..column })
            .collect();
        let visible = Visible::of_columns(Some(alias.into()), columns, true);
        self.items.borrow_mut().push(visible.clone());
        Ok((item, vec![visible]))
    }

    /// The condition of USING, and the columns of the join: those in common, then the others of the
    /// left side, then those of the right.
    fn merged(
        &self,
        kind: JoinKind,
        names: &[tree::Name],
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

fn using_names(names: &[tree::Name]) -> Result<Vec<tree::Name>> {
    let mut all: Vec<tree::Name> = Vec::with_capacity(names.len());
    for name in names {
        if all.iter().any(|other| **other == **name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column name \"{name}\" appears more than once in USING clause"),
            ));
        }
        all.push(name.clone());
    }
    Ok(all)
}

fn common_names(left: &[Visible], right: &[Visible]) -> Vec<tree::Name> {
    let right = spread(right);
    let mut names: Vec<tree::Name> = Vec::new();
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
    let computed = |expr| NamedColumn::new(expr, ColumnDesc::computed(name.clone(), ty));
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
