//! Sorting in parts.

use millpond::SqlState;

use super::{alone, each_is_as_of_one_thread, plan, rows, together, with_tables};

/// Many rows have equal keys: they come in the order of the table.
const SORTED: &[&str] = &[
    "select id, line, v from item order by v",
    "select id, line, n from item order by part % 3, line desc nulls last, nullif(part % 7, 3) nulls first",
    "select * from item where n > 700 order by d desc",
    // The first rows of many that are equal, of few, and from a place on.
    "select id, line from item order by line limit 7",
    "select id, line from item order by line desc, v limit 1000",
    "select id, line, v from item order by v desc limit 20 offset 995",
    "select id, line from item order by v limit 3000 offset 100",
    "select id, line from item where line = 2 and n < 20 order by part limit 25",
    "select id from item where v = 'text 9' order by part, id / (line - 4) limit 5",
    // Columns of joined rows.
    "select i.id, i.line, p.name from item i join part p on p.id + 0 = i.part order by p.size, p.name",
    "select i.id, p.name from item i left join part p on p.id = i.part order by p.name nulls first limit 9",
    "select o.id, i.v from ord o join item i on i.id = o.id where i.line = 1 order by i.n * o.total desc limit 30",
    // Rows that join with many: a thread gives several runs of one chunk.
    "select i.id, l.note, i.v from item i join loose l on l.part = i.part order by l.note desc, i.v limit 900",
    "select i.id, l.note, repeat(i.v, 9) from item i join loose l on l.part = i.part order by i.n % 7",
    // Sorts within a query.
    "select distinct on (part) part, id, n from item order by part, n desc",
    "select id, line, row_number() over (partition by part order by v), sum(n) over (partition by part order by v) \
        from item where line < 2",
    "select v, string_agg(id::text, ',' order by id) from (select v, id from item order by part offset 3) s group by v",
    "select s.x from (select part * 2 as x, v from item order by v, part offset 0) s where s.x > 1900",
    "select id from item where n > (select avg(n) from item) order by (select max(part) from item) - part, id",
];

#[test]
fn rows_are_sorted_as_by_one_thread() {
    each_is_as_of_one_thread(SORTED);
    let (_fresh, mut c) = with_tables();
    together(&mut c);
    for query in SORTED {
        let shown = plan(&mut c, query);
        assert!(shown.contains("Gather Merge"), "{query}\n{shown}");
    }
}

#[test]
fn what_does_not_fit_is_sorted_in_files() {
    let (fresh, mut c) = with_tables();
    c.batch("set work_mem = '64kB'").unwrap();
    for query in [
        "select id, line, v from item order by v, n desc",
        "select id, line, repeat(v, 40) from item order by line",
        "select id, line from item order by d limit 5000",
    ] {
        alone(&mut c);
        let expected = rows(&mut c, query);
        together(&mut c);
        let shown = plan(&mut c, query);
        assert!(shown.contains("Gather Merge"), "{shown}");
        assert!(rows(&mut c, query) == expected, "{query}");
        c.batch("set temp_file_limit = 0").unwrap();
        let error = c.query(query, &[]).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{query}");
        c.batch("set temp_file_limit = -1").unwrap();
        assert_eq!(fresh.database.query_memory_used(), 0);
    }
}

#[test]
fn a_key_that_fails_is_the_statements_error() {
    let (fresh, mut c) = with_tables();
    // That of a row that could not be among the first ones, too.
    for query in [
        "select id from item order by 1 / (id - 4000)",
        "select id from item order by line, 1 / (id - 4999) limit 3",
        "select id from item where 1 / (id - 300) < 5 order by v limit 3",
    ] {
        alone(&mut c);
        let expected = c.query(query, &[]).unwrap_err();
        together(&mut c);
        for _ in 0..3 {
            let error = c.query(query, &[]).unwrap_err();
            assert_eq!((error.sqlstate, &error.message), (expected.sqlstate, &expected.message));
            assert_eq!(error.sqlstate, SqlState::DIVISION_BY_ZERO);
        }
        assert_eq!(fresh.database.query_memory_used(), 0);
    }
}

#[test]
fn prepared_statements_sort_again() {
    let (_fresh, mut c) = with_tables();
    let query = "select id, line from item where line <> $1 order by v, id limit 40";
    alone(&mut c);
    let one = c.query(query, &[1.into()]).unwrap().rows;
    let two = c.query(query, &[2.into()]).unwrap().rows;
    assert_ne!(one, two);
    together(&mut c);
    assert!(plan(&mut c, &query.replace("$1", "1")).contains("Gather Merge"));
    for _ in 0..4 {
        assert_eq!(c.query(query, &[1.into()]).unwrap().rows, one);
        assert_eq!(c.query(query, &[2.into()]).unwrap().rows, two);
    }
}
