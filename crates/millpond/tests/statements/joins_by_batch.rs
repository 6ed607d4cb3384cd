//! Inner rows that are looked up together for many outer rows.

use millpond::Connection;

use crate::common::{Fresh, fresh, run};

const OUTER: i32 = 900;

/// `a` has a row for each number below [`OUTER`], which leads to a row of `b`, to none, or nowhere.
fn tables() -> (Fresh, Connection) {
    let fresh = fresh();
    let mut c = connect(&fresh);
    run(&mut c, "create table a (id int primary key, b bigint, t text)");
    run(&mut c, "create table b (id int primary key, v int, t text)");
    run(
        &mut c,
        "insert into b select g * 2, g, repeat('b', g % 50) from generate_series(0, 399) g",
    );
    // Too many rows to be read through.
    run(&mut c, "insert into b select 100000 + g, 0, '' from generate_series(1, 20000) g");
    let to = "case when g % 7 = 0 then null when g % 11 = 0 then 5000000000 \
              else g * 37 % 1000 end";
    let from = format!("generate_series(0, {}) g", OUTER - 1);
    run(&mut c, &format!("insert into a select g, {to}, repeat('a', g % 30) from {from}"));
    (fresh, c)
}

fn connect(fresh: &Fresh) -> Connection {
    fresh.database.connect().expect("one of few connections")
}

/// The number that the row of `a` has, if `b` has it.
fn leads_to(id: i32) -> Option<i32> {
    let number = id * 37 % 1000;
    let is_there = id % 7 != 0 && id % 11 != 0 && number % 2 == 0 && number < 800;
    is_there.then_some(number)
}

/// The rows of an answer, without heading and tag.
fn rows(c: &mut Connection, sql: &str) -> Vec<String> {
    let answer = run(c, sql);
    let lines: Vec<&str> = answer.lines().collect();
    lines[1..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn each_kind_of_join_keeps_the_order_of_its_outer_side() {
    let (_fresh, mut c) = tables();
    // A limit that is above all rows keeps the nested loop.
    let end = "order by a.id limit 100000";
    let plan = run(&mut c, &format!("explain select * from a join b on b.id = a.b {end}"));
    assert!(plan.contains("Nested Loop") && plan.contains("Index Cond: (id = a.b)"), "{plan}");
    let with = |what: &dyn Fn(i32) -> Option<String>| -> Vec<String> {
        (0..OUTER).filter_map(what).collect()
    };
    let inner = with(&|id| leads_to(id).map(|b| format!("{id}|{}|{b}|{}", id % 30, b / 2 % 50)));
    let columns = "a.id, length(a.t), b.id, length(b.t)";
    assert_eq!(rows(&mut c, &format!("select {columns} from a join b on b.id = a.b {end}")), inner);
    let left = with(&|id| {
        let b = leads_to(id).filter(|b| b / 2 > 100);
        Some(b.map_or(format!("{id}|NULL"), |b| format!("{id}|{b}")))
    });
    let on = "b.id = a.b and b.v > 100";
    assert_eq!(rows(&mut c, &format!("select a.id, b.id from a left join b on {on} {end}")), left);
    let exists = "exists (select from b where b.id = a.b and b.v > a.id / 5)";
    let matches = |id| leads_to(id).is_some_and(|b| b / 2 > id / 5);
    let semi = with(&|id| matches(id).then(|| id.to_string()));
    assert_eq!(rows(&mut c, &format!("select id from a where {exists} {end}")), semi);
    let anti = with(&|id| (!matches(id)).then(|| id.to_string()));
    assert_eq!(rows(&mut c, &format!("select id from a where not {exists} {end}")), anti);
    // The outer side of the second join is the first one, which goes on from where it stood.
    let twice = "a join b on b.id = a.b left join a as c on c.id = b.v";
    let expected = with(&|id| leads_to(id).map(|b| format!("{id}|{b}|{}", b / 2)));
    assert_eq!(rows(&mut c, &format!("select a.id, b.id, c.id from {twice} {end}")), expected);
}

#[test]
fn it_begins_anew_for_each_row_around_it() {
    let (_fresh, mut c) = tables();
    let within = "select count(*) from a join b on b.id = a.b where a.id between o.n and o.n + 40";
    let sql = format!("select n, ({within}) from generate_series(0, 860, 43) o(n) order by n");
    let expected: Vec<String> = (0..=860)
        .step_by(43)
        .map(|n| format!("{n}|{}", (n..OUTER.min(n + 41)).filter_map(leads_to).count()))
        .collect();
    assert_eq!(rows(&mut c, &sql), expected);
    let lateral = "generate_series(0, 860, 43) o(n) cross join lateral \
                   (select a.id from a join b on b.id = a.b where a.id >= o.n order by a.id limit 9) x";
    let expected: Vec<String> = (0..=860)
        .step_by(43)
        .flat_map(|n| {
            let found = (n..OUTER).filter(|id| leads_to(*id).is_some()).take(9);
            found.map(move |id| format!("{n}|{id}"))
        })
        .collect();
    assert_eq!(rows(&mut c, &format!("select n, id from {lateral} order by n, id")), expected);
}

/// Rows before the one that fails are returned, as when they are looked up one by one.
#[test]
fn a_failure_comes_in_its_turn() {
    let (_fresh, mut c) = tables();
    let sql =
        "select a.id from a left join b on b.id = a.b where 1 / (500 - a.id) < 2 order by a.id";
    assert_eq!(rows(&mut c, &format!("{sql} limit 499")).len(), 499);
    let answer = run(&mut c, &format!("{sql} limit 502"));
    assert!(answer.contains("division by zero"), "{answer}");
}

/// A volatile function is called for the rows that are asked for, and for no others.
#[test]
fn what_is_volatile_is_not_read_ahead() {
    let (_fresh, mut c) = tables();
    run(&mut c, "select setseed(0.5)");
    let sql =
        "select a.id from a left join b on b.id = a.b where random() >= 0 order by a.id limit 20";
    assert_eq!(rows(&mut c, sql).len(), 20);
    let after = rows(&mut c, "select random()");
    run(&mut c, "select setseed(0.5)");
    run(&mut c, "select random() from generate_series(1, 20)");
    assert_eq!(rows(&mut c, "select random()"), after);
}

/// Under REPEATABLE READ a transaction may see two rows with one key: the one that others have
/// deleted, and its own.
#[test]
fn a_key_with_two_rows_gives_both() {
    let (fresh, mut c) = tables();
    let mut other = connect(&fresh);
    run(&mut c, "begin isolation level repeatable read");
    run(&mut c, "select count(*) from b");
    run(&mut other, "delete from b where id = 222");
    run(&mut c, "insert into b values (222, -1)");
    let sql = "select a.id, b.v from a join b on b.id = a.b where b.id = a.b and a.b = 222 \
               order by a.id, b.v limit 1000";
    let found = rows(&mut c, sql);
    let ids: Vec<i32> = (0..OUTER).filter(|id| leads_to(*id) == Some(222)).collect();
    let expected: Vec<String> =
        ids.iter().flat_map(|id| [format!("{id}|-1"), format!("{id}|111")]).collect();
    assert_eq!(found, expected);
}

/// Rows that were changed, moved or deleted, seen by old and new snapshots.
#[test]
fn snapshots_see_what_they_should() {
    let (fresh, mut c) = tables();
    let sql = "select sum(b.v), count(*) from (select * from a order by id limit 900) a \
               join b on b.id = a.b";
    let mut other = connect(&fresh);
    run(&mut other, "begin isolation level repeatable read");
    let before = rows(&mut other, sql);
    run(&mut c, "update b set v = v + 1000, t = repeat('x', 300) where id % 3 = 0");
    run(&mut c, "delete from b where id % 10 = 4");
    assert_eq!(rows(&mut other, sql), before);
    let values = (0..OUTER).filter_map(leads_to).filter(|b| b % 10 != 4);
    let values: Vec<i32> = values.map(|b| b / 2 + if b % 3 == 0 { 1000 } else { 0 }).collect();
    let expected = format!("{}|{}", values.iter().sum::<i32>(), values.len());
    assert_eq!(rows(&mut c, sql), std::slice::from_ref(&expected));
    run(&mut other, "commit");
    run(&mut c, "vacuum b");
    assert_eq!(rows(&mut other, sql), [expected]);
}
