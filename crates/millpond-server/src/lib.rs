//! PostgreSQL's wire protocol, and the `millpond` command.
//!
//! ```text
//!            acceptor          one thread per core              one thread per blocked connection
//!  clients ───────────▶  event loop: read, decode, run  ──block──▶  blocking pool
//!                             ▲        │ Wait::Never      ◀─done──   Wait::Allowed
//!                             │        ▼
//!                             └── log: commit is durable
//! ```
//!
//! * [`wire`][]: encodes and decodes messages
//! * [`proto`][]: applies messages to a session
//! * [`run`][]: event loops, the blocking pool, the acceptor
//! * [`backend`][]: the interface to the database
//! * [`net`][]: sockets
//! * [`cli`][]: the command line
//!
//! `millpond replay` and `millpond bench` come from the crate `millpond-lab` (feature `lab`).
#![forbid(unsafe_code)]

pub mod backend;
pub mod cli;
pub mod commands;
pub mod net;
pub mod proto;
pub mod run;
pub mod wire;
