//! The table of transitions: every change of a latch's word that can happen, and a model that sees
//! it. `P` is PARKED, `D` DRAINING. All models are loom's, except `shuttle_all`: a transition that
//! needs more threads than loom can explore is seen under random schedules of a fixed seed.

use std::collections::BTreeSet;

const TRANSITIONS: &[(&str, &str)] = &[
    // Taken shared.
    ("free > shared", "two_writers"),
    ("shared > shared", "a_writer_and_two_readers"),
    ("free P > shared P", "overtaking_leaves_no_waiter_behind"),
    ("shared P > shared P", "overtaking_leaves_no_waiter_behind"),
    // Released by a reader; no writer claims the latch.
    ("shared > free", "two_writers"),
    ("shared P > free P", "a_downgrade_wakes_readers"),
    // Released by a reader while a writer claims the latch.
    ("claimed > claimed", "a_downgrade_grants_as_well"),
    ("claimed > exclusive", "two_writers_and_a_reader"),
    ("claimed D > claimed D", "a_downgrade_wakes_readers"),
    ("claimed D > exclusive D", "a_writer_and_two_readers"),
    ("claimed P > claimed P", "a_claim_given_up_is_handed_on"),
    ("claimed P > exclusive P", "a_downgrade_wakes_readers"),
    ("claimed P D > claimed P D", "a_claim_given_up_is_handed_on"),
    ("claimed P D > exclusive P D", "a_writer_and_two_readers"),
    // Taken exclusively.
    ("free > exclusive", "two_writers"),
    ("free P > exclusive P", "two_writers_and_a_reader"),
    // Claimed while readers are in, by a writer or an upgrade.
    ("shared > claimed", "a_writer_and_two_readers"),
    ("shared P > claimed P", "a_downgrade_wakes_readers"),
    // Upgraded by the only reader.
    ("shared > exclusive", "an_upgrade_that_does_not_wait"),
    ("shared P > exclusive P", "overtaking_leaves_no_waiter_behind"),
    // A waiter marks that it parks.
    ("exclusive > exclusive P", "two_writers"),
    ("claimed > claimed P", "a_downgrade_wakes_readers"),
    ("claimed D > claimed P D", "a_writer_and_two_readers"),
    ("exclusive D > exclusive P D", "a_downgrade_wakes_readers"),
    // A claimer marks that it parks, perhaps after the last reader has left.
    ("claimed > claimed D", "a_writer_and_two_readers"),
    ("claimed P > claimed P D", "a_downgrade_wakes_readers"),
    ("exclusive > exclusive D", "two_writers_and_a_reader"),
    ("exclusive P > exclusive P D", "a_downgrade_wakes_readers"),
    // A writer that was woken parks again.
    ("exclusive P D > exclusive P D", "shuttle_all"),
    // What happens to WOKEN, whatever the other bits are.
    ("a writer is woken", "three_writers"),
    ("the woken writer claims", "three_writers"),
    ("the woken writer parks again", "timed_out_writer_consumes_no_wake_up"),
    ("a release leaves it to the woken writer", "timed_out_writer_consumes_no_wake_up"),
    // A claimer sees that the readers have left.
    ("exclusive D > exclusive", "a_writer_and_two_readers"),
    ("exclusive P D > exclusive P", "a_writer_and_two_readers"),
    // Released by a writer: no thread waits any more, or some are woken.
    ("exclusive > free", "two_writers"),
    ("exclusive P > free", "two_writers"),
    ("exclusive P > free P", "two_writers_and_a_reader"),
    // Handed to readers, or downgraded.
    ("exclusive > shared", "a_downgrade_lets_no_writer_in"),
    ("exclusive P > shared", "two_writers_and_a_reader"),
    ("exclusive P > shared P", "a_downgrade_wakes_readers"),
    // Handed to a writer, or to readers and a claiming writer; or the last parked thread gives up.
    ("exclusive P > exclusive", "three_writers"),
    ("exclusive P > exclusive P", "readers_and_writers_are_granted_together"),
    ("exclusive P > claimed", "readers_and_writers_are_granted_together"),
    ("exclusive P > claimed P", "a_downgrade_grants_as_well"),
    // A claim is given up while readers hold the latch.
    ("claimed D > shared", "a_claim_given_up_wakes_readers"),
    ("claimed P D > shared", "a_claim_given_up_wakes_readers"),
    ("claimed P D > shared P", "shuttle_all"),
    // A claim is given up although the last reader has just left.
    ("exclusive D > free", "a_claim_given_up_is_handed_on"),
    ("exclusive P D > free", "a_claim_given_up_is_handed_on"),
    ("exclusive P D > free P", "shuttle_all"),
    // An upgrade is given up although the others have just left; or the latch is handed to readers.
    ("exclusive D > shared", "abandoned_upgrade_keeps_the_shared_hold"),
    ("exclusive P D > shared", "abandoned_upgrade_keeps_the_shared_hold"),
    ("exclusive P D > shared P", "shuttle_all"),
    // A claim is given up and handed on.
    ("claimed P D > claimed", "a_claim_given_up_is_handed_on"),
    ("claimed P D > claimed P", "shuttle_all"),
    ("exclusive P D > exclusive", "a_claim_given_up_is_handed_on"),
    ("exclusive P D > claimed", "shuttle_all"),
    ("exclusive P D > claimed P", "shuttle_all"),
    // The last parked thread gives up.
    ("free P > free", "timed_out_writer_consumes_no_wake_up"),
    ("shared P > shared", "shuttle_all"),
    ("claimed P > claimed", "a_claim_given_up_is_handed_on"),
    ("claimed P D > claimed D", "a_claim_given_up_is_handed_on"),
    ("exclusive P D > exclusive D", "a_claim_given_up_is_handed_on"),
];

/// Compares the changes that a model saw with the table.
pub(super) fn verify(model: &str, seen: &BTreeSet<String>) {
    for change in seen {
        let known = TRANSITIONS.iter().any(|(known, _)| known == change);
        assert!(known, "{model} has seen {change}, which the table does not have");
    }
    for (change, _) in TRANSITIONS.iter().filter(|(_, by)| *by == model) {
        assert!(seen.contains(*change), "{model} has not seen {change}");
    }
}

/// Checks that every model in the table exists. (A renamed model would no longer prove anything.)
#[test]
fn models_of_the_table_exist() {
    let sources = [
        include_str!("overtaking.rs"),
        include_str!("plain.rs"),
        include_str!("shuttle_all.rs"),
        include_str!("timed.rs"),
        include_str!("upgrade.rs"),
    ];
    for (change, model) in TRANSITIONS {
        let call = format!("\"{model}\",");
        let exists = sources.iter().any(|source| source.contains(&call));
        assert!(exists, "{model}, which is to see {change}, does not exist");
    }
}
