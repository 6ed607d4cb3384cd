//! What the tests of the wire share.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod raw;
pub mod scripted;
pub mod server;
