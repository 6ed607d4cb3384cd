//! Plans of queries: a tree of nodes, with PostgreSQL's names.
//!
//! A node gives rows one at a time, in the slots of the relations below it. A join's row is the
//! rows in the slots of both sides; nothing is copied. A node that keeps rows keeps what is in the
//! slots of its input, and puts it back. Sorts do, and the inner sides of hash joins.
//!
//! A plan is immutable and shared. What changes while it runs is in the states of `run`.

mod query_plan;

use std::sync::Arc;

use millpond_engine::catalog::TableDef;

pub(crate) use query_plan::{CteKind, CtePlan, KeptColumns, Modify, RowChange, SubPlan};
pub use query_plan::{QueryPlan, SlotKind};

use super::super::{Access, RowLock, SortKey};
use crate::analyze::tree::{
    AggregateCall, CteId, JoinKind, SetFunction, SetOperator, Slot, Window,
};
use crate::expr::Expr;

/// A step of a plan.
#[derive(Debug)]
pub enum Node {
    /// One row without columns, if the condition holds.
    Result {
        filter: Option<Expr>,
    },
    /// Rows of a table: Seq Scan, Index Scan.
    Scan(Scan),
    /// Sample Scan: rows of a table by chance.
    Sample(Box<Sample>),
    /// VALUES.
    Values {
        slot: Slot,
        rows: Vec<Vec<Expr>>,
    },
    /// Function Scan.
    Functions {
        slot: Slot,
        functions: Vec<SetFunction>,
        with_ordinality: bool,
    },
    /// CTE Scan.
    Cte {
        slot: Slot,
        cte: CteId,
        /// It is a query within a recursive step, and its rows change with each round.
        varies: bool,
    },
    /// WorkTable Scan.
    WorkTable {
        slot: Slot,
        cte: CteId,
    },
    /// Computes a row into a slot: what a subquery, or one side of a set operation, returns.
    Project {
        input: Box<Node>,
        slot: Slot,
        exprs: Vec<Expr>,
    },
    Filter {
        input: Box<Node>,
        condition: Expr,
    },
    NestedLoop(Box<NestedLoop>),
    HashJoin(Box<HashJoin>),
    /// Keeps rows, so that they can be read again.
    Materialize {
        input: Box<Node>,
    },
    /// Sort; with `bound` only that many rows are wanted (Top-N). Rows come in the order of the
    /// first `presorted` keys: if that is not 0, only rows that are equal in these are sorted
    /// together (Incremental Sort).
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
        presorted: usize,
        bound: Option<Bound>,
        /// Threads may sort what they read.
        in_parts: bool,
    },
    Limit(Box<Limit>),
    /// Drops rows that are equal to one before them in these expressions. With `sorted` equal
    /// rows come one after the other (Unique); otherwise they are hashed.
    Distinct {
        input: Box<Node>,
        keys: Vec<Expr>,
        sorted: bool,
    },
    Aggregate(Box<Aggregate>),
    /// Rows are sorted by partition, then in the window's order.
    Window {
        input: Box<Node>,
        window: Window,
    },
    /// The rows of all inputs, one after the other. Each input has its row in the slot beside it,
    /// which is taken over to `slot`. The sides of an OR over one table have it there already.
    Append {
        slot: Slot,
        inputs: Vec<(Node, Slot)>,
    },
    /// INTERSECT, EXCEPT; UNION without ALL is a Distinct of an Append.
    SetOp {
        slot: Slot,
        operator: SetOperator,
        all: bool,
        left: Box<(Node, Slot)>,
        right: Box<(Node, Slot)>,
    },
    LockRows(Box<LockRows>),
}

/// Locks the rows of some slots.
#[derive(Debug)]
pub struct LockRows {
    pub(crate) input: Node,
    pub(crate) locks: Vec<(Slot, RowLock)>,
    /// The slots of each left join's right side, and what ties them to the left side. If a row that
    /// has changed meanwhile no longer meets that, they are NULL.
    pub(crate) outer_joins: Vec<(Vec<Slot>, Expr)>,
    /// What a row that has changed meanwhile must meet.
    pub(crate) condition: Option<Expr>,
}

impl LockRows {
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.outer_joins.iter().map(|(_, on)| on).chain(&self.condition)
    }

    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.outer_joins.iter_mut().map(|(_, on)| on).chain(&mut self.condition)
    }
}

/// How many rows are wanted of a sort: LIMIT plus OFFSET.
#[derive(Debug, Clone)]
pub struct Bound {
    pub(crate) limit: Expr,
    pub(crate) offset: Option<Expr>,
}

/// Rows of a table by an access path.
#[derive(Debug)]
pub struct Scan {
    pub slot: Slot,
    pub table: Arc<TableDef>,
    pub(crate) alias: String,
    /// Keys may use columns of slots that outer nodes have filled.
    pub access: Access,
    pub filter: Option<Expr>,
    /// Several cores may run it: see `gather`.
    pub(crate) gathers: bool,
    /// How many of its rows are read, as far as the plan knows.
    pub(crate) demand: Demand,
}

/// How many rows of a scan are read. Rows that an index finds on one page are looked up together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It may end with any row.
    #[default]
    First,
    /// It may end with any row that meets its filter.
    Few,
    All,
}

impl Demand {
    /// How many are looked up together at first.
    pub(crate) fn at_first(self) -> usize {
        match self {
            Demand::First => 1,
            // What one row more costs is small beside another look at the page.
            Demand::Few => 6,
            Demand::All => usize::MAX,
        }
    }
}

/// Some rows of a table: see `TableSample` of the query tree.
#[derive(Debug)]
pub struct Sample {
    pub(crate) slot: Slot,
    pub(crate) table: Arc<TableDef>,
    pub(crate) alias: String,
    pub(crate) is_system: bool,
    pub(crate) percent: Expr,
    pub(crate) seed: Option<Expr>,
}

impl Sample {
    /// Its numbers.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.percent).chain(&self.seed)
    }
}

/// For each row of the outer side the inner side is run again, which may use the outer row.
#[derive(Debug)]
pub struct NestedLoop {
    /// Not Right nor Full.
    pub kind: JoinKind,
    pub outer: Node,
    pub inner: Node,
    /// What else must hold for rows to match.
    pub on: Option<Expr>,
    /// Several cores may run it together with what is below it on the outer side: see `gather`.
    pub(crate) gathers: bool,
}

impl NestedLoop {
    /// A join that the session runs.
    pub fn new(kind: JoinKind, outer: Node, inner: Node, on: Option<Expr>) -> Self {
        Self { kind, outer, inner, on, gathers: false }
    }
}

/// The rows of the inner side are hashed by their keys. All kinds of joins.
#[derive(Debug)]
pub struct HashJoin {
    pub kind: JoinKind,
    pub outer: Node,
    pub inner: Node,
    /// Pairs of expressions that must be equal: of an outer row, of an inner row.
    pub keys: Vec<(Expr, Expr)>,
    /// What else must hold for rows to match.
    pub on: Option<Expr>,
    /// Of a semi-join or an anti-join: inner rows are given, when all outer rows have been looked
    /// at, and not outer ones.
    pub gives_inner: bool,
    /// Several cores may run it together with what is below it on the outer side: see `gather`.
    pub(crate) gathers: bool,
}

impl HashJoin {
    /// A join that the session runs, and that gives outer rows.
    pub fn new(
        kind: JoinKind,
        (outer, inner): (Node, Node),
        keys: Vec<(Expr, Expr)>,
        on: Option<Expr>,
    ) -> Self {
        Self { kind, outer, inner, keys, on, gives_inner: false, gathers: false }
    }

    /// Whether one match of an outer row decides, and a condition beside the key says which rows
    /// match.
    pub(crate) fn seeks_one(&self) -> bool {
        self.only_drops() && !self.gives_inner && self.on.is_some()
    }

    /// Whether it only drops rows of one side.
    pub(crate) fn only_drops(&self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }
}

/// LIMIT and OFFSET.
#[derive(Debug)]
pub struct Limit {
    pub(crate) input: Node,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// WITH TIES: rows that are equal to the last one in these keys follow it.
    pub(crate) ties: Option<Vec<SortKey>>,
}

/// Groups of rows and aggregates over them: see `Grouping` of the query tree.
#[derive(Debug)]
pub struct Aggregate {
    pub input: Node,
    pub slot: Slot,
    pub keys: Vec<Expr>,
    pub(crate) sets: Option<Vec<Vec<usize>>>,
    pub calls: Vec<AggregateCall>,
    /// For each call the first one that takes the same values in: see [`Aggregate::state_of`].
    pub(crate) states: Vec<usize>,
    pub grouping: Vec<Vec<usize>>,
    pub(crate) strategy: Strategy,
    /// How many rows it is thought to aggregate.
    pub(crate) input_rows: f64,
    /// Whether a second executor may run it, if there is one.
    pub(crate) accelerated: Acceleration,
    /// Whether threads that read its input may aggregate what they read, and the session what
    /// they give.
    pub(crate) in_parts: bool,
}

/// Whether a second executor may run something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acceleration {
    No,
    /// It would take longer.
    Possible,
    Worthwhile,
}

impl Acceleration {
    /// Whether it is to run it, by the setting `accelerator`.
    pub(crate) fn is_wanted(self, setting: &str) -> bool {
        match self {
            Self::No => false,
            Self::Possible => setting == "force",
            Self::Worthwhile => setting != "off",
        }
    }
}

impl Aggregate {
    /// The call whose state has what a call takes in: a sum and an average of the same values
    /// differ only at the end.
    #[inline]
    pub(crate) fn state_of(&self, call: usize) -> usize {
        self.states.get(call).copied().unwrap_or(call)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// One group, also of no rows.
    Plain,
    /// Rows come sorted by the keys.
    Sorted,
    Hashed,
}
