//! The mutants of `millpond-engine`, whose rules are in the READMEs of its parts.

use super::{Mutant, engine_access, engine_locks, engine_log, engine_transactions};

/// One table for each part.
const PARTS: &[&[Mutant]] = &[
    engine_access::MUTANTS,
    engine_locks::MUTANTS,
    engine_log::MUTANTS,
    engine_transactions::MUTANTS,
];

pub(super) fn mutants() -> Vec<Mutant> {
    PARTS.concat()
}
