//! Hash joins, as the threads of a fragment do them: see [`hash_join`](crate::run::hash_join) for
//! the same in the session.

use std::sync::Arc;

use super::current::Current;
use crate::analyze::tree::{JoinKind, Slot};
use crate::error::Result;
use crate::expr::Expr;
use crate::run::hash_join::{NONE, SharedTable, set_key};

/// A hash join whose inner rows are all in memory.
pub(crate) struct Probe {
    /// Of Right and Full, the session gives the inner rows without a match.
    pub(crate) kind: JoinKind,
    /// It gives no rows, but notes which inner rows have a match.
    pub(crate) gives_inner: bool,
    /// See [`JoinTable::has_one`](crate::run::hash_join::JoinTable::has_one).
    pub(crate) seeks_one: bool,
    pub(crate) keys: Vec<Expr>,
    pub(crate) on: Option<Expr>,
    pub(crate) inner: Vec<Slot>,
    pub(crate) table: Arc<SharedTable>,
}

/// How far the join of an outer row is.
#[derive(Clone, Copy, Default)]
pub(super) struct Probing {
    /// The inner row that is looked at next.
    entry: u32,
    /// The row that an outer row gives without a match is not wanted, or has been given.
    has_match: bool,
}

impl Probing {
    /// Begins with the outer row in the slots.
    pub(super) fn begin(probe: &Probe, current: &Current<'_>, key: &mut Vec<u8>) -> Result<Self> {
        let has_key = set_key(probe.keys.iter(), &current.env(), key)?;
        let entry = if has_key { probe.table.rows.first(key) } else { NONE };
        let drops_outer = matches!(probe.kind, JoinKind::Inner | JoinKind::Right | JoinKind::Semi);
        let has_match = probe.gives_inner || drops_outer;
        Ok(Self { entry, has_match })
    }

    /// Puts the next inner row, or NULLs, into the slots. False at the end.
    pub(super) fn next(&mut self, probe: &Probe, current: &mut Current<'_>) -> Result<bool> {
        let table = &probe.table.rows;
        if probe.seeks_one && self.entry != NONE {
            let is_found = table.has_one(self.entry, |row| {
                current.check()?;
                current.load(row, &probe.inner)?;
                current.holds(probe.on.as_ref())
            })?;
            self.entry = NONE;
            self.has_match |= is_found;
            if is_found && probe.kind == JoinKind::Semi {
                return Ok(true);
            }
        }
        while let Some(row) = table.row(self.entry) {
            let entry = self.entry;
            self.entry = table.next(entry);
            if probe.gives_inner && table.has_match(entry) {
                if probe.on.is_none() {
                    // The rows of a key match together. What another thread has begun it ends.
                    self.entry = NONE;
                }
                continue;
            }
            current.check()?;
            current.load(row, &probe.inner)?;
            if !current.holds(probe.on.as_ref())? {
                continue;
            }
            if probe.gives_inner {
                table.set_match(entry);
                continue;
            }
            self.has_match = true;
            if matches!(probe.kind, JoinKind::Right | JoinKind::Full) {
                table.set_match(entry);
            }
            if matches!(probe.kind, JoinKind::Semi | JoinKind::Anti) {
                self.entry = NONE;
            }
            return Ok(probe.kind != JoinKind::Anti);
        }
        if std::mem::replace(&mut self.has_match, true) {
            return Ok(false);
        }
        if matches!(probe.kind, JoinKind::Left | JoinKind::Full) {
            current.nullify(&probe.inner)?;
        }
        Ok(true)
    }
}
