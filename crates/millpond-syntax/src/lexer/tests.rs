use super::*;
use crate::SqlState;

fn tokens(text: &str, strings: PlainStrings) -> Tokens {
    super::tokens(text, strings, crate::NEVER).unwrap()
}

fn kinds(text: &str) -> Vec<TokenKind> {
    tokens(text, PlainStrings::Standard).list.iter().map(|token| token.kind).collect()
}

fn texts(text: &str) -> Vec<&str> {
    let list = tokens(text, PlainStrings::Standard).list;
    list.iter().map(|token| &text[token.start as usize..token.end as usize]).collect()
}

fn value_of(text: &str) -> String {
    let tokens = tokens(text, PlainStrings::Standard);
    assert!(tokens.error.is_none(), "{text}: {:?}", tokens.error);
    let token = tokens.list[0];
    let text = &text[token.start as usize..token.end as usize];
    match token.kind {
        TokenKind::Ident => value::fold(text).into(),
        TokenKind::QuotedIdent | TokenKind::UnicodeIdent => {
            value::quoted_ident(token.kind, text, token.start).unwrap().into()
        }
        kind => value::string(kind, text, token.start).unwrap().into(),
    }
}

#[test]
fn operators_do_not_swallow_signs_of_sql() {
    assert_eq!(texts("a=-1"), ["a", "=", "-", "1", ""]);
    assert_eq!(texts("a@-1"), ["a", "@-", "1", ""]);
    assert_eq!(texts("a<-+-1"), ["a", "<", "-", "+", "-", "1", ""]);
    assert_eq!(texts("a*/*x*/b"), ["a", "*", "b", ""]);
    assert_eq!(texts("a+--x\nb"), ["a", "+", "b", ""]);
    assert_eq!(texts("a->>'k'"), ["a", "->>", "'k'", ""]);
    assert_eq!(
        kinds("<> != => := :: .."),
        [
            TokenKind::NotEquals,
            TokenKind::NotEquals,
            TokenKind::EqualsGreater,
            TokenKind::ColonEquals,
            TokenKind::Typecast,
            TokenKind::DotDot,
            TokenKind::End,
        ]
    );
}

#[test]
fn numbers_end_where_postgresql_ends_them() {
    assert_eq!(texts("1..10"), ["1", "..", "10", ""]);
    assert_eq!(texts("1.5e-3.x"), ["1.5e-3", ".", "x", ""]);
    assert_eq!(texts(".5 5."), [".5", "5.", ""]);
    assert_eq!(texts("$12,$3"), ["$12", ",", "$3", ""]);
}

#[test]
fn identifiers_are_folded_and_cut() {
    assert_eq!(value_of("PonDs_$1"), "ponds_$1");
    assert_eq!(value_of("ÄrgerX"), "Ärgerx");
    assert_eq!(value_of("\"Pon\"\"d\""), "Pon\"d");
    assert_eq!(value_of(&"a".repeat(70)), "a".repeat(63));
    // 62 bytes and a character of two.
    assert_eq!(value_of(&format!("{}é", "a".repeat(62))), "a".repeat(62));
    assert_eq!(value_of(r#"U&"d\0061t\+000061""#), "data");
    assert_eq!(value_of(r#"U&"d!0061t!!a" UESCAPE '!'"#), "dat!a");
}

#[test]
fn strings_have_their_values() {
    assert_eq!(value_of("'it''s'"), "it's");
    assert_eq!(value_of("'a\\b'"), "a\\b");
    assert_eq!(value_of("'one' -- rest\n  'two'"), "onetwo");
    assert_eq!(value_of(r"E'a\n\x41\101\u00e9\\\'\q'"), "a\nAAé\\'q");
    assert_eq!(value_of(r"E'\ud83d\ude00'"), "😀");
    assert_eq!(value_of(r"U&'\00e9\d83d\+00de00'"), "é😀");
    assert_eq!(value_of("$$it's$$"), "it's");
    assert_eq!(value_of("$a$ $$ $b$ $a$"), " $$ $b$ ");
    assert_eq!(value_of("B'10' \n '01'"), "b1001");
    assert_eq!(value_of("x'1F'"), "x1F");
}

#[test]
fn national_strings_are_a_keyword_and_a_string() {
    assert_eq!(
        kinds("N'x'"),
        [TokenKind::Keyword(Keyword::Nchar), TokenKind::String, TokenKind::End,]
    );
}

#[test]
fn comments_nest_and_vanish() {
    assert_eq!(texts("a /* b /* c */ d */ e -- f\ng"), ["a", "e", "g", ""]);
}

#[test]
fn a_dollar_alone_is_a_character() {
    assert_eq!(
        kinds("$ $a"),
        [TokenKind::Char(b'$'), TokenKind::Char(b'$'), TokenKind::Ident, TokenKind::End,]
    );
}

#[test]
fn plain_strings_have_escapes_where_that_is_asked_for() {
    let text = r"'a\nb' 'c''d\'' E'\t' $$\n$$ 'x'";
    let tokens = tokens(text, PlainStrings::Escapes);
    assert!(tokens.error.is_none(), "{:?}", tokens.error);
    let strings = tokens.list.iter().filter(|token| token.kind != TokenKind::End);
    let values = strings.map(|token| {
        let piece = &text[token.start as usize..token.end as usize];
        value::string(token.kind, piece, token.start).unwrap()
    });
    assert_eq!(Vec::from_iter(values.map(String::from)), ["a\nb", "c'd'", "\t", "\\n", "x"]);
    let refused = self::tokens("u&'a'", PlainStrings::Escapes).error.unwrap();
    assert_eq!(refused.code, SqlState::FeatureNotSupported);
}
