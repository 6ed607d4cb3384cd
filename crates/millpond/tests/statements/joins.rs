//! Joins: what they return, and that keys find the rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{fresh, run, script};

#[test]
fn joins_by_key() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table customers (id int primary key, name text not null)
CREATE TABLE

> create table orders (id int primary key, customer int, total numeric(8,2))
CREATE TABLE

> create index on orders (customer)
CREATE INDEX

> create table lines (order_id int, line int, item text, primary key (order_id, line))
CREATE TABLE

> insert into customers values (1, 'Ann'), (2, 'Bob'), (3, 'Cid')
INSERT 0 3

> insert into orders values (10, 1, 5.00), (11, 1, 7.50), (12, 2, 1.25), (13, null, 9.00)
INSERT 0 4

> insert into lines values (10, 1, 'nail'), (10, 2, 'bolt'), (12, 1, 'nut')
INSERT 0 3

> select o.id, c.name from orders o join customers c on c.id = o.customer where o.id = 11
id|name
11|Ann
SELECT 1

> select * from customers c, orders o where c.id = 1 and o.customer = c.id order by o.id desc
id|name|id|customer|total
1|Ann|11|1|7.50
1|Ann|10|1|5.00
SELECT 2

> select o.*, c.name as who from orders o inner join customers c on o.customer = c.id where c.id = 2
id|customer|total|who
12|2|1.25|Bob
SELECT 1

> select c.name, o.id, l.item from customers c join orders o on o.customer = c.id join lines l on l.order_id = o.id where c.id in (1, 2) order by 1, 2, l.line
name|id|item
Ann|10|nail
Ann|10|bolt
Bob|12|nut
SELECT 3

> select c.id, o.id from customers c left join orders o on o.customer = c.id order by 1, 2
id|id
1|10
1|11
2|12
3|NULL
SELECT 4

> select c.id from customers c left join orders o on o.customer = c.id where o.id is null
id
3
SELECT 1

> select c.id, o.id from customers c left join orders o on o.customer = c.id and o.total > 6 order by 1
id|id
1|11
2|NULL
3|NULL
SELECT 3

> select c.id, o.id, l.item from customers c left join orders o on o.customer = c.id left join lines l on l.order_id = o.id and l.line = 1 order by 1, 2
id|id|item
1|10|nail
1|11|NULL
2|12|nut
3|NULL|NULL
SELECT 4

> select count(*), sum(o.total), max(c.name) from customers c join orders o on o.customer = c.id where c.id < 3
count|sum|max
3|13.75|Bob
SELECT 1

> select o.id from orders o join customers c on c.id = o.customer order by o.id limit 1 offset 1
id
11
SELECT 1

> select 1 from customers a join customers b on a.id = b.id and false where a.id = 1
?column?
SELECT 0

> select a.id, b.id from customers a join customers b on b.id = a.id + 1 where a.id = 1
id|id
1|2
SELECT 1

> select id from orders o join customers c on c.id = o.customer
ERROR: column reference "id" is ambiguous [42702] at 8

> select 1 from orders o join customers o on o.id = o.id
ERROR: table name "o" specified more than once [42712]

> select 1 from orders o join customers c on o.id where o.id = 1
ERROR: argument of JOIN/ON must be type boolean, not type integer [42804] at 44

> insert into lines select o.id, 9, c.name from orders o join customers c on c.id = o.customer where o.id = 11 returning *
order_id|line|item
11|9|Ann
INSERT 0 1

> explain select o.id from orders o left join lines l on l.order_id = o.id where o.customer = 1 and l.line is null order by o.total
QUERY PLAN
Sort
  Sort Key: o.total
  ->  Nested Loop Left Join
        Filter: (l.line IS NULL)
        ->  Index Scan using orders_customer_idx on orders o
              Index Cond: (customer = 1)
        ->  Index Scan using lines_pkey on lines l
              Index Cond: (order_id = o.id)
EXPLAIN
"#,
    );
}

/// The order of the outermost table's index is the join's.
#[test]
fn an_index_gives_a_joins_order() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table a (id int primary key, b int)");
    run(&mut c, "create table b (id int primary key)");
    run(&mut c, "insert into b select g from generate_series(1, 10) g");
    run(&mut c, "insert into a select g, g % 10 + 1 from generate_series(1, 100) g");
    script(
        &mut c,
        r#"
> select a.id, b.id from a join b on b.id = a.b where a.id > 20 order by a.id desc limit 2
id|id
100|1
99|10
SELECT 2

> explain select a.id, b.id from a join b on b.id = a.b where a.id > 20 order by a.id desc limit 2
QUERY PLAN
Limit
  ->  Nested Loop
        ->  Index Scan Backward using a_pkey on a
              Index Cond: (id > 20)
        ->  Index Scan using b_pkey on b
              Index Cond: (id = a.b)
EXPLAIN
"#,
    );
}

/// A join that looks at more rows than an event loop has time for is done where it may wait.
#[test]
fn long_joins_are_moved() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "create table a (id int primary key, b int)");
    run(&mut c, "create table b (id int primary key)");
    run(&mut c, "insert into b select g from generate_series(1, 3000) g");
    run(&mut c, "insert into a select g, g from generate_series(1, 3000) g");
    let count = "select count(*), sum(b.id) from a join b on b.id = a.b where a.id between 1 and ";
    assert_eq!(run(&mut c, &format!("{count} 500")), "count|sum\n500|125250\nSELECT 1\n");
    assert_eq!(run(&mut c, &format!("{count} 3000")), "count|sum\n3000|4501500\nSELECT 1\n");
}

type Row = Vec<Option<i32>>;

const TABLES: [&str; 3] = ["a", "b", "c"];
const COLUMNS: [&str; 3] = ["id", "x", "y"];

/// A column of a table beside another column or a number.
#[derive(Clone, Copy)]
struct Term {
    left: (usize, usize),
    op: &'static str,
    right: Result<(usize, usize), i32>,
}

impl Term {
    fn holds(&self, rows: &[Row]) -> bool {
        let column = |(table, column): (usize, usize)| rows[table][column];
        let right = self.right.map_or_else(Some, column);
        let (Some(left), Some(right)) = (column(self.left), right) else { return false };
        match self.op {
            "=" => left == right,
            "<" => left < right,
            _ => left >= right,
        }
    }

    fn sql(&self) -> String {
        let column =
            |(table, column): (usize, usize)| format!("{}.{}", TABLES[table], COLUMNS[column]);
        let right = self.right.map_or_else(|number| number.to_string(), column);
        format!("{} {} {right}", column(self.left), self.op)
    }
}

fn all_sql(terms: &[Term]) -> String {
    let terms: Vec<String> = terms.iter().map(Term::sql).collect();
    terms.join(" and ")
}

/// What a query of three tables must return, by trying all combinations of rows.
fn expected(
    tables: &[Vec<Row>],
    joins: &[(bool, Vec<Term>)],
    condition: &[Term],
) -> BTreeMap<String, usize> {
    let nothing: Row = vec![None; COLUMNS.len()];
    let mut combined: Vec<Vec<Row>> = tables[0].iter().map(|row| vec![row.clone()]).collect();
    for ((is_left, on), table) in joins.iter().zip(&tables[1..]) {
        let mut next = Vec::new();
        for rows in &combined {
            let before = next.len();
            for row in table {
                let rows: Vec<Row> = rows.iter().chain([row]).cloned().collect();
                if on.iter().all(|term| term.holds(&rows)) {
                    next.push(rows);
                }
            }
            if *is_left && next.len() == before {
                next.push(rows.iter().chain([&nothing]).cloned().collect());
            }
        }
        combined = next;
    }
    let mut counted = BTreeMap::new();
    for rows in combined {
        if condition.iter().all(|term| term.holds(&rows)) {
            let fields: Vec<String> = rows
                .iter()
                .flatten()
                .map(|value| value.map_or("NULL".to_owned(), |value| value.to_string()))
                .collect();
            *counted.entry(fields.join("|")).or_default() += 1;
        }
    }
    counted
}

/// Random inner and left joins of three tables with NULLs and duplicates return what trying all
/// combinations returns.
#[test]
fn joins_are_what_their_definition_says() {
    let seed = rand::rng().random();
    println!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let mut tables: Vec<Vec<Row>> = Vec::new();
    for table in TABLES {
        run(&mut c, &format!("create table {table} (id int primary key, x int, y int)"));
        run(&mut c, &format!("create index on {table} (x, y)"));
        run(&mut c, &format!("create index on {table} (y)"));
        let mut rows = Vec::new();
        for id in 0..rng.random_range(5..20) {
            let mut value = || rng.random_bool(0.8).then(|| rng.random_range(0..6));
            let row = vec![Some(id), value(), value()];
            let show = |value: &Option<i32>| value.map_or("null".to_owned(), |v| v.to_string());
            let values: Vec<String> = row.iter().map(show).collect();
            run(&mut c, &format!("insert into {table} values ({})", values.join(", ")));
            rows.push(row);
        }
        tables.push(rows);
    }
    for _ in 0..400 {
        let mut joins = Vec::new();
        for joined in 1..TABLES.len() {
            let other = rng.random_range(0..joined);
            let column = |rng: &mut SmallRng| rng.random_range(0..COLUMNS.len());
            let (left, right) = ((joined, column(&mut rng)), (other, column(&mut rng)));
            let mut on = vec![Term { left, op: "=", right: Ok(right) }];
            if rng.random_bool(0.4) {
                let op = ["=", "<", ">="][rng.random_range(0..3)];
                let left = (rng.random_range(0..=joined), column(&mut rng));
                on.push(Term { left, op, right: Err(rng.random_range(0..6)) });
            }
            joins.push((rng.random_bool(0.5), on));
        }
        let mut condition = Vec::new();
        for _ in 0..rng.random_range(0..3) {
            let left = (rng.random_range(0..3), rng.random_range(0..3));
            let op = ["=", "<", ">="][rng.random_range(0..3)];
            condition.push(Term { left, op, right: Err(rng.random_range(0..6)) });
        }
        let mut sql = "select * from a".to_owned();
        for ((is_left, on), table) in joins.iter().zip(&TABLES[1..]) {
            let kind = if *is_left { "left join" } else { "join" };
            write!(sql, " {kind} {table} on {}", all_sql(on)).unwrap();
        }
        if !condition.is_empty() {
            write!(sql, " where {}", all_sql(&condition)).unwrap();
        }
        let answer = run(&mut c, &sql);
        let mut counted = BTreeMap::new();
        let lines: Vec<&str> = answer.lines().collect();
        for line in &lines[1..lines.len() - 1] {
            *counted.entry((*line).to_owned()).or_default() += 1;
        }
        assert_eq!(counted, expected(&tables, &joins, &condition), "seed {seed}: {sql}");
        let plan = run(&mut c, &format!("explain {sql}"));
        let joined = plan.contains("Nested Loop") || plan.contains("Hash");
        assert!(joined, "seed {seed}: {sql}\n{plan}");
    }
}

/// Columns that a join makes equal, several of them in one table. The answers are PostgreSQL's.
#[test]
fn equal_columns_of_one_table() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(&mut c, include_str!("equal_columns.txt"));
}
