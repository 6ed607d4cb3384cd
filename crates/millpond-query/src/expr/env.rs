//! What expressions see.

use millpond_engine::{EngineResult, Session};

use super::{Row, eval};
use crate::advisory::Notices;
use crate::error::Result;
use crate::query::Server;
use crate::run::SubPlans;
use crate::settings::SessionSettings;
use crate::{Datum, Value};

/// What a session tells expressions.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// When the transaction began, in microseconds since 2000.
    pub now: i64,
    pub user: &'a str,
    pub database: &'a str,
    pub process_id: i32,
    /// The statement's text, if it is longer than what other sessions see of it.
    pub long_text: Option<&'a str>,
    pub settings: &'a SessionSettings,
    /// The engine's session, to ask whether the statement has been told to stop, and for its locks.
    pub session: Option<&'a Session>,
    /// On a thread without session: fails when the result is not wanted any more.
    pub look: Option<&'a dyn Fn() -> Result<()>>,
    /// `None` in tests.
    pub server: Option<&'a dyn Server>,
    /// What the statement has to tell its client beside its result.
    pub notices: &'a Notices,
    /// The statement is one call of a function that takes a lock. If it would have to wait, nothing
    /// has happened, so it may be tried where a session must not wait.
    pub only_locks: bool,
}

/// All that an expression can see.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    pub row: Row<'a>,
    pub params: &'a [Value],
    pub facts: &'a Facts<'a>,
    /// What runs the plans of subqueries, if there are any.
    pub subplans: Option<&'a dyn SubPlans>,
}

impl<'a> Env<'a> {
    /// A function that has worked for long, or is about to, asks whether it may go on. An error if
    /// the statement was told to stop, or if it runs where it must not wait.
    pub(crate) fn check_long_work(&self) -> Result<()> {
        self.check_with(|session| session.check_long_work())
    }

    /// An error if the statement was told to stop.
    pub(crate) fn check_stop(&self) -> Result<()> {
        self.check_with(|session| session.check_cancel())
    }

    fn check_with(&self, check: impl FnOnce(&Session) -> EngineResult<()>) -> Result<()> {
        match (self.facts.session, self.facts.look) {
            (Some(session), _) => Ok(check(session)?),
            (None, Some(look)) => look(),
            (None, None) => Ok(()),
        }
    }

    /// The row's column.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> Result<Datum<'a>> {
        eval::column(&self.row, column)
    }

    /// The same, for a row.
    pub fn with_row(&self, row: Row<'a>) -> Env<'a> {
        Env { row, ..*self }
    }
}
