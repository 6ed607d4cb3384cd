//! Limits that keep recursion over a statement's tree within any thread's stack.
//!
//! The parser bounds nesting by itself, but it builds `a + b + c ...` as a tree as deep as the chain is long,
//! without recursion; binding, evaluating or dropping that tree recurses. A chain's depth is bounded by
//! the operators and keywords between two commas at one level of parentheses, so that is what is counted,
//! summed over the levels that are open.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError, SqlState};

/// How deep a statement's tree may get.
const MAX_DEPTH: usize = 600;
/// Nesting that the parser follows.
pub(super) const MAX_NESTING: usize = 80;

/// Fails with 54001 when a statement could make a tree deeper than the limit.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    // Chain lengths of the levels that are open, and their sum.
    let mut levels = vec![0usize];
    let mut depth = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => levels.push(0),
            Token::RParen | Token::RBracket => {
                if levels.len() > 1 {
                    depth -= levels.pop().unwrap_or(0);
                }
            }
            Token::Comma | Token::SemiColon => {
                if let Some(level) = levels.last_mut() {
                    depth -= std::mem::take(level);
                }
            }
            Token::Whitespace(_) | Token::Period | Token::Number(..) => {}
            Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::EOF => {}
            Token::Word(word) if word.keyword == Keyword::NoKeyword => {}
            _ => {
                depth += 1;
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
                if depth > MAX_DEPTH {
                    return Err(too_complex());
                }
            }
        }
    }
    Ok(())
}

pub(super) fn too_complex() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Write the statement with less nesting, or shorter chains of operators.")
}
