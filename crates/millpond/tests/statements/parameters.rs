//! The types that parameters get, and the values that they then have.

use millpond::types::text;
use millpond::{Connection, DataType, Value};

use crate::common::{Transcript, fresh, run};

const TABLE: &str = "create table t (id int primary key, c char(5), v varchar(5), n name, x text)";

/// The types of a statement's parameters, by their numbers in `pg_type`.
fn types(c: &mut Connection, sql: &str) -> Vec<u32> {
    let prepared = c.prepare(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    prepared.params().iter().map(|ty| ty.oid()).collect()
}

/// What a statement answers, with the same text for all of its parameters. The client may say which
/// type they have.
fn answer(c: &mut Connection, sql: &str, value: &str, declared: Option<DataType>) -> String {
    let declared: Vec<Option<DataType>> = declared.into_iter().map(Some).collect();
    let prepared = c.prepare(sql, &declared).expect("a statement of the test");
    let options = millpond::types::FormatOptions::default();
    let parsed =
        prepared.params().iter().map(|ty| text::parse(*ty, value, &options).expect("a string"));
    let params: Vec<Value> = parsed.collect();
    let mut portal = c.bind(&prepared, params.into_iter().collect()).expect("its parameters");
    let mut shown = Transcript::default();
    if let Err(error) = c.execute_portal(&mut portal, 0, &mut shown) {
        return error.message.to_owned();
    }
    shown.text.lines().collect::<Vec<_>>().join(" ")
}

/// Strings of all kinds. The types are PostgreSQL's.
#[test]
fn strings_have_the_type_of_what_they_stand_beside() {
    const TEXT: u32 = 25;
    const NAME: u32 = 19;
    const CHAR: u32 = 1042;
    const VARCHAR: u32 = 1043;
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, TABLE);
    let expected: [(&str, &[u32]); 20] = [
        // `varchar` has no operators, so it is compared as text.
        ("select from t where c = $1 and v = $2 and n = $3 and x = $4", &[CHAR, TEXT, NAME, TEXT]),
        ("select from t where c > $1 and v > $2", &[CHAR, TEXT]),
        ("select from t where c in ($1) and v in ($2)", &[CHAR, TEXT]),
        ("select from t where c in ($1, $2)", &[CHAR, CHAR]),
        ("select from t where v in ($1, $2)", &[VARCHAR, VARCHAR]),
        ("select from t where c = any ($1)", &[1014]),
        ("select from t where v = any ($1)", &[1009]),
        ("select from t where n = any ($1)", &[1003]),
        ("select from t where c like $1 and v like $2 and n like $3", &[TEXT, TEXT, TEXT]),
        ("select from t where (c, v) = ($1, $2)", &[CHAR, TEXT]),
        ("select from t where c is distinct from $1", &[CHAR]),
        ("select coalesce($1, c), coalesce($2, v), greatest(n, $3) from t", &[CHAR, VARCHAR, NAME]),
        ("select nullif(c, $1), nullif(v, $2), nullif($3, v) from t", &[CHAR, TEXT, TEXT]),
        ("select array[c, $1], array[v, $2], array[n, $3] from t", &[CHAR, VARCHAR, NAME]),
        ("select case c when $1 then 1 end, case v when $2 then 1 end from t", &[CHAR, TEXT]),
        ("select $1::char(3), $2::bpchar, $3::varchar(3), $4::name", &[CHAR, CHAR, VARCHAR, NAME]),
        ("insert into t (id, c, v, n) values ($1, $2, $3, $4)", &[23, CHAR, VARCHAR, NAME]),
        ("insert into t (id, c, v) select $1, $2, $3", &[23, CHAR, VARCHAR]),
        ("update t set c = $1, v = coalesce($2, v) where id = $3", &[CHAR, VARCHAR, 23]),
        ("update t set (c, v) = ($1, $2)", &[CHAR, VARCHAR]),
    ];
    for (sql, oids) in expected {
        assert_eq!(types(&mut c, sql), oids, "{sql}");
    }
    let prepared =
        c.prepare("select nullif(v, $1), nullif(v, v), nullif(c, $2) from t", &[]).unwrap();
    let columns = prepared.columns().unwrap().iter().map(|column| column.ty.oid());
    assert_eq!(columns.collect::<Vec<_>>(), [TEXT, TEXT, CHAR]);
}

/// Spaces at the end count in no comparison with `char(n)`, and in all others.
#[test]
fn spaces_at_the_end_count_as_the_type_says() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, TABLE);
    run(&mut c, "create index on t (c)");
    run(
        &mut c,
        "insert into t values (1, 'ab', 'ab', 'ab', 'ab'), (2, 'ab ', 'ab ', 'ab ', 'ab ')",
    );
    let (bpchar, varchar) = (Some(DataType::Char(0)), Some(DataType::Varchar(None)));
    let expected = [
        ("select id from t where c = $1", "ab   ", None, "1 2 SELECT 2"),
        ("select id from t where c in ($1, 'q')", "ab ", None, "1 2 SELECT 2"),
        ("select id from t where c = any (array[$1, 'q'])", "ab ", None, "SELECT 0"),
        ("select id from t where c = any (array[$1, 'q'])", "ab ", varchar, "1 2 SELECT 2"),
        ("select id from t where c = any (array[$1, 'q'])", "ab ", bpchar, "1 2 SELECT 2"),
        ("select id from t where c <> all (array[$1, 'q'])", "ab ", varchar, "SELECT 0"),
        ("select id from t where v = any (array[$1, 'q'])", "ab ", varchar, "2 SELECT 1"),
        ("select id from t where v = any (array[$1, 'q'])", "ab ", bpchar, "1 2 SELECT 2"),
        ("select id from t where c = any (string_to_array($1, ','))", "ab ", None, "SELECT 0"),
        ("select id from t where c = $1", "ab ", bpchar, "1 2 SELECT 2"),
        ("select id from t where c = $1", "ab ", varchar, "1 2 SELECT 2"),
        ("select id from t where v = $1", "ab ", None, "2 SELECT 1"),
        ("select id from t where v in ($1)", "ab ", None, "2 SELECT 1"),
        ("select id from t where v in ($1, 'q')", "ab ", None, "2 SELECT 1"),
        ("select id from t where v = $1", "ab ", bpchar, "1 2 SELECT 2"),
        ("select id from t where v in ($1)", "ab ", bpchar, "1 2 SELECT 2"),
        ("select nullif(v, $1) is null from t", "ab ", bpchar, "t t SELECT 2"),
        ("select id from t where x = $1", "ab ", None, "2 SELECT 1"),
        ("select coalesce($1, c) || '|' from t where id = 1", "q  ", None, "q| SELECT 1"),
        ("update t set c = $1 where id = 1 returning length(c)", "abc       ", None, "3 UPDATE 1"),
        (
            "update t set c = $1 where id = 1",
            "abcdef",
            None,
            "value too long for type character(5)",
        ),
    ];
    for (sql, value, declared, rows) in expected {
        assert_eq!(answer(&mut c, sql, value, declared), rows, "{sql} with {value:?} {declared:?}");
    }
}
