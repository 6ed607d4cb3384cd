//! Outer joins whose smaller side is hashed: threads give the rows that match, and the session the
//! others of that side.

use millpond::SqlState;

use super::{alone, each_is_as_of_one_thread, plan, rows, together, with_tables};

const QUERIES: &[&str] = &[
    "select p.id, count(i.id), sum(i.n) from part p left join item i on i.part = p.id + 0 group by p.id order by 1",
    // In the order of the rows.
    "select l.note, i.id, i.line from loose l left join item i on i.part = l.part and i.n > 2000",
    "select l.note, i.id from item i right join loose l on i.part = l.part + 1 and i.line = 2 and i.v <> l.note",
    // No row of the larger side; no key of the smaller.
    "select count(*), count(i.id), sum(l.part) from loose l left join item i on i.part = l.part and i.n < 0",
    "select count(*), count(i.id) from loose l left join item i on i.part = nullif(l.part, l.part)",
    // Both sides have rows without a match.
    "select l.note, i.id, i.line from item i full join loose l on i.part = l.part and i.n > 30",
    "select count(*), count(i.id), count(p.id), sum(i.n) from item i full join part p on p.id + 100 = i.part",
    // Joins above and below.
    "select p.id, o.status, count(i.id) from part p left join (item i join ord o on o.id = i.id) on i.part = p.id + 0 \
        group by 1, 2 order by 1, 2",
    "select count(*), count(x.id) from loose l left join (select i.id, p.id as part from item i \
        join part p on p.id + 0 = i.part) x on x.part = l.part",
];

#[test]
fn outer_joins_answer_as_on_one_thread() {
    each_is_as_of_one_thread(QUERIES);
}

#[test]
fn threads_probe_for_outer_joins() {
    let (_fresh, mut c) = with_tables();
    together(&mut c);
    for (query, join) in [
        (QUERIES[0], "Hash Right Join"),
        (QUERIES[1], "Hash Right Join"),
        (QUERIES[5], "Hash Full Join"),
    ] {
        let shown = plan(&mut c, query);
        let gather = shown.lines().position(|line| line.contains("Gather")).unwrap();
        let below = shown.lines().nth(gather + 2);
        assert!(below.is_some_and(|line| line.contains(join)), "{query}\n{shown}");
    }
}

/// The table with the smaller side's rows is too large for memory: the session looks for matches.
#[test]
fn an_outer_join_in_files_has_the_same_rows() {
    let (_fresh, mut c) = with_tables();
    c.batch(
        "create table wide (k int, t text); \
         insert into wide select i % 7000, repeat('w', 200) from generate_series(1, 14000) i; \
         set work_mem = '64kB'; set hash_mem_multiplier = 1",
    )
    .unwrap();
    c.batch("vacuum wide").unwrap();
    let query = "select w.k, count(*), sum(i.n), max(length(w.t)) from wide w full join item i on i.part = w.k \
        group by w.k order by 1";
    alone(&mut c);
    let expected = rows(&mut c, query);
    together(&mut c);
    assert_eq!(rows(&mut c, query), expected);
    c.batch("set temp_file_limit = 0").unwrap();
    let error = c.query(query, &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED);
}
