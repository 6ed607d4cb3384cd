//! The mutants of the engine's transactions, whose rules are in its README.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-engine", Build::Plain);
const LOOM: (&str, Build) = ("millpond-engine", Build::Loom);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "transam-ids-of-records-forgotten",
        "transam rule 1",
        PLAIN,
        "transam::tests::recovery::recovery_knows_which_transactions_committed",
    ),
    mutant(
        "transam-ids-given-out-again",
        "transam rule 1",
        PLAIN,
        "transam::tests::recovery::start_refuses_to_assign_transaction_ids_again",
    ),
    mutant(
        "transam-word-of-any-transaction",
        "transam rule 2",
        PLAIN,
        "transam::word::tests::only_the_running_transaction_changes_its_word",
    ),
    mutant(
        "transam-read-not-validated",
        "transam rule 3",
        LOOM,
        "transam::models::loom_ring_retirement_against_a_reader",
    ),
    mutant(
        "transam-empty-before-retired",
        "transam rule 3",
        LOOM,
        "transam::models::loom_ring_retirement_against_a_reader",
    ),
    mutant(
        "transam-retire-before-status-page",
        "transam rule 3",
        PLAIN,
        "transam::tests::status_pages::commits_that_leave_the_ring_are_in_the_status_pages",
    ),
    mutant(
        "transam-page-of-another-chunk",
        "transam rule 3",
        PLAIN,
        "transam::tests::status_pages::a_page_of_commit_numbers_answers_for_its_own_chunk_only",
    ),
    mutant(
        "transam-commit-without-mark",
        "transam rule 4",
        LOOM,
        "transam::models::loom_commit_and_snapshot_agree",
    ),
    mutant(
        "transam-mark-not-waited-for",
        "transam rule 4",
        LOOM,
        "transam::models::loom_commit_and_snapshot_agree",
    ),
    mutant(
        "transam-number-relaxed",
        "transam rule 4",
        LOOM,
        "transam::models::loom_commit_and_snapshot_agree",
    ),
    mutant(
        "transam-snapshot-without-fence",
        "transam rule 5",
        LOOM,
        "transam::models::loom_horizon_never_passes_a_snapshot",
    ),
    mutant(
        "transam-horizon-without-fence",
        "transam rule 5",
        LOOM,
        "transam::models::loom_horizon_never_passes_a_snapshot",
    ),
    mutant(
        "transam-draw-unannounced",
        "transam rule 6",
        LOOM,
        "transam::models::loom_oldest_running_id_never_passes_a_transaction",
    ),
    mutant(
        "transam-draw-relaxed",
        "transam rule 6",
        LOOM,
        "transam::models::loom_oldest_running_id_never_passes_a_transaction",
    ),
    mutant(
        "transam-seen-before-durable",
        "transam rule 7",
        PLAIN,
        "transam::tests::commits::a_commit_under_a_failing_log_is_in_doubt",
    ),
    mutant(
        "transam-files-before-durable",
        "transam rule 7",
        PLAIN,
        "transam::tests::commits::a_commit_in_the_background_waits_for_the_log_if_it_drops_files",
    ),
    mutant(
        "transam-commit-without-fence",
        "transam rule 8",
        LOOM,
        "transam::models::loom_checkpoint_waits_for_commits_before_its_redo_point",
    ),
    mutant(
        "transam-checkpoint-without-wait",
        "transam rule 8",
        LOOM,
        "transam::models::loom_checkpoint_waits_for_commits_before_its_redo_point",
    ),
    mutant(
        "transam-missing-page-is-rollback",
        "transam rule 9",
        PLAIN,
        "transam::tests::status_pages::a_status_page_that_is_missing_or_zeros_is_corruption",
    ),
    mutant(
        "transam-zeros-are-rollbacks",
        "transam rule 9",
        PLAIN,
        "transam::tests::status_pages::a_status_page_that_is_missing_or_zeros_is_corruption",
    ),
    mutant(
        "transam-status-page-left-zero",
        "transam rule 9",
        PLAIN,
        "transam::tests::status_pages::skipped_status_page_is_written",
    ),
    mutant(
        "transam-numbers-of-the-last-run",
        "transam rule 10",
        PLAIN,
        "transam::tests::status_pages::commit_numbers_do_not_outlive_a_run",
    ),
    mutant(
        "transam-needed-numbers-forgotten",
        "transam rule 10",
        PLAIN,
        "transam::tests::statuses_outlive_the_ring",
    ),
    mutant(
        "transam-doubt-is-rollback",
        "transam rule 11",
        PLAIN,
        "transam::tests::commits::a_commit_under_a_failing_log_is_in_doubt",
    ),
    mutant(
        "transam-later-commit-seen",
        "transam rule 12",
        PLAIN,
        "access::heap::visibility::tests::every_combination_is_seen_as_its_events_say",
    ),
    mutant(
        "transam-later-deletion-seen",
        "transam rule 12",
        PLAIN,
        "access::heap::visibility::tests::every_combination_is_seen_as_its_events_say",
    ),
];
