//! The search for one match among the rows of a key, of a semi-join or an anti-join with a
//! condition beside the key.
//!
//! A key may have many rows, and it matters where the search begins. With `later.at > earlier.at`
//! the first rows match hardly any outer row; with `<` the last ones do not. So it begins where the
//! last search in this key ended, and goes round. Of outer rows in either order of `at` each then
//! looks at a row or two.

use super::table::{JoinTable, NONE};
use crate::error::Result;

impl JoinTable {
    /// Whether a condition holds for one of the rows of a key, from the first one on.
    pub(in crate::run) fn has_one(
        &self,
        first: u32,
        mut holds: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let start = self.last_matches().of(first).unwrap_or(first);
        let mut number = start;
        while let Some(row) = self.row(number) {
            if holds(row)? {
                if number != start {
                    self.last_matches().note(first, number);
                }
                return Ok(true);
            }
            let next = self.next(number);
            number = if next == NONE { first } else { next };
            if number == start {
                break;
            }
        }
        Ok(false)
    }
}
