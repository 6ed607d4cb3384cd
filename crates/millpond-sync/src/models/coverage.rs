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
    ("claimed P > claimed P", "readers_leave_a_claimed_latch"),
    ("claimed P > exclusive P", "a_downgrade_wakes_readers"),
    ("claimed P D > claimed P D", "readers_leave_a_claimed_latch"),
    ("claimed P D > exclusive P D", "a_writer_and_two_readers"),
    // Taken exclusively.
    ("free > exclusive", "two_writers"),
    ("free P > exclusive P", "two_writers_and_a_reader"),
    // Claimed while readers are in, by a writer.
    ("shared > claimed", "a_writer_and_two_readers"),
    ("shared P > claimed P", "a_downgrade_wakes_readers"),
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
    ("the woken writer parks again", "shuttle_all"),
    ("a release leaves it to the woken writer", "shuttle_all"),
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
    // Handed to a writer, or to readers and a claiming writer.
    ("exclusive P > exclusive", "three_writers"),
    ("exclusive P > exclusive P", "readers_and_writers_are_granted_together"),
    ("exclusive P > claimed", "readers_and_writers_are_granted_together"),
    ("exclusive P > claimed P", "a_downgrade_grants_as_well"),
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
    let sources =
        [include_str!("overtaking.rs"), include_str!("plain.rs"), include_str!("shuttle_all.rs")];
    for (change, model) in TRANSITIONS {
        let call = format!("\"{model}\",");
        let exists = sources.iter().any(|source| source.contains(&call));
        assert!(exists, "{model}, which is to see {change}, does not exist");
    }
}
