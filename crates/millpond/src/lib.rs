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

mod cancel;
pub mod conn;
mod connections;
pub mod copy;
mod database;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod shared_plans;

/// The README's example, to be compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use cancel::CancelHandle;
pub use conn::{
    CommitTicket, ConnectOptions, Connection, Executed, Params, Portal, Prepared, Rows,
    TransactionStatus,
};
pub use database::Database;
pub use millpond_buffer::Wait;
pub use millpond_query::settings::{SessionSettings, Settings};
pub use millpond_query::{
    ColumnDesc, CommandTag, CopyFormat, Result, RowSink, Severity, SqlError, SqlState,
    VERSION_STRING, error, settings, statistics,
};
/// PostgreSQL's text and binary formats.
pub use millpond_types::format as types;
pub use millpond_types::{DataType, Datum, Numeric, NumericRef, Value};
