//! ORDER BY and DISTINCT.

use millpond_syntax::tree::{self, Field, Node, SortBy, SortByDir, SortByNulls, Value};

use super::level::{Clause, Level};
use super::targets::Target;
use super::tree::Distinct;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond, start_of};
use crate::expr::types::{Ty, comparable, is_ordered};
use crate::plan::SortKey;

/// A sort key as it is written, over a bound expression.
pub(super) fn sort_key(item: &SortBy, expr: Expr) -> Result<SortKey> {
    let descending = match &item.sortby_dir {
        SortByDir::Default | SortByDir::Asc => false,
        SortByDir::Desc => true,
        SortByDir::Using(name) => match name.last().map(|name| &**name) {
            Some("<") => false,
            Some(">") => true,
            _ => return Err(beyond("ORDER BY USING another operator than < or >")),
        },
    };
    let nulls_first = match item.sortby_nulls {
        SortByNulls::Default => descending,
        SortByNulls::First => true,
        SortByNulls::Last => false,
    };
    Ok(SortKey { expr, descending, nulls_first })
}

/// What a number or a name in ORDER BY or the like means: the place of a target.
pub(super) fn place_of(
    e: &tree::Expr,
    targets: &[Target],
    clause: &str,
    binder: &Binder<'_>,
) -> Result<Option<usize>> {
    let at = e.location;
    match &e.node {
        Node::ParamRef(_) if binder.is_lifted() => Err(beyond(&format!("a literal in {clause}"))),
        Node::AConst(Value::Integer(number)) => {
            let place = usize::try_from(*number).ok().and_then(|place| place.checked_sub(1));
            match place.filter(|place| *place < targets.len()) {
                Some(place) => Ok(Some(place)),
                None => {
                    let error = SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position {number} is not in select list"),
                    );
                    Err(binder.source.place(error, at))
                }
            }
        }
        Node::AConst(_) => Err(binder.source.place(non_integer(clause), at)),
        Node::ColumnRef(fields) => {
            let [Field::String(name)] = fields.as_slice() else { return Ok(None) };
            let mut of_name = targets.iter().enumerate().filter(|(_, t)| t.desc.name == **name);
            let Some((first, target)) = of_name.next() else { return Ok(None) };
            if of_name.any(|(_, other)| other.expr != target.expr) {
                let error = SqlError::new(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("{clause} \"{name}\" is ambiguous"),
                );
                return Err(binder.source.place(error, at));
            }
            Ok(Some(first))
        }
        _ => Ok(None),
    }
}

/// What a clause needs of the type of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    Order,
    Equality,
}

/// Values of some types can't be compared, or have no order.
pub(super) fn check_order(ty: Ty, needed: Needed) -> Result<()> {
    let Ty::Known(ty) = ty else { return Ok(()) };
    let (has_it, operator) = match needed {
        Needed::Order => (is_ordered(ty), "an ordering"),
        Needed::Equality => (true, "an equality"),
    };
    if has_it && comparable(ty, ty).is_some() {
        return Ok(());
    }
    let message = format!("could not identify {operator} operator for type {}", ty.base());
    let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message);
    Err(match needed {
        Needed::Order => error.hint("Use an explicit ordering operator or modify the query."),
        Needed::Equality => error,
    })
}

fn non_integer(clause: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))
}

impl Level<'_> {
    /// Binds ORDER BY over a select list.
    pub(super) fn order_by(
        &self,
        order_by: &[SortBy],
        targets: &[Target],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<SortKey>> {
        self.within(Clause::OrderBy, || {
            order_by
                .iter()
                .map(|item| {
                    let (expr, ty) = match place_of(&item.node, targets, "ORDER BY", binder)? {
                        Some(place) => (targets[place].expr.clone(), targets[place].ty),
                        None => {
                            let (expr, ty) = binder.output(&item.node, self)?;
                            (expr, Ty::Known(ty))
                        }
                    };
                    check_order(ty, Needed::Order)
                        .map_err(|error| binder.place_at(error, &item.node))?;
                    sort_key(item, expr)
                })
                .collect()
        })
    }

    /// Binds DISTINCT, and checks that ORDER BY goes with it.
    pub(super) fn distinct(
        &self,
        distinct: &tree::Distinct,
        order: &[SortKey],
        order_by: &[SortBy],
        targets: &[Target],
        binder: &mut Binder<'_>,
    ) -> Result<Distinct> {
        let refuse = |at: usize, what: &str| {
            let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, what);
            binder.source.place(error, order_by.get(at).map(|item| start_of(&item.node)))
        };
        match distinct {
            tree::Distinct::All => Ok(Distinct::No),
            tree::Distinct::Distinct => {
                for target in targets {
                    check_order(target.ty, Needed::Equality)
                        .map_err(|error| binder.source.place(error, target.at))?;
                }
                let is_target = |key: &SortKey| targets.iter().any(|t| t.expr == key.expr);
                match order.iter().position(|key| !is_target(key)) {
                    Some(at) => Err(refuse(
                        at,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    )),
                    None => Ok(Distinct::All),
                }
            }
            tree::Distinct::On(list) => {
                let mut keys: Vec<Expr> = Vec::with_capacity(list.len());
                let mut places = Vec::with_capacity(list.len());
                for e in list {
                    let key = self.within(Clause::DistinctOn, || -> Result<Expr> {
                        Ok(match place_of(e, targets, "DISTINCT ON", binder)? {
                            Some(place) => targets[place].expr.clone(),
                            None => binder.output(e, self)?.0,
                        })
                    })?;
                    places.push(match keys.iter().position(|other| *other == key) {
                        Some(at) => at,
                        None => {
                            keys.push(key);
                            keys.len() - 1
                        }
                    });
                }
                check_initial(&keys, order).map_err(|key| {
                    let what =
                        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                    let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, what);
                    match places.iter().position(|at| *at == key) {
                        Some(at) => binder.source.place(error, start_of(&list[at])),
                        None => error,
                    }
                })?;
                Ok(Distinct::On(keys))
            }
        }
    }
}

/// Fails with the place of a key of DISTINCT ON that another sort key comes before.
fn check_initial(keys: &[Expr], order: &[SortKey]) -> std::result::Result<(), usize> {
    let mut seen = vec![false; keys.len()];
    let mut skipped = false;
    for sorted in order {
        match keys.iter().position(|key| *key == sorted.expr) {
            Some(at) if skipped => return Err(at),
            Some(at) => seen[at] = true,
            None => skipped = true,
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(at) if skipped => Err(at),
        _ => Ok(()),
    }
}
