//! PostgreSQL's wire protocol: encodes and decodes messages, without sockets or sessions.

pub mod buffer;
pub mod frontend;
pub mod reply;
pub mod rows;
pub mod startup;
