//! Tests of the pool as a whole.

mod basics;
mod failures;
mod stress;
mod support;
