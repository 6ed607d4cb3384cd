//! Row locks as sqlparser does not know them: `FOR NO KEY UPDATE`, `FOR KEY SHARE`, and LIMIT
//! behind them.
//!
//! Before parsing, the former become what it does know, `FOR UPDATE` and `FOR SHARE`, with a word
//! in front of the table names of `OF` that no text contains; and a LIMIT, OFFSET or FETCH is moved
//! in front of the locks. As many tokens stay as there were, and each keeps its position in the
//! text.

use millpond_engine::table::LockStrength;
use sqlparser::ast::{self, LockType, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// In front of OF's names: the lock is the weaker one of its kind. Not quoted, and no word.
const WEAKER: &str = "weaker lock";

/// A strength as a clause spells it.
pub(crate) fn clause_name(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::KeyShare => "FOR KEY SHARE",
        LockStrength::Share => "FOR SHARE",
        LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockStrength::Update => "FOR UPDATE",
    }
}

fn is_word(token: &TokenWithSpan, expected: &str) -> bool {
    matches!(&token.token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Rewrites the locks among the tokens of statements.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at], "for") && rename(&mut tokens[at..]) {
            at += move_behind_limit(&mut tokens[at..]);
        }
        at += 1;
    }
}

/// Where the next `N` tokens are that are no space, from the first one on.
fn words<const N: usize>(tokens: &[TokenWithSpan]) -> [usize; N] {
    let mut found = tokens.iter().enumerate().filter(|(_, token)| !is_space(token));
    std::array::from_fn(|_| found.next().map_or(tokens.len(), |(at, _)| at))
}

/// Whether the tokens begin with a lock; if sqlparser does not know it, it becomes one that it
/// knows.
fn rename(tokens: &mut [TokenWithSpan]) -> bool {
    let [_, first, second, third, fourth] = words(tokens);
    let is = |at: usize, expected| tokens.get(at).is_some_and(|token| is_word(token, expected));
    if is(first, "update") || is(first, "share") {
        return true;
    }
    let (lock, places, behind) = if is(first, "no") && is(second, "key") && is(third, "update") {
        ("UPDATE", [first, second, third], fourth)
    } else if is(first, "key") && is(second, "share") {
        // Between two words there is always a space.
        ("SHARE", [first, first + 1, second], third)
    } else {
        return false;
    };
    if is(behind, "of") {
        tokens[behind].token = Token::Period;
    }
    let words =
        [Token::make_keyword(lock), Token::make_keyword("OF"), Token::make_word(WEAKER, None)];
    for (place, word) in places.into_iter().zip(words) {
        tokens[place].token = word;
    }
    true
}

/// Moves what limits the rows from behind a lock, with which the tokens begin, to before it; says
/// by how many tokens the lock has moved.
fn move_behind_limit(tokens: &mut [TokenWithSpan]) -> usize {
    let mut depth = 0usize;
    let mut limit = None;
    let mut end = tokens.len();
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::RParen | Token::SemiColon | Token::EOF => {
                end = at;
                break;
            }
            _ if depth > 0 => {}
            _ if limit.is_some() && is_word(token, "for") => {
                end = at;
                break;
            }
            _ if ["limit", "offset", "fetch"].iter().any(|word| is_word(token, word)) => {
                limit = limit.or(Some(at));
            }
            _ => {}
        }
    }
    let Some(limit) = limit else { return 0 };
    tokens[..end].rotate_left(limit);
    end - limit
}

/// A clause's strength, and the names behind OF, if it has any.
pub(crate) fn of_clause(clause: &ast::LockClause) -> (LockStrength, Option<ast::ObjectName>) {
    let mut parts = clause.of.as_ref().map(|name| name.0.clone()).unwrap_or_default();
    let is_weaker = matches!(parts.first(), Some(ObjectNamePart::Identifier(ident))
        if ident.quote_style.is_none() && ident.value == WEAKER);
    if is_weaker {
        parts.remove(0);
    }
    let strength = match (&clause.lock_type, is_weaker) {
        (LockType::Share, true) => LockStrength::KeyShare,
        (LockType::Share, false) => LockStrength::Share,
        (LockType::Update, true) => LockStrength::NoKeyUpdate,
        (LockType::Update, false) => LockStrength::Update,
    };
    (strength, (!parts.is_empty()).then_some(ast::ObjectName(parts)))
}
