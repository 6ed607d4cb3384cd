//! How long one value may be while a statement runs.
//!
//! A function makes its result before an operator can count it. So a result longer than a session
//! may have at all is refused before it is made. Functions know of no session: the statement that
//! runs on a thread says there how much one value may take. So is the tree of a statement's text.

use std::cell::Cell;

use crate::error::Result;

use super::out_of_memory;

thread_local! {
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Bounds the values that this thread makes, until it is dropped.
pub struct ValueRoom {
    before: usize,
}

impl ValueRoom {
    pub fn enter(bytes: usize) -> Self {
        Self { before: ROOM.replace(bytes) }
    }

    /// Refuses a value for which there is no room.
    pub(crate) fn check(bytes: usize) -> Result<()> {
        Self::check_for(bytes, "expression")
    }

    /// The same for what else is made before it can be counted.
    pub fn check_for(bytes: usize, what: &str) -> Result<()> {
        match bytes > ROOM.get() {
            true => Err(out_of_memory(bytes, what)),
            false => Ok(()),
        }
    }
}

impl Drop for ValueRoom {
    fn drop(&mut self) {
        ROOM.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_that_of_the_innermost_statement() {
        ValueRoom::check(usize::MAX).unwrap();
        let outer = ValueRoom::enter(10);
        {
            let _inner = ValueRoom::enter(5);
            ValueRoom::check(6).unwrap_err();
        }
        ValueRoom::check(10).unwrap();
        ValueRoom::check(11).unwrap_err();
        drop(outer);
        ValueRoom::check(11).unwrap();
    }
}
