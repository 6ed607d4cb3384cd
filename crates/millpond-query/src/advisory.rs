//! Advisory locks: what the functions `pg_advisory_lock` and the like do, in each evaluator.
//!
//! A lock belongs to the session (until it is unlocked or the session ends; ROLLBACK does not
//! matter) or to the transaction (`xact`). Its key is one bigint or two integers; the two kinds of
//! keys do not meet.

use std::cell::RefCell;

use millpond_engine::lmgr::{LockMode, LockTag};
use millpond_engine::session::Session;

use crate::Value;
use crate::error::{Result, SqlError, SqlState};

/// Notices of the running statement for its client, in order.
pub type Notices = RefCell<Vec<SqlError>>;

/// What a function does with the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Takes it, waiting as long as it takes.
    Lock,
    /// Takes it if no session is in the way, and says whether it did.
    TryLock,
    /// Gives it back, and says whether it was held.
    Unlock,
    /// Gives all of the session's back.
    UnlockAll,
}

/// One of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advisory {
    pub(crate) verb: Verb,
    /// Until the end of the session, or else of the transaction.
    session: bool,
    shared: bool,
}

pub(crate) const fn of(verb: Verb, session: bool, shared: bool) -> Advisory {
    Advisory { verb, session, shared }
}

/// The object that an application means by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    None,
    One(i64),
    Two(i32, i32),
}

impl Key {
    fn tag(self) -> LockTag {
        match self {
            Key::None => LockTag::Advisory { high: 0, low: 0, two_keys: false },
            Key::One(key) => {
                let key = key.cast_unsigned();
                LockTag::Advisory { high: (key >> 32) as u32, low: key as u32, two_keys: false }
            }
            Key::Two(high, low) => LockTag::Advisory {
                high: high.cast_unsigned(),
                low: low.cast_unsigned(),
                two_keys: true,
            },
        }
    }
}

impl Advisory {
    fn mode(self) -> LockMode {
        if self.shared { LockMode::Share } else { LockMode::Exclusive }
    }

    /// Calls the function. "Would block" where the session must not wait: then nothing has
    /// happened.
    pub(crate) fn call(self, session: &Session, key: Key, notices: &Notices) -> Result<Value> {
        let (tag, mode) = (key.tag(), self.mode());
        Ok(match self.verb {
            Verb::Lock => {
                session.locks().acquire(tag, mode, self.session)?;
                // PostgreSQL's functions that return nothing show an empty text.
                Value::Text(String::new())
            }
            Verb::TryLock => Value::Bool(session.locks().try_acquire(tag, mode, self.session)?),
            Verb::Unlock => {
                let held = session.locks().release(tag, mode);
                if !held {
                    notices.borrow_mut().push(SqlError::warning(
                        SqlState::WARNING,
                        format!("you don't own a lock of type {mode}"),
                    ));
                }
                Value::Bool(held)
            }
            Verb::UnlockAll => {
                session.locks().release_all();
                Value::Text(String::new())
            }
        })
    }
}

/// The elements of an array of process ids, as text: `{1,2}`.
pub(crate) fn pids(array: &str) -> Result<Vec<u32>> {
    let inner = array.trim().trim_matches(|c| matches!(c, '{' | '}'));
    let parse = |pid: &str| {
        pid.trim().parse::<u32>().map_err(|_| {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type integer: \"{}\"", pid.trim()),
            )
        })
    };
    inner.split(',').filter(|pid| !pid.trim().is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_process_ids_come_apart() {
        assert_eq!(pids("{}").unwrap(), Vec::<u32>::new());
        assert_eq!(pids("{1, 23}").unwrap(), [1, 23]);
        assert!(pids("{x}").is_err());
    }

    #[test]
    fn keys_of_one_and_of_two_numbers_do_not_meet() {
        assert_ne!(Key::One(1).tag(), Key::Two(0, 1).tag());
        assert_ne!(Key::One(-1).tag(), Key::Two(-1, -1).tag());
        let all = LockTag::Advisory { high: u32::MAX, low: u32::MAX, two_keys: false };
        assert_eq!(Key::One(-1).tag(), all);
        let split = LockTag::Advisory { high: 1, low: 2, two_keys: false };
        assert_eq!(Key::One((1 << 32) + 2).tag(), split);
    }
}
