//! Queries of all shapes, whose answers are PostgreSQL's.

use crate::common::{fresh, script, unordered_script};

#[test]
fn queries_answer_as_postgresql_does() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("queries.txt"));
}

/// A condition that reads no row is told before any row is read, as PostgreSQL does.
#[test]
fn a_condition_that_reads_no_row_comes_first() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("gates.txt"));
}

#[test]
fn names_may_have_their_schema() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("names.txt"));
}

#[test]
fn aggregates_of_json() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("json_aggregates.txt"));
}

#[test]
fn text_of_characters_has_no_padding() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("char_casts.txt"));
}

#[test]
fn rows_are_values() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("records.txt"));
}

/// What drivers and their pools ask for by themselves.
#[test]
fn clients_find_what_they_look_for() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("clients.txt"));
}

#[test]
fn numbers_of_objects_are_a_type() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("oids.txt"));
}

/// Functions that return rows, and functions of json beside columns, with PostgreSQL's answers.
#[test]
fn functions_that_return_rows_answer_as_postgresql_does() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("set_functions.txt"));
}

/// Beside groups, windows, DISTINCT and each other.
#[test]
fn functions_that_return_rows_stand_in_select_lists() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("set_functions_in_lists.txt"));
}

/// In the order of the rows that they are called for, behind DISTINCT ON and before LIMIT.
#[test]
fn functions_that_return_rows_follow_the_order() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("set_functions_in_order.txt"));
}

/// GROUPING() in a subquery, of the keys of the query around it.
#[test]
fn grouping_of_an_outer_query() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("grouping_of_outer.txt"));
}

/// An operator with a NULL leaves out its other side, which must be of the groups nevertheless.
#[test]
fn nulls_beside_groups() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("nulls_of_groups.txt"));
}

/// Aggregates within aggregates, and DISTINCT with ORDER BY, with PostgreSQL's answers.
#[test]
fn aggregates_within_aggregates() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("aggregates_within.txt"));
}

/// Columns that SEARCH and CYCLE add to the rows of a query of WITH RECURSIVE.
#[test]
fn search_and_cycle_of_recursive_queries() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("search_cycle.txt"));
}

/// The same rows as PostgreSQL's, where they lie in the same places.
#[test]
fn samples_of_tables() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("table_samples.txt"));
}

/// Queries of WITH RECURSIVE may come in any order, if they don't need each other.
#[test]
fn queries_of_with_name_later_ones() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("with_recursive.txt"));
}

/// Arrays of rows, and with them paths through graphs.
#[test]
fn rows_are_elements_of_arrays() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("record_arrays.txt"));
}

/// RANGE with distances of all types, GROUPS, EXCLUDE.
#[test]
fn frames_of_windows() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("frames.txt"));
}

/// VARIADIC, arguments by name, precisions, fields of rows.
#[test]
fn calls_and_rows_of_all_forms() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("calls_and_rows.txt"));
}

/// What EXPLAIN says, in PostgreSQL's form, of plans by key, by hash, and of subqueries.
#[test]
fn plans_are_shown_as_postgresql_shows_them() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("plans.txt"));
}

/// Statements that change rows by a query, in all forms, and their errors.
#[test]
fn modifications_by_queries_answer_as_postgresql_does() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("modifications.txt"));
}

/// Each runs once and to its end, and sees nothing of the others but what they return.
#[test]
fn queries_of_with_change_rows_as_in_postgresql() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    unordered_script(&mut c, include_str!("with_changes.txt"));
}

#[test]
fn plans_of_modifications_are_shown_as_postgresql_shows_them() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("modification_plans.txt"));
}
