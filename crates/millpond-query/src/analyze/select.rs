//! SELECT.

use millpond_syntax::tree::{SimpleSelect, SortBy};

use super::Analyzer;
use super::level::{Clause, Level};
use super::query::{Typing, plain};
use super::set_step::Clauses;
use super::targets::Target;
use super::tree::{Body, Distinct, Select};
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond};
use crate::expr::types::Ty;

impl Analyzer<'_> {
    /// Analyzes a SELECT with the ORDER BY behind it.
    pub(super) fn select(
        &self,
        select: &SimpleSelect,
        order_by: &[SortBy],
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        check_clauses(select)?;
        let level = Level::new(self, outer, &select.window_clause);
        let mut from = level.from(&select.from_clause, binder)?;
        let mut targets = level.targets(&select.target_list, settle, binder)?;
        let condition = select
            .where_clause
            .as_ref()
            .map(|e| level.within(Clause::Where, || binder.condition(e, "WHERE", &level)))
            .transpose()?
            .map(Expr::without_null_calls)
            .transpose()?;
        let mut having = select
            .having_clause
            .as_ref()
            .map(|e| level.within(Clause::Having, || binder.condition(e, "HAVING", &level)))
            .transpose()?;
        check_window_names(&level)?;
        let mut keys = level.order_by(order_by, &targets, binder)?;
        let mut group_by = level.group_by(&select.group_clause, &targets, binder)?;
        let mut distinct =
            level.distinct(&select.distinct_clause, &keys, order_by, &targets, binder)?;
        let mut clauses = Clauses {
            has_groups: level.has_groups(group_by.as_ref(), having.as_ref()),
            is_ordered: outer.is_none()
                || !order_by.is_empty()
                || matches!(distinct, Distinct::On(_)),
            targets: &mut targets,
            values: &mut [],
            order_by: &mut keys,
            distinct: Some(&mut distinct),
            group_by: group_by.as_mut(),
        };
        let mut sets = level.set_steps(&mut clauses, &mut from)?;
        let grouping = level.grouped(
            group_by,
            &mut targets,
            &mut having,
            &mut keys,
            &mut distinct,
            &mut sets,
        )?;
        // What is left out of these had to be of the groups, too.
        let having = having.map(Expr::without_null_calls).transpose()?;
        targets.iter_mut().try_for_each(Target::leave_out_null_calls)?;
        let windows = std::mem::take(&mut level.collected.borrow_mut().windows);
        for window in &windows {
            self.set_width(window.slot, window.calls.len());
        }
        let unknown = targets.iter().map(|target| target.ty == Ty::Unknown).collect();
        let columns = targets.iter().map(|target| target.desc.clone()).collect();
        let targets = targets.into_iter().map(|Target { expr, .. }| expr).collect();
        let body = Select {
            from,
            condition,
            grouping,
            having,
            sets_before_windows: sets.before_windows,
            windows,
            sets: sets.last,
            targets,
            distinct,
        };
        let mut query = plain(Body::Select(Box::new(body)), columns);
        // A constant orders nothing; DISTINCT ON and WITH TIES do with what is left.
        keys.retain(|key| !matches!(key.expr, Expr::Const(_)));
        query.order_by = keys;
        let (visible, marked) = (level.visible.take(), level.marked.take());
        Ok(Typing { query, visible, unknown, marked })
    }
}

/// Refuses clauses that are not there yet.
fn check_clauses(select: &SimpleSelect) -> Result<()> {
    if select.into_clause.is_some() {
        return Err(beyond("SELECT INTO"));
    }
    if select.group_distinct {
        return Err(beyond("GROUP BY DISTINCT"));
    }
    Ok(())
}

/// Refuses a WINDOW clause that gives two windows one name.
fn check_window_names(level: &Level<'_>) -> Result<()> {
    let windows = level.named_windows;
    let is_again = |at: &usize| windows[..*at].iter().any(|other| other.name == windows[*at].name);
    let Some(again) = (1..windows.len()).find(is_again) else { return Ok(()) };
    let name = windows[again].name.as_deref().unwrap_or_default();
    let error = super::window::windowing_error(format!("window \"{name}\" is already defined"));
    Err(level.analyzer.source.place(error, windows[again].location))
}
