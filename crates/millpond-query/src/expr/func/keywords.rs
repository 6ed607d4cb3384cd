//! SQL's keywords: `pg_get_keywords`, and which of them names need quotes for.

use std::sync::LazyLock;

use super::catalog::{BOOL, Proc, RECORD_TYPE, TEXT, proc};
use super::{Columns, rows};
use crate::Value;

/// A word of PostgreSQL's grammar.
struct Keyword {
    word: &'static str,
    /// Its category: `U` where it can be any name, `R` where it can be none.
    category: &'static str,
    is_bare_label: bool,
}

/// In the order of the words.
static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(|| {
    let parsed = |line: &'static str| {
        let mut parts = line.split(' ');
        let (word, category) = (parts.next()?, parts.next()?);
        Some(Keyword { word, category, is_bare_label: parts.next()? == "t" })
    };
    include_str!("keywords.txt").lines().filter_map(parsed).collect()
});

/// Whether a word is reserved in some place.
pub(super) fn is_reserved(word: &str) -> bool {
    let place = KEYWORDS.binary_search_by_key(&word, |keyword| keyword.word).ok();
    place.and_then(|place| KEYWORDS.get(place)).is_some_and(|keyword| keyword.category != "U")
}

const COLUMNS: Columns = &[
    (Some("word"), TEXT),
    (Some("catcode"), TEXT),
    (Some("barelabel"), BOOL),
    (Some("catdesc"), TEXT),
    (Some("baredesc"), TEXT),
];

pub(super) static PROCS: &[Proc] = &[proc(
    1686,
    "pg_get_keywords",
    &[],
    RECORD_TYPE,
    rows(COLUMNS, |_, list| KEYWORDS.iter().try_for_each(|keyword| list.push(row(keyword)))),
)
.stable()];

fn row(keyword: &Keyword) -> [Value; 5] {
    let category = match keyword.category {
        "U" => "unreserved",
        "C" => "unreserved (cannot be function or type name)",
        "T" => "reserved (can be function or type name)",
        _ => "reserved",
    };
    let label = match keyword.is_bare_label {
        true => "can be bare label",
        false => "requires AS",
    };
    let text = |text: &str| Value::Text(text.to_owned());
    [
        text(keyword.word),
        text(keyword.category),
        Value::Bool(keyword.is_bare_label),
        text(category),
        text(label),
    ]
}
