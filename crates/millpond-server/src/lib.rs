//! PostgreSQL's wire protocol, and the `millpond` command.
//!
//! ```text
//!            acceptor            one per core                       as many as block
//!  clients ───────────▶  event loop: read, decode, run  ──block──▶  lane thread
//!                             ▲        │ Wait::Never      ◀─done──   Wait::Allowed
//!                             │        ▼
//!                             └── log: commit is durable
//! ```
//!
//! * [`wire`][]: bytes to messages and back
//! * [`proto`][]: what messages do to a session
//! * [`run`][]: event loops, lanes, the acceptor
//! * [`backend`][]: the seam to the database
//! * [`net`][]: sockets
//! * [`cli`][]: the command line
//! * [`replay`][]: page traces against replacement policies
//! * [`chart`][]: pictures of lines, for both
//! * [`mod@bench`][]: what statements write to shared memory, and how that scales
#![forbid(unsafe_code)]

pub mod backend;
pub mod bench;
pub mod chart;
pub mod cli;
pub mod commands;
pub mod net;
pub mod proto;
pub mod replay;
pub mod run;
pub mod wire;
