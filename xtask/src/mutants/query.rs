//! The mutants of millpond-query: what threads of fragments hand to the session (ADR 27), how they
//! sort (ADR 31) and aggregate, and the automaton of regular expressions.

use super::{Build, Mutant, mutant};

const PLAIN: (&str, Build) = ("millpond-query", Build::Plain);
const SHUTTLE: (&str, Build) = ("millpond-query", Build::Shuttle);

const IN_ORDER: &str = "run::gather::chunk_work::models::shuttle_rows_come_in_order";
const ENDS: &str = "run::gather::chunk_work::models::shuttle_threads_end_when_no_rows_are_wanted";

const SORTED: &str = "run::sort::parts::tests::rows_come_as_from_one_thread";

const GROUPED: &str = "run::aggregate::parts::tests::groups_come_as_from_one_thread";

const AUTOMATON: &str = "automaton";
const OF_ENDS: &str = "expr::regex::tests::an_automaton_knows_the_ends_of_the_text";

pub(super) const MUTANTS: &[Mutant] = &[
    mutant("gather-take-without-wake", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-next-chunk-without-wake", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-hand-over-without-wake", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-end-without-wake", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-front-waits-for-room", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-without-window", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-without-bound", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-rows-go-to-front", "ADR 27", SHUTTLE, IN_ORDER),
    mutant("gather-stop-outside-of-lock", "ADR 27", SHUTTLE, ENDS),
    mutant(
        "gather-error-before-rows",
        "ADR 27",
        PLAIN,
        "run::gather::chunk_work::tests::rows_before_an_error_come_first",
    ),
    mutant(
        "gather-panic-leaves-chunk",
        "ADR 27",
        PLAIN,
        "run::gather::chunk_work::tests::panic_of_a_thread_is_an_error",
    ),
    mutant("sort-part-last-is-first", "ADR 31", PLAIN, SORTED),
    mutant("sort-part-is-not-sorted", "ADR 31", PLAIN, SORTED),
    mutant("sort-top-equal-rows-first", "ADR 31", PLAIN, SORTED),
    mutant("aggregate-part-without-filter", "ADR 27", PLAIN, GROUPED),
    mutant("aggregate-part-group-of-chunk-before", "ADR 27", PLAIN, GROUPED),
    mutant("aggregate-part-is-given-twice", "ADR 27", PLAIN, GROUPED),
    mutant("regex-match-begins-at-the-start", AUTOMATON, PLAIN, OF_ENDS),
    mutant("regex-start-anywhere", AUTOMATON, PLAIN, OF_ENDS),
    mutant("regex-no-end", AUTOMATON, PLAIN, OF_ENDS),
    mutant(
        "regex-states-before-forgetting",
        AUTOMATON,
        PLAIN,
        "expr::regex::tests::an_automaton_forgets_its_states",
    ),
];
