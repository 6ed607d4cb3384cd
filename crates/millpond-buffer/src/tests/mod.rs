//! Tests of the pool as a whole.

mod basics;
mod failures;
mod model;
mod stress;
mod support;
