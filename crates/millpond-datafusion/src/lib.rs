#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod checked;
mod column;
mod engine;
mod errors;
mod interrupt;
mod memory;
mod row_function;
mod run;
mod spill;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod threads;
mod translate;
mod types;

pub use engine::DataFusion;
