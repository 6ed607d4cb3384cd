//! Statements and what they answer, as PostgreSQL would.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod activity;
mod answers;
mod bounds;
mod calls;
mod catalog;
mod concurrency;
mod first_groups;
mod functions;
mod indexes;
mod joins;
mod joins_by_batch;
mod limits;
mod lists;
mod locks;
mod long_work;
mod moments;
mod nulls;
mod ors;
mod parameters;
mod queries;
mod ranges;
#[cfg(feature = "datafusion")]
mod restart;
mod row_locks;
mod rows;
mod session;
mod spills;
mod styles;
mod subqueries;
mod time_zones;
mod transactions;
mod unused_joins;
mod vacuum;
