//! The steps to several elements: subscripts, and the levels of `.**`.

use super::eval::{Evaluation, Found, Result, Scope, soft};
use super::item::Item;
use crate::error::SqlState;
use crate::types::jsonpath::{Expr, Step};

impl<'a> Evaluation<'_, 'a> {
    /// `.**`: what is on some levels below an item, each before what is below it. Without
    /// recursion: a document may be deep.
    pub(super) fn levels(
        &self,
        item: &Item<'a>,
        (first, last): (u32, u32),
        rest: &[Step],
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        if last == 0 {
            return Ok(());
        }
        let only_leaves = first == Step::LAST_LEVEL && last == Step::LAST_LEVEL;
        let mut levels = vec![item.parts().into_iter()];
        while let Some(parts) = levels.last_mut() {
            let Some(part) = parts.next() else {
                levels.pop();
                continue;
            };
            self.tick()?;
            let level = levels.len() as u32;
            let below = if level < last { part.parts() } else { Vec::new() };
            if level >= first || only_leaves && !part.is_container() {
                self.steps(rest, part, scope, found)?;
            }
            levels.push(below.into_iter());
        }
        Ok(())
    }

    /// `[1, 3 to 5]`. In lax mode what is no array is an array of one element.
    pub(super) fn index(
        &self,
        list: &[(Expr, Option<Expr>)],
        rest: &[Step],
        item: Item<'a>,
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        let elements = match item.is_array() {
            true => item.parts(),
            false if self.is_lax() => vec![item],
            false if scope.forgiving => return Ok(()),
            false => {
                return Err(soft(
                    SqlState::SQL_JSON_ARRAY_NOT_FOUND,
                    "jsonpath array accessor can only be applied to an array",
                ));
            }
        };
        let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        let inner = Scope { length: elements.len(), ..scope.clone() };
        for (from, to) in list {
            let from = self.subscript(from, &inner)?;
            let to = to.as_ref().map_or(Ok(from), |to| self.subscript(to, &inner))?;
            if !scope.forgiving && (from < 0 || from > to || to >= length) {
                return Err(soft(
                    SqlState::INVALID_SQL_JSON_SUBSCRIPT,
                    "jsonpath array subscript is out of bounds",
                ));
            }
            for place in from.max(0)..=to.min(length - 1) {
                let element = usize::try_from(place).ok().and_then(|place| elements.get(place));
                if let Some(element) = element {
                    self.steps(rest, element.clone(), scope, found)?;
                }
            }
        }
        Ok(())
    }

    fn subscript(&self, expr: &Expr, scope: &Scope<'a>) -> Result<i64> {
        let mut list = Vec::new();
        self.expr(expr, scope, &mut Found { list: &mut list, first_only: false })?;
        let number = match list.as_slice() {
            [item] => item.number(),
            _ => None,
        };
        let number = number.ok_or_else(|| {
            soft(
                SqlState::INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is not a single numeric value",
            )
        })?;
        // What is behind the point is cut off.
        let place = number.to_f64().trunc();
        if place.abs() > f64::from(i32::MAX) || place.is_nan() {
            return Err(soft(
                SqlState::INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is out of integer range",
            ));
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        Ok(place as i64)
    }
}
