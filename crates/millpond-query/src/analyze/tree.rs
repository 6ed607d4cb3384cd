//! The typed query tree: a query whose names and types are settled.
//!
//! Each relation of a statement has a [`Slot`], a number that no other relation of the statement
//! has. Relations are tables, subqueries, functions and the results of grouping. A column is a slot
//! and a place in it, packed into the number of [`Expr::Column`]: see [`column`]. So a subquery
//! names the columns of the query around it as its own, and moving an expression does not change
//! it.

mod calls;
mod columns;
mod set_functions;

use std::sync::Arc;

use millpond_engine::catalog::TableDef;

pub use calls::{AggregateCall, AggregateFunction, Hypothetical, JsonKind, Regression, Window};
pub(crate) use calls::{Bound, Exclude, Frame, FrameMode, WindowCall, WindowFunction};
pub(crate) use columns::{SYSTEM_COLUMNS, SystemColumn};
pub use columns::{Slot, column, is_system_column, slot_of};
pub use set_functions::SetFunction;
pub(crate) use set_functions::{SetFunctionKind, SetStep};

use crate::DataType;
use crate::expr::{Compare, Expr};
use crate::plan::query::node::SlotKind;
use crate::plan::{RowLock, SortKey};
use crate::sink::ColumnDesc;

/// A statement's query with what its slots hold.
#[derive(Debug)]
pub(crate) struct Analyzed {
    pub(crate) query: Query,
    /// By the slots' numbers.
    pub(crate) slots: Vec<SlotKind>,
}

/// A statement that changes rows, with what its slots hold.
#[derive(Debug)]
pub(crate) struct AnalyzedModification {
    pub(crate) modification: Modification,
    /// By the slots' numbers.
    pub(crate) slots: Vec<SlotKind>,
}

/// A statement that inserts, updates or deletes the rows that a query gives, or such a query of
/// WITH.
#[derive(Debug, Clone)]
pub(crate) struct Modification {
    pub(crate) kind: ModificationKind,
    /// Its targets are the new values of `columns`, then what is returned.
    pub(crate) query: Query,
    pub(crate) table: Arc<TableDef>,
    pub(crate) alias: String,
    /// Where the table's row is: as the query has found it, for RETURNING as it is stored.
    pub(crate) target: Slot,
    /// The table's columns that get a value.
    pub(crate) columns: Vec<usize>,
    /// What RETURNING returns.
    pub(crate) returning: Option<Vec<ColumnDesc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModificationKind {
    Insert,
    Update,
    Delete,
}

/// A query, with or without WITH, ORDER BY and LIMIT.
#[derive(Debug, Clone)]
pub struct Query {
    /// The queries of WITH, in their order. Each may use those before it.
    pub(crate) ctes: Vec<Arc<Cte>>,
    pub(crate) body: Body,
    /// Over the columns that the body's targets use; of a set operation over its slot.
    pub(crate) order_by: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// `FETCH FIRST ... WITH TIES`
    pub(crate) with_ties: bool,
    /// FOR UPDATE and the like, with the slots that they lock.
    pub(crate) locks: Vec<(Slot, RowLock)>,
    /// What the query returns.
    pub(crate) columns: Vec<ColumnDesc>,
}

/// What a query's rows are made of.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Select(Box<Select>),
    SetOperation(Box<SetOperation>),
    Values(Values),
}

/// Rows of expressions, all of one length.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) slot: Slot,
    pub(crate) rows: Vec<Vec<Expr>>,
}

/// A SELECT.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    /// The items of FROM. Each may be used by a lateral one behind it.
    pub(crate) from: Vec<FromItem>,
    pub(crate) condition: Option<Expr>,
    /// What makes groups of the rows. Then all below is over its slot and those of windows.
    pub(crate) grouping: Option<Grouping>,
    pub(crate) having: Option<Expr>,
    /// Functions that windows are over. Those of a query without groups and windows are in `from`.
    pub(crate) sets_before_windows: Vec<SetStep>,
    /// In the order in which they are computed.
    pub(crate) windows: Vec<Window>,
    /// Functions of groups, and of what windows compute.
    pub(crate) sets: Vec<SetStep>,
    pub(crate) targets: Vec<Expr>,
    pub(crate) distinct: Distinct,
}

impl Select {
    /// All rows of FROM, without groups and windows.
    pub(crate) fn of(from: Vec<FromItem>, targets: Vec<Expr>) -> Self {
        Self {
            from,
            condition: None,
            grouping: None,
            having: None,
            sets_before_windows: Vec::new(),
            windows: Vec::new(),
            sets: Vec::new(),
            targets,
            distinct: Distinct::No,
        }
    }
}

/// Which rows of a SELECT are left out as being there already.
#[derive(Debug, Clone)]
pub(crate) enum Distinct {
    No,
    /// Of rows that are equal in all targets one stays.
    All,
    /// Of rows that are equal in these the first in the query's order stays.
    On(Vec<Expr>),
}

/// An item of FROM.
#[derive(Debug, Clone)]
pub(crate) enum FromItem {
    Table {
        slot: Slot,
        table: Arc<TableDef>,
        alias: String,
    },
    /// Some rows of a table: TABLESAMPLE.
    Sample {
        slot: Slot,
        table: Arc<TableDef>,
        alias: String,
        sample: Box<TableSample>,
    },
    /// A query. It may use columns of the items before it if it is lateral.
    Subquery {
        slot: Slot,
        query: Box<Query>,
        alias: String,
    },
    /// A query of WITH.
    Cte {
        slot: Slot,
        cte: Arc<Cte>,
        alias: String,
    },
    /// The rows that the recursive part of a query of WITH sees of itself.
    WorkTable {
        slot: Slot,
        cte: CteId,
        alias: String,
    },
    /// Functions that return rows, side by side. They may use columns of the items before them.
    Functions {
        slot: Slot,
        functions: Vec<SetFunction>,
        /// A last column has the row's number.
        with_ordinality: bool,
        alias: String,
    },
    Join(Box<Join>),
}

impl FromItem {
    /// Where its rows are, and what it is called. A join has none of its own.
    pub(crate) fn slot_and_alias(&mut self) -> Option<(&mut Slot, &String)> {
        match self {
            FromItem::Table { slot, alias, .. }
            | FromItem::Sample { slot, alias, .. }
            | FromItem::Subquery { slot, alias, .. }
            | FromItem::Cte { slot, alias, .. }
            | FromItem::WorkTable { slot, alias, .. }
            | FromItem::Functions { slot, alias, .. } => Some((slot, alias)),
            FromItem::Join(_) => None,
        }
    }
}

/// Which rows of a table are wanted.
#[derive(Debug, Clone)]
pub(crate) struct TableSample {
    /// SYSTEM takes whole pages, BERNOULLI rows.
    pub(crate) is_system: bool,
    /// A `real`.
    pub(crate) percent: Expr,
    /// REPEATABLE, a `double precision`.
    pub(crate) seed: Option<Expr>,
}

/// A join of two items.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) left: FromItem,
    pub(crate) right: FromItem,
    pub(crate) on: Option<Expr>,
}

/// How rows without a match are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    /// Rows of the left side are kept.
    Left,
    Right,
    Full,
    /// Rows of the left side that have a match, once each.
    Semi,
    /// Rows of the left side that have none.
    Anti,
}

/// The number of a query of WITH within a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CteId(pub(crate) u16);

/// A query of WITH.
#[derive(Debug, Clone)]
pub(crate) struct Cte {
    pub(crate) id: CteId,
    pub(crate) name: String,
    pub(crate) query: CteQuery,
    /// Written out: `[NOT] MATERIALIZED`.
    pub(crate) materialized: Option<bool>,
}

/// The query of a [`Cte`].
#[allow(clippy::large_enum_variant, reason = "there are few, each behind an `Arc`")]
#[derive(Debug, Clone)]
pub(crate) enum CteQuery {
    Plain(Query),
    /// `start UNION [ALL] step`; the step sees the rows of the round before as a
    /// [`FromItem::WorkTable`].
    Recursive {
        start: Query,
        step: Query,
        all: bool,
    },
    /// INSERT, UPDATE, DELETE: it runs once and to its end, also if nothing reads what it returns.
    Modification(Box<Modification>),
}

/// UNION, INTERSECT, EXCEPT. Both sides have the same number of columns, of the same types.
#[derive(Debug, Clone)]
pub(crate) struct SetOperation {
    /// Where its rows are.
    pub(crate) slot: Slot,
    pub(crate) operator: SetOperator,
    pub(crate) all: bool,
    pub(crate) left: Query,
    pub(crate) right: Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// GROUP BY, or aggregates over all rows.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// The slot of its result: the keys, then the aggregates, then for each entry of `grouping`
    /// its value.
    pub(crate) slot: Slot,
    pub(crate) keys: Vec<Expr>,
    /// For GROUPING SETS: which of the keys each set has. `None`: one set with all keys.
    pub(crate) sets: Option<Vec<Vec<usize>>>,
    pub(crate) aggregates: Vec<AggregateCall>,
    /// Calls of GROUPING(): the keys that each names.
    pub(crate) grouping: Vec<Vec<usize>>,
}

/// A query within an expression.
#[derive(Debug, Clone)]
pub struct Subquery {
    pub(crate) kind: SubqueryKind,
    pub(crate) query: Arc<Query>,
}

/// Two are the same only if they are one.
impl PartialEq for Subquery {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.query, &other.query)
    }
}

/// What an expression wants of a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SubqueryKind {
    /// The value of its only row; NULL without one.
    Scalar,
    /// The value of this column of its only row. Where several columns of one query are wanted, it
    /// runs when the first of them is computed. The others are taken from the same row.
    Column(usize),
    /// The values of all its rows, as an array of this type.
    Array(DataType),
    /// Whether it has rows.
    Exists,
    /// `(values) op ANY (query)`, `IN`: whether the comparison holds for some row. The right side
    /// of each comparison is the query's column.
    Any(Vec<Expr>, Compare),
    /// `(values) op ALL (query)`
    All(Vec<Expr>, Compare),
}
