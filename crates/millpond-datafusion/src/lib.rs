#![doc = include_str!("../README.md")]
//!
//! Every `SELECT` that is not key access: Apache DataFusion over the engine's tables.
//!
//! ```text
//! parsed query --rewrite--> --SqlToRel over planner::Names--> logical plan
//!     --optimizer--> QueryPlan
//! QueryPlan + parameters + TableScanner --physical planner--> streams of batches
//!     --> RowStream --> rows
//! ```
//!
//! - [`planner`]: names, types and functions; one shared session state.
//! - [`plan`]: a plan kept with a statement, and a run of it.
//! - [`provider`]: tables, scanned in parts under the statement's snapshot; [`filter`] drops rows
//!   early.
//! - [`views`]: the system relations. [`functions`]: PostgreSQL's functions that DataFusion lacks.
//! - [`types`], [`batch`], [`result`], [`params`]: rows to Arrow and back.
//! - [`bounded`]: functions that can make long text of short arguments.
//! - [`dialect`]: PostgreSQL's meaning of literals, integer arithmetic, sums and averages.
//! - [`text`]: a query's text to sqlparser's tree. [`rewrite`]: PostgreSQL's spelling to
//!   DataFusion's.
//! - [`threads`]: the threads that runs compute on; [`interrupt`]: how they learn that a run is to
//!   end.
//!
//! Nothing here writes. Blocking calls belong on a thread that may block.

#![forbid(unsafe_code)]

mod batch;
mod bounded;
mod dialect;
mod errors;
mod filter;
mod functions;
mod interrupt;
mod memory;
mod params;
mod plan;
mod planner;
mod provider;
mod result;
mod rewrite;
mod spill;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod types;
mod views;
mod windows;

pub use plan::QueryPlan;
pub use planner::Planner;
