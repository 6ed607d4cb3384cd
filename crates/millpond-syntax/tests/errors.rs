//! What is refused, in the words and at the position of PostgreSQL 15.

use millpond_syntax::parse;

/// Text, SQLSTATE, position, message.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    ("select 1 from from t", "42601", 15, r#"syntax error at or near "from""#),
    ("select 1 +", "42601", 11, "syntax error at end of input"),
    ("select 1 +;", "42601", 11, r#"syntax error at or near ";""#),
    ("select a b c from t", "42601", 12, r#"syntax error at or near "c""#),
    ("select 'ü', * from t t t", "42601", 24, r#"syntax error at or near "t""#),
    ("select * from t where a = = 3", "42601", 27, r#"syntax error at or near "=""#),
    ("select 'a' 'b'", "42601", 12, r#"syntax error at or near "'b'""#),
    ("select 1e+", "42601", 8, r#"trailing junk after numeric literal at or near "1e+""#),
    ("select 123abc", "42601", 8, r#"trailing junk after numeric literal at or near "123abc""#),
    ("select $1abc", "42601", 8, r#"trailing junk after parameter at or near "$1abc""#),
    ("select f(x)[1]", "42601", 12, r#"syntax error at or near "[""#),
    ("select a.*.b from t", "42601", 14, r#"improper use of "*" at or near "from""#),
    (
        "select * from a.b.c.d",
        "42601",
        15,
        "improper qualified name (too many dotted names): a.b.c.d",
    ),
    ("(select 1 limit 1) limit 2", "42601", 26, "multiple LIMIT clauses not allowed"),
    (
        "select row(1) overlaps row(1,2)",
        "42601",
        8,
        "wrong number of parameters on left side of OVERLAPS expression",
    ),
    ("select * from (a)", "42601", 17, r#"syntax error at or near ")""#),
    ("select * from ((select 1))", "42601", 15, "subquery in FROM must have an alias"),
    ("select * from (values (1))", "42601", 15, "VALUES in FROM must have an alias"),
    ("select \"\" from t", "42601", 8, r#"zero-length delimited identifier at or near """""#),
    ("select /* x", "42601", 8, r#"unterminated /* comment at or near "/* x""#),
    ("select 'abc", "42601", 8, r#"unterminated quoted string at or near "'abc""#),
    ("select \"abc", "42601", 8, r#"unterminated quoted identifier at or near ""abc""#),
    ("select $$abc", "42601", 8, r#"unterminated dollar-quoted string at or near "$$abc""#),
    ("select b'10", "42601", 8, r#"unterminated bit string literal at or near "b'10""#),
    ("select x'1f", "42601", 8, r#"unterminated hexadecimal string literal at or near "x'1f""#),
    // The grammar's error comes first.
    ("select from from 'abc", "42601", 13, r#"syntax error at or near "from""#),
    ("select a = b = c", "42601", 14, r#"syntax error at or near "=""#),
    (
        "select a between 1 and 2 between 3 and 4",
        "42601",
        26,
        r#"syntax error at or near "between""#,
    ),
    ("select a is distinct from b is null", "42601", 29, r#"syntax error at or near "is""#),
    ("select cast(1 int)", "42601", 15, r#"syntax error at or near "int""#),
    ("select count(distinct) from t", "42601", 22, r#"syntax error at or near ")""#),
    ("create table t (a int, b)", "42601", 25, r#"syntax error at or near ")""#),
    ("select count(* from t", "42601", 16, r#"syntax error at or near "from""#),
    ("create temp pond p", "42601", 13, r#"syntax error at or near "pond""#),
    ("create unique pond p", "42601", 15, r#"syntax error at or near "pond""#),
    ("insert into t default 1", "42601", 23, r#"syntax error at or near "1""#),
    ("insert into t ((a) values (1)", "42601", 17, r#"syntax error at or near "a""#),
    ("select * from t left join join u on true", "42601", 32, r#"syntax error at or near "u""#),
    ("select count(*) over from t", "42601", 22, r#"syntax error at or near "from""#),
    ("create pond p", "42601", 8, r#"syntax error at or near "pond""#),
    (
        r"select u&'\0041' uescape '+'",
        "42601",
        26,
        r#"invalid Unicode escape character at or near "'+'""#,
    ),
    (r"select E'wrong: \u061'", "22025", 17, "invalid Unicode escape"),
    (r"select U&'wrong: \+2FFFFF'", "42601", 18, "invalid Unicode escape value"),
    (r"select E'wrong: \udb99xy'", "42601", 23, r#"invalid Unicode surrogate pair at or near "x""#),
    (r"select E'\xff'", "22021", 0, r#"invalid byte sequence for encoding "UTF8": 0xff"#),
    (
        "select percentile_disc(0.5 order by 1) within group (order by x) from t",
        "42601",
        40,
        "cannot use multiple ORDER BY clauses with WITHIN GROUP",
    ),
    ("insert into t default values (1)", "42601", 30, r#"syntax error at or near "(""#),
    ("delete t", "42601", 8, r#"syntax error at or near "t""#),
    (
        "select 1 fetch first row with ties",
        "42601",
        0,
        "WITH TIES cannot be specified without ORDER BY clause",
    ),
    ("select 1 limit 1, 2", "42601", 17, "LIMIT #,# syntax is not supported"),
    ("select unique (select 1)", "0A000", 8, "UNIQUE predicate is not yet implemented"),
    ("select 1; selec 2", "42601", 11, r#"syntax error at or near "selec""#),
    ("select {", "42601", 8, r#"syntax error at or near "{""#),
    ("alter table t add check (true))", "42601", 31, r#"syntax error at or near ")""#),
    ("create function f() returns", "42601", 28, "syntax error at end of input"),
];

#[test]
fn errors_are_postgresqls() {
    for &(text, code, position, message) in REFUSED {
        match parse(text) {
            Ok(tree) => panic!("accepted: {text}: {tree:?}"),
            Err(error) => assert_eq!(
                (error.code.code(), error.position(text), error.message.as_str()),
                (code, position, message),
                "{text}"
            ),
        }
    }
}
