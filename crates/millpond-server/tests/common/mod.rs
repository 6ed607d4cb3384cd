//! Shared code of the server's tests.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod raw;
pub mod scripted;
pub mod server;
