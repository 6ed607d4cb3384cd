//! PostgreSQL's functions that DataFusion lacks: what clients ask of the catalogs.
//!
//! Three groups, by what they depend on. Those of [`fixed`] depend on nothing, those of [`catalog`]
//! on the catalog's state, so each plan makes them anew. Those of [`session`] are placeholders in a
//! plan that each run replaces. They work value by value: catalogs are small.

mod arrays;
mod catalog;
mod fixed;
mod locks;
mod scalar;
mod session;
mod single_value;

pub use catalog::of_catalog;
pub use locks::{LockCall, LockCalls};
pub use session::{asks_session, bind_session};
pub use single_value::NAME as SINGLE_VALUE;

use datafusion::error::Result as DfResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::AggregateUDF;

use single_value::SingleValue;

/// Puts the functions into the state that all plans share.
pub fn register(state: &mut SessionState) -> DfResult<()> {
    for function in fixed::all().into_iter().chain(session::placeholders()) {
        state.register_udf(function)?;
    }
    // DataFusion's templates are not PostgreSQL's, and `levenshtein` is of an extension.
    for name in ["to_char", "to_date", "levenshtein"] {
        state.deregister_udf(name)?;
    }
    state.register_udaf(AggregateUDF::from(SingleValue::default()).into())?;
    Ok(())
}
