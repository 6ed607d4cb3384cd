//! A synchronous transactional storage engine: log, transactions, locks, heap, B+tree.
#![forbid(unsafe_code)]

pub mod access;
