//! The mutants of the engine's log, whose rules are in its README.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-engine", Build::Plain);
const SHUTTLE: (&str, Build) = ("millpond-engine", Build::Shuttle);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "wal-go-on-after-failed-redo",
        "wal rule 1",
        PLAIN,
        "wal::apply::tests::a_record_that_does_not_apply_stops_the_log",
    ),
    mutant(
        "wal-insert-before-mark",
        "wal rule 2",
        PLAIN,
        "wal::apply::tests::a_page_is_marked_dirty_before_its_record_is_inserted",
    ),
    mutant(
        "wal-records-share-words",
        "wal rule 3",
        PLAIN,
        "wal::tests::many_sessions_insert_and_every_record_is_read_back_in_order",
    ),
    mutant(
        "wal-wait-for-room-with-old-bound",
        "wal rule 4",
        SHUTTLE,
        "wal::models::with_shuttle::inserter_waits_for_room",
    ),
    mutant(
        "wal-wait-for-slot-before-write",
        "wal rule 4",
        SHUTTLE,
        "wal::models::write_ahead::leader_and_sessions_waiting_for_room_do_not_deadlock",
    ),
    mutant(
        "wal-record-of-another-place",
        "wal rule 5",
        PLAIN,
        "wal::record::tests::record_at_another_position_is_refused",
    ),
    mutant(
        "wal-checksum-without-position",
        "wal rule 5",
        PLAIN,
        "wal::record::tests::record_with_overwritten_position_is_refused",
    ),
    mutant(
        "wal-later-claim-ignored",
        "wal rule 6",
        PLAIN,
        "log::a_log_that_is_damaged_before_its_end_stops_the_start",
    )
    .in_target("damage"),
    mutant(
        "wal-quiet-end-without-mark",
        "wal rule 6",
        PLAIN,
        "wal::tests::durable_mark_distinguishes_damage_from_a_torn_tail",
    ),
    mutant(
        "wal-sync-again",
        "wal rule 7",
        SHUTTLE,
        "wal::models::write_ahead::nothing_is_confirmed_after_a_failed_sync",
    ),
    mutant(
        "wal-look-for-stop-before-slots",
        "wal rule 7",
        SHUTTLE,
        "wal::models::write_ahead::no_hole_is_written",
    ),
    mutant(
        "wal-reserve-for-all",
        "wal rule 8",
        PLAIN,
        "wal::tests::failing_files::a_process_without_descriptors_does_not_stop_the_log",
    ),
    mutant(
        "wal-sync-names-again",
        "wal rule 8",
        PLAIN,
        "wal::tests::failing_files::a_failed_sync_of_the_directory_is_not_repeated_and_loses_no_commit",
    ),
    mutant(
        "wal-forget-before-control-file",
        "wal rule 9",
        PLAIN,
        "maintenance::tests::a_checkpoint_forgets_log_after_it_has_written_the_control_file",
    ),
    mutant(
        "wal-start-without-number",
        "wal rule 10",
        PLAIN,
        "system::a_damaged_copy_of_the_control_file_is_mended",
    )
    .in_target("damage"),
    mutant(
        "wal-record-of-an-earlier-start",
        "wal rule 10",
        PLAIN,
        "wal::tests::starts::a_record_of_an_earlier_start_ends_the_log",
    ),
    mutant(
        "wal-insert-during-redo",
        "wal rule 11",
        PLAIN,
        "wal::tests::starts::an_insertion_during_redo_is_refused",
    ),
    mutant(
        "wal-page-before-log",
        "wal rule 12",
        PLAIN,
        "wal::apply::tests::a_page_is_written_after_its_log",
    ),
    mutant(
        "wal-tail-not-synced",
        "wal rule 13",
        PLAIN,
        "wal::tests::starts::a_start_syncs_the_log_that_it_has_read",
    ),
    mutant(
        "wal-tail-not-written-again",
        "wal rule 13",
        ("millpond-sim", Build::Plain),
        "failed_syncs::log_that_a_start_has_read_survives_a_failed_sync_before",
    )
    .in_target("whole"),
    mutant(
        "wal-torn-hint-is-damage",
        "wal rule 14",
        PLAIN,
        "access::heap::tests::free_space_map::a_torn_page_of_the_map_is_begun_anew",
    ),
    mutant(
        "wal-gather-in-silence",
        "wal rule 15",
        PLAIN,
        "wal::tests::gathering::log_thread_syncs_when_enough_has_gathered",
    ),
    mutant(
        "wal-create-unseen",
        "wal rule 16",
        PLAIN,
        "wal::storage::tests::a_checkpoint_waits_for_the_file_of_a_logged_creation",
    ),
    mutant(
        "wal-owed-cut-forgotten",
        "wal rule 16",
        PLAIN,
        "wal::storage::tests::checkpoint_logs_a_failed_truncation_again",
    ),
    mutant(
        "wal-new-block-not-noted",
        "wal rule 17",
        PLAIN,
        "wal::apply::tests::the_table_of_forks_has_a_block_whose_first_record_is_inserted",
    ),
    mutant(
        "wal-zeros-are-a-page",
        "wal rule 18",
        PLAIN,
        "settling::every_kind_of_read_reports_zeroed_pages",
    )
    .in_target("damage"),
    mutant("wal-any-length", "wal rule 18", PLAIN, "matrix::damage_to_a_heap").in_target("damage"),
    mutant(
        "wal-redo-on-zeros",
        "wal rule 18",
        PLAIN,
        "recovery::redo::tests::a_page_of_zeros_is_reported_and_left_alone",
    ),
    mutant(
        "wal-rows-beyond-the-end-cut",
        "wal rule 18",
        PLAIN,
        "settling::a_file_longer_than_its_table_is_cut_if_the_rest_is_zeros",
    )
    .in_target("damage"),
    mutant(
        "wal-uncommitted-files-stay",
        "wal rule 19",
        PLAIN,
        "settling::start_removes_files_of_uncommitted_transactions",
    )
    .in_target("damage"),
    mutant(
        "wal-quarantine-not-synced-first",
        "wal rule 19",
        ("millpond-sim", Build::Plain),
        "quarantine::unknown_file_survives_a_power_loss_while_it_is_moved",
    )
    .in_target("whole"),
    mutant(
        "wal-unknown-files-removed",
        "wal rule 19",
        PLAIN,
        "settling::unknown_file_is_moved_away_and_reported",
    )
    .in_target("damage"),
    mutant(
        "wal-file-before-its-record",
        "wal rule 19",
        PLAIN,
        "wal::storage::tests::a_file_is_made_after_its_record_is_durable",
    ),
    mutant("wal-start-on-damaged-files", "wal rule 20", PLAIN, "matrix::damage_to_the_catalog")
        .in_target("damage"),
    mutant(
        "wal-start-on-an-old-catalog",
        "wal rule 20",
        PLAIN,
        "recovery::settle::tests::a_file_of_the_user_that_the_catalog_does_not_name_is_found",
    ),
    mutant(
        "wal-pause-beside-full-ring",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::inserter_that_needs_room_ends_a_pause",
    ),
    mutant(
        "wal-pause-beside-flush",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::checkpoint_ends_a_pause",
    ),
    mutant(
        "wal-pause-after-stop",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::stop_ends_a_pause",
    ),
    mutant(
        "wal-pause-beside-tasks",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::task_of_an_event_loop_ends_a_pause",
    ),
    mutant(
        "wal-join-without-wake",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::two_commits_have_one_sync",
    ),
    mutant(
        "wal-cut-short-wait-counts",
        "ADR 28",
        SHUTTLE,
        "wal::models::write_ahead::pauses::pause_cut_short_does_not_count",
    ),
    mutant(
        "wal-wait-for-nobody-again",
        "ADR 28",
        PLAIN,
        "wal::companions::tests::waits_without_a_commit_get_rare",
    ),
    mutant(
        "wal-wait-beside-a-free-log",
        "ADR 28",
        PLAIN,
        "wal::companions::tests::sessions_that_work_longer_than_syncs_take_are_not_waited_for",
    ),
];
