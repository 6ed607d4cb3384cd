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
        let sql = match g.once_in(3) {
            true => queries::query(&mut g, &[], 2).sql,
            false => joins::query(&mut g, &[]).sql,
        };
        let plan = together.answer(&format!("explain {sql}"));
        if !plan.to_string().contains("Gather") {
            tally.count("without a fragment");
            continue;
        }
        match judge(&mut alone, &mut together, theirs.as_mut(), &sql) {
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
        return Err(format!("one thread: {expected}\nseveral: {found}"));
    }
    let Some(theirs) = theirs else { return Ok("same") };
    match (outcome(&found), outcome(&theirs.run(sql, "").expect("an answer"))) {
        (Outcome::Rows(found), Outcome::Rows(expected)) if found != expected => {
            Err(format!("Millpond first, PostgreSQL second\n{}", difference(&found, &expected)))
        }
        (Outcome::Rows(_), Outcome::Rows(_)) => Ok("same"),
        _ => Ok("the same error, or undecided"),
    }
}

fn is_out_of_time(answer: &Answer) -> bool {
    answer.refusal().is_some_and(|refusal| refusal.sqlstate == "57014")
}
