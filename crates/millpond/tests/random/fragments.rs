//! The same queries with threads that run fragments of their plans, without, and on PostgreSQL.
//!
//! Each row of a table has a page of its own, so that a table has several chunks.

use std::time::Duration;

use millpond_oracle::{Answer, Client, Postgres};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::answers::{Answers, Outcome, Tally, outcome};
use crate::catalog::Catalog;
use crate::expressions::Generator;
use crate::queries::Query;
use crate::{again, difference, joins, queries, run, setting, shown, tables};

/// Rows, their order and errors are those of one thread. The rows are PostgreSQL's, too.
#[test]
fn fragments_answer_as_one_thread_does() {
    let (seed, count) = run();
    let tables = setting("MILLPOND_RANDOM_TABLES").unwrap_or(seed);
    let script = tables::wide_script(&mut StdRng::seed_from_u64(tables));
    let mut alone = Answers::new(&script);
    let mut together = alone.beside();
    // Each scan begins with the first row.
    let both = ["set accelerator = off", "set synchronize_seqscans = off"];
    set(&mut alone, &both);
    set(&mut alone, &["set max_parallel_workers_per_gather = 0"]);
    set(&mut together, &both);
    set(
        &mut together,
        &["set max_parallel_workers_per_gather = 3", "set min_parallel_table_scan_size = 0"],
    );
    let postgres = Postgres::start().unwrap();
    let mut theirs = postgres.as_ref().map(|postgres| with_tables(postgres, &script));
    let catalog = Catalog::load(&mut alone);
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for number in 0..count {
        let mut g = Generator::new(seed.wrapping_add(number), &catalog);
        let query = match g.once_in(3) {
            true => queries::query(&mut g, &[], 2),
            false => joins::query(&mut g, &[]),
        };
        let (sql, is_cut) = match g.once_in(2) {
            true => ordered(&mut g, &query),
            false => (query.sql, false),
        };
        let plan = together.answer(&format!("explain {sql}"));
        if !plan.to_string().contains("Gather") {
            tally.count("without a fragment");
            continue;
        }
        // Of rows that are equal in the order another system may give others.
        let theirs = theirs.as_mut().filter(|_| !is_cut);
        match judge(&mut alone, &mut together, theirs, &sql) {
            Ok(what) => tally.count(what),
            Err(what) => {
                tally.count("different");
                wrong.push(format!("{}\n{sql}\n{what}\n{plan}", again(seed, number)));
            }
        }
    }
    println!("{tally}");
    assert!(wrong.is_empty(), "{} differ:\n\n{}", wrong.len(), shown(&wrong));
}

/// The query with its rows in the order of some columns, and whether only some of the rows come.
fn ordered(g: &mut Generator<'_>, query: &Query) -> (String, bool) {
    let columns = query.types.len() as u32;
    let keys: Vec<String> = (0..=g.below(3))
        .map(|_| {
            let direction = if g.once_in(2) { " desc" } else { "" };
            let nulls = ["", " nulls first", " nulls last"][g.below(3) as usize];
            format!("{}{direction}{nulls}", g.below(columns) + 1)
        })
        .collect();
    let is_cut = g.once_in(2);
    let cut = match is_cut {
        true => format!(" limit {} offset {}", [1, 7, 40, 2000][g.below(4) as usize], g.below(9)),
        false => String::new(),
    };
    (format!("{} order by {}{cut}", query.sql, keys.join(", ")), is_cut)
}

fn set(answers: &mut Answers, settings: &[&str]) {
    for setting in settings {
        let answer = answers.answer(setting);
        assert!(answer.refusal().is_none(), "{setting}: {answer}");
    }
}

fn with_tables(postgres: &Postgres, script: &[String]) -> Client {
    let mut session = postgres.connect("postgres", Duration::from_secs(120)).expect("a session");
    for statement in script {
        let answer = session.run(statement, "").expect("an answer");
        assert!(answer.refusal().is_none(), "{statement}: {answer}");
    }
    session.run("set statement_timeout = '20s'", "").expect("an answer");
    session
}

const UNDECIDED: &str = "the same error, or undecided";

fn judge(
    alone: &mut Answers,
    together: &mut Answers,
    theirs: Option<&mut Client>,
    sql: &str,
) -> Result<&'static str, String> {
    let (expected, found) = (alone.answer(sql), together.answer(sql));
    if [&expected, &found].into_iter().any(is_out_of_time) {
        return Ok("out of time");
    }
    if found != expected {
        let code = |answer: &Answer| answer.refusal().map(|refusal| refusal.sqlstate.clone());
        return match (code(&expected), code(&found)) {
            // Nothing says of which row an error comes first.
            (Some(expected), Some(found)) if found == expected => Ok(UNDECIDED),
            _ => Err(format!("one thread: {expected}\nseveral: {found}")),
        };
    }
    let Some(theirs) = theirs else { return Ok("same") };
    match (outcome(&found), outcome(&theirs.run(sql, "").expect("an answer"))) {
        (Outcome::Rows(found), Outcome::Rows(expected)) if found != expected => {
            Err(format!("Millpond first, PostgreSQL second\n{}", difference(&found, &expected)))
        }
        (Outcome::Rows(_), Outcome::Rows(_)) => Ok("same"),
        _ => Ok(UNDECIDED),
    }
}

fn is_out_of_time(answer: &Answer) -> bool {
    answer.refusal().is_some_and(|refusal| refusal.sqlstate == "57014")
}
