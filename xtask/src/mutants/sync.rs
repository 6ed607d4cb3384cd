//! The mutants of `millpond-sync`, whose rules are in its README.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-sync", Build::Plain);
const LOOM: (&str, Build) = ("millpond-sync", Build::Loom);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "version-write-begin-without-fence",
        "sync rule 5",
        LOOM,
        "models::version::a_validated_read_is_whole",
    ),
    mutant(
        "version-validate-without-fence",
        "sync rule 5",
        LOOM,
        "models::version::a_validated_read_is_whole",
    ),
    mutant(
        "version-write-end-relaxed",
        "sync rule 5",
        LOOM,
        "models::version::a_validated_read_is_not_stale",
    ),
    mutant(
        "version-read-begin-relaxed",
        "sync rule 5",
        LOOM,
        "models::version::a_validated_read_is_not_stale",
    ),
    mutant(
        "latch-without-bound",
        "sync rule 10",
        PLAIN,
        "latch::tests::a_latch_that_is_full_takes_no_reader",
    ),
    mutant("latch-leave-relaxed", "sync rule 2", LOOM, "models::plain::a_writer_and_two_readers"),
    mutant("latch-drain-relaxed", "sync rule 2", LOOM, "models::plain::two_writers_and_a_reader"),
    mutant("latch-claim-keeps-token", "sync rule 2", LOOM, "models::plain::three_writers"),
];
