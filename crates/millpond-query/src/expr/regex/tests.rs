use std::time::Duration;

use proptest::prelude::*;

use super::set::{CharSet, LAST_CASED, Parts, variants};
use super::*;

fn go_on() -> Result<()> {
    Ok(())
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in r"[ab(|)*+?{}0-9,\[\]^$\\mMdwyux.:=!<-]{0,24}", text in "[ab0 é\n]{0,12}") {
        let chars: Vec<char> = text.chars().collect();
        if let Ok(regex) = Regex::new(&pattern, Options::default()) {
            let found = regex.find(&chars, 0, &go_on);
            let matches = regex.is_match(&text, &go_on);
            if let (Ok(found), Ok(matches)) = (found, matches) {
                prop_assert_eq!(found.is_some(), matches);
            }
        }
    }

    #[test]
    fn no_pattern_of_posix_panics(
        pattern in r"(\*\*\*[:=])?(\(\?[bexq]{1,2}\))?([ab*+?^$|.]|\[\^?[ab\\]{1,2}\]|\\[(){}<>1a]|[(){}]|[0-3],?){0,16}",
        text in "[ab0 é\n]{0,12}",
        basic: bool,
    ) {
        let chars: Vec<char> = text.chars().collect();
        let syntax = if basic { Syntax::Basic } else { Syntax::Extended };
        if let Ok(regex) = Regex::new(&pattern, Options { syntax, ..Options::default() }) {
            let found = regex.find(&chars, 0, &go_on);
            let matches = regex.is_match(&text, &go_on);
            if let (Ok(found), Ok(matches)) = (found, matches) {
                prop_assert_eq!(found.is_some(), matches);
            }
        }
    }

    #[test]
    fn no_match_is_passed_over(
        pattern in r"([abé.\[\]^$()|*+?]|\\[mMyYdwA]|\(\?[=!]|\(\?<[=!]|\[\^a\]){0,10}",
        text in "[abB0 é\n]{0,14}",
        ignore_case: bool,
        newline_anchors: bool,
    ) {
        let options = Options { ignore_case, newline_anchors, ..Options::default() };
        let chars: Vec<char> = text.chars().collect();
        if let (Ok(regex), Ok(mut slow)) = (Regex::new(&pattern, options), Regex::new(&pattern, options)) {
            slow.programs[slow.root].get_mut().unwrap().begin_anywhere();
            for from in 0..=chars.len() {
                let (found, wanted) = (regex.find(&chars, from, &go_on), slow.find(&chars, from, &go_on));
                prop_assert_eq!(found.ok(), wanted.ok());
            }
        }
    }

    #[test]
    fn any_characters_are_a_pattern_or_an_error(pattern in ".{0,16}", text in ".{0,16}") {
        let options = Options { ignore_case: true, ..Options::default() };
        if let Ok(regex) = Regex::new(&pattern, options) {
            let chars: Vec<char> = text.chars().collect();
            let _ = regex.find(&chars, 0, &go_on);
        }
    }
}

/// Such a pattern has a state for each set of places where an `a` was among the last eight: more
/// than are kept.
#[test]
fn an_automaton_forgets_its_states() {
    let regex = Regex::new("^[^c]*a.{7}c$", Options::default()).unwrap();
    let (mut text, mut random) = (String::new(), 1u32);
    for length in 0..3000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push(['a', 'b', 'é'][if length % 31 == 0 { 2 } else { random as usize >> 20 & 1 }]);
        if length % 97 == 0 {
            let wanted = text.chars().rev().nth(7) == Some('a');
            assert_eq!(regex.is_match(&format!("{text}c"), &go_on).unwrap(), wanted, "{length}");
            assert!(!regex.is_match(&text, &go_on).unwrap());
        }
    }
}

#[test]
fn an_automaton_knows_the_ends_of_the_text() {
    for (pattern, matching, others) in [
        ("b", "ab", "ac"),
        ("^b", "ba", "ab"),
        ("(^|c)b", "acb", "ab"),
        ("b$", "ab", "ba"),
        (r"a($\Z|b$)", "ba", "ac"),
        ("^$", "", "a"),
        ("^a*$", "aa", "ab"),
        (r"\Aab?\Z", "a", "aab"),
    ] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        assert!(regex.is_match(matching, &go_on).unwrap(), "{pattern}");
        assert!(!regex.is_match(others, &go_on).unwrap(), "{pattern}");
    }
}

/// What is looked for before a place is looked for no farther back than it can begin: these
/// take hours otherwise.
#[test]
fn lookbehind_is_short() {
    let text: Vec<char> = "ab".repeat(100_000).chars().collect();
    for (pattern, found) in [
        ("(?<=bb)a", None),
        ("(?<=(a|bab){0,2}b)b", None),
        ("(?<=(?:^|x)a)b", Some(1..2)),
        (r"(?<!\y[ab]{3}|b)a", Some(0..1)),
        ("(?<=b(?=a)ab)a$", None),
        ("(?<=b(?=a)ab)$", Some(200_000..200_000)),
    ] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        let ends = regex.find(&text, 0, &go_on).unwrap().map(|found| found[0].unwrap());
        assert_eq!(ends.map(|(from, to)| from..to), found, "{pattern}");
    }
}

/// A character of a pattern stands for itself in lower and in upper case, as in PostgreSQL. So
/// characters that share their other case do not all match each other.
#[test]
fn cases_are_those_of_the_patterns_characters() {
    let options = Options { ignore_case: true, ..Options::default() };
    let is_match = |text: &str, pattern: &str| {
        Regex::new(pattern, options).unwrap().is_match(text, &go_on).unwrap()
    };
    for (upper, lower) in [("É", "é"), ("Σ", "σ"), ("Å", "å"), ("K", "k")] {
        assert!(is_match(upper, lower) && is_match(lower, upper), "{upper}");
    }
    // The first matches the second as a pattern, and not the other way round.
    for (text, pattern) in [
        ("S", "ſ"),
        ("k", "\u{212A}"),
        ("I", "ı"),
        ("i", "İ"),
        ("ß", "ẞ"),
        ("Σ", "ς"),
        ("Μ", "µ"),
        ("ǆ", "ǅ"),
    ] {
        assert!(is_match(text, pattern), "{text} {pattern}");
        assert!(!is_match(pattern, text), "{pattern} {text}");
        let range = format!("[{pattern}-{pattern}x]");
        assert!(is_match(text, &range), "{text} {range}");
    }
    assert!(is_match("É", "[à-ö]") && is_match("é", "[À-Ö]") && !is_match("É", "[^à-ö]"));
    assert!(is_match("k", "[\u{2120}-\u{2130}]") && is_match("q", "[A-\u{10FFFF}]"));
    // Ranges that overlap take no more memory than one.
    let ranges = Parts { ranges: vec![('\u{1}', char::MAX); 20_000], ..Parts::default() };
    let set = CharSet::new(Parts { ignore_case: true, ..ranges });
    assert_eq!(set.ranges(), 1);
    assert!((LAST_CASED..=char::MAX).all(|c| variants(c) == [c, c]));
}

/// Patterns that reach the condition on the end again without a character.
#[test]
fn conditions_on_the_end_may_repeat() {
    for (pattern, matching, others) in [
        ("(?:$)*a", "xa", "x"),
        ("($|b)*a$", "ba", "b"),
        (r"(b*$)+(?:\Z)*$", "ab", ""),
        ("(?:(?:$)*)*a", "a", "b"),
        (r"(,|$)+;", ",,;", ",,"),
        ("(^|$)*b", "b", ""),
    ] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        assert!(regex.is_match(matching, &go_on).unwrap(), "{pattern}");
        let others: Vec<char> = others.chars().collect();
        let expected = regex.find(&others, 0, &go_on).unwrap().is_some();
        let others: String = others.into_iter().collect();
        assert_eq!(regex.is_match(&others, &go_on).unwrap(), expected, "{pattern}");
    }
}

#[test]
fn deep_patterns_are_refused() {
    for pattern in ["(".repeat(100_000), "(?:".repeat(100_000), "((a{255}){255}){255}".to_owned()] {
        assert!(Regex::new(&pattern, Options::default()).is_err());
    }
    assert!(Regex::new(&"(a)".repeat(2000), Options::default()).is_err());
    // What matches nothing, as often as can be written.
    let nested = format!("{}a{{0}}{}", "(?:".repeat(40), "){255}".repeat(40));
    let doubled: String = (1..60).map(|group| format!(r"(\{group}\{group})")).collect();
    for pattern in [format!("(?<={nested})b"), nested, format!("(a{{0}}){doubled}b")] {
        let regex = Regex::new(&pattern, Options::default());
        assert!(regex.is_err() || regex.unwrap().is_match("b", &go_on).is_err(), "{pattern}");
    }
    let regex = Regex::new(&"(a)".repeat(900), Options::default()).unwrap();
    let text: Vec<char> = "a".repeat(900).chars().collect();
    assert!(regex.find(&text, 0, &go_on).is_err());
}

/// A search that would take very long stops when it is told to.
#[test]
fn long_searches_stop() {
    let regex = Regex::new(r"^((a|aa)*)(b|\1)*\1c\1$", Options::default()).unwrap();
    let text: Vec<char> = "a".repeat(5000).chars().chain("c".chars()).collect();
    let end = std::time::Instant::now() + Duration::from_millis(20);
    let check = || {
        if std::time::Instant::now() < end {
            return Ok(());
        }
        Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement"))
    };
    match regex.find(&text, 0, &check) {
        Err(error) => assert_eq!(error.sqlstate, SqlState::QUERY_CANCELED),
        Ok(found) => assert!(found.is_none()),
    }
    // What the search has left behind does not disturb the next one.
    let text: Vec<char> = "aacaa".chars().collect();
    assert!(regex.find(&text, 0, &go_on).unwrap().is_none());
}
