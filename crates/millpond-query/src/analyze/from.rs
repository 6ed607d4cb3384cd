//! FROM: tables, queries of WITH, subqueries and functions.

use std::borrow::Cow;
use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_syntax::tree::{
    self, Alias, ColumnDefinition, FuncCall, Node, RangeFunction, RangeSubselect, RangeVar,
    TableRef,
};

use super::aggregate::refuse_variadic;
use super::definition;
use super::level::{Clause, Level};
use super::modification::TargetTable;
use super::namespace::{Visible, check_aliases};
use super::set_function;
use super::tree::{FromItem, SetFunction, SetFunctionKind, Slot};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::Binder;
use crate::parse::Name;
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
    pub(super) fn from(&self, list: &[TableRef], binder: &mut Binder<'_>) -> Result<Vec<FromItem>> {
        let mut items = Vec::with_capacity(list.len());
        self.add_from(list, &[], &mut items, binder)?;
        Ok(items)
    }

    /// The same beside a table to be changed, which is the first item. Those of the list can't
    /// name it.
    pub(super) fn items_beside(
        &self,
        target: &TargetTable,
        list: &[TableRef],
        binder: &mut Binder<'_>,
    ) -> Result<Vec<FromItem>> {
        let mut items = vec![target.item.clone()];
        self.add_from(list, &target.visible, &mut items, binder)?;
        Ok(items)
    }

    fn add_from(
        &self,
        list: &[TableRef],
        beside: &[Visible],
        items: &mut Vec<FromItem>,
        binder: &mut Binder<'_>,
    ) -> Result<()> {
        let mut visible: Vec<Visible> = Vec::new();
        for listed in list {
            let (item, own) = self.table_ref(listed, &visible, binder)?;
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

    /// One item, which may use those of `lateral` if it is lateral.
    pub(super) fn table_ref(
        &self,
        item: &TableRef,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        match item {
            TableRef::RangeVar(relation) => self.named(relation),
            TableRef::Subselect(subselect) => self.subquery(subselect, lateral, binder),
            TableRef::Function(function) => self.function(function, lateral, binder),
            TableRef::Join(_) => self.joins(item, lateral, binder),
            TableRef::TableSample(sample) => self.sample(sample, binder),
            TableRef::TableFunc(_) => Err(SqlError::unsupported("XMLTABLE")),
        }
    }

    /// A table, or a query of WITH.
    pub(super) fn named(&self, relation: &RangeVar) -> Result<Named> {
        let alias = relation.alias.as_ref();
        let name = Name::of_relation(relation, &self.analyzer.source)?;
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
        alias: Option<&Alias>,
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
        let own = Visible::new(slot, &alias, Some(&table.name), columns);
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
        subselect: &RangeSubselect,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let RangeSubselect { lateral: is_lateral, subquery: query, alias, .. } = subselect;
        let is_lateral = *is_lateral;
        let visible = if is_lateral { lateral.to_vec() } else { Vec::new() };
        let query = self.seeing(visible, || {
            self.within(Clause::Subselect, || self.analyzer.query(query, Some(self), binder))
        })?;
        let (alias, columns) = renamed("", query.columns.clone(), alias.as_ref())?;
        let kind = SlotKind::Computed(columns.len());
        let slot = self.analyzer.item_slot(kind, &alias, &columns)?;
        let own = self.add(slot, Visible::new(slot, &alias, None, columns));
        let query = Box::new(query);
        Ok((FromItem::Subquery { slot, query, alias }, own))
    }

    fn function(
        &self,
        function: &RangeFunction,
        lateral: &[Visible],
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let alias = function.alias.as_ref();
        let with_ordinality = function.ordinality;
        let (mut calls, name) = match function.functions.as_slice() {
            [(only, _)] if !function.is_rowsfrom => {
                let name = function_name(only);
                if let Some(table) = self.relation_of(only, with_ordinality) {
                    return self.table(Arc::clone(table), describe_columns(table), alias);
                }
                (side_by_side(only), name)
            }
            several => {
                let calls: Vec<Source<'_>> =
                    several.iter().map(|(call, own)| Source::Call(call, own)).collect();
                let name = calls.first().map(Source::name).unwrap_or_default();
                (calls, name)
            }
        };
        if !function.coldeflist.is_empty() {
            match calls.as_mut_slice() {
                [Source::Call(_, own)] if !function.ordinality => *own = &function.coldeflist,
                _ => return Err(definition::misplaced(function, self.analyzer.source)),
            }
        }
        let bound = self.seeing(lateral.to_vec(), || {
            self.within(Clause::Function, || {
                let bound = calls.iter().map(|call| self.one_function(call, binder));
                bound.collect::<Result<Vec<_>>>()
            })
        })?;
        // The column without a name of the only function is called like the item.
        let own_name = match (alias, calls.as_slice()) {
            (Some(alias), [_]) => Some((*alias.aliasname).to_owned()),
            _ => None,
        };
        let (mut functions, mut columns) = (Vec::new(), Vec::new());
        for (call, (function, own)) in calls.iter().zip(bound) {
            functions.push(function);
            for (name, ty) in own {
                let name = name.map(Cow::into_owned).or_else(|| own_name.clone());
                columns.push(ColumnDesc::computed(name.unwrap_or_else(|| call.name()), ty));
            }
        }
        if with_ordinality {
            columns.push(ColumnDesc::computed("ordinality", DataType::Int8));
        }
        let (alias, columns) = renamed(&name, columns, alias)?;
        let is_value =
            matches!(functions.as_slice(), [only] if only.is_of_values()) && !with_ordinality;
        let kind = SlotKind::Computed(columns.len());
        let slot = self.analyzer.item_slot(kind, &alias, &columns)?;
        let own = Visible::new(slot, &alias, None, columns);
        let own = self.add(slot, Visible { is_value, ..own });
        Ok((FromItem::Functions { slot, functions, with_ordinality, alias }, own))
    }

    /// The system relation that a call without arguments is.
    fn relation_of(&self, e: &tree::Expr, with_ordinality: bool) -> Option<&'static Arc<TableDef>> {
        match &e.node {
            Node::FuncCall(call) if call.args.is_empty() && !with_ordinality => {
                find_function_definition(call.funcname.last()?)
            }
            _ => None,
        }
    }

    /// One function of FROM, and its columns.
    fn one_function(
        &self,
        source: &Source<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<(SetFunction, set_function::Columns)> {
        let (e, own) = match source {
            Source::Call(e, own) => (e, *own),
            Source::Unnest(args, at) => {
                return set_function::bind(self, binder, args, *at, "unnest", true);
            }
        };
        if let Node::FuncCall(call) = &e.node
            && let Some(name) = call.funcname.last()
            && set_function::is_set_function(name)
        {
            refuse_variadic(call)?;
            let (function, columns) =
                set_function::bind(self, binder, &call.args, e.location, name, true)?;
            return definition::applied(function, columns, own, e.location, self.analyzer.source);
        }
        definition::only_for_records(own, self.analyzer.source)?;
        let (value, ty) = binder.output(e, self)?;
        let function = SetFunction { kind: SetFunctionKind::Value, args: vec![value], columns: 1 };
        Ok((function, vec![(None, ty)]))
    }
}

/// What gives rows of an item.
enum Source<'e> {
    /// A call, and the columns that are defined for its rows.
    Call(&'e tree::Expr, &'e [ColumnDefinition]),
    /// `unnest` of one of several arguments.
    Unnest(&'e [tree::Expr], u32),
}

impl Source<'_> {
    fn name(&self) -> String {
        match self {
            Source::Call(e, _) => function_name(e),
            Source::Unnest(..) => "unnest".to_owned(),
        }
    }
}

/// What an item is called that is a function.
fn function_name(e: &tree::Expr) -> String {
    match &e.node {
        Node::FuncCall(call) => {
            call.funcname.last().map_or_else(String::new, |name| (**name).to_owned())
        }
        _ => super::column_name(e).into(),
    }
}

/// The functions whose rows stand side by side: one for each argument of `unnest`, or the call
/// itself.
fn side_by_side(e: &tree::Expr) -> Vec<Source<'_>> {
    match &e.node {
        Node::FuncCall(call) if call.args.len() > 1 && is_unnest(call) => {
            call.args.chunks(1).map(|one| Source::Unnest(one, e.location)).collect()
        }
        _ => vec![Source::Call(e, &[])],
    }
}

fn is_unnest(call: &FuncCall) -> bool {
    call.funcname.last().is_some_and(|name| &**name == "unnest")
}

/// What an item and its columns are called.
pub(super) fn renamed(
    name: &str,
    mut columns: Vec<ColumnDesc>,
    alias: Option<&Alias>,
) -> Result<(String, Vec<ColumnDesc>)> {
    let Some(alias) = alias else { return Ok((name.to_owned(), columns)) };
    let (name, given) = ((*alias.aliasname).to_owned(), &alias.colnames);
    if given.len() > columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                given.len()
            ),
        ));
    }
    for (column, given) in columns.iter_mut().zip(given) {
        column.name = given.clone();
    }
    Ok((name, columns))
}
