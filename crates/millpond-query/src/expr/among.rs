//! Whether a value is among many constants.
//!
//! `IN` looks at one item after the other, as `ANY` does at the elements of an array. That takes
//! long where there are many, for each row of a scan. Constants in their order are searched in
//! halves. [`Expr::folded`] makes such an expression, when all items are known.

use std::cmp::Ordering;
use std::mem::discriminant;

use millpond_types::other::UUID;

use super::rewrite::Map;
use super::{Compare, Env, Expr, Val, stored};
use crate::Value;
use crate::error::Result;
use crate::types::array::array_of;

/// Of fewer constants one after the other is looked at.
const LEAST: usize = 9;

/// `value [NOT] IN (constants)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Among {
    pub(crate) value: Expr,
    /// In their order, each once, without NULL.
    constants: Box<[Value]>,
    has_null: bool,
    pub(crate) negated: bool,
}

impl Among {
    /// The same expression, if it is one that looks for a value among many constants.
    pub(super) fn instead_of(e: Expr) -> Expr {
        let found = match &e {
            Expr::In(_, items, negated) => of_items(items).map(|items| (items, *negated)),
            other => of_array(other),
        };
        let Some((constants, negated)) = found else { return e };
        let Some((constants, has_null)) = sorted(constants) else { return e };
        let value = match e {
            Expr::In(value, ..) => *value,
            Expr::Func(_, mut args) => args.swap_remove(0),
            other => return other,
        };
        Expr::Among(Box::new(Self { value, constants, has_null, negated }))
    }

    /// The same for what `map` makes of the value.
    pub(super) fn map(mut self, map: Map<'_>) -> Result<Self> {
        self.value = map(self.value)?;
        Ok(self)
    }

    /// Whether it holds; `None` is unknown.
    pub(super) fn truth(&self, env: &Env<'_>) -> Result<Option<bool>> {
        if let Expr::Column(column) = self.value
            && let Some(value) = env.row.stored_value(column)
            && let Some(found) = self.search(|constant| stored::compare_with(value, constant))
        {
            return Ok(self.answer(found));
        }
        let mut held = Val::null();
        let value = self.value.operand(env, &mut held)?;
        if value.is_null() {
            return Ok(None);
        }
        let found = self.search(|constant| value.sql_cmp(&constant.as_datum()));
        Ok(found.and_then(|found| self.answer(found)))
    }

    fn answer(&self, found: bool) -> Option<bool> {
        (found || !self.has_null).then_some(found != self.negated)
    }

    /// Whether one of the constants is equal. `order` says how the value compares with one; the
    /// result is `None` as soon as that is not known.
    fn search(&self, order: impl Fn(&Value) -> Option<Ordering>) -> Option<bool> {
        let mut rest = &*self.constants;
        while let Some(middle) = rest.get(rest.len() / 2) {
            let (before, after) = rest.split_at(rest.len() / 2);
            match order(middle)? {
                Ordering::Equal => return Some(true),
                Ordering::Less => rest = before,
                Ordering::Greater => rest = after.get(1..).unwrap_or_default(),
            }
        }
        Some(false)
    }

    /// The constants, for a reader.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Expr> {
        let null = self.has_null.then_some(Expr::NULL);
        self.constants.iter().cloned().map(Expr::Const).chain(null)
    }
}

fn of_items(items: &[Expr]) -> Option<Vec<Value>> {
    let value = |item: &Expr| match item {
        Expr::Const(value) => Some(value.clone()),
        _ => None,
    };
    if items.len() < LEAST { None } else { items.iter().map(value).collect() }
}

/// The elements of the array of `= ANY`, or of `<> ALL`, which is the negation.
fn of_array(e: &Expr) -> Option<(Vec<Value>, bool)> {
    let found = e.as_element_comparison()?;
    let negated = match (found.compare, found.all) {
        (Compare::Eq, false) => false,
        (Compare::Ne, true) => true,
        _ => return None,
    };
    let Expr::Const(array) = found.array else { return None };
    let array = array.as_datum();
    let values: Vec<Value> = array_of(&array)?.iter().map(|element| element.to_value()).collect();
    (values.len() >= LEAST).then_some((values, negated))
}

/// Constants in their order, each once, and whether NULL was one of them. `None` if they have no
/// order that all values agree on.
fn sorted(mut constants: Vec<Value>) -> Option<(Box<[Value]>, bool)> {
    let all = constants.len();
    constants.retain(|value| !value.is_null());
    let has_null = constants.len() < all;
    let first = constants.first()?;
    let is_alike = |value: &Value| match (first, value) {
        (Value::Other(oid, _), Value::Other(of, _)) => oid == of && *oid == UUID,
        _ => discriminant(first) == discriminant(value),
    };
    if !constants.iter().all(is_alike) {
        return None;
    }
    let order = |a: &Value, b: &Value| a.as_datum().sort_cmp(&b.as_datum());
    constants.sort_unstable_by(order);
    constants.dedup_by(|a, b| order(a, b).is_eq());
    Some((constants.into_boxed_slice(), has_null))
}

#[cfg(test)]
mod tests;
