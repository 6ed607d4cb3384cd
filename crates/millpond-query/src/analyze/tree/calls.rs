//! Calls of aggregate and window functions.

use super::Slot;
use crate::DataType;
use crate::error::Result;
use crate::expr::{Env, Expr};
use crate::plan::SortKey;

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    pub function: AggregateFunction,
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// The order in which rows are taken in.
    pub(crate) order_by: Vec<SortKey>,
    pub filter: Option<Expr>,
    /// The type of its result.
    pub ty: DataType,
}

/// What an aggregate computes. The types of its arguments are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `count(*)`
    CountRows,
    Count,
    Sum,
    Min,
    Max,
    Avg,
    BoolAnd,
    BoolOr,
    BitAnd,
    BitOr,
    BitXor,
    /// `string_agg(value, separator)`
    StringAgg,
    ArrayAgg,
    /// `array_agg` of arrays, none of which may be NULL
    ArrayAggOfArrays,
    /// `json_agg`, `jsonb_agg`
    JsonList(JsonKind),
    /// `json_object_agg`, `jsonb_object_agg`, of names and values
    JsonObject(JsonKind),
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    /// `corr`, `covar_pop` and the other functions of two numbers
    Regression(Regression),
    /// The ordered-set aggregates: the sort key is in `order_by`, the fraction in `args`.
    PercentileCont,
    PercentileDisc,
    Mode,
    /// `rank` and the like, of a row that `args` have: where it would be among the sorted rows.
    Hypothetical(Hypothetical),
}

/// What is asked of a row that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hypothetical {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

/// The two types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    Json,
    Jsonb,
}

/// An aggregate over pairs of numbers `(y, x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regression {
    Corr,
    CovarPop,
    CovarSamp,
    AvgX,
    AvgY,
    Count,
    Intercept,
    R2,
    Slope,
    Sxx,
    Sxy,
    Syy,
}

impl AggregateCall {
    /// The same for rows that all see the same parameters: see [`Expr::folded`].
    pub(crate) fn folded(&self, env: &Env<'_>) -> Result<Self> {
        let args = self.args.iter().map(|arg| arg.clone().folded(env));
        let filter = self.filter.clone().map(|filter| filter.folded(env)).transpose()?;
        Ok(Self { args: args.collect::<Result<_>>()?, filter, ..self.clone() })
    }
}

/// Window functions that share partitions, order and frame.
#[derive(Debug, Clone)]
pub struct Window {
    /// Its result: a column for each call.
    pub(crate) slot: Slot,
    pub(crate) partition_by: Vec<Expr>,
    pub(crate) order_by: Vec<SortKey>,
    pub(crate) frame: Frame,
    pub(crate) calls: Vec<WindowCall>,
}

/// A call of a window function.
#[derive(Debug, Clone)]
pub(crate) struct WindowCall {
    pub(crate) function: WindowFunction,
    pub(crate) args: Vec<Expr>,
    pub(crate) filter: Option<Expr>,
    pub(crate) ty: DataType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggregateFunction),
}

/// The rows around a row that a window function sees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) mode: FrameMode,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) exclude: Exclude,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameMode {
    Rows,
    Range,
    Groups,
}

/// An end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}
