use super::bind::{Binder, NoColumns, ParamTypes};
use super::*;
use crate::error::SqlError;
use crate::parse::{Source, parse_expression};
use crate::settings::{SessionSettings, Settings};

fn try_eval(sql: &str) -> Result<(String, DataType), SqlError> {
    let ast = parse_expression(sql)?;
    let mut binder = Binder::new(Source::new(sql), ParamTypes::None);
    let (expr, ty) = binder.output(&ast, &NoColumns)?;
    let shown = with_params(&[], |env| {
        Ok::<_, SqlError>(match expr.eval(env)?.datum() {
            Datum::Null => "NULL".to_owned(),
            datum => cast::to_text(&datum),
        })
    })?;
    Ok((shown, ty))
}

/// What a function makes of an environment without a row.
pub(crate) fn with_params<R>(params: &[Value], run: impl FnOnce(&Env<'_>) -> R) -> R {
    let settings = SessionSettings::new(std::sync::Arc::new(Settings::default()));
    let notices = Default::default();
    let facts = Facts {
        now: 0,
        user: "postgres",
        database: "postgres",
        process_id: 7,
        long_text: None,
        settings: &settings,
        session: None,
        look: None,
        server: None,
        notices: &notices,
        only_locks: false,
    };
    run(&Env { row: Row::None, params, facts: &facts, subplans: None })
}

#[test]
fn what_is_the_same_for_all_rows_is_computed_once() {
    let folded = |expr: Expr| {
        with_params(&[Value::Int4(5), Value::Int4(0)], |env| expr.folded(env)).unwrap()
    };
    let param = Expr::Param;
    let column = || Expr::Column(0);
    let arith = |op, a, b| Expr::Arith(op, Box::new((a, b)));
    let int = |value| Expr::Const(Value::Int4(value));
    // A part of a condition that has a column.
    let sum = |a, b| arith(Arith::Add, a, b);
    let found = folded(Expr::Compare(Compare::Lt, Box::new((column(), sum(param(0), int(2))))));
    assert_eq!(found, Expr::Compare(Compare::Lt, Box::new((column(), int(7)))));
    assert_eq!(folded(sum(sum(column(), param(0)), int(1))), sum(sum(column(), int(5)), int(1)));
    // It fails only where it is needed.
    let failing = || arith(Arith::Div, int(1), param(1));
    let either = |a, b| Expr::And(vec![a, b]);
    let is_one = |e| Expr::Compare(Compare::Eq, Box::new((e, int(1))));
    let condition = either(is_one(column()), is_one(failing()));
    assert_eq!(folded(condition.clone()), condition);
    // Each row has another value.
    let random = Expr::Func(Func::exactly("random", &[]).unwrap(), Vec::new());
    assert_eq!(folded(random.clone()), random);
}

#[test]
fn equal_parameters_show_what_the_sides_of_an_or_have_in_common() {
    let params = [5, 5, 0, 1, 1].map(Value::Int4);
    let folded = |expr: Expr| with_params(&params, |env| expr.folded(env)).unwrap();
    let is = |column, value| Expr::Compare(Compare::Eq, Box::new((Expr::Column(column), value)));
    let (param, int) = (Expr::Param, |value| Expr::Const(Value::Int4(value)));
    let or = |a, b| Expr::Or(vec![Expr::And(a), Expr::And(b)]);
    let written =
        or(vec![is(1, param(3)), is(0, param(0))], vec![is(2, param(2)), is(0, param(1))]);
    let rest = Expr::Or(vec![is(1, int(1)), is(2, int(0))]);
    assert_eq!(folded(written), Expr::And(vec![is(0, int(5)), rest]));
    // What may fail stays behind what is before it.
    let quotient = |number| Expr::Arith(Arith::Div, Box::new((number, Expr::Column(3))));
    let tested = |number: Expr| Expr::Compare(Compare::Eq, Box::new((quotient(number), int(2))));
    let written = or(vec![is(1, int(1)), tested(param(0))], vec![is(2, int(2)), tested(param(1))]);
    let expected = or(vec![is(1, int(1)), tested(int(5))], vec![is(2, int(2)), tested(int(5))]);
    assert_eq!(folded(written), expected);
}

/// Answers of PostgreSQL 15: an expression, then its type and value or its error.
const ANSWERS: &[&str] = &[
    include_str!("answers/array_bounds.txt"),
    include_str!("answers/calls.txt"),
    include_str!("answers/bytes.txt"),
    include_str!("answers/hash.txt"),
    include_str!("answers/input_forms.txt"),
    include_str!("answers/json.txt"),
    include_str!("answers/jsonpath_datetime.txt"),
    include_str!("answers/jsonpath_keyvalue.txt"),
    include_str!("answers/jsonpath_random.txt"),
    include_str!("answers/math.txt"),
    include_str!("answers/operators.txt"),
    include_str!("answers/random.txt"),
    include_str!("answers/regex.txt"),
    include_str!("answers/regex_random.txt"),
    include_str!("answers/regex_syntax.txt"),
    include_str!("answers/numeric.txt"),
    include_str!("answers/steps.txt"),
    include_str!("answers/string.txt"),
    include_str!("answers/system.txt"),
    include_str!("answers/template.txt"),
];

#[test]
fn functions_answer_as_postgresql() {
    for file in ANSWERS {
        check_answers(file);
    }
}

fn check_answers(file: &str) {
    let mut wrong = Vec::new();
    for line in file.lines() {
        let [sql, expected] = *line.split('\t').collect::<Vec<_>>() else { panic!("{line}") };
        let answer = match try_eval(sql) {
            Ok((value, ty)) => format!("{}: {value}", func::type_name(ty)),
            Err(error) => format!("{} {}", error.sqlstate, error.message),
        };
        let answer = answer.replace('\n', "\\n").replace('\t', "\\t");
        if answer != expected {
            wrong.push(format!("{sql}\n  expected {expected}\n       got {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
}

/// More answers, from a file that MILLPOND_ANSWERS names.
#[test]
fn functions_answer_as_a_file_says() {
    let Ok(path) = std::env::var("MILLPOND_ANSWERS") else { return };
    check_answers(&std::fs::read_to_string(path).unwrap());
}

fn eval(sql: &str) -> String {
    try_eval(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).0
}

#[track_caller]
fn fails(sql: &str, state: &str, message: &str) {
    let error = try_eval(sql).expect_err(sql);
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), (state, message), "{sql}");
}

#[test]
fn values_are_postgresqls() {
    for (sql, expected) in [
        ("1 + 2 * 3", "7"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("7.0 / 2", "3.5000000000000000"),
        ("1 + 2.5", "3.5"),
        ("2147483648 - 1", "2147483647"),
        ("1::float8 / 3", "0.3333333333333333"),
        ("'10' + 5", "15"),
        ("'a' || 'b' || 1", "ab1"),
        ("1 = 1.0", "true"),
        ("null = null", "NULL"),
        ("null and false", "false"),
        ("null or true", "true"),
        ("not null", "NULL"),
        ("1 in (2, 3, null)", "NULL"),
        ("1 in (1, null)", "true"),
        ("2 between 1 and 3", "true"),
        ("'abc' like 'a%'", "true"),
        ("'abc' like '_b_'", "true"),
        ("'a%c' like 'a\\%c'", "true"),
        ("'abc' not like '%d'", "true"),
        ("'ABC' ilike 'a%c'", "true"),
        ("'aXbXc' like '%X%c'", "true"),
        ("case when 1 > 2 then 'x' else 'y' end", "y"),
        ("case 3 when 3 then 'three' end", "three"),
        ("coalesce(null, 2, 3)", "2"),
        ("nullif(1, 1)", "NULL"),
        ("greatest(1, 3, 2)", "3"),
        ("least(1, null, 2.5)", "1"),
        ("'2024-02-28'::date + 2", "2024-03-01"),
        ("date '2024-03-01' - date '2024-02-28'", "2"),
        ("'1.5'::numeric(3,1)", "1.5"),
        ("12.345::numeric(4,1)", "12.3"),
        ("2.5::int", "3"),
        ("2.5::float8::int", "2"),
        ("'abcdef'::varchar(3)", "abc"),
        ("true::text", "true"),
        ("abs(-5)", "5"),
        ("round(2.567, 2)", "2.57"),
        ("ceil(1.2)", "2"),
        ("floor(-1.2)", "-2"),
        ("trunc(-1.7)", "-1"),
        ("upper('abc')", "ABC"),
        ("length('héé')", "3"),
        ("substring('abcdef' from 2 for 3)", "bcd"),
        ("position('c' in 'abc')", "3"),
        ("trim(both 'x' from 'xxaxx')", "a"),
        ("concat('a', null, 1, true)", "a1t"),
        ("left('abc', -1)", "ab"),
        ("1 is distinct from null", "true"),
        ("(1 = 2) is not true", "true"),
        ("current_user", "postgres"),
        ("pg_backend_pid()", "7"),
        ("current_setting('work_mem')", "4MB"),
        ("6 & 3 | 8", "10"),
        ("now()", "2000-01-01 00:00:00+00"),
        ("-(-5)", "5"),
        ("5 - -3", "8"),
    ] {
        assert_eq!(eval(sql), expected, "{sql}");
    }
}

#[test]
fn types_are_postgresqls() {
    for (sql, expected) in [
        ("1", DataType::Int4),
        ("3000000000", DataType::Int8),
        ("1.5", types::NUMERIC),
        ("'a'", DataType::Text),
        ("1 + 3000000000", DataType::Int8),
        ("1::int2 + 1::int2", DataType::Int2),
        ("1 + 1::float4", DataType::Float8),
        ("1.5 + 1::float8", DataType::Float8),
        ("1 = 1", DataType::Bool),
        ("null", DataType::Text),
        ("now()", DataType::Timestamptz(None)),
        ("coalesce(1, 2.5)", types::NUMERIC),
    ] {
        assert_eq!(try_eval(sql).unwrap().1, expected, "{sql}");
    }
}

#[test]
fn errors_are_postgresqls() {
    fails("1 / 0", "22012", "division by zero");
    fails("2147483647 + 1", "22003", "integer out of range");
    fails("-(-2147483648)::int4", "22003", "integer out of range");
    fails("9223372036854775807 * 2", "22003", "bigint out of range");
    fails("'x'::int", "22P02", "invalid input syntax for type integer: \"x\"");
    fails("1 + 'x'", "22P02", "invalid input syntax for type integer: \"x\"");
    fails("1 = true", "42883", "operator does not exist: integer = boolean");
    fails("nosuch(1)", "42883", "function nosuch(integer) does not exist");
    fails("col", "42703", "column \"col\" does not exist");
    fails("$1", "42P02", "there is no parameter $1");
    fails(
        "case when 1 then 2 end",
        "42804",
        "argument of CASE/WHEN must be type boolean, not type integer",
    );
    fails("'a' like '\\'", "22025", "LIKE pattern must not end with escape character");
    fails("1::nosuch", "42704", "type \"nosuch\" does not exist");
    fails("'2024-13-01'::date", "22008", "date/time field value out of range: \"2024-13-01\"");
    fails("1::jsonb", "42846", "cannot cast type integer to jsonb");
}
