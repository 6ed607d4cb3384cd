//! `millpond bench`: what statements write to memory that sessions share, and how that scales.
//!
//! - [`workload`][]: a table, and statements on it through the engine's API, each a transaction
//! - `writes`: counts the writes (with the feature `audit`): `millpond bench writes`
//! - [`profile`][]: which cache lines a statement takes from other cores: Millpond's and
//!   PostgreSQL's
//! - [`model`][]: cores that run statements and pass lines to one another: `millpond bench scale`
//! - [`scale`][]: the model's predictions, as text and as a chart
//! - [`measure`][]: runs the same statements on this machine, to compare with the model

mod command;
pub mod measure;
pub mod model;
pub mod profile;
pub mod scale;
#[cfg(all(test, feature = "audit"))]
mod tests;
pub mod workload;
#[cfg(feature = "audit")]
pub mod writes;

pub use command::bench;
