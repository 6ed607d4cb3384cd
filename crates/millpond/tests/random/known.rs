//! Differences from PostgreSQL 15 that stay, each with its reason.

use millpond_oracle::Answer;

/// Why an answer may differ, if there is such a reason.
pub fn reason(sql: &str, found: &Answer, expected: &Answer) -> Option<&'static str> {
    let refused = |answer: &Answer, message: &str| {
        answer.refusal().is_some_and(|refusal| refusal.message == message)
    };
    let has = |parts: &[&str]| parts.iter().any(|part| sql.contains(part));
    if refused(found, "interval out of range") {
        return Some("PostgreSQL 15 does not notice that a difference of time stamps overflows");
    }
    let cut = |answer: &Answer| {
        answer.refusal().is_some_and(|refusal| refusal.message.starts_with("invalid value \""))
    };
    if cut(found) && cut(expected) {
        return Some("PostgreSQL shows a part of a character");
    }
    if has(&["^", "pow"]) && is_nearly_zero(found) && is_nearly_zero(expected) {
        return Some("a power that is nearly 0 may have one digit more");
    }
    if has(&["'infinity'::text"]) && has(&["\"extract\"", "\"date_part\""]) {
        return Some("a word that is no unit but a time is 0A000 in PostgreSQL");
    }
    if has(&["\"age\""]) && has(&["infinity"]) {
        return Some("PostgreSQL 15 takes infinity for a moment in an age");
    }
    let is_internal =
        expected.refusal().is_some_and(|refusal| refusal.message.starts_with("unrecognized "));
    if is_internal && found.refusal().is_some() {
        return Some("PostgreSQL calls it an internal error");
    }
    None
}

/// Whether an answer is one 0 with digits behind the point.
fn is_nearly_zero(answer: &Answer) -> bool {
    let Answer::Rows { rows, .. } = answer else { return false };
    let zeros =
        |text: &str| text.starts_with("0.0") && text.bytes().all(|b| matches!(b, b'0' | b'.'));
    rows.iter().flatten().flatten().all(|text| zeros(text))
}
