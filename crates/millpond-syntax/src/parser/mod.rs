//! From tokens to the tree: recursive descent, one token at a time, by the rules of PostgreSQL's
//! grammar. The first token that fits nowhere is the one that the error names, as with PostgreSQL.

mod alter_table;
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
use crate::lexer::{Token, TokenKind, Tokens};
use crate::tree::{Expr, RawStmt, Statement};
use crate::{Lifted, LiftedLiteral, NEVER, Stop};

/// What parsing a piece answers.
pub(crate) type Parse<T> = Result<T, Box<SyntaxError>>;

/// How deep a statement may nest. Each level of recursion costs [`LEVEL`], each step of a chain
/// that makes the tree one deeper (`1 + 1 + 1`) costs 1.
const BUDGET: u32 = 6000;

/// Pieces that are parsed without a look whether to stop.
const PIECES_BETWEEN_LOOKS: u32 = 1 << 12;

/// What a level of recursion costs.
const LEVEL: u32 = 22;

pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// What the last token is about if it is `Bad`.
    error: Option<Box<SyntaxError>>,
    at: usize,
    depth: u32,
    stop: Stop<'a>,
    /// Pieces that are still parsed before it looks again whether to stop.
    left: u32,
}

/// Parses all statements of `text`.
pub(crate) fn statements(text: &str, tokens: Tokens, stop: Stop<'_>) -> Parse<Vec<RawStmt>> {
    Parser { stop, ..Parser::new(text, tokens) }.all()
}

/// Parses all statements of `text` with parameters in place of its numbers and strings.
pub(crate) fn lifted(text: &str, mut tokens: Tokens) -> Parse<Lifted> {
    let mut literals = Vec::new();
    for token in &mut tokens.list {
        let is_string = match token.kind {
            TokenKind::Integer | TokenKind::Float => false,
            TokenKind::String => true,
            _ => continue,
        };
        let number = u16::try_from(literals.len() + 1);
        let number = number.map_err(|_| cursor::too_deep(token.start))?;
        literals.push(LiftedLiteral { is_string, location: token.start });
        token.kind = TokenKind::Lifted(number);
    }
    let statements = Parser::new(text, tokens).all()?;
    Ok(Lifted { statements, literals })
}

/// Parses a text that is an expression.
pub(crate) fn expression(text: &str, tokens: Tokens) -> Parse<Expr> {
    let mut parser = Parser::new(text, tokens);
    let expr = parser.a_expr()?;
    if parser.kind() == TokenKind::End { Ok(expr) } else { Err(parser.unexpected()) }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: Tokens) -> Self {
        let Tokens { list: tokens, error } = tokens;
        Parser { text, tokens, error, at: 0, depth: 0, stop: NEVER, left: PIECES_BETWEEN_LOOKS }
    }

    fn all(&mut self) -> Parse<Vec<RawStmt>> {
        let mut all = Vec::new();
        loop {
            while self.take(TokenKind::Char(b';')) {}
            if self.kind() == TokenKind::End {
                return Ok(all);
            }
            all.push(self.raw(Self::statement)?);
            if !matches!(self.kind(), TokenKind::Char(b';') | TokenKind::End) {
                return Err(self.unexpected());
            }
        }
    }

    /// A statement with its place in the text.
    fn raw(&mut self, parse: impl FnOnce(&mut Self) -> Parse<Statement>) -> Parse<RawStmt> {
        let location = self.location();
        let stmt = parse(self)?;
        let length = self.previous_end() - location;
        Ok(RawStmt { stmt, location, length })
    }
}
