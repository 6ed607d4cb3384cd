//! The text of statements.

pub const TOKENS: &[&[u8]] = &[
    b"select ",
    b" from ",
    b" where ",
    b"(",
    b")",
    b"((((((((",
    b"))))))))",
    b"[",
    b"case when ",
    b" then ",
    b" end ",
    b"insert into t values (",
    b"update t set ",
    b"delete from ",
    b"create table ",
    b"create index ",
    b"copy ",
    b"copy (",
    b"explain ",
    b"prepare p as ",
    b"execute ",
    b" and ",
    b" or ",
    b"not ",
    b"- ",
    b"::",
    b"1.5e10",
    b"'text'",
    b"$1",
    b"$tag$",
    b"E'\\n'",
    b"/*",
    b"*/",
    b"--",
    b"\"name\"",
    b";",
    b" union ",
    b" join ",
    b" in (",
    b" between ",
    b" like ",
    b"::numeric(10,2)",
    b"interval '1 day'",
    b"with x as (",
    b"array[",
    b"cast(",
    b" as ",
    b"\xc3\xa9",
];

/// A text of statements.
pub fn statements(input: &[u8]) {
    let Ok(sql) = std::str::from_utf8(input) else { return };
    if let Err(error) = millpond::fuzzing::statements(sql) {
        let position = error.position.unwrap_or(0);
        assert!(position <= sql.chars().count() + 1, "position {position} of {sql:?}");
        assert_ne!(error.sqlstate.as_str(), "XX000", "{error} in {sql:?}");
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    [
        "SELECT abalance FROM pgbench_accounts WHERE aid = 1;",
        "select a, b + 1 * -c, 'it''s', E'\\n', $1::int from t where (a, b) in ((1, 2)) order by 1 desc limit 10",
        "INSERT INTO t (a, b) VALUES (1, 'x'), (2.5e3, NULL) ON CONFLICT DO NOTHING RETURNING *",
        "update t set a = case when b > 0 then 1 else 2 end where c between 1 and 2 or not d like '%x_'",
        "delete from only t using u where t.a = u.a",
        "create table t (a int primary key, b numeric(10,2) not null default 0.0, c varchar(20) unique)",
        "create unique index if not exists i on t using btree (a desc nulls last, b)",
        "alter table t add column d timestamptz; drop table if exists t, u cascade",
        "copy t (a, b) from stdin with (format csv, header match, delimiter ';', null '', force_null (a))",
        "copy (select 1) to stdout csv header",
        "begin isolation level serializable read only; savepoint s; rollback to s; commit and chain",
        "prepare p (int, text) as select $1, $2; execute p (1, 'x'); deallocate all",
        "explain (analyze, buffers off) select 1",
        "vacuum (full, analyze) t; analyze; checkpoint; reindex table t; truncate t restart identity",
        "set local search_path to public, \"Other\"; show all; reset all; set time zone interval '1' hour to minute",
        "with recursive x as (select 1 union all select x.n + 1 from x) select * from x for update of x nowait",
        "/* a /* nested */ comment */ select $tag$ text $tag$ -- the end",
        "grant select on t to u; lock table t in share mode; listen c; declare c cursor for select 1; fetch all in c",
    ]
    .iter()
    .map(|sql| sql.as_bytes().to_vec())
    .collect()
}
