//! From tokens to the tree: recursive descent, one token at a time, by the rules of PostgreSQL's
//! grammar. The first token that fits nowhere is the one that the error names, as with PostgreSQL.

mod call;
mod constraint;
mod copy;
mod create_index;
mod create_table;
mod cursor;
mod definition;
mod drop;
mod expr;
mod from;
mod merge;
mod name;
mod operator;
mod option;
mod other;
mod paren;
mod primary;
mod query;
mod select;
mod special;
mod statement;
mod transaction;
mod type_name;
mod utility;
mod variable;
mod window;
mod with;
mod write;
mod xml;

use crate::error::SyntaxError;
use crate::lexer::{self, Token, TokenKind};
use crate::tree::RawStmt;

/// What parsing a piece answers.
pub(crate) type Parse<T> = Result<T, Box<SyntaxError>>;

/// How deep a statement may nest. Each level of recursion costs [`LEVEL`], each step of a chain
/// that makes the tree one deeper (`1 + 1 + 1`) costs 1.
const BUDGET: u32 = 6000;

/// What a level of recursion costs.
const LEVEL: u32 = 20;

pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// What the last token is about if it is `Bad`.
    error: Option<Box<SyntaxError>>,
    at: usize,
    depth: u32,
}

/// Parses all statements of `text`.
pub(crate) fn statements(text: &str) -> Parse<Vec<RawStmt>> {
    let lexer::Tokens { list: tokens, error } = lexer::tokens(text);
    let mut parser = Parser { text, tokens, error, at: 0, depth: 0 };
    let mut all = Vec::new();
    loop {
        while parser.take(TokenKind::Char(b';')) {}
        if parser.kind() == TokenKind::End {
            return Ok(all);
        }
        let location = parser.location();
        let stmt = parser.statement()?;
        let length = parser.previous_end() - location;
        all.push(RawStmt { stmt, location, length });
        if !matches!(parser.kind(), TokenKind::Char(b';') | TokenKind::End) {
            return Err(parser.unexpected());
        }
    }
}
