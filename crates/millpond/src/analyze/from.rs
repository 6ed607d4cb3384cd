//! FROM: tables, queries of WITH, subqueries and functions.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use sqlparser::ast;

use super::level::{Clause, Level};
use super::modification::TargetTable;
use super::namespace::{Visible, check_aliases};
use super::set_function;
use super::tree::{FromItem, SetFunction, SetFunctionKind, Slot};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, beyond};
use crate::parse::{Name, ident, is_rows_from};
use crate::plan::query::node::SlotKind;
use crate::plan::{describe, find_table};
use crate::sink::ColumnDesc;
use crate::system_relations::{
    describe_columns, find_definition, find_function_definition, schema_of,
};

/// An item of FROM with what of it can be named.
pub(super) type Named = (FromItem, Vec<Visible>);

impl Level<'_> {
    /// Analyzes FROM; from then on its items can be named.
    pub(super) fn from(
        &self,
        list: &[ast::TableWithJoins],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<FromItem>> {
        let mut items = Vec::with_capacity(list.len());
        self.add_from(list, &[], &mut items, binder)?;
        Ok(items)
    }

    /// The same beside a table to be changed, which is the first item. Those of the list can't
    /// name it.
    pub(super) fn items_beside(
        &self,
        target: &TargetTable,
        list: &[ast::TableWithJoins],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<FromItem>> {
        let mut items = vec![target.item.clone()];
        self.add_from(list, &target.visible, &mut items, binder)?;
        Ok(items)
    }

    fn add_from(
        &self,
        list: &[ast::TableWithJoins],
        beside: &[Visible],
        items: &mut Vec<FromItem>,
        binder: &mut Binder<'_>,
    ) -> Result<()> {
        let mut visible: Vec<Visible> = Vec::new();
        for listed in list {
            let (item, own) = self.with_joins(listed, &visible, binder)?;
            check_aliases(beside, &own)?;
            check_aliases(&visible, &own)?;
            visible.extend(own);
            items.push(item);
        }
        visible.splice(0..0, beside.iter().cloned());
        self.visible.replace(visible);
        Ok(())
    }

    /// A table to be changed, as an item.
    pub(super) fn target_item(
        &self,
        table: &Arc<TableDef>,
        alias: Option<String>,
    ) -> Result<Named> {
        let columns: Vec<ColumnDesc> =
            (0..table.columns.len()).map(|column| describe(table, column)).collect();
        let schema = alias.is_none().then(|| schema_of(table));
        let alias = alias.unwrap_or_else(|| table.name.clone());
        self.table_as(Arc::clone(table), columns, alias, schema)
    }

    /// A table by its name only, as the only item.
    pub(super) fn named_item(&self, name: &ast::ObjectName) -> Result<FromItem> {
        let (item, own) = self.named(name, None)?;
        self.visible.replace(own);
        Ok(item)
    }

    pub(super) fn with_joins(
        &self,
        listed: &ast::TableWithJoins,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let mut joined = self.factor(&listed.relation, lateral, binder)?;
        for join in &listed.joins {
            joined = self.join(joined, join, lateral, binder)?;
        }
        Ok(joined)
    }

    /// One item, which may use those of `lateral` if it is lateral.
    pub(super) fn factor(
        &self,
        factor: &ast::TableFactor,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        use ast::TableFactor as T;
        match factor {
            T::Table {
                name,
                alias,
                args,
                with_hints,
                version: None,
                with_ordinality,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
                match args {
                    Some(args) => {
                        let call = call_of(name, &args.args);
                        self.function(&call, *with_ordinality, alias.as_ref(), lateral, binder)
                    }
                    None if *with_ordinality => Err(beyond("WITH ORDINALITY of a table")),
                    None => self.named(name, alias.as_ref()),
                }
            }
            T::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => {
                let args: Vec<ast::FunctionArg> = array_exprs
                    .iter()
                    .map(|e| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e.clone())))
                    .collect();
                let name = ast::ObjectName::from(vec![ast::Ident::new("unnest")]);
                let call = call_of(&name, &args);
                self.function(&call, *with_ordinality, alias.as_ref(), lateral, binder)
            }
            T::Function { lateral: _, name, args, with_ordinality, alias } => {
                let call = call_of(name, args);
                self.function(&call, *with_ordinality, alias.as_ref(), lateral, binder)
            }
            T::Derived { lateral: is_lateral, subquery, alias, sample: None } => {
                self.subquery(subquery, *is_lateral, alias.as_ref(), lateral, binder)
            }
            T::NestedJoin { table_with_joins, alias } => {
                let (item, own) = self.with_joins(table_with_joins, lateral, binder)?;
                match alias {
                    None => Ok((item, own)),
                    Some(alias) => self.join_alias(item, own, alias),
                }
            }
            _ => Err(beyond("this form of FROM")),
        }
    }

    /// A table, or a query of WITH.
    fn named(&self, name: &ast::ObjectName, alias: Option<&ast::TableAlias>) -> Result<Named> {
        let name = Name::from_ast(name, &self.analyzer.source)?;
        if name.schema.is_none()
            && let Some(named) = self.named_cte(&name, alias)?
        {
            return Ok(named);
        }
        let (table, columns) = match find_definition(&name) {
            Some(table) => (Arc::clone(table), describe_columns(table)),
            None => {
                let table = find_table(self.analyzer.catalog, &name)
                    .map_err(|error| self.analyzer.not_yet_defined(error, &name))?;
                let columns = (0..table.columns.len()).map(|column| describe(&table, column));
                let columns = columns.collect();
                (table, columns)
            }
        };
        self.table(table, columns, alias)
    }

    fn table(
        &self,
        table: Arc<TableDef>,
        columns: Vec<ColumnDesc>,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Named> {
        let schema = alias.is_none().then(|| schema_of(&table));
        let (alias, columns) = renamed(&table.name, columns, alias)?;
        self.table_as(table, columns, alias, schema)
    }

    fn table_as(
        &self,
        table: Arc<TableDef>,
        columns: Vec<ColumnDesc>,
        alias: String,
        schema: Option<&'static str>,
    ) -> Result<Named> {
        let kind = SlotKind::Stored(Arc::clone(&table));
        let slot = self.analyzer.item_slot(kind, &alias, &columns)?;
        let own = Visible::new(slot, alias.clone(), Some(table.name.clone()), columns);
        let own = self.add(slot, Visible { schema, ..own });
        Ok((FromItem::Table { slot, table, alias }, own))
    }

    /// Makes an item known.
    pub(super) fn add(&self, slot: Slot, visible: Visible) -> Vec<Visible> {
        self.own.borrow_mut().push(slot);
        self.items.borrow_mut().push(visible.clone());
        vec![visible]
    }

    fn subquery(
        &self,
        query: &ast::Query,
        is_lateral: bool,
        alias: Option<&ast::TableAlias>,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let Some(alias) = alias else {
            let is_values = matches!(query.body.as_ref(), ast::SetExpr::Values(_));
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                if is_values {
                    "VALUES in FROM must have an alias"
                } else {
                    "subquery in FROM must have an alias"
                },
            );
            let error = binder.place_before(error, query);
            return Err(error.hint(if is_values {
                "For example, FROM (VALUES ...) [AS] foo."
            } else {
                "For example, FROM (SELECT ...) [AS] foo."
            }));
        };
        let visible = if is_lateral { lateral.to_vec() } else { Vec::new() };
        let query = self.seeing(visible, || {
            self.within(Clause::Subselect, || self.analyzer.query(query, Some(self), binder))
        })?;
        let (alias, columns) = renamed("", query.columns.clone(), Some(alias))?;
        let kind = SlotKind::Computed(columns.len());
        let slot = self.analyzer.item_slot(kind, &alias, &columns)?;
        let own = self.add(slot, Visible::new(slot, alias.clone(), None, columns));
        let query = Box::new(query);
        Ok((FromItem::Subquery { slot, query, lateral: is_lateral, alias }, own))
    }

    fn function(
        &self,
        call: &ast::Function,
        with_ordinality: bool,
        alias: Option<&ast::TableAlias>,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let name = name_of(call)?;
        if let ast::FunctionArguments::List(list) = &call.args
            && list.args.is_empty()
            && !with_ordinality
            && let Some(table) = find_function_definition(&name)
        {
            return self.table(Arc::clone(table), describe_columns(table), alias);
        }
        let calls = side_by_side(call, &name)?;
        let bound = self.seeing(lateral.to_vec(), || {
            self.within(Clause::Function, || {
                let bound = calls.iter().map(|call| self.one_function(call, binder));
                bound.collect::<Result<Vec<_>>>()
            })
        })?;
        // The column without a name of the only function is called like the item.
        let own_name = match (alias, calls.as_slice()) {
            (Some(alias), [_]) => Some(ident(&alias.name)),
            _ => None,
        };
        let (mut functions, mut columns) = (Vec::new(), Vec::new());
        for (call, (function, own)) in calls.iter().zip(bound) {
            functions.push(function);
            for (name, ty) in own {
                let name = name.map(str::to_owned).or_else(|| own_name.clone());
                let name = match name {
                    Some(name) => name,
                    None => name_of(call)?,
                };
                columns.push(ColumnDesc::computed(name, ty));
            }
        }
        if with_ordinality {
            columns.push(ColumnDesc::computed("ordinality", DataType::Int8));
        }
        let name = match calls.first() {
            Some(first) => name_of(first)?,
            None => name,
        };
        let (alias, columns) = renamed(&name, columns, alias)?;
        let kind = SlotKind::Computed(columns.len());
        let slot = self.analyzer.item_slot(kind, &alias, &columns)?;
        let own = self.add(slot, Visible::new(slot, alias.clone(), None, columns));
        Ok((FromItem::Functions { slot, functions, with_ordinality, alias }, own))
    }

    /// One function of FROM, and its columns.
    fn one_function(
        &self,
        call: &ast::Function,
        binder: &mut Binder<'_>,
    ) -> Result<(SetFunction, set_function::Columns)> {
        let name = name_of(call)?;
        if set_function::is_set_function(&name) {
            return set_function::bind(self, binder, call, &name);
        }
        let (value, ty) = binder.output(&ast::Expr::Function(call.clone()), self)?;
        let function = SetFunction { kind: SetFunctionKind::Value, args: vec![value], columns: 1 };
        Ok((function, vec![(None, ty)]))
    }
}

/// A function's name without its schema.
fn name_of(call: &ast::Function) -> Result<String> {
    match call.name.0.last() {
        Some(ast::ObjectNamePart::Identifier(name)) => Ok(ident(name)),
        _ => Err(beyond(&format!("the function {}", call.name))),
    }
}

/// The functions whose rows stand side by side: those of ROWS FROM, one for each argument of
/// `unnest`, or the call itself.
fn side_by_side(call: &ast::Function, name: &str) -> Result<Vec<ast::Function>> {
    let ast::FunctionArguments::List(list) = &call.args else { return Ok(vec![call.clone()]) };
    if is_rows_from(&call.name) {
        let one = |arg: &ast::FunctionArg| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Function(call))) => {
                Ok(call.clone())
            }
            other => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{other}\""),
            )),
        };
        return list.args.iter().map(one).collect();
    }
    if name != "unnest" || list.args.len() < 2 {
        return Ok(vec![call.clone()]);
    }
    let one = |arg: &ast::FunctionArg| call_of(&call.name, std::slice::from_ref(arg));
    Ok(list.args.iter().map(one).collect())
}

fn call_of(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> ast::Function {
    ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: args.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// What an item and its columns are called.
pub(super) fn renamed(
    name: &str,
    mut columns: Vec<ColumnDesc>,
    alias: Option<&ast::TableAlias>,
) -> Result<(String, Vec<ColumnDesc>)> {
    let Some(alias) = alias else { return Ok((name.to_owned(), columns)) };
    if alias.at.is_some() || alias.columns.iter().any(|column| column.data_type.is_some()) {
        return Err(beyond("a column definition list"));
    }
    let name = ident(&alias.name);
    if alias.columns.len() > columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                alias.columns.len()
            ),
        ));
    }
    for (column, given) in columns.iter_mut().zip(&alias.columns) {
        column.name = ident(&given.name);
    }
    Ok((name, columns))
}
