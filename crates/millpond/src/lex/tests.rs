use std::sync::Arc;

use proptest::prelude::*;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::cache::{Cache, Keyed};
use super::*;

fn scanned(sql: &str) -> Option<(Vec<u8>, Literals)> {
    let mut key = Vec::new();
    let mut literals = Literals::new();
    scan(sql, &mut key, &mut literals)?;
    Some((key, literals))
}

#[test]
fn literals_are_lifted() {
    let sql = "UPDATE t SET a = a + -1234, b='it''s' WHERE t1.id = 99999999999 AND c > 1.5e-3;";
    let (key, literals) = scanned(sql).unwrap();
    assert_eq!(
        key,
        b"UPDATE t SET a = a + -\x01, b=\x04 WHERE t1.id = \x02 AND c > \x03".as_slice()
    );
    let kinds: Vec<_> = literals.iter().map(|l| l.kind).collect();
    assert_eq!(
        kinds,
        [
            LiteralKind::Int4(1234),
            LiteralKind::String(true),
            LiteralKind::Int8(99_999_999_999),
            LiteralKind::Numeric
        ]
    );
    assert_eq!(literals[1].text(sql), "it''s");
}

#[test]
fn what_needs_a_parser_is_left_to_it() {
    for sql in [
        "select 1; select 2",
        "select 1 -- one",
        "select /* one */ 1",
        "select $1",
        "select $$a$$",
        "select E'a'",
        "select x'ff'",
        "select U&'a'",
        "select 'a",
        "select \"a",
        "select 1a",
        "select 1.",
        "select .5",
        "select 1\u{1}",
    ] {
        assert!(scanned(sql).is_none(), "{sql}");
    }
}

struct Known(&'static [u8], u32);

impl Keyed for Known {
    fn key(&self) -> &[u8] {
        self.0
    }
}

#[test]
fn the_cache_is_bounded_and_forgets_the_oldest() {
    let mut cache = Cache::new(2);
    let get = |cache: &mut Cache<Known>, key: &[u8]| {
        let (at, known) = cache.take(key)?;
        let value = known.1;
        cache.put_back(at, known);
        Some(value)
    };
    cache.put(Arc::new(Known(b"a", 1)));
    cache.put(Arc::new(Known(b"b", 2)));
    assert_eq!(get(&mut cache, b"a"), Some(1));
    cache.put(Arc::new(Known(b"c", 3)));
    assert_eq!(get(&mut cache, b"b"), None);
    assert_eq!(get(&mut cache, b"a"), Some(1));
    cache.put(Arc::new(Known(b"c", 4)));
    assert_eq!(get(&mut cache, b"c"), Some(4));
    let (at, taken) = cache.take(b"a").expect("there");
    assert!(cache.take(b"a").is_none(), "taken already");
    cache.clear();
    cache.put_back(at, taken);
    assert_eq!(get(&mut cache, b"a"), None);
}

/// Pieces of SQL, put together at random: what matters is how they touch.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z_][a-zA-Z0-9_]{0,4}",
        "[0-9]{1,3}",
        "[0-9]{9,21}",
        "[0-9]{1,3}\\.[0-9]{0,3}",
        "[0-9]{1,2}(\\.[0-9])?[eE][+-]?[0-9]{0,2}",
        "'[a-z' \\\\\n-]{0,6}'",
        "\"[a-z\" -]{0,4}\"",
        "[ \n\t]{1,2}",
        "[-+*/<>=~!@#%^&|?,.();:'\"$\\[\\]]",
        Just("--".to_owned()),
        Just("/*".to_owned()),
        Just("é".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_agrees_with_the_tokenizer(pieces in prop::collection::vec(piece(), 0..12)) {
        let sql: String = pieces.concat();
        let Some((key, literals)) = scanned(&sql) else { return Ok(()) };
        let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, &sql).tokenize() else {
            // A text that the tokenizer refuses never gets a plan, so no key of it is ever found.
            return Ok(());
        };
        let mut expected = Vec::new();
        for token in &tokens {
            match token {
                Token::Number(text, _) => expected.push((false, text.clone())),
                Token::SingleQuotedString(text) => expected.push((true, text.clone())),
                other => prop_assert!(
                    !matches!(other, Token::EscapedStringLiteral(_) | Token::HexStringLiteral(_)
                        | Token::NationalStringLiteral(_) | Token::DollarQuotedString(_)
                        | Token::UnicodeStringLiteral(_) | Token::SingleQuotedByteStringLiteral(_)
                        | Token::Placeholder(_)),
                    "{sql:?}: {other:?}"
                ),
            }
        }
        let found: Vec<_> = literals
            .iter()
            .map(|l| match l.kind {
                LiteralKind::String(_) => (true, l.text(&sql).replace("''", "'")),
                _ => (false, l.text(&sql).to_owned()),
            })
            .collect();
        prop_assert_eq!(&found, &expected, "{:?} {:?}", sql, key);
    }
}
