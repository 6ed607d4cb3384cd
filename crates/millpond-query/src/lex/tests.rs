use std::sync::Arc;

use millpond_syntax::{PlainStrings, TokenKind, tokens};
use proptest::prelude::*;

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

/// Wherever a word lies among the bytes that are looked at together.
#[test]
fn digits_within_words_are_no_literals() {
    for before in 0..40 {
        let spaces = " ".repeat(before);
        let (key, literals) = scanned(&format!("{spaces}a1b22, ü9_3\t+5+\"q 1\"")).unwrap();
        assert_eq!(key, format!("{spaces}a1b22, ü9_3\t+\u{1}+\"q 1\"").as_bytes());
        assert_eq!(literals.len(), 1);
        assert!(scanned(&format!("{spaces}a1'b'")).is_none());
        assert!(scanned(&format!("{spaces}select 1'b'")).is_none());
        assert!(scanned(&format!("{spaces}(1)'b'")).is_some());
    }
}

#[test]
fn no_byte_that_ends_something_is_skipped() {
    for byte in 0..=255 {
        let class = CLASSES[usize::from(byte)];
        let is_skipped = !may_stop(byte);
        assert!(!is_skipped || matches!(class, Class::Plain | Class::Word), "{byte}");
        assert!(is_skipped || !matches!(class, Class::Word), "{byte}");
        for place in 0..20 {
            let mut bytes = *b"abcd efghi ,(klmnop\xff";
            bytes[place] = byte;
            let end = if is_skipped { bytes.len() } else { place };
            assert_eq!(skip_plain(&bytes, 0), end, "{byte} at {place}");
        }
    }
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
    let mut cache = Cache::new(2, 100);
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

#[test]
fn the_bytes_of_the_cache_are_bounded() {
    let mut cache = Cache::new(4, 10);
    let has = |cache: &mut Cache<Known>, key: &[u8]| match cache.take(key) {
        Some((at, known)) => {
            cache.put_back(at, known);
            true
        }
        None => false,
    };
    for key in [b"aaaa", b"bbbb"] {
        cache.put(Arc::new(Known(key, 1)));
    }
    // One that is put again counts once.
    cache.put(Arc::new(Known(b"aaaa", 2)));
    assert!(has(&mut cache, b"aaaa") && has(&mut cache, b"bbbb"));
    cache.put(Arc::new(Known(b"ccc", 3)));
    assert!(!has(&mut cache, b"aaaa"), "used before the others");
    assert!(has(&mut cache, b"bbbb") && has(&mut cache, b"ccc"));
    // One that is taken out stays in its place, also if it is the oldest.
    let (at, taken) = cache.take(b"bbbb").expect("there");
    assert!(has(&mut cache, b"ccc"));
    cache.put(Arc::new(Known(b"aaaa", 4)));
    assert!(!has(&mut cache, b"ccc"));
    cache.put_back(at, taken);
    assert!(has(&mut cache, b"aaaa") && has(&mut cache, b"bbbb"));
    // Too long for all of it: kept alone, and the room is as before when it is gone.
    cache.put(Arc::new(Known(b"longer than ten", 5)));
    assert!(has(&mut cache, b"longer than ten"));
    assert!(!has(&mut cache, b"aaaa") && !has(&mut cache, b"bbbb"));
    for key in [b"aaaa", b"bbbb"] {
        cache.put(Arc::new(Known(key, 6)));
    }
    assert!(has(&mut cache, b"aaaa") && has(&mut cache, b"bbbb"));
    // An empty place is filled before another one is emptied, also if it was asked for since.
    assert!(!has(&mut cache, b"ccc"));
    for key in [b"d", b"e"] {
        cache.put(Arc::new(Known(key, 7)));
    }
    for key in [&b"aaaa"[..], b"bbbb", b"d", b"e"] {
        assert!(has(&mut cache, key), "{key:?}");
    }
    // What is forgotten has no place to come back to, and takes no room.
    let (at, taken) = cache.take(b"aaaa").expect("there");
    cache.forget(at);
    cache.put_back(at, taken);
    assert!(!has(&mut cache, b"aaaa"));
    cache.put(Arc::new(Known(b"ffff", 8)));
    assert!(has(&mut cache, b"bbbb") && has(&mut cache, b"ffff"));
    cache.clear();
    for key in [&b"aaaaa"[..], b"bbbbb"] {
        cache.put(Arc::new(Known(key, 9)));
    }
    assert!(has(&mut cache, b"aaaaa") && has(&mut cache, b"bbbbb"));
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
        let tokens = tokens(&sql, PlainStrings::Standard, &|| false).unwrap();
        if tokens.error.is_some() {
            // A text that the parser refuses never gets a plan, so no key of it is ever found.
            return Ok(());
        }
        let mut expected = Vec::new();
        for token in &tokens.list {
            let text = &sql[token.start as usize..token.end as usize];
            match token.kind {
                TokenKind::Integer | TokenKind::Float => expected.push((false, text.to_owned())),
                TokenKind::String => {
                    let inside = text[1..text.len() - 1].replace("''", "\0");
                    if inside.contains('\'') {
                        // Strings on lines of their own are one: the parser finds fewer literals.
                        return Ok(());
                    }
                    expected.push((true, inside.replace('\0', "'")));
                }
                kind => prop_assert!(
                    !matches!(kind, TokenKind::EscapeString | TokenKind::UnicodeString
                        | TokenKind::DollarString | TokenKind::BitString | TokenKind::HexString
                        | TokenKind::Param),
                    "{sql:?}: {token:?}"
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
