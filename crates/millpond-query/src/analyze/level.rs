//! The scope of one query: its items of FROM, the queries around it, and what its expressions have
//! that is computed elsewhere. The latter are aggregates and window functions.

use std::cell::{Cell, RefCell};

use millpond_syntax::tree::{self, FuncCall, SelectStmt, WindowDef};

use super::namespace::{self, Missing, NamedColumn, Visible};
use super::presence::Marked;
use super::query::Typing;
use super::set_step::SetCall;
use super::tree::{AggregateCall, Query, Slot, Window, slot_of};
use super::{Analyzer, aggregate, set_function, window};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Scope, Typed, WholeRow};
use crate::expr::{Expr, functions};
use crate::parse::Name;
use crate::{DataType, Value};
use millpond_engine::catalog::ColumnDef;

/// What of a query is being bound. Errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Function,
    Subselect,
    Join,
    Where,
    Targets,
    GroupBy,
    Having,
    OrderBy,
    DistinctOn,
    Window,
    Frame(&'static str),
    Filter,
    Limit,
    Offset,
    Values,
    /// The only row of VALUES of an INSERT.
    Row,
    Update,
    Returning,
}

impl Clause {
    /// Why there can be no aggregate here; `None` when there can.
    pub(super) fn refuses_aggregates(self) -> Option<String> {
        Some(match self {
            Clause::Targets
            | Clause::Having
            | Clause::OrderBy
            | Clause::DistinctOn
            | Clause::Window => return None,
            Clause::Subselect => {
                "aggregate functions are not allowed in FROM clause of their own query level".into()
            }
            other => format!("aggregate functions are not allowed in {}", other.name()),
        })
    }

    /// Why there can be no function here that returns rows; `None` when there can.
    pub(super) fn refuses_sets(self) -> Option<String> {
        match self {
            Clause::Targets
            | Clause::OrderBy
            | Clause::DistinctOn
            | Clause::GroupBy
            | Clause::Window
            | Clause::Row => None,
            Clause::Function => {
                Some("set-returning functions must appear at top level of FROM".into())
            }
            other => Some(format!("set-returning functions are not allowed in {}", other.name())),
        }
    }

    /// Why there can be no window function here; `None` when there can.
    pub(super) fn refuses_windows(self) -> Option<String> {
        Some(match self {
            Clause::Targets | Clause::OrderBy | Clause::DistinctOn => return None,
            other => format!("window functions are not allowed in {}", other.name()),
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Clause::Function => "functions in FROM",
            Clause::Subselect => "FROM",
            Clause::Join => "JOIN conditions",
            Clause::Where => "WHERE",
            Clause::Targets => "SELECT",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Window => "window definitions",
            Clause::Frame(name) => name,
            Clause::Filter => "FILTER",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values | Clause::Row => "VALUES",
            Clause::Update => "UPDATE",
            Clause::Returning => "RETURNING",
        }
    }
}

/// A reference to a column, for errors that are found later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub(super) column: usize,
    pub(super) at: u32,
}

/// What expressions have in them that is computed elsewhere.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) aggregates: Vec<AggregateCall>,
    /// The arguments of calls of GROUPING(), and where they are.
    pub(super) grouping: Vec<Vec<(Expr, u32)>>,
    pub(super) windows: Vec<Window>,
    /// Columns that were named outside of aggregates.
    pub(super) references: Vec<Reference>,
}

/// A query as a scope.
pub(super) struct Level<'l> {
    pub(super) analyzer: &'l Analyzer<'l>,
    pub(super) outer: Option<&'l Level<'l>>,
    /// What can be named at the moment.
    pub(super) visible: RefCell<Vec<Visible>>,
    /// All items so far, for errors about those that can't be named.
    pub(super) items: RefCell<Vec<Visible>>,
    /// The slots of its items.
    pub(super) own: RefCell<Vec<Slot>>,
    pub(super) clause: Cell<Clause>,
    /// Something within an aggregate's call is being bound.
    pub(super) in_aggregate: Cell<bool>,
    /// Something within a window function's call is being bound.
    pub(super) in_window: Cell<bool>,
    pub(super) collected: RefCell<Collected>,
    /// It is the recursive part of a query of WITH, and reads the rows of that.
    pub(super) reads_itself: Cell<bool>,
    /// Calls of functions that return rows, in its select list and what is like it. Those in the
    /// arguments of another one come before that.
    pub(super) set_calls: RefCell<Vec<SetCall>>,
    /// The slots of those that have become items of FROM.
    pub(super) sets_in_from: RefCell<Vec<Slot>>,
    /// The slot of its groups, once there is need for one.
    pub(super) group_slot: Cell<Option<Slot>>,
    /// Items that get a further column, which tells whether they have a row.
    pub(super) marked: RefCell<Vec<Marked>>,
    pub(super) named_windows: &'l [WindowDef],
}

impl<'l> Level<'l> {
    pub(super) fn new(
        analyzer: &'l Analyzer<'l>,
        outer: Option<&'l Level<'l>>,
        named_windows: &'l [WindowDef],
    ) -> Self {
        Level {
            analyzer,
            outer,
            visible: RefCell::default(),
            items: RefCell::default(),
            own: RefCell::default(),
            clause: Cell::new(Clause::Targets),
            in_aggregate: Cell::new(false),
            in_window: Cell::new(false),
            collected: RefCell::default(),
            reads_itself: Cell::new(false),
            set_calls: RefCell::default(),
            sets_in_from: RefCell::default(),
            group_slot: Cell::new(None),
            marked: RefCell::default(),
            named_windows,
        }
    }

    /// Does something for a clause.
    pub(super) fn within<T>(&self, clause: Clause, act: impl FnOnce() -> T) -> T {
        let before = self.clause.replace(clause);
        let done = act();
        self.clause.set(before);
        done
    }

    /// Does something while only these items can be named.
    pub(super) fn seeing<T>(&self, visible: Vec<Visible>, act: impl FnOnce() -> T) -> T {
        let before = self.visible.replace(visible);
        let done = act();
        self.visible.replace(before);
        done
    }

    /// Whether a column is one of its items'.
    pub(super) fn owns(&self, column: usize) -> bool {
        self.own.borrow().contains(&slot_of(column).0)
    }

    /// The slot of its groups.
    pub(super) fn group_slot(&self) -> Result<Slot> {
        if let Some(slot) = self.group_slot.get() {
            return Ok(slot);
        }
        let slot = self.analyzer.new_slot()?;
        self.group_slot.set(Some(slot));
        Ok(slot)
    }

    /// It and the queries around it, from the inside out.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Level<'l>> {
        std::iter::successors(Some(self), |level| level.outer)
    }

    /// The column of a name, and the level that has it.
    fn find(&self, table: Option<&Name>, name: &str, at: u32) -> Result<(Expr, DataType)> {
        for level in self.chain() {
            let visible = level.visible.borrow();
            if let Some(found) = level.system_column(&visible, table, name)? {
                level.note(&found.0, at);
                return Ok(found);
            }
            let found = match table {
                Some(table) => namespace::qualified(&visible, table, name),
                None => namespace::unqualified(&visible, name),
            };
            match found {
                Ok(column) => {
                    level.note(&column.expr, at);
                    return Ok((column.expr.clone(), column.ty()));
                }
                Err(Missing::Nowhere) => {}
                Err(Missing::Failed(error)) => return Err(error),
            }
        }
        Err(match table {
            Some(table) => self.missing_item(&table.name),
            None => self.missing_column(name),
        })
    }

    /// Remembers where a column was named.
    pub(super) fn note(&self, column: &Expr, at: u32) {
        if self.in_aggregate.get() {
            return;
        }
        let mut collected = self.collected.borrow_mut();
        column.walk(&mut |part| {
            if let Expr::Column(column) = part {
                collected.references.push(Reference { column: *column, at });
            }
        });
    }

    fn missing_column(&self, name: &str) -> SqlError {
        // Of an item that can't be named here it may be a column nevertheless.
        for level in self.chain() {
            for item in level.items.borrow().iter().filter(|item| item.has_columns) {
                let Some(alias) = &item.alias else { continue };
                if item.columns.iter().any(|column| column.desc.name == name) {
                    return SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{name}\" does not exist"),
                    )
                    .hint(format!(
                        "There is a column named \"{name}\" in table \"{alias}\", but it cannot be referenced from this part of the query."
                    ));
                }
            }
        }
        let all: Vec<Visible> =
            self.chain().flat_map(|level| level.visible.borrow().clone()).collect();
        namespace::undefined(name, None, &all)
    }

    /// "missing FROM-clause entry", or what else may be said about it.
    pub(super) fn missing_item(&self, table: &str) -> SqlError {
        let invalid = || {
            SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("invalid reference to FROM-clause entry for table \"{table}\""),
            )
        };
        for level in self.chain() {
            let (items, visible) = (level.items.borrow(), level.visible.borrow());
            for item in items.iter().chain(visible.iter()) {
                let Some(alias) = item.alias.as_deref() else { continue };
                if alias == table {
                    return invalid().hint(format!(
                        "There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."
                    ));
                }
                if item.name.as_deref() == Some(table) {
                    let is_here = visible.iter().any(|item| item.alias.as_deref() == Some(alias));
                    return invalid().hint(if is_here {
                        format!("Perhaps you meant to reference the table alias \"{alias}\".")
                    } else {
                        format!(
                            "There is an entry for table \"{alias}\", but it cannot be referenced from this part of the query."
                        )
                    });
                }
            }
        }
        crate::expr::bind::missing_from(table)
    }
}

impl Scope for Level<'_> {
    fn column(&self, table: Option<&Name>, name: &str) -> Result<(usize, DataType)> {
        match self.find(table, name, 0)? {
            (Expr::Column(column), ty) => Ok((column, ty)),
            _ => Err(SqlError::unsupported(format!("the merged column {name}"))),
        }
    }

    fn reference(&self, table: Option<&Name>, name: &str, at: u32) -> Result<(Expr, DataType)> {
        self.find(table, name, at)
    }

    fn whole_row(&self, name: &str, at: u32) -> Result<Option<WholeRow>> {
        for level in self.chain() {
            let visible = level.visible.borrow();
            let named = visible.iter().find(|item| item.alias.as_deref() == Some(name));
            let Some(item) = named else { continue };
            let is_value = item.is_value;
            let presence = match is_value {
                true => Expr::Const(Value::Bool(true)),
                false => level.presence(item),
            };
            level.note(&presence, at);
            item.columns.iter().for_each(|column| level.note(&column.expr, at));
            let field = |column: &NamedColumn| (column.desc.name.to_string(), column.ty());
            let fields = item.columns.iter().map(field).collect();
            let values = item.columns.iter().map(|column| column.expr.clone()).collect();
            return Ok(Some(WholeRow { fields, presence, values, is_value }));
        }
        Ok(None)
    }

    fn row_type(&self, names: &[tree::Name]) -> Result<Option<Vec<(String, DataType)>>> {
        let name = match names {
            [name] => name,
            [schema, name] if &**schema == "public" => name,
            _ => return Ok(None),
        };
        let table = self.analyzer.catalog.table_by_name(name);
        let field = |column: &ColumnDef| (column.name.to_string(), column.ty);
        Ok(table.map(|table| table.columns.iter().map(field).collect()))
    }

    fn query(&self, binder: &mut Binder<'_>, query: &SelectStmt) -> Result<Query> {
        let sublinks = &self.analyzer.sublinks;
        sublinks.set(sublinks.get() + 1);
        let analyzed = self.analyzer.query(query, Some(self), binder);
        sublinks.set(sublinks.get() - 1);
        analyzed
    }

    fn converted(
        &self,
        binder: &mut Binder<'_>,
        query: Query,
        types: &[DataType],
    ) -> Result<Query> {
        let unknown = vec![false; types.len()];
        let typing = Typing { query, visible: Vec::new(), unknown, marked: Vec::new() };
        self.analyzer.converted(typing, types, None, binder)
    }

    fn call(&self, binder: &mut Binder<'_>, call: &FuncCall, at: u32) -> Result<Option<Typed>> {
        let Some(name) = aggregate::called(call) else { return Ok(None) };
        if let Some(over) = &call.over {
            return window::bind(self, binder, name, call, at, over).map(Some);
        }
        if set_function::is_set_function(name) {
            return self.target_function(binder, call, at, name).map(Some);
        }
        if aggregate::is_call_of_aggregate(name, call) {
            return aggregate::bind(self, binder, name, call, at).map(Some);
        }
        if window::is_window_function(name) {
            let error = SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("window function {name} requires an OVER clause"),
            );
            return Err(binder.source.place(error, at));
        }
        if let Err(error) = aggregate::refuse_clauses(name, call, at, binder) {
            // That there is no such function comes first.
            let is_known = !functions::named(name).is_empty() || functions::is_known_name(name);
            return Err(match is_known {
                true => error,
                false => aggregate::undefined_call(self, binder, name, call, at)?,
            });
        }
        Ok(None)
    }

    fn grouping(&self, binder: &mut Binder<'_>, args: &[tree::Expr], at: u32) -> Result<Typed> {
        aggregate::grouping(self, binder, args, at)
    }
}
