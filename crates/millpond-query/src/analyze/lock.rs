//! `FOR UPDATE` and the like: which rows a query locks.

use millpond_engine::table::LockStrength;
use millpond_syntax::tree::{self, LockWaitPolicy, LockingClause, RangeVar};

use super::tree::{Body, Distinct, FromItem, JoinKind, Query, Select, Slot};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::Source;
use crate::plan::{OnConflict, RowLock};

/// Adds the locks of clauses to a query.
pub(super) fn add(query: &mut Query, clauses: &[LockingClause], source: &Source<'_>) -> Result<()> {
    for clause in clauses {
        let locking = Locking { lock: row_lock(clause), source };
        if let Body::Values(_) = &query.body {
            return Err(locking.refuse("cannot be applied to VALUES"));
        }
        if clause.locked_rels.is_empty() {
            locking.all(query)?;
        }
        for relation in &clause.locked_rels {
            locking.named(query, relation)?;
        }
    }
    Ok(())
}

/// What a clause asks for.
pub(crate) fn row_lock(clause: &LockingClause) -> RowLock {
    let strength = match clause.strength {
        tree::LockStrength::ForKeyShare => LockStrength::KeyShare,
        tree::LockStrength::ForShare => LockStrength::Share,
        tree::LockStrength::ForNoKeyUpdate => LockStrength::NoKeyUpdate,
        tree::LockStrength::ForUpdate => LockStrength::Update,
    };
    let conflict = match clause.wait_policy {
        LockWaitPolicy::Block => OnConflict::Wait,
        LockWaitPolicy::Skip => OnConflict::Skip,
        LockWaitPolicy::Error => OnConflict::Fail,
    };
    RowLock { strength, conflict }
}

/// A strength as a clause spells it.
pub(crate) fn row_lock_name(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::KeyShare => "FOR KEY SHARE",
        LockStrength::Share => "FOR SHARE",
        LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockStrength::Update => "FOR UPDATE",
    }
}

/// A clause.
struct Locking<'a> {
    lock: RowLock,
    source: &'a Source<'a>,
}

impl Locking<'_> {
    fn clause(&self) -> &'static str {
        row_lock_name(self.lock.strength)
    }

    fn refuse(&self, what: &str) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{} {what}", self.clause()))
    }

    /// The SELECT that a query is, if its rows are those of its tables.
    fn select<'q>(&self, body: &'q mut Body) -> Result<Option<&'q mut Select>> {
        let select = match body {
            Body::SetOperation(_) => {
                return Err(self.refuse("is not allowed with UNION/INTERSECT/EXCEPT"));
            }
            Body::Values(_) => return Ok(None),
            Body::Select(select) => select,
        };
        let what = match &select.grouping {
            _ if !matches!(select.distinct, Distinct::No) => "DISTINCT clause",
            Some(grouping) if !grouping.keys.is_empty() || grouping.sets.is_some() => {
                "GROUP BY clause"
            }
            Some(_) if select.having.is_some() => "HAVING clause",
            Some(_) => "aggregate functions",
            None if !select.windows.is_empty() => "window functions",
            None if !select.sets.is_empty() => "set-returning functions in the target list",
            None => return Ok(Some(select)),
        };
        Err(self.refuse(&format!("is not allowed with {what}")))
    }

    /// Locks the rows of all tables, also of those in subqueries.
    fn all(&self, query: &mut Query) -> Result<()> {
        let Query { body, locks, .. } = query;
        let Some(select) = self.select(body)? else { return Ok(()) };
        select.from.iter_mut().try_for_each(|item| self.item(item, false, locks))
    }

    fn item(
        &self,
        item: &mut FromItem,
        is_nullable: bool,
        locks: &mut Vec<(Slot, RowLock)>,
    ) -> Result<()> {
        let nullable = || self.refuse("cannot be applied to the nullable side of an outer join");
        match item {
            // Of a table the plan says whether its rows may be missing.
            FromItem::Subquery { .. } if is_nullable => Err(nullable()),
            FromItem::Table { slot, .. } | FromItem::Sample { slot, .. } => {
                self.push(*slot, locks);
                Ok(())
            }
            FromItem::Subquery { query, .. } => self.all(query),
            FromItem::Join(join) => {
                let (left, right) = nullable_sides(join.kind);
                self.item(&mut join.left, is_nullable || left, locks)?;
                self.item(&mut join.right, is_nullable || right, locks)
            }
            FromItem::Cte { .. } | FromItem::WorkTable { .. } | FromItem::Functions { .. } => {
                Ok(())
            }
        }
    }

    /// Of several clauses the strongest counts, and the one that waits least.
    fn push(&self, slot: Slot, locks: &mut Vec<(Slot, RowLock)>) {
        match locks.iter_mut().find(|(locked, _)| *locked == slot) {
            Some((_, lock)) => {
                lock.strength = lock.strength.max(self.lock.strength);
                lock.conflict = lock.conflict.max(self.lock.conflict);
            }
            None => locks.push((slot, self.lock)),
        }
    }

    /// Locks the rows of the item that OF names.
    fn named(&self, query: &mut Query, of: &RangeVar) -> Result<()> {
        let clause = self.clause();
        let (at, name) = (of.location, &*of.relname);
        if of.schemaname.is_some() || of.catalogname.is_some() {
            let what = format!("{clause} must specify unqualified relation names");
            return Err(self.source.place(SqlError::new(SqlState::SYNTAX_ERROR, what), at));
        }
        let Query { body, locks, .. } = query;
        let Some(select) = self.select(body)? else { return Ok(()) };
        for item in &mut select.from {
            if let Some(done) = self.in_item(item, of, false, locks) {
                return done;
            }
        }
        let error = SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{name}\" in {clause} clause not found in FROM clause"),
        );
        Err(self.source.place(error, at))
    }

    /// Locks the rows of an item if it is the one of the name.
    fn in_item(
        &self,
        item: &mut FromItem,
        of: &RangeVar,
        is_nullable: bool,
        locks: &mut Vec<(Slot, RowLock)>,
    ) -> Option<Result<()>> {
        let name = &*of.relname;
        let refuse = |what| Some(Err(self.source.place(self.refuse(what), of.location)));
        match item {
            FromItem::Join(join) => {
                let (left, right) = nullable_sides(join.kind);
                self.in_item(&mut join.left, of, is_nullable || left, locks)
                    .or_else(|| self.in_item(&mut join.right, of, is_nullable || right, locks))
            }
            FromItem::Table { alias, .. }
            | FromItem::Sample { alias, .. }
            | FromItem::Subquery { alias, .. }
                if alias == name =>
            {
                Some(self.item(item, is_nullable, locks))
            }
            FromItem::Cte { alias, .. } | FromItem::WorkTable { alias, .. } if alias == name => {
                refuse("cannot be applied to a WITH query")
            }
            FromItem::Functions { alias, .. } if alias == name => {
                refuse("cannot be applied to a function")
            }
            _ => None,
        }
    }
}

/// Which sides of a join may be without a row.
fn nullable_sides(kind: JoinKind) -> (bool, bool) {
    match kind {
        JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => (false, false),
        JoinKind::Left => (false, true),
        JoinKind::Right => (true, false),
        JoinKind::Full => (true, true),
    }
}
