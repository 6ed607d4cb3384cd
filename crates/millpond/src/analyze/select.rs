//! SELECT.

use sqlparser::ast;

use super::Analyzer;
use super::level::{Clause, Level};
use super::query::{Clauses, Typing, plain};
use super::targets::Target;
use super::tree::{Body, Select};
use crate::error::Result;
use crate::expr::bind::{Binder, beyond};
use crate::expr::types::Ty;

impl Analyzer<'_> {
    /// Analyzes a SELECT with the clauses around it.
    pub(super) fn select(
        &self,
        select: &ast::Select,
        clauses: &Clauses<'_>,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        check_clauses(select)?;
        let level = Level::new(self, outer, &select.named_window);
        let mut from = level.from(&select.from, binder)?;
        let mut targets = level.targets(&select.projection, settle, binder)?;
        let condition = select
            .selection
            .as_ref()
            .map(|e| level.within(Clause::Where, || binder.condition(e, "WHERE", &level)))
            .transpose()?;
        let mut having = select
            .having
            .as_ref()
            .map(|e| level.within(Clause::Having, || binder.condition(e, "HAVING", &level)))
            .transpose()?;
        let mut order_by = level.order_by(clauses.order_by, &targets, binder)?;
        let group_by = level.group_by(&select.group_by, &targets, binder)?;
        let mut distinct = level.distinct(
            select.distinct.as_ref(),
            &order_by,
            clauses.order_by,
            &targets,
            binder,
        )?;
        let grouping =
            level.grouped(group_by, &mut targets, &mut having, &mut order_by, &mut distinct)?;
        let is_plain = grouping.is_none() && level.collected.borrow().windows.is_empty();
        level.add_set_functions(&targets, &mut from, is_plain)?;
        let windows = std::mem::take(&mut level.collected.borrow_mut().windows);
        for window in &windows {
            self.set_width(window.slot, window.calls.len());
        }
        let unknown = targets.iter().map(|target| target.ty == Ty::Unknown).collect();
        let columns = targets.iter().map(|target| target.desc.clone()).collect();
        let targets = targets.into_iter().map(|Target { expr, .. }| expr).collect();
        let body = Select { from, condition, grouping, having, windows, targets, distinct };
        let mut query = plain(Body::Select(Box::new(body)), columns);
        // A constant orders nothing; DISTINCT ON and WITH TIES do with what is left.
        order_by.retain(|key| !matches!(key.expr, crate::expr::Expr::Const(_)));
        query.order_by = order_by;
        let visible = level.visible.take();
        Ok(Typing { query, visible, unknown })
    }

    /// `TABLE name`
    pub(super) fn table_command(
        &self,
        table: &ast::Table,
        clauses: &Clauses<'_>,
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let parts = [&table.schema_name, &table.table_name];
        let sql: Vec<String> = parts.into_iter().flatten().cloned().collect();
        let name = ast::ObjectName::from(sql.into_iter().map(ast::Ident::new).collect::<Vec<_>>());
        let level = Level::new(self, outer, &[]);
        let from = level.named_item(&name)?;
        let item = ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
        let targets = level.targets(&[item], settle, binder)?;
        let order_by = level.order_by(clauses.order_by, &targets, binder)?;
        let unknown = vec![false; targets.len()];
        let columns = targets.iter().map(|target| target.desc.clone()).collect();
        let targets = targets.into_iter().map(|Target { expr, .. }| expr).collect();
        let mut query = plain(
            Body::Select(Box::new(Select {
                from: vec![from],
                condition: None,
                grouping: None,
                having: None,
                windows: Vec::new(),
                targets,
                distinct: super::tree::Distinct::No,
            })),
            columns,
        );
        query.order_by = order_by;
        let visible = level.visible.take();
        Ok(Typing { query, visible, unknown })
    }
}

/// Refuses clauses that PostgreSQL does not have.
fn check_clauses(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(beyond("SELECT INTO"));
    }
    if select.top.is_some()
        || select.exclude.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || select.select_modifiers.is_some()
        || select.flavor != ast::SelectFlavor::Standard
    {
        return Err(beyond("this clause of SELECT"));
    }
    Ok(())
}
