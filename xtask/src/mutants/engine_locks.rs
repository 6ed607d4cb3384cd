//! The mutants of the lock manager, whose rules are in its README.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-engine", Build::Plain);
const LOOM: (&str, Build) = ("millpond-engine", Build::Loom);
const SHUTTLE: (&str, Build) = ("millpond-engine", Build::Shuttle);

pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "lock-wait-under-mutex",
        "lmgr rule 1",
        SHUTTLE,
        "lmgr::models::whole::shuttle_weak_beside_strong",
    ),
    mutant(
        "lock-conflict-left-out",
        "lmgr rule 2",
        PLAIN,
        "lmgr::tests::nowait_requests_fail_exactly_on_conflicts",
    ),
    mutant(
        "lock-conflicts-with-own",
        "lmgr rule 2",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "lock-not-counted",
        "lmgr rule 2",
        PLAIN,
        "lmgr::tests::locks_are_counted_and_have_owners",
    ),
    mutant(
        "lock-weak-without-fence",
        "lmgr rule 3",
        LOOM,
        "lmgr::models::fast_path::loom_weak_and_strong_lockers_see_each_other",
    ),
    mutant(
        "lock-strong-without-fence",
        "lmgr rule 3",
        LOOM,
        "lmgr::models::fast_path::loom_weak_and_strong_lockers_see_each_other",
    ),
    mutant(
        "lock-slot-left-by-store",
        "lmgr rule 3",
        LOOM,
        "lmgr::models::fast_path::loom_release_against_transfer",
    ),
    mutant(
        "lock-lower-relaxed",
        "lmgr rule 3",
        LOOM,
        "lmgr::models::fast_path::loom_fast_path_orders_what_it_protects",
    ),
    mutant(
        "lock-strong-without-transfer",
        "lmgr rule 3",
        PLAIN,
        "lmgr::tests::more_weak_locks_than_slots_spill_into_the_table",
    ),
    mutant(
        "lock-overtakes-queue",
        "lmgr rule 4",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "lock-holder-queues-last",
        "lmgr rule 4",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "lock-parks-without-look",
        "lmgr rule 5",
        SHUTTLE,
        "lmgr::models::whole::shuttle_weak_beside_strong",
    ),
    mutant(
        "lock-grant-lost-at-timeout",
        "lmgr rule 5",
        PLAIN,
        "lmgr::tests::a_lock_that_is_granted_at_the_last_moment_is_held",
    ),
    mutant(
        "lock-leaver-serves-nobody",
        "lmgr rule 5",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "lock-xid-without-second-look",
        "lmgr rule 6",
        SHUTTLE,
        "lmgr::models::whole::shuttle_waiters_of_a_transaction_wake",
    ),
    mutant(
        "lock-xid-waiter-without-fence",
        "lmgr rule 6",
        LOOM,
        "transam::models::loom_end_of_transaction_against_a_waiter",
    ),
    mutant(
        "lock-xid-runner-without-fence",
        "lmgr rule 6",
        LOOM,
        "transam::models::loom_end_of_transaction_against_a_waiter",
    ),
    mutant(
        "deadlock-without-hard-edges",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "deadlock-without-soft-edges",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "deadlock-victim-stays-in-queue",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "deadlock-queues-keep-order",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "deadlock-searched-once",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "lock-mutual-wait-unseen",
        "lmgr rule 7",
        PLAIN,
        "lmgr::schedules::some_schedules_agree_with_the_reference",
    ),
    mutant(
        "deadlock-untold",
        "lmgr rule 7",
        PLAIN,
        "lmgr::tests::reporting::deadlock_is_logged_with_all_parties",
    ),
    mutant(
        "lock-row-without-turn",
        "lmgr rule 8",
        PLAIN,
        "queues::every_path_to_a_row_uses_one_wait_queue",
    )
    .in_target("isolation"),
    mutant(
        "lock-row-holder-queues",
        "lmgr rule 8",
        PLAIN,
        "queues::a_holder_that_wants_a_stronger_lock_does_not_queue",
    )
    .in_target("isolation"),
    mutant(
        "lock-row-queue-of-version",
        "lmgr rule 8",
        PLAIN,
        "queues::every_path_to_a_row_uses_one_wait_queue",
    )
    .in_target("isolation"),
    mutant(
        "lock-row-turn-not-kept",
        "lmgr rule 8",
        PLAIN,
        "waiting::row_change_wakes_one_of_its_waiters",
    )
    .in_target("isolation"),
    mutant(
        "lock-row-without-look",
        "lmgr rule 8",
        PLAIN,
        "key_share::refused_key_share_lock_without_wait_holds_nothing",
    )
    .in_target("isolation"),
    mutant(
        "lock-released-before-status",
        "lmgr rule 9",
        PLAIN,
        "lmgr::tests::locks_are_held_until_the_transaction_has_its_status",
    ),
    mutant(
        "lock-of-session-ends-with-transaction",
        "lmgr rule 9",
        PLAIN,
        "lmgr::tests::locks_are_counted_and_have_owners",
    ),
    mutant(
        "lock-counts-short-waits",
        "lmgr rule 10",
        PLAIN,
        "lmgr::tests::reporting::only_slow_lock_events_are_counted",
    ),
    mutant(
        "lock-stops-any-holder",
        "lmgr rule 11",
        PLAIN,
        "lmgr::tests::long_wait_cancels_a_blocking_autovacuum",
    ),
    mutant(
        "lock-long-wait-end-untold",
        "lmgr rule 11",
        PLAIN,
        "lmgr::tests::a_long_wait_is_logged_if_the_session_wants_it",
    ),
];
