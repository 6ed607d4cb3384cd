//! Texts that are deep, long or random: an answer or an error, in little time and stack.

use std::time::{Duration, Instant};

use millpond_syntax::{SqlState, parse};
use proptest::prelude::*;

/// Parses on a stack of 2 MiB, as threads have by default.
fn on_a_small_stack(text: String) -> Result<usize, SqlState> {
    let parse = move || parse(&text).map(|list| list.len()).map_err(|error| error.code);
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse).expect("a thread");
    thread.join().expect("the parser neither panics nor overflows")
}

fn nested(before: &str, open: &str, inside: &str, close: &str, depth: usize) -> String {
    format!("{before}{}{inside}{}", open.repeat(depth), close.repeat(depth))
}

const NESTS: &[(&str, &str, &str, &str)] = &[
    ("select ", "(", "1", ")"),
    ("select ", "(1 + ", "1", ")"),
    ("", "(", "select 1", ")"),
    ("select ", "(select ", "1", ")"),
    ("select * from ", "(", "a cross join b", ")"),
    ("", "select * from (", "select 1", ") a"),
    ("select ", "case when ", "true", " then 1 end"),
    ("select ", "f(", "1", ")"),
    ("select array", "[", "1", "]"),
    ("select a", "[a", "[1]", "]"),
    ("select ", "not ", "true", ""),
    ("select ", "- ", "1", ""),
    ("select 1", " + 1", "", ""),
    ("select 1", "::int", "", ""),
    ("select 1", " union select 1", "", ""),
    ("select 1", " union (select 1", "", ")"),
    ("", "with a as (", "select 1", ") select 1"),
    ("select * from a", " join b", "", " on true"),
    ("select * from a", " cross join b", "", ""),
    ("select 1 group by ", "grouping sets (", "a", ")"),
    ("", "explain ", "select 1", ""),
    ("alter table a add check ", "(", "true", ")"),
    ("alter table a alter b type int using ", "not ", "true", ""),
    ("alter table a alter b set default ", "- ", "1", ""),
    ("alter table a alter b set default 1", " + 1", "", ""),
    ("alter table a alter b set default a", ".b", "", ""),
    ("alter table a alter b set default a", "[1]", "", ""),
    ("alter table a alter b set default 1", "::int", "", ""),
    ("alter table a alter b set default 1", " + f(1, 2)", "", ""),
    ("create policy p on t using (true", " and true", ")", ""),
    ("create rule r as on insert to a do select 1", " union select 1", "", ""),
    ("create rule r as on insert to a do select 1 from a", " cross join b", "", ""),
    ("create rule r as on insert to a do ", "(", "select 1", ")"),
    ("alter table a alter b set default ", "case when ", "true", " then 1 end"),
];

#[test]
fn deep_statements_are_an_answer_or_an_error() {
    for &(before, open, inside, close) in NESTS {
        for depth in [10, 60] {
            let parsed = on_a_small_stack(nested(before, open, inside, close, depth));
            if open != "explain " && !before.starts_with("create rule") {
                assert_eq!(parsed, Ok(1), "{before}{open} {depth} times");
            }
        }
        for depth in [100, 150, 200, 250, 450, 1000, 10_000, 100_000] {
            let start = Instant::now();
            let parsed = on_a_small_stack(nested(before, open, inside, close, depth));
            let known = matches!(
                parsed,
                Ok(1) | Err(SqlState::StatementTooComplex | SqlState::SyntaxError)
            );
            assert!(known, "{before}{open} {depth} times: {parsed:?}");
            assert!(start.elapsed() < Duration::from_secs(60), "{before}{open}");
        }
    }
}

#[test]
fn long_lists_are_no_depth() {
    let many = 50_000;
    let ands = format!("select 1 where a = 0{}", " and a = 1".repeat(many));
    let list = format!("select 1 where a in (0{})", ", 1".repeat(many));
    let rows = format!("insert into t values (0){}", ", (1)".repeat(many));
    let statements = "select 1;".repeat(many);
    assert_eq!(on_a_small_stack(ands), Ok(1));
    assert_eq!(on_a_small_stack(list), Ok(1));
    assert_eq!(on_a_small_stack(rows), Ok(1));
    assert_eq!(on_a_small_stack(statements), Ok(many));
}

#[test]
fn long_texts_are_read_once() {
    let string = format!("select '{}'", "x".repeat(10 << 20));
    assert_eq!(on_a_small_stack(string), Ok(1));
    let body = "x ".repeat(5 << 20);
    let function = format!("create function f() returns int language sql as $$ {body} $$");
    assert_eq!(on_a_small_stack(function), Ok(1));
    let garbage = format!("alter table {}", "a ".repeat(100_000));
    assert_eq!(on_a_small_stack(garbage), Err(SqlState::SyntaxError));
    let open = format!("select {}", "(".repeat(10 << 20));
    assert_eq!(on_a_small_stack(open), Err(SqlState::StatementTooComplex));
    let quotes = format!("select {}", "' ".repeat(5 << 20));
    assert!(on_a_small_stack(quotes).is_err());
    let dollars = format!("select {}", "$a ".repeat(3 << 20));
    assert!(on_a_small_stack(dollars).is_err());
}

/// Words from which texts are made that are almost statements.
const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "*",
    ";",
    "a",
    "b",
    "\"c\"",
    "1",
    "2.5",
    "'x'",
    "e'\\u00e9'",
    "u&'\\0041'",
    "uescape",
    "'!'",
    "$1",
    "$$y$$",
    "b'1'",
    "::",
    "int",
    "=",
    "<",
    "+",
    "-",
    "||",
    "=>",
    "not",
    "and",
    "or",
    "in",
    "like",
    "escape",
    "between",
    "is",
    "null",
    "case",
    "when",
    "then",
    "else",
    "end",
    "join",
    "on",
    "using",
    "left",
    "natural",
    "union",
    "all",
    "order",
    "by",
    "limit",
    "for",
    "update",
    "set",
    "insert",
    "into",
    "values",
    "default",
    "delete",
    "with",
    "as",
    "create",
    "table",
    "index",
    "view",
    "schema",
    "sequence",
    "alter",
    "drop",
    "grant",
    "to",
    "function",
    "begin",
    "atomic",
    "over",
    "partition",
    "rows",
    "preceding",
    "interval",
    "time",
    "zone",
    "at",
    "collate",
    "array",
    "row",
    "exists",
    "any",
    "check",
    "references",
    "primary",
    "key",
    "copy",
    "explain",
    "set",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    })]

    #[test]
    fn almost_statements_never_panic(words in prop::collection::vec(0..WORDS.len(), 0..30)) {
        let text: Vec<&str> = words.iter().map(|&word| WORDS[word]).collect();
        let text = text.join(" ");
        if let Err(error) = parse(&text) {
            prop_assert!(error.position(&text) <= text.chars().count() + 1);
        }
    }

    #[test]
    fn random_texts_never_panic(text in "[a-zA-Z0-9 '\"\\\\$&éü%+*/<>=~.,:;()\\[\\]\n-]{0,60}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.position(&text) <= text.chars().count() + 1);
        }
    }
}

#[test]
fn parsing_stops_when_it_is_told_to() {
    use millpond_syntax::{PlainStrings, parse_tokens, tokens};
    use std::cell::Cell;

    let text = format!("select 1 in (0{})", ", 1".repeat(100_000));
    let asked = Cell::new(0);
    let stop_at = |last: u32| {
        asked.set(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > last
        };
        let tokens = tokens(&text, PlainStrings::Standard, &stop)?;
        parse_tokens(&text, tokens, &stop).map(|list| list.len())
    };
    assert_eq!(stop_at(u32::MAX).ok(), Some(1));
    let all = asked.get();
    assert!(all > 20, "it was asked {all} times");
    for last in [0, 3, all / 2, all - 1] {
        let error = stop_at(last).unwrap_err();
        assert_eq!((error.code, error.position(&text)), (SqlState::QueryCanceled, 0));
        assert_eq!(asked.get(), last + 1);
    }
}
