//! `millpond bench`: what statements write to memory that sessions share, and what follows from that.
//!
//! * [`workload`][]: a table, and statements on it through the engine's API, each a transaction
//! * `writes`: counting (with the feature `audit`): `millpond bench writes`
//! * [`profile`][]: which lines a statement takes from other cores: what was counted, and PostgreSQL's
//! * [`model`][]: cores that run statements and pass lines to one another: `millpond bench scale`
//! * [`scale`][]: what the model predicts, as text and as a picture
//! * [`measure`][]: the same statements on this machine, which the model is compared with

pub mod measure;
pub mod model;
pub mod profile;
pub mod scale;
#[cfg(all(test, feature = "audit"))]
mod tests;
pub mod workload;
#[cfg(feature = "audit")]
pub mod writes;
