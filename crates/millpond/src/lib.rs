//! Millpond: an embeddable SQL database that speaks PostgreSQL's dialect.
//!
//! ```no_run
//! use millpond::{Database, Settings, Value};
//!
//! let database = Database::open("./millpond-data", Settings::default())?;
//! let mut connection = database.connect()?;
//! connection.execute("CREATE TABLE IF NOT EXISTS pets (id int PRIMARY KEY, name text)", &[])?;
//! connection.execute("INSERT INTO pets VALUES ($1, $2)", &[Value::Int4(1), Value::from("Rex")])?;
//! let rows = connection.query("SELECT name FROM pets WHERE id = $1", &[Value::Int4(1)])?;
//! assert_eq!(rows.rows[0][0], Value::from("Rex"));
//! # Ok::<(), millpond::SqlError>(())
//! ```
//!
//! A [`Database`] is opened once for a directory; every thread of work has its own [`Connection`].
//! The simple calls ([`Connection::execute`], [`Connection::query`], [`Connection::batch`]) block
//! until they are done. A server calls those that don't instead: see [`conn`].
#![forbid(unsafe_code)]

mod advisory;
mod analyze;
pub mod conn;
mod convert;
pub mod copy;
mod database;
#[cfg(feature = "datafusion")]
mod datafusion;
pub mod error;
mod exec;
mod expr;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod lex;
mod memory;
mod parse;
mod plan;
pub mod query;
mod relation_size;
mod run;
pub mod settings;
mod sink;
pub mod statistics;
mod system_relations;
pub mod types;

/// The README's example, to be compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What `version()` answers and clients see of the server: a PostgreSQL whose protocol and catalogs
/// are meant.
pub const VERSION_STRING: &str =
    concat!("PostgreSQL 15.0 (Millpond ", env!("CARGO_PKG_VERSION"), ")");

pub use conn::{
    CancelHandle, CommitTicket, ConnectOptions, Connection, Executed, Params, Portal, Prepared,
    Rows, TransactionStatus,
};
pub use database::Database;
pub use error::{Result, Severity, SqlError, SqlState};
pub use millpond_buffer::Wait;
pub use millpond_engine::types::{DataType, Datum, Numeric, NumericRef, Value};
pub use settings::{SessionSettings, Settings};
pub use sink::{ColumnDesc, CommandTag, CopyFormat, RowSink};
