//! PostgreSQL's wire protocol: bytes to messages and back. Nothing here knows a socket or a session.

pub mod buffer;
pub mod frontend;
pub mod reply;
pub mod rows;
pub mod startup;
