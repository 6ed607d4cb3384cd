//! UPDATE and DELETE as queries over the table to be changed and the items of FROM or USING. Also
//! what they have in common with INSERT.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{
    self, DeleteStmt, InsertStmt, Node, RangeVar, ResTarget, SetClause, SubLinkType, UpdateStmt,
    WithClause,
};

use super::Analyzer;
use super::level::{Clause, Level};
use super::namespace::Visible;
use super::query::plain;
use super::targets::Target;
use super::tree::{
    Body, Cte, FromItem, Modification, ModificationKind, Select, Slot, Subquery, SubqueryKind,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Scope, Typed, parts_of_row};
use crate::parse::Name;
use crate::plan::{assigned, default_of, find_table, is_default, target_column};
use crate::sink::ColumnDesc;
use crate::system_relations::find_definition;

/// The table that a statement changes.
pub(super) struct TargetTable {
    pub(super) table: Arc<TableDef>,
    pub(super) alias: String,
    pub(super) slot: Slot,
    pub(super) item: FromItem,
    pub(super) visible: Vec<Visible>,
}

/// What a statement reads and makes of it.
pub(super) struct Parts {
    pub(super) from: Vec<FromItem>,
    pub(super) condition: Option<Expr>,
    /// New values, of these columns.
    pub(super) values: Vec<Expr>,
    pub(super) columns: Vec<usize>,
    pub(super) returning: Option<Vec<Target>>,
}

/// A statement that changes rows, as it is parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Written<'s> {
    Insert(&'s InsertStmt),
    Update(&'s UpdateStmt),
    Delete(&'s DeleteStmt),
}

impl<'s> Written<'s> {
    /// The statement, if it is one of these.
    pub(super) fn of(statement: &'s tree::Statement) -> Option<Self> {
        match statement {
            tree::Statement::Insert(insert) => Some(Written::Insert(insert)),
            tree::Statement::Update(update) => Some(Written::Update(update)),
            tree::Statement::Delete(delete) => Some(Written::Delete(delete)),
            _ => None,
        }
    }

    /// Its WITH.
    pub(crate) fn with(self) -> Option<&'s WithClause> {
        match self {
            Written::Insert(insert) => insert.with_clause.as_ref(),
            Written::Update(update) => update.with_clause.as_ref(),
            Written::Delete(delete) => delete.with_clause.as_ref(),
        }
    }
}

impl Analyzer<'_> {
    /// Analyzes a statement that changes rows, or such a query of WITH.
    pub(super) fn written(
        &self,
        written: Written<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<Modification> {
        let visible = self.ctes.borrow().len();
        let ctes = match written.with() {
            Some(with) => self.with(with, None, binder)?,
            None => Vec::new(),
        };
        let analyzed = match written {
            Written::Insert(insert) => self.insert(insert, ctes, binder),
            Written::Update(update) => self.update(update, ctes, binder),
            Written::Delete(delete) => self.delete(delete, ctes, binder),
        };
        self.ctes.borrow_mut().truncate(visible);
        analyzed
    }

    pub(super) fn update(
        &self,
        update: &UpdateStmt,
        ctes: Vec<Arc<Cte>>,
        binder: &mut Binder<'_>,
    ) -> Result<Modification> {
        let level = Level::new(self, None, &[]);
        let target = level.target_table(&update.relation)?;
        let from = level.items_beside(&target, &update.from_clause, binder)?;
        let condition = level.where_clause(update.where_clause.as_ref(), binder)?;
        let returning = level.returning(&update.returning_list, binder)?;
        let (columns, values) = level.within(Clause::Update, || {
            level.assignments(&target.table, &update.target_list, binder)
        })?;
        let parts = Parts { from, condition, values, columns, returning };
        let mut update = self.modification(ModificationKind::Update, target, parts, ctes);
        self.mark_rows(&mut update.query, &level.marked.take())?;
        Ok(update)
    }

    pub(super) fn delete(
        &self,
        delete: &DeleteStmt,
        ctes: Vec<Arc<Cte>>,
        binder: &mut Binder<'_>,
    ) -> Result<Modification> {
        let level = Level::new(self, None, &[]);
        let target = level.target_table(&delete.relation)?;
        let from = level.items_beside(&target, &delete.using_clause, binder)?;
        let condition = level.where_clause(delete.where_clause.as_ref(), binder)?;
        let returning = level.returning(&delete.returning_list, binder)?;
        let (values, columns) = (Vec::new(), Vec::new());
        let parts = Parts { from, condition, values, columns, returning };
        let mut delete = self.modification(ModificationKind::Delete, target, parts, ctes);
        self.mark_rows(&mut delete.query, &level.marked.take())?;
        Ok(delete)
    }

    pub(super) fn modification(
        &self,
        kind: ModificationKind,
        target: TargetTable,
        parts: Parts,
        ctes: Vec<Arc<Cte>>,
    ) -> Modification {
        let Parts { from, condition, values: mut targets, columns, returning } = parts;
        let mut described: Vec<ColumnDesc> =
            columns.iter().map(|column| crate::plan::describe(&target.table, *column)).collect();
        let returning = returning.map(|returned| {
            let columns = returned.iter().map(|target| target.desc.clone()).collect::<Vec<_>>();
            targets.extend(returned.into_iter().map(|target| target.expr));
            described.extend(columns.iter().cloned());
            columns
        });
        let body = Select { condition, ..Select::of(from, targets) };
        let mut query = plain(Body::Select(Box::new(body)), described);
        query.ctes = ctes;
        let TargetTable { table, alias, slot, .. } = target;
        Modification { kind, query, table, alias, target: slot, columns, returning }
    }
}

impl Level<'_> {
    /// The table to be changed.
    pub(super) fn target_table(&self, relation: &RangeVar) -> Result<TargetTable> {
        let name = Name::of_relation(relation, &self.analyzer.source)?;
        let alias = relation.alias.as_ref().map(|alias| (*alias.aliasname).to_owned());
        if find_definition(&name).is_some() {
            let message = format!("permission denied: \"{}\" is a system catalog", name.name);
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let table = find_table(self.analyzer.catalog, &name)
            .map_err(|error| self.analyzer.source.place(error, name.location))?;
        let (item, visible) = self.target_item(&table, alias)?;
        let FromItem::Table { slot, alias, .. } = &item else {
            return Err(SqlError::internal("a table is another item"));
        };
        let (slot, alias) = (*slot, alias.clone());
        Ok(TargetTable { table, alias, slot, item, visible })
    }

    fn where_clause(
        &self,
        condition: Option<&tree::Expr>,
        binder: &mut Binder<'_>,
    ) -> Result<Option<Expr>> {
        let bind = |e| self.within(Clause::Where, || binder.condition(e, "WHERE", self));
        condition.map(bind).transpose()
    }

    /// The list of RETURNING, if there is one.
    pub(super) fn returning(
        &self,
        items: &[ResTarget],
        binder: &mut Binder<'_>,
    ) -> Result<Option<Vec<Target>>> {
        if items.is_empty() {
            return Ok(None);
        }
        let mut targets = self.within(Clause::Returning, || self.targets(items, true, binder))?;
        targets.iter_mut().try_for_each(Target::leave_out_null_calls)?;
        Ok(Some(targets))
    }

    /// The columns that SET names, and their values.
    fn assignments(
        &self,
        table: &TableDef,
        clauses: &[SetClause],
        binder: &mut Binder<'_>,
    ) -> Result<(Vec<usize>, Vec<Expr>)> {
        let mut set = Vec::with_capacity(clauses.len());
        for clause in clauses {
            match clause {
                SetClause::One(target) => {
                    let column = target_column(table, target, &self.analyzer.source)?;
                    let Some(value) = &target.val else {
                        return Err(SqlError::internal("SET without a value"));
                    };
                    set.push((column, self.new_value(table, column, value, binder)?));
                }
                SetClause::Multi { targets, source } => {
                    self.assign_several(table, targets, source, binder, &mut set)?;
                }
            }
        }
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for (column, value) in set {
            if columns.contains(&column) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "multiple assignments to same column \"{}\"",
                        table.columns[column].name
                    ),
                ));
            }
            columns.push(column);
            values.push(value);
        }
        Ok((columns, values))
    }

    fn new_value(
        &self,
        table: &TableDef,
        column: usize,
        value: &tree::Expr,
        binder: &mut Binder<'_>,
    ) -> Result<Expr> {
        if is_default(value) {
            return default_of(table, column);
        }
        let typed = binder.bind(value, self)?;
        assigned(binder, table, column, typed).map_err(|error| binder.place_at(error, value))
    }

    /// `(a, b) = (1, 2)`, `(a, b) = (SELECT ...)`
    fn assign_several(
        &self,
        table: &TableDef,
        names: &[ResTarget],
        value: &tree::Expr,
        binder: &mut Binder<'_>,
        set: &mut Vec<(usize, Expr)>,
    ) -> Result<()> {
        let source = &self.analyzer.source;
        if let Node::SubLink(link) = &value.node
            && link.sub_link_type == SubLinkType::Expr
        {
            let query = self.query(binder, &link.subselect)?;
            if query.columns.len() != names.len() {
                return Err(source.place(other_count(), value.location));
            }
            let query = Arc::new(query);
            for (place, name) in names.iter().enumerate() {
                let column = target_column(table, name, source)?;
                let (kind, ty) = (SubqueryKind::Column(place), query.columns[place].ty);
                let expr = Expr::Subquery(Box::new(Subquery { kind, query: Arc::clone(&query) }));
                let value = assigned(binder, table, column, Typed::known(expr, ty))
                    .map_err(|error| binder.place_at(error, value))?;
                set.push((column, value));
            }
            return Ok(());
        }
        let Some(parts) = parts_of_row(value) else {
            let error = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            );
            return Err(binder.place_at(error, value));
        };
        if parts.len() != names.len() {
            return Err(source.place(other_count(), value.location));
        }
        for (name, value) in names.iter().zip(parts) {
            let column = target_column(table, name, source)?;
            set.push((column, self.new_value(table, column, value, binder)?));
        }
        Ok(())
    }
}

fn other_count() -> SqlError {
    let message = "number of columns does not match number of values";
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}
