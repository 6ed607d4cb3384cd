//! Statements and what they answer, as PostgreSQL would.

#[path = "../common/mod.rs"]
mod common;

mod activity;
mod concurrency;
mod indexes;
mod limits;
mod locks;
#[cfg(feature = "datafusion")]
mod restart;
mod row_locks;
mod rows;
mod session;
mod time_zones;
mod transactions;
mod vacuum;
