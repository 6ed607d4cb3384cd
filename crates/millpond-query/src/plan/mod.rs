//! Plans of statements: hot ones on one table, mostly through a key, and queries as trees of nodes
//! ([`query`]).
//!
//! A plan is made once for a statement's text and kept with the prepared statement, or in the cache
//! behind the lexer. It holds the definitions that it was made for. It is made again when the
//! catalog's generation has moved on, or when locking the table finds another definition. Plans are
//! immutable and shared.
//!
//! Aggregations of large inputs may be left to a second executor ([`external`]), if there is one.

mod access;
mod aggregate;
mod dml;
pub mod explain;
pub mod external;
mod from;
mod insert;
mod modify;
mod order;
mod output;
mod planner;
pub(crate) mod query;
mod range_estimates;
mod scope;
mod select;
mod usable_indexes;

use std::sync::Arc;

use millpond_engine::catalog::TableDef;
use millpond_engine::table::LockStrength;

pub use crate::analyze::tree::is_system_column;
pub(crate) use access::Matches;
pub use access::{Access, IndexRange, KeyBounds, KeyList, KeyPart, Tids};
pub(crate) use aggregate::Aggregate;
pub use dml::{assigned, default_of, default_value, is_default, target_column};
pub(crate) use insert::{InsertColumns, check_width, insert_table, plain_values};
pub(crate) use order::{Ordered, SortKey};
pub(crate) use output::check_target_count;
pub use output::{Output, describe};
pub use planner::Planner;
pub(crate) use range_estimates::NotedRange;
pub use range_estimates::RangeEstimates;
pub use scope::{FromScope, find_table};
pub use usable_indexes::UsableIndexes;

use crate::DataType;
use crate::analyze::tree::Slot;
use crate::expr::Expr;
use crate::sink::ColumnDesc;

/// A plan with what is known about it.
#[derive(Debug)]
pub struct Planned {
    pub plan: Plan,
    /// Types of its parameters.
    pub params: Arc<[DataType]>,
    /// Its columns, if it returns rows.
    pub columns: Option<Arc<[ColumnDesc]>>,
    /// The state of the catalog that it was made for.
    pub generation: u64,
    /// Ranges of indexes that it was made for.
    pub(crate) ranges: Box<[NotedRange]>,
    /// It does without an index that is too new for the transaction's snapshot: not a plan to keep.
    pub passing: bool,
}

/// What a statement does.
#[derive(Debug)]
pub enum Plan {
    Select(SelectPlan),
    /// Any other query.
    Query(Box<query::node::QueryPlan>),
    Insert(InsertPlan),
    Change(ChangePlan),
}

/// How a SELECT locks the rows that it returns.
#[derive(Debug, Clone, Copy)]
pub struct RowLock {
    pub(crate) strength: LockStrength,
    pub(crate) conflict: OnConflict,
}

/// What a SELECT makes of a row that another transaction holds; of several clauses the last of
/// these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OnConflict {
    Wait,
    /// SKIP LOCKED
    Skip,
    /// NOWAIT
    Fail,
}

/// What is made of the rows that FROM and WHERE give.
#[derive(Debug)]
pub struct Results {
    pub aggregates: Option<Vec<Aggregate>>,
    pub output: Output,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// A SELECT of at most one table.
#[derive(Debug)]
pub struct SelectPlan {
    /// `None`: one row without columns.
    pub table: Option<Arc<TableDef>>,
    pub access: Access,
    /// What the access does not see to.
    pub filter: Option<Expr>,
    /// All of WHERE, for rows that have changed meanwhile.
    pub condition: Option<Expr>,
    /// The first row decides the aggregate: a least or greatest value, read in its index's order.
    pub first_only: bool,
    pub results: Results,
    pub lock: Option<RowLock>,
}

/// Where an INSERT's rows come from.
#[derive(Debug)]
pub(crate) enum InsertSource {
    /// Rows of expressions, one per column of the table.
    Values(Vec<Vec<Expr>>),
    /// A query; for each column of the table, an expression over the query's row.
    Query(Box<Selected>, Vec<Expr>),
}

/// An INSERT.
#[derive(Debug)]
pub struct InsertPlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) source: InsertSource,
    pub(crate) returning: Option<Output>,
}

/// An UPDATE or DELETE.
#[derive(Debug)]
pub struct ChangePlan {
    pub(crate) table: Arc<TableDef>,
    pub(crate) rows: Target,
    /// Columns with their new values; `None`: delete.
    pub(crate) set: Option<Vec<(usize, Expr)>>,
    pub(crate) returning: Option<Output>,
}

/// The rows that an UPDATE or DELETE changes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Found here; new values are computed from the row.
    Accessed {
        access: Access,
        /// What the access does not see to.
        filter: Option<Expr>,
        /// All of WHERE, for rows that have changed meanwhile.
        condition: Option<Expr>,
    },
    /// Found by a query; new values are computed from its rows.
    Selected(Box<Selected>),
}

/// What gives the rows that a statement changes or inserts.
#[derive(Debug)]
pub(crate) struct Selected {
    pub(crate) plan: query::node::QueryPlan,
    /// Where the row of the table to be changed is.
    pub(crate) target: Slot,
    /// What the statement calls the table.
    pub(crate) alias: String,
    /// WHERE, for rows that have changed meanwhile.
    pub(crate) recheck: Option<Expr>,
    /// It changes one row at most, and nothing after that may have to wait.
    pub(crate) can_begin_unwaiting: bool,
}

impl Plan {
    /// The columns of the rows that it returns, if it returns any.
    fn columns(&self) -> Option<Arc<[ColumnDesc]>> {
        let output = match self {
            Plan::Select(plan) => Some(&plan.results.output),
            Plan::Query(plan) => Some(&plan.output),
            Plan::Insert(plan) => plan.returning.as_ref(),
            Plan::Change(plan) => plan.returning.as_ref(),
        };
        output.map(|output| Arc::clone(&output.columns))
    }
}

impl Planned {
    /// A plan without parameters that is run once.
    pub fn once(plan: Plan, columns: Arc<[ColumnDesc]>) -> Self {
        let (params, ranges) = (Arc::default(), Box::default());
        Planned { plan, params, columns: Some(columns), generation: 0, ranges, passing: false }
    }

    /// Whether guesses took the place of values that were not known.
    pub fn is_guessed(&self) -> bool {
        self.ranges.iter().any(NotedRange::is_guess)
    }

    /// Whether it suits all values of its parameters.
    pub fn is_for_all(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The verb of its command tag.
    pub fn verb(&self) -> &'static str {
        match &self.plan {
            Plan::Select(_) | Plan::Query(_) => "SELECT",
            Plan::Insert(_) => "INSERT",
            Plan::Change(plan) if plan.set.is_some() => "UPDATE",
            Plan::Change(_) => "DELETE",
        }
    }

    /// What it is called if it changes or locks rows.
    pub fn writes(&self) -> Option<&'static str> {
        match &self.plan {
            Plan::Select(plan) => Some(lock_name(plan.lock?.strength)),
            Plan::Query(plan) => match plan.row_lock() {
                Some(strength) => Some(lock_name(strength)),
                None => plan.modifications().next().map(|_| self.verb()),
            },
            _ => Some(self.verb()),
        }
    }
}

fn lock_name(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::KeyShare => "SELECT FOR KEY SHARE",
        LockStrength::Share => "SELECT FOR SHARE",
        LockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
        LockStrength::Update => "SELECT FOR UPDATE",
    }
}
