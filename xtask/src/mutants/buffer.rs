//! The mutants of `millpond-buffer`, whose rules are in its RULES.md.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-buffer", Build::Plain);
const LOOM: (&str, Build) = ("millpond-buffer", Build::Loom);
const SHUTTLE: (&str, Build) = ("millpond-buffer", Build::Shuttle);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "pool-read-without-tag",
        "pool rule 1",
        LOOM,
        "models::an_optimistic_read_is_of_its_page",
    ),
    mutant(
        "pool-entry-read-relaxed",
        "pool rule 3",
        LOOM,
        "models::a_page_whose_entry_is_seen_is_found",
    ),
    mutant(
        "pool-load-end-relaxed",
        "pool rule 3",
        LOOM,
        "models::a_page_whose_entry_is_seen_is_found",
    ),
    mutant(
        "pool-load-begin-relaxed",
        "pool rule 3",
        LOOM,
        "models::beside::what_is_absent_is_in_the_store",
    ),
    mutant("pool-publish-relaxed", "pool rule 3", LOOM, "models::a_pin_of_the_next_page"),
    mutant(
        "pool-publish-state-before-version",
        "pool rule 3",
        LOOM,
        "models::beside::a_writer_and_a_page_that_comes_back",
    ),
    mutant("pool-publish-before-pin", "pool rule 3", LOOM, "models::one_of_two_evictors"),
    mutant(
        "pool-publish-without-raw-pin",
        "pool rule 3",
        LOOM,
        "models::a_page_that_is_read_ahead_and_leaves",
    ),
    mutant(
        "pool-raw-unpin-relaxed",
        "pool rule 3",
        LOOM,
        "models::a_page_that_is_read_ahead_and_leaves",
    ),
    mutant(
        "pool-push-relaxed",
        "pool rule 3",
        LOOM,
        "models::structures::an_owner_sees_what_the_last_one_did",
    ),
    mutant(
        "pool-pop-relaxed",
        "pool rule 3",
        LOOM,
        "models::structures::an_owner_sees_what_the_last_one_did",
    ),
    mutant(
        "pool-freelist-without-count",
        "pool rule 3",
        LOOM,
        "models::structures::a_list_that_was_emptied_and_refilled",
    ),
    mutant(
        "pool-retire-without-fence",
        "pool rule 3",
        LOOM,
        "models::structures::a_frame_that_retires_beside_growth_is_free_again",
    ),
    mutant(
        "pool-resize-without-fence",
        "pool rule 3",
        LOOM,
        "models::structures::a_frame_that_retires_beside_growth_is_free_again",
    ),
    mutant(
        "pool-retire-without-second-look",
        "pool rule 3",
        LOOM,
        "models::structures::a_frame_that_retires_beside_growth_is_free_again",
    ),
    mutant(
        "pool-park-without-look",
        "pool rule 3",
        SHUTTLE,
        "shuttle_tests::one_loader_and_its_waiters",
    ),
    mutant(
        "pool-load-without-barrier",
        "pool rule 4",
        LOOM,
        "models::structures::a_load_beside_a_drop",
    ),
    mutant(
        "pool-cut-without-barrier",
        "pool rule 4",
        LOOM,
        "models::structures::a_load_beside_a_truncation",
    ),
    mutant(
        "pool-load-without-second-check",
        "pool rule 4",
        LOOM,
        "models::structures::a_load_beside_a_drop",
    ),
    mutant(
        "pool-blocks-read-relaxed",
        "pool rule 4",
        LOOM,
        "models::structures::a_block_that_is_there_is_in_the_store",
    ),
    mutant(
        "pool-blocks-set-relaxed",
        "pool rule 4",
        LOOM,
        "models::structures::a_block_that_is_there_is_in_the_store",
    ),
    mutant(
        "pool-filling-without-fence",
        "pool rule 5",
        LOOM,
        "models::a_frame_that_another_thread_fills",
    ),
    mutant(
        "pool-resume-without-fence",
        "pool rule 5",
        PLAIN,
        "tests::basics::a_frame_is_fenced_before_it_is_filled",
    ),
    mutant(
        "pool-lend-without-fence",
        "pool rule 5",
        PLAIN,
        "tests::turns::thread_that_fills_frames_makes_the_fence",
    ),
    mutant(
        "pool-exclusive-latch-of-a-damaged-page",
        "pool rule 6",
        PLAIN,
        "tests::damage::a_pin_from_before_the_damage_leads_to_no_bytes",
    ),
    mutant("pool-own-dirty", "pool rule 7", LOOM, "models::beside::a_claim_beside_a_change"),
    mutant(
        "pool-two-writes-of-a-page",
        "pool rule 7",
        LOOM,
        "models::beside::two_writers_that_write_back",
    ),
    mutant(
        "pool-reclaimer-sleeps-without-fence",
        "pool rule 10",
        LOOM,
        "models::structures::a_frame_that_is_taken_wakes_a_reclaimer_that_falls_asleep",
    ),
    mutant("pool-claims-of-others", "pool rule 12", LOOM, "models::one_of_two_evictors"),
    mutant(
        "pool-own-pinned",
        "pool rule 12",
        LOOM,
        "models::beside::a_pin_in_passing_beside_an_evictor",
    ),
    mutant("pool-pin-without-barrier", "pool rule 12", LOOM, "models::a_pin_keeps_the_page"),
    mutant("pool-admit-relaxed", "pool rule 12", LOOM, "models::a_pin_of_the_next_page"),
    mutant("pool-unclaim-without-tag", "pool rule 12", LOOM, "models::a_pin_of_the_next_page"),
    mutant("pool-unpin-relaxed", "pool rule 12", LOOM, "models::a_pin_keeps_the_page"),
    mutant(
        "pool-scan-upwards",
        "pool rule 12",
        LOOM,
        "models::structures::slots_move_beside_a_scan",
    ),
    mutant(
        "pool-grow-slots-relaxed",
        "pool rule 12",
        LOOM,
        "models::structures::slots_grow_beside_a_scan",
    ),
    mutant(
        "pool-second-pin-without-tag",
        "pool rule 12",
        PLAIN,
        "tests::basics::a_second_pin_looks_at_the_page_too",
    ),
    mutant(
        "pool-shrink-slots-in-use",
        "pool rule 12",
        PLAIN,
        "core::pins::tests::large_tables_are_not_left_while_in_use",
    ),
    mutant(
        "pool-settle-without-look",
        "pool rule 12",
        PLAIN,
        "tests::failures::a_refused_barrier_is_an_error_and_few_lines_in_the_log",
    ),
    mutant(
        "pool-latch-without-barrier",
        "pool rule 13",
        LOOM,
        "models::beside::a_latch_keeps_the_page",
    ),
    mutant(
        "pool-look-at-pins-before-latches",
        "pool rule 13",
        LOOM,
        "models::beside::a_latch_becomes_a_pin",
    ),
    mutant(
        "pool-unlatch-before-pin",
        "pool rule 13",
        LOOM,
        "models::beside::a_latch_becomes_a_pin",
    ),
];
