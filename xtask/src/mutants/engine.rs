//! The mutants of `millpond-engine`, whose rules are in the READMEs of its parts.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[];
