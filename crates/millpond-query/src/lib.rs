#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "what is public is what the crate `millpond` uses; many names say all there is to say"
)]

pub mod advisory;
mod analyze;
pub mod cancel;
pub mod convert;
pub mod error;
pub mod exec;
pub mod expr;
pub mod lex;
pub mod memory;
pub mod parse;
pub mod plan;
pub mod query;
pub mod relation_size;
mod run;
pub mod scan_threads;
pub mod settings;
pub mod sink;
pub mod statistics;
pub mod system_relations;

pub use error::{Result, Severity, SqlError, SqlState};
use millpond_buffer::Wait;
pub use millpond_types::{DataType, Datum, Numeric, NumericRef, Value};
pub use sink::{ColumnDesc, CommandTag, CopyFormat, RowSink};

use millpond_types::format as types;

/// What `version()` answers and clients see of the server: a PostgreSQL whose protocol and catalogs
/// are meant.
pub const VERSION_STRING: &str =
    concat!("PostgreSQL 15.0 (Millpond ", env!("CARGO_PKG_VERSION"), ")");
