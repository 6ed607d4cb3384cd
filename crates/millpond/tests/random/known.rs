//! Differences from PostgreSQL 15 that stay, each with its reason.

use millpond_oracle::Answer;

/// Why an answer may differ, if there is such a reason.
pub fn reason(sql: &str, found: &Answer, expected: &Answer) -> Option<&'static str> {
    let refused = |answer: &Answer, message: &str| {
        answer.refusal().is_some_and(|refusal| refusal.message == message)
    };
    let has = |parts: &[&str]| parts.iter().any(|part| sql.contains(part));
    if refused(found, "interval out of range") && expected.refusal().is_none() {
        return Some("PostgreSQL 15 does not notice that a difference of time stamps overflows");
    }
    if has(&["||/", "\"cbrt\"", "\"dcbrt\""]) {
        return Some("the last digit of a cube root is that of the C library");
    }
    if has(&["::bpchar)::bpchar", ")::bpchar", "::bpchar"]) && is_about_blanks(found, expected) {
        return Some("bpchar without a length is text in Millpond");
    }
    None
}

/// Whether answers differ in blanks at the end or in the type, as those of `bpchar` do.
fn is_about_blanks(found: &Answer, expected: &Answer) -> bool {
    let (Answer::Rows { rows: ours, .. }, Answer::Rows { rows: theirs, .. }) = (found, expected)
    else {
        return false;
    };
    let without = |rows: &[Vec<Option<String>>]| -> Vec<String> {
        let values = rows.iter().flatten();
        values.map(|value| value.as_deref().unwrap_or("NULL").replace([' ', '"'], "")).collect()
    };
    without(ours) == without(theirs)
}
