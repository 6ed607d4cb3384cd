//! File names of relation forks: `16384`, `16384_fsm`, `16384_vm.3`.
//!
//! The relation's number in decimal, a suffix for every fork but the main one, and the number of the
//! segment unless it is the first. Nothing else in the directory is ever read as a relation.

use std::path::{Path, PathBuf};

use crate::ids::{Fork, RelFork, RelationId};

/// The suffix of a fork's files; empty for the main fork.
fn suffix(fork: Fork) -> &'static str {
    match fork {
        Fork::Main => "",
        Fork::Fsm => "_fsm",
        Fork::Vm => "_vm",
        Fork::Init => "_init",
    }
}

/// The path of one segment of a fork.
pub(super) fn segment_path(dir: &Path, rel: RelFork, segment: u32) -> PathBuf {
    let number = rel.relation.get();
    let suffix = suffix(rel.fork);
    if segment == 0 {
        dir.join(format!("{number}{suffix}"))
    } else {
        dir.join(format!("{number}{suffix}.{segment}"))
    }
}

/// Reads a name written by [`segment_path`]; `None` for any other name.
pub(super) fn parse(name: &str) -> Option<(RelFork, u32)> {
    let (stem, segment) = match name.split_once('.') {
        Some((stem, number)) => (stem, decimal(number).filter(|&n| n > 0)?),
        None => (name, 0),
    };
    let (number, fork) = match stem.split_once('_') {
        None => (stem, Fork::Main),
        Some((number, "fsm")) => (number, Fork::Fsm),
        Some((number, "vm")) => (number, Fork::Vm),
        Some((number, "init")) => (number, Fork::Init),
        Some(_) => return None,
    };
    let relation = RelationId::new(decimal(number)?)?;
    Some((RelFork { relation, fork }, segment))
}

/// A decimal number as `format!` prints it: no sign, no leading zero.
fn decimal(text: &str) -> Option<u32> {
    let canonical =
        text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    if canonical { text.parse().ok() } else { None }
}
