//! What `pg_operator`, `pg_cast` and `pg_aggregate` name can be called.

use millpond::Connection;

use crate::common::{fresh, run};

/// The rows of a query, as words.
fn rows(c: &mut Connection, query: &str) -> Vec<Vec<String>> {
    let text = run(c, query);
    let mut lines: Vec<_> = text.lines().collect();
    assert!(lines.pop().is_some_and(|tag| tag.starts_with("SELECT")), "{text}");
    lines.drain(..1);
    lines.iter().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// A NULL of a type; of one type among those that a polymorphic one stands for.
fn null(ty: &str) -> String {
    let ty = match ty {
        "\"any\"" => "text",
        "anyelement" | "anycompatible" | "anynonarray" => "integer",
        "anyarray" | "anycompatiblearray" => "integer[]",
        ty => ty,
    };
    format!("null::{ty}")
}

fn all_succeed(c: &mut Connection, statements: &[String]) {
    let failures: Vec<_> = statements
        .iter()
        .map(|statement| (statement, run(c, statement)))
        .filter(|(_, answer)| answer.starts_with("ERROR"))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(statements.len() > 100);
}

#[test]
fn operators() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let found = rows(
        &mut c,
        "select oprkind, oprname, format_type(oprleft, null), format_type(oprright, null) from pg_operator",
    );
    let statement = |row: &Vec<String>| {
        // The symbol may hold what separates fields.
        let [kind, symbol @ .., left, right] = row.as_slice() else { panic!("{row:?}") };
        let left = if kind == "b" { null(left) } else { String::new() };
        format!("select {left} operator(pg_catalog.{}) {}", symbol.join("|"), null(right))
    };
    all_succeed(&mut c, &found.iter().map(statement).collect::<Vec<_>>());
}

#[test]
fn casts() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let found = rows(
        &mut c,
        "select format_type(castsource, null), format_type(casttarget, null) from pg_cast",
    );
    let statement = |row: &Vec<String>| format!("select null::{}::{}", row[0], row[1]);
    all_succeed(&mut c, &found.iter().map(statement).collect::<Vec<_>>());
}

#[test]
fn aggregates_and_window_functions() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let found = rows(
        &mut c,
        "select proname, prokind, coalesce(aggkind, '-'), coalesce(aggnumdirectargs, 0), \
             (select string_agg(format_type(ty, null), ',' order by place) \
             from unnest(proargtypes) with ordinality as args(ty, place)) \
         from pg_proc left join pg_aggregate on aggfnoid = pg_proc.oid where prokind <> 'f'",
    );
    let statement = |row: &Vec<String>| {
        let name = &row[0];
        let args: Vec<_> =
            if row[4] == "NULL" { Vec::new() } else { row[4].split(',').map(null).collect() };
        let direct: usize = row[3].parse().unwrap();
        match (row[1].as_str(), row[2].as_str()) {
            ("w", _) => format!("select {name}({}) over ()", args.join(", ")),
            // Its direct arguments are as many as it sorts by.
            (_, "h") => format!("select {name}(1) within group (order by 1)"),
            (_, "o") => {
                let (direct, sorted) = args.split_at(direct);
                format!(
                    "select {name}({}) within group (order by {})",
                    direct.join(", "),
                    sorted.join(", ")
                )
            }
            _ if args.is_empty() => format!("select {name}(*)"),
            // No row, so that NULL as a name is no error.
            _ => format!("select {name}({}) where false", args.join(", ")),
        }
    };
    all_succeed(&mut c, &found.iter().map(statement).collect::<Vec<_>>());
}
