//! Expressions and what PostgreSQL 15 answers, from files in `answers/`. A line has what is
//! selected, then `= ` and the answer's columns, or `! ` with the error's SQLSTATE and message.
//! Lines that begin with `#` are comments.

use millpond::Connection;

use crate::common::{fresh, run};

/// The answer to one statement, in the form of the files.
fn answer(c: &mut Connection, sql: &str) -> String {
    let text = run(c, sql);
    if let Some(error) = text.lines().find_map(|line| line.strip_prefix("ERROR: ")) {
        // The SQLSTATE stands in brackets behind the message.
        let (message, rest) = error.rsplit_once(" [").unwrap_or((error, ""));
        return format!("! {} {message}\n", rest.split(']').next().unwrap_or(rest));
    }
    let rows = text.lines().skip(1).filter(|line| !line.starts_with("SELECT "));
    rows.map(|row| format!("= {row}\n")).collect()
}

fn check(file: &str) {
    let fresh = fresh();
    let mut c = fresh.database.connect().expect("a database of the test");
    let (mut failures, mut count) = (String::new(), 0);
    let mut lines = file.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut expected = String::new();
        while let Some(next) =
            lines.next_if(|next| next.starts_with("= ") || next.starts_with("! "))
        {
            expected.push_str(next);
            expected.push('\n');
        }
        let sql = match line {
            set if set.starts_with("set ") => set.to_owned(),
            list => format!("select {list}"),
        };
        let found = answer(&mut c, &sql);
        count += 1;
        if !line.starts_with("set ") && found != expected {
            failures.push_str(&format!("{line}\n  expected {expected}  found    {found}"));
        }
    }
    assert!(count > 0);
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn types() {
    check(include_str!("answers/types.txt"));
}

#[test]
fn times_and_intervals() {
    check(include_str!("answers/times.txt"));
}

#[test]
fn aggregates() {
    check(include_str!("answers/aggregates.txt"));
}

#[test]
fn styles_of_dates_and_floats() {
    check(include_str!("answers/styles.txt"));
}

#[test]
fn types_that_name_objects() {
    check(include_str!("answers/objects.txt"));
}

#[test]
fn date_and_time_functions() {
    check(include_str!("answers/datetime.txt"));
}

#[test]
fn arrays() {
    check(include_str!("answers/arrays.txt"));
}

#[test]
fn json() {
    check(include_str!("answers/json.txt"));
}

#[test]
fn records_of_json() {
    check(include_str!("answers/json_records.txt"));
}

#[test]
fn paths_of_json() {
    check(include_str!("answers/jsonpath.txt"));
}

#[test]
fn what_is_put_together() {
    check(include_str!("answers/put_together.txt"));
}
