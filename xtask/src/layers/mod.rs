//! Checks the layers: the direction of dependency between crates, and that the modules of a crate
//! form no circle.
//!
//! The modules of one folder must form a tree of uses, and so must the folders beside it: each
//! folder counts as one module there. A folder's own file (`mod.rs`) isn't compared with what lies
//! in the folder. A child may use its parent's items, and the parent may show its child's.

mod circles;
mod crates;
mod exceptions;
mod graph;
mod methods;
mod modules;
#[cfg(test)]
mod tests;
mod uses;

use crate::run::Failed;

/// Fails with the first crate that points the wrong way, or with all circles of modules.
pub fn check() -> Result<(), Failed> {
    crates::check()?;
    circles::check()
}
