//! Random queries, judged by rewritings that must not change their rows, and beside PostgreSQL 15
//! where it is installed.
//!
//! `MILLPOND_RANDOM_QUERIES` is the number of queries of each test. `MILLPOND_RANDOM_SEED` is the
//! seed of the tables and of the first query, and `MILLPOND_RANDOM_SHOWN` how many differences a
//! failure prints at most. `MILLPOND_RANDOM_TIMEOUT_MS` is how long a query may take here. A
//! failure prints the settings that repeat it alone.
//!
//! What Millpond refuses with 0A000 counts as not supported, and the share is printed. A query that
//! ends with an error of its values (a division by zero, a number out of range) decides nothing.
//! Which rows are looked at first is not fixed.

mod answers;
mod catalog;
#[path = "../common/mod.rs"]
mod common;
mod expressions;
mod fragments;
mod joins;
mod known;
mod queries;
mod rewritings;
mod tables;
mod values;

use std::time::Duration;

use answers::{Answers, Outcome, Tally, ran_out_of_time};
use catalog::Catalog;
use expressions::Generator;
use millpond_oracle::{Client, Postgres, Verdict, compare};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rewritings::Rewriting;

/// How many differences are printed.
const SHOWN: usize = 8;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// The seed of a run and its number of queries.
fn run() -> (u64, u64) {
    let seed = setting("MILLPOND_RANDOM_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let count = setting("MILLPOND_RANDOM_QUERIES").unwrap_or(150);
    println!("seed {seed}, {count} queries");
    (seed, count)
}

/// After this number of queries, a run gets new tables.
const QUERIES_OF_TABLES: u64 = 5000;

/// The seed of the tables that a query reads. A run of one query that repeats a failure has the
/// tables of the seed that is named for them.
fn seed_of_tables(seed: u64, query: u64) -> u64 {
    let own = seed.wrapping_add(query - query % QUERIES_OF_TABLES);
    setting("MILLPOND_RANDOM_TABLES").unwrap_or(own)
}

/// The tables' script for a query and those that follow, if it is the first of them.
fn new_tables(seed: u64, query: u64) -> Option<Vec<String>> {
    let of_tables = seed_of_tables(seed, query);
    let is_first = query.is_multiple_of(QUERIES_OF_TABLES);
    is_first.then(|| tables::script(&mut StdRng::seed_from_u64(of_tables)))
}

fn again(seed: u64, query: u64) -> String {
    let (tables, first) = (seed_of_tables(seed, query), seed.wrapping_add(query));
    format!(
        "MILLPOND_RANDOM_TABLES={tables} MILLPOND_RANDOM_SEED={first} MILLPOND_RANDOM_QUERIES=1"
    )
}

#[test]
fn rewritings_agree() {
    let (seed, count) = run();
    let mut answers = Answers::new(&[]);
    let catalog = Catalog::load(&mut answers);
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for query in 0..count {
        if let Some(script) = new_tables(seed, query) {
            answers = Answers::new(&script);
        }
        let mut g = Generator::new(seed.wrapping_add(query), &catalog);
        let rewriting = rewritings::any(&mut g);
        match judge(&mut answers, &rewriting) {
            Ok(what) => tally.count(what),
            Err(difference) => {
                tally.count("different");
                wrong.push(format!("{}\n{difference}", again(seed, query)));
            }
        }
    }
    println!("{tally}");
    assert!(wrong.is_empty(), "{} differ:\n\n{}", wrong.len(), shown(&wrong));
}

/// The SQLSTATE that a refusal begins with.
fn code(error: &str) -> Option<&str> {
    error.get(..5)
}

fn shown(wrong: &[String]) -> String {
    let most = setting("MILLPOND_RANDOM_SHOWN").map_or(SHOWN, |most| most as usize);
    wrong[..wrong.len().min(most)].join("\n\n")
}

/// What came of a rewriting, or how its sides differ.
fn judge(answers: &mut Answers, rewriting: &Rewriting) -> Result<&'static str, String> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (queries, rows) in [(&rewriting.first, &mut first), (&rewriting.second, &mut second)] {
        for query in queries {
            match answers.outcome(query) {
                Outcome::Rows(found) => rows.extend(found),
                Outcome::Undecided => return Ok("undecided"),
                Outcome::OutOfTime => return Ok("out of time"),
                Outcome::Unsupported => {
                    println!("not supported: {query}");
                    return Ok("not supported");
                }
                Outcome::Wrong(error) => return Err(format!("{error}\n{query}")),
            }
        }
        rows.sort_unstable();
        if rewriting.as_set {
            rows.dedup();
        }
    }
    if first == second {
        return Ok("same");
    }
    let list = |queries: &[String]| queries.join("\n  ");
    Err(format!(
        "{}: {} rows of\n  {}\nand {} rows of\n  {}\n{}",
        rewriting.name,
        first.len(),
        list(&rewriting.first),
        second.len(),
        list(&rewriting.second),
        difference(&first, &second),
    ))
}

/// Rows that only one of two sorted lists has.
fn difference(first: &[String], second: &[String]) -> String {
    let only = |these: &[String], those: &[String]| {
        let rows: Vec<&str> =
            these.iter().filter(|row| !those.contains(row)).map(String::as_str).collect();
        rows[..rows.len().min(SHOWN)].join("\n  ")
    };
    format!("only first:\n  {}\nonly second:\n  {}", only(first, second), only(second, first))
}

#[test]
fn queries_answer_as_postgresql_does() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let mut theirs = postgres.connect("postgres", Duration::from_secs(120)).unwrap();
    let (seed, count) = run();
    let mut ours = Answers::new(&[]);
    let catalog = Catalog::load(&mut ours);
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for number in 0..count {
        if let Some(script) = new_tables(seed, number) {
            ours = Answers::new(&script);
            make_tables(&mut theirs, &script);
        }
        let mut g = Generator::new(seed.wrapping_add(number), &catalog);
        let sql = queries::query(&mut g, &[], 3).sql;
        let found = ours.outcome(&sql);
        if found == Outcome::OutOfTime {
            tally.count("out of time");
            continue;
        }
        let expected = answers::outcome(&theirs.run(&sql, "").unwrap());
        let what = match (found, expected) {
            (Outcome::Unsupported, _) => "not supported",
            // The generator is at fault, and both say so.
            (Outcome::Wrong(error), Outcome::Wrong(expected))
                if code(&error) == code(&expected) =>
            {
                println!("both refuse {sql}: {error}");
                "refused"
            }
            (Outcome::Wrong(error), expected) => {
                let refusal = match expected {
                    Outcome::Wrong(expected) => expected,
                    _ => String::new(),
                };
                wrong.push(format!("{}\n{sql}\n{error}\n{refusal}", again(seed, number)));
                "different"
            }
            (found @ (Outcome::Rows(_) | Outcome::Undecided), Outcome::Wrong(error)) => {
                let found = if found == Outcome::Undecided { "an error of values" } else { "rows" };
                wrong.push(format!(
                    "{}\n{sql}\nMillpond: {found}, PostgreSQL: {error}",
                    again(seed, number)
                ));
                "different"
            }
            (Outcome::Rows(found), Outcome::Rows(expected)) if found != expected => {
                let rows = difference(&found, &expected);
                wrong.push(format!(
                    "{}\n{sql}\nMillpond first, {} rows; PostgreSQL second, {} rows\n{rows}",
                    again(seed, number),
                    found.len(),
                    expected.len(),
                ));
                "different"
            }
            (Outcome::Rows(_), Outcome::Rows(_)) => "same",
            (Outcome::Undecided, Outcome::Rows(_)) => {
                println!("an error of values only in Millpond: {sql}");
                "undecided in Millpond alone"
            }
            (Outcome::OutOfTime, _)
            | (_, Outcome::Undecided | Outcome::OutOfTime | Outcome::Unsupported) => "undecided",
        };
        tally.count(what);
    }
    println!("{tally}");
    assert!(wrong.is_empty(), "{} differ:\n\n{}", wrong.len(), shown(&wrong));
}

/// Makes new tables in PostgreSQL, instead of those from before.
fn make_tables(theirs: &mut Client, script: &[String]) {
    let names: Vec<&str> = tables::TABLES.iter().chain([&tables::LARGE]).map(|t| t.name).collect();
    let drop = format!("drop table if exists {}", names.join(", "));
    for statement in [&drop].into_iter().chain(script) {
        let answer = theirs.run(statement, "").expect("an answer");
        assert!(answer.refusal().is_none(), "{statement}: {answer}");
    }
    theirs.run("set statement_timeout = '20s'", "").expect("an answer");
}

/// Calls alone, so that errors are compared, too.
#[test]
fn calls_answer_as_postgresql_does() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let mut theirs = postgres.connect("postgres", Duration::from_secs(120)).unwrap();
    theirs.run("set statement_timeout = '20s'", "").unwrap();
    let (seed, count) = run();
    let mut ours = Answers::new(&[]);
    let catalog = Catalog::load(&mut ours);
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for number in 0..count {
        let mut g = Generator::new(seed.wrapping_add(number), &catalog);
        // Of two arguments that fail, either may be first.
        let nested = g.once_in(2);
        let sql = format!("select {} as c0", g.any_call(&[], u32::from(nested)));
        let (found, expected) = (ours.answer(&sql), theirs.run(&sql, "").unwrap());
        // A slow machine may take longer than a statement may.
        if ran_out_of_time(&found) || ran_out_of_time(&expected) {
            tally.count("out of time");
            continue;
        }
        match compare(&found, &expected, false) {
            Verdict::Same => tally.count("same"),
            Verdict::SameError => tally.count("same error"),
            Verdict::Unsupported => tally.count("not supported"),
            verdict
                if nested
                    && verdict != Verdict::Internal
                    && (found.refusal().is_some() || expected.refusal().is_some()) =>
            {
                tally.count("undecided");
            }
            _ if known::reason(&sql, &found, &expected).is_some() => tally.count("known"),
            verdict => {
                tally.count("different");
                let again = again(seed, number);
                wrong.push(format!(
                    "{again}\n{sql}\n{verdict}\nPostgreSQL: {expected}\nMillpond: {found}"
                ));
            }
        }
    }
    println!("{tally}");
    assert!(wrong.is_empty(), "{} differ:\n\n{}", wrong.len(), shown(&wrong));
}
