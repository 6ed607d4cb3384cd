//! PostgreSQL as an oracle: statements run on it and on Millpond, and their answers are compared.
//!
//! [`Postgres`] is a private PostgreSQL in a temporary directory. [`Client`] speaks the simple
//! protocol to either server. [`statements`] splits a script of psql. [`compare`] judges two
//! answers. The crate depends on nothing of Millpond, so every test may use it.
#![forbid(unsafe_code)]

mod answer;
mod client;
mod compare;
mod postgres;
mod script;

pub use answer::{Answer, Column, Refusal};
pub use client::{Client, Transaction};
pub use compare::{Verdict, compare};
pub use postgres::Postgres;
pub use script::{Statement, is_ordered, statements, words};
