//! The mutants of `millpond-buffer`, whose rules are in its README.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-buffer", Build::Plain);
const SHUTTLE: (&str, Build) = ("millpond-buffer", Build::Shuttle);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "pool-exclusive-latch-of-a-damaged-page",
        "pool rule 6",
        PLAIN,
        "tests::damage::a_pin_from_before_the_damage_leads_to_no_bytes",
    ),
    mutant(
        "pool-load-without-second-check",
        "pool rule 4",
        SHUTTLE,
        "shuttle_tests::demand::dropping_beside_loads",
    ),
];
