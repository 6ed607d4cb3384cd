//! The keys of GROUP BY, and its sets of keys.

use millpond_syntax::tree::{self, CoercionForm, Field, GroupingSetKind, Node};

use super::super::level::Level;
use super::super::namespace;
use super::super::order::{Needed, check_order, place_of};
use super::super::targets::Target;
use super::super::tree::slot_of;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::Binder;
use crate::expr::types::Ty;

/// How many sets of keys a query can group by.
pub(super) const MAX_SETS: usize = 4096;
/// How many elements CUBE can have.
const MAX_CUBE: usize = 12;

pub(super) fn too_many_sets() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("too many grouping sets present (maximum {MAX_SETS})"),
    )
}

/// Whether an item of GROUP BY is more than a key.
pub(super) fn is_set(item: &tree::Expr) -> bool {
    matches!(item.node, Node::GroupingSet(..))
}

pub(super) fn union(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut all = a.to_vec();
    for key in b {
        if !all.contains(key) {
            all.push(*key);
        }
    }
    all
}

/// Keys while they are bound.
pub(super) struct Keys<'k, 'l> {
    pub(super) level: &'k Level<'l>,
    pub(super) targets: &'k [Target],
    pub(super) list: Vec<Expr>,
}

impl Keys<'_, '_> {
    /// The sets of keys that an item stands for.
    pub(super) fn choices(
        &mut self,
        item: &tree::Expr,
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Vec<usize>>> {
        let Node::GroupingSet(kind, elements) = &item.node else {
            return Ok(vec![self.element(item, binder)?]);
        };
        Ok(match kind {
            GroupingSetKind::Empty => vec![Vec::new()],
            GroupingSetKind::Rollup => {
                let elements = self.elements(elements, binder)?;
                (0..=elements.len())
                    .rev()
                    .map(|count| elements[..count].iter().fold(Vec::new(), |set, e| union(&set, e)))
                    .collect()
            }
            GroupingSetKind::Cube => {
                if elements.len() > MAX_CUBE {
                    return Err(SqlError::new(
                        SqlState::TOO_MANY_COLUMNS,
                        format!("CUBE is limited to {MAX_CUBE} elements"),
                    ));
                }
                let elements = self.elements(elements, binder)?;
                let all = (1_usize << elements.len()) - 1;
                (0..=all)
                    .rev()
                    .map(|chosen| {
                        let nth = |at: usize| chosen & (1 << (elements.len() - 1 - at)) != 0;
                        let chosen = elements.iter().enumerate().filter(|(at, _)| nth(*at));
                        chosen.fold(Vec::new(), |set, (_, e)| union(&set, e))
                    })
                    .collect()
            }
            GroupingSetKind::Sets => {
                let mut all = Vec::new();
                for set in elements {
                    all.extend(self.choices(set, binder)?);
                    if all.len() > MAX_SETS {
                        return Err(too_many_sets());
                    }
                }
                all
            }
        })
    }

    fn elements(
        &mut self,
        elements: &[tree::Expr],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<Vec<usize>>> {
        elements.iter().map(|element| self.element(element, binder)).collect()
    }

    /// A key, or the keys in parentheses.
    fn element(&mut self, e: &tree::Expr, binder: &mut Binder<'_>) -> Result<Vec<usize>> {
        let list = match &e.node {
            Node::RowExpr(list, CoercionForm::ImplicitCast) => list.as_slice(),
            _ => std::slice::from_ref(e),
        };
        let mut set = Vec::with_capacity(list.len());
        for key in list {
            set = union(&set, &[self.key(key, binder)?]);
        }
        Ok(set)
    }

    /// The place of a key. A number is a target's place; a name first a column of FROM, then a
    /// target's name.
    fn key(&mut self, key: &tree::Expr, binder: &mut Binder<'_>) -> Result<usize> {
        let is_visible =
            |name: &str| namespace::unqualified(&self.level.visible.borrow(), name).is_ok();
        let is_column = match &key.node {
            Node::ColumnRef(fields) => {
                matches!(fields.as_slice(), [Field::String(name)] if is_visible(name))
            }
            _ => false,
        };
        let place = match is_column {
            true => None,
            false => place_of(key, self.targets, "GROUP BY", binder)?,
        };
        let (expr, ty) = match place {
            Some(place) => {
                let target = &self.targets[place];
                self.check_target(target, binder)?;
                (target.expr.clone(), target.ty)
            }
            None => {
                let (expr, ty) = binder.output(key, self.level)?;
                (expr, Ty::Known(ty))
            }
        };
        check_order(ty, Needed::Equality).map_err(|error| binder.place_at(error, key))?;
        Ok(match self.list.iter().position(|other| *other == expr) {
            Some(at) => at,
            None => {
                self.list.push(expr);
                self.list.len() - 1
            }
        })
    }

    /// A target that is grouped by must not be computed of the groups.
    fn check_target(&self, target: &Target, binder: &Binder<'_>) -> Result<()> {
        let (mut aggregates, mut windows) = (false, false);
        let group_slot = self.level.group_slot.get();
        let collected = self.level.collected.borrow();
        self.level.walk_with_calls(&target.expr, &mut |part| {
            if let Expr::Column(c) = part {
                let slot = slot_of(*c).0;
                aggregates |= group_slot == Some(slot);
                windows |= collected.windows.iter().any(|window| window.slot == slot);
            }
        });
        let error = if aggregates {
            let what = "aggregate functions are not allowed in GROUP BY";
            SqlError::new(SqlState::GROUPING_ERROR, what)
        } else if windows {
            let what = "window functions are not allowed in GROUP BY";
            SqlError::new(SqlState::WINDOWING_ERROR, what)
        } else {
            return Ok(());
        };
        Err(binder.source.place(error, target.at))
    }
}
