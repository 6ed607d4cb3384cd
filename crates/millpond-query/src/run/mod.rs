//! The pull executor: runs the nodes of [`plan::query`](crate::plan::query).
//!
//! Each node has a [state](state), which gives its rows one at a time in the plan's slots. A
//! [`Context`] has the slots' rows, and through it a node reaches the parameters, the subplans, the
//! queries of WITH and the session.

mod aggregate;
mod context;
mod cte;
mod datum_key;
mod distinct;
mod folded;
mod functions;
mod gather;
mod hash_join;
mod kept;
mod key_table;
mod limit;
mod lock_rows;
mod materialize;
mod nested_loop;
mod outer_batch;
mod overflow;
mod parts;
mod place_hash;
mod pool;
mod query;
mod recent_ints;
mod sample;
mod scan;
mod set_operation;
mod slots;
mod sort;
mod state;
mod subplan;
mod system_scan;
#[cfg(test)]
mod tests;
mod tids;
mod window;

pub(crate) use aggregate::{Accumulator, FloatMoments, Pairs, average_of};
pub(crate) use context::{Accelerated, Context, Work};
pub(crate) use folded::Folded;
pub use gather::planned_workers;
pub(crate) use pool::Pool;
pub(crate) use query::{Consumer, consume, run};
pub(crate) use slots::{SlotRow, SlotRows, Slots};
pub(crate) use window::in_range;

use crate::Value;
use crate::error::Result;
use crate::expr::{Env, SubPlanCall};

/// Runs the plans of subqueries within expressions.
pub trait SubPlans {
    /// The value of a subquery for the row of `env`.
    fn call(&self, call: &SubPlanCall, env: &Env<'_>) -> Result<Value>;
}
