//! Limits that keep recursion over a statement's tree within any thread's stack.
//!
//! The parser bounds nesting by itself. But it builds `a + b + c ...` without recursion, as a tree
//! as deep as the chain is long. Binding, evaluating or dropping that tree recurses. A chain is no
//! deeper than the number of operators and keywords between two commas at one level of parentheses.
//! So these are counted, summed over the levels that are open.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use millpond_query::error::Result;
use millpond_query::parse::too_complex;

/// How long chains of AND and OR may get, summed over open levels.
const MAX_LOGIC: usize = 600;
/// How long all other chains may get, summed over open levels.
const MAX_TERM: usize = 200;
/// Nesting that the parser follows.
pub(super) const MAX_NESTING: usize = 80;

/// How deep tables in parentheses may be nested. The parser goes back behind each, to try another
/// meaning, and has no step in between at which it could be stopped.
const MAX_TABLES: usize = 16;

/// How often INTERVAL may follow itself, which never makes sense: the parser recurses for each
/// without counting.
const MAX_INTERVALS: usize = 8;

/// Keywords that join two expressions, or two queries, into a deeper one. (Prefixes like NOT and
/// nested parentheses are the parser's own recursion, which it limits.)
const JOINING: &[Keyword] = &[
    Keyword::LIKE,
    Keyword::ILIKE,
    Keyword::RLIKE,
    Keyword::REGEXP,
    Keyword::SIMILAR,
    Keyword::IS,
    Keyword::BETWEEN,
    Keyword::IN,
    Keyword::NOT,
    Keyword::NULL,
    Keyword::TRUE,
    Keyword::FALSE,
    Keyword::UNKNOWN,
    Keyword::NOTNULL,
    Keyword::DISTINCT,
    Keyword::COLLATE,
    Keyword::AT,
    Keyword::TIME,
    Keyword::ZONE,
    Keyword::OPERATOR,
    Keyword::XOR,
    Keyword::DIV,
    Keyword::OVERLAPS,
    Keyword::MATCH,
    Keyword::MEMBER,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::MINUS,
    Keyword::SELECT,
    Keyword::ARRAY,
    Keyword::CAST,
];

/// Chains at one level of parentheses (or of CASE) since the last comma. The depth of a condition
/// is that of its ANDs and ORs plus that of its deepest term.
#[derive(Default, Clone, Copy)]
struct Level {
    logic: usize,
    term: usize,
    longest_term: usize,
}

/// Fails with 54001 when a statement could make a tree deeper than the limits.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    // The flag says that CASE has opened the level, not a parenthesis.
    let mut open: Vec<(Level, bool)> = Vec::new();
    // Sums over the levels that are open around the current one.
    let (mut logic_around, mut term_around) = (0, 0);
    let mut level = Level::default();
    tables(tokens)?;
    intervals(tokens)?;
    for token in tokens {
        match &token.token {
            token if opens(token) => {
                logic_around += level.logic;
                term_around += level.term.max(level.longest_term);
                open.push((level, is_word(token, Keyword::CASE)));
                level = Level::default();
            }
            token if closes(token) => {
                let is_case = is_word(token, Keyword::END);
                if open.last().is_some_and(|(_, by_case)| *by_case == is_case)
                    && let Some((outer, _)) = open.pop()
                {
                    logic_around -= outer.logic;
                    term_around -= outer.term.max(outer.longest_term);
                    level = outer;
                }
            }
            Token::Comma | Token::SemiColon => level = Level::default(),
            Token::Whitespace(_) | Token::Period | Token::Number(..) => {}
            Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::EOF => {}
            Token::Word(word)
                if matches!(word.keyword, Keyword::WHEN | Keyword::THEN | Keyword::ELSE)
                    && open.last().is_some_and(|(_, by_case)| *by_case) =>
            {
                level = Level::default();
            }
            Token::Word(word) if matches!(word.keyword, Keyword::AND | Keyword::OR) => {
                level.logic += 1;
                level.longest_term = level.longest_term.max(level.term);
                level.term = 0;
            }
            Token::Word(word) if !JOINING.contains(&word.keyword) => {}
            _ => level.term += 1,
        }
        let term = level.term.max(level.longest_term);
        if level.logic + logic_around > MAX_LOGIC || term + term_around > MAX_TERM {
            return Err(too_complex());
        }
    }
    Ok(())
}

/// Fails when tables in parentheses are nested too deep.
fn tables(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut open: Vec<bool> = Vec::new();
    let (mut depth, mut begins) = (0, false);
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                open.push(begins);
                depth += usize::from(begins);
                // What follows may be in parentheses, too.
                continue;
            }
            Token::RParen => depth -= usize::from(open.pop().unwrap_or(false)),
            _ => {}
        }
        if depth > MAX_TABLES {
            return Err(too_complex());
        }
        begins = [Keyword::FROM, Keyword::JOIN, Keyword::LATERAL, Keyword::USING]
            .iter()
            .any(|keyword| is_word(&token.token, *keyword));
    }
    Ok(())
}

/// Fails when INTERVAL follows itself too often.
fn intervals(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut run = 0;
    for token in tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))) {
        run = if is_word(&token.token, Keyword::INTERVAL) { run + 1 } else { 0 };
        if run > MAX_INTERVALS {
            return Err(too_complex());
        }
    }
    Ok(())
}

fn is_word(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

fn opens(token: &Token) -> bool {
    matches!(token, Token::LParen | Token::LBracket) || is_word(token, Keyword::CASE)
}

fn closes(token: &Token) -> bool {
    matches!(token, Token::RParen | Token::RBracket) || is_word(token, Keyword::END)
}
