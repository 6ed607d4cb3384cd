//! PostgreSQL's statements as a syntax tree.
//!
//! [`parse`] reads a text by the rules of PostgreSQL 15's scanner and grammar. It answers one
//! [`RawStmt`](tree::RawStmt) for each statement, or the error that PostgreSQL would answer, with
//! its words, its SQLSTATE and its position.
//!
//! ```
//! use millpond_syntax::{parse, tree::Statement};
//!
//! let statements = parse("SELECT name FROM ponds WHERE id = $1; COMMIT").unwrap();
//! assert!(matches!(statements[0].stmt, Statement::Select(_)));
//! assert!(matches!(statements[1].stmt, Statement::Transaction(_)));
//!
//! let text = "SELECT name FORM ponds WHERE";
//! let error = parse(text).unwrap_err();
//! assert_eq!(error.to_string(), "syntax error at or near \"ponds\"");
//! assert_eq!((error.code.code(), error.position(text)), ("42601", 18));
//! ```

#![forbid(unsafe_code)]

mod error;
pub mod keyword;
mod lexer;
mod parser;
pub mod tree;

pub use error::{SqlState, SyntaxError};
pub use lexer::{PlainStrings, Token, TokenKind, Tokens};

/// Says whether to stop. The lexer and the parser call it now and then. If it answers true, parsing
/// fails with 57014.
pub type Stop<'s> = &'s dyn Fn() -> bool;

/// The longest text that is parsed, in bytes. PostgreSQL's limit is the same.
pub const LONGEST_TEXT: usize = (1 << 30) - 1;

/// Parses all statements of a text.
///
/// # Errors
///
/// The first thing in the text that PostgreSQL 15's scanner or grammar refuses. The error is 54001
/// if a statement nests too deep, and 54000 if the text is too long.
pub fn parse(text: &str) -> Result<Vec<tree::RawStmt>, Box<SyntaxError>> {
    parse_tokens(text, tokens(text, PlainStrings::Standard, NEVER)?, NEVER)
}

const NEVER: Stop<'static> = &|| false;

/// Splits a text into tokens, for callers that look at them before they are parsed: their number
/// says how large the tree can be.
///
/// # Errors
///
/// 54000 if the text is too long, 57014 if it was stopped. What the scanner refuses is in the
/// answer.
pub fn tokens(
    text: &str,
    strings: PlainStrings,
    stop: Stop<'_>,
) -> Result<Tokens, Box<SyntaxError>> {
    if text.len() > LONGEST_TEXT {
        let message = format!("statement of {} bytes is too long", text.len());
        let error = SyntaxError::new(SqlState::ProgramLimitExceeded, message, 0);
        return Err(error.without_location());
    }
    lexer::tokens(text, strings, stop)
}

/// Parses all statements of a text that has been split into these tokens.
///
/// # Errors
///
/// As [`parse`], and 57014 if it was stopped.
pub fn parse_tokens(
    text: &str,
    tokens: Tokens,
    stop: Stop<'_>,
) -> Result<Vec<tree::RawStmt>, Box<SyntaxError>> {
    parser::statements(text, tokens, stop)
}

/// A text whose numbers and strings have become parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// Its statements. Each literal is the parameter of its number.
    pub statements: Vec<tree::RawStmt>,
    /// Its literals in their order.
    pub literals: Vec<LiftedLiteral>,
}

/// A literal that has become a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiftedLiteral {
    /// It is a string, not a number.
    pub is_string: bool,
    /// Its first byte in the text.
    pub location: u32,
}

/// Parses all statements of a text, with parameters in place of its numbers and plain strings.
/// Texts that differ in nothing else are the same statement.
///
/// # Errors
///
/// As [`parse`], and also where the grammar wants a literal.
pub fn parse_lifted(text: &str, tokens: Tokens) -> Result<Lifted, Box<SyntaxError>> {
    parser::lifted(text, tokens)
}

/// Parses a text that is one expression.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_expression(text: &str) -> Result<tree::Expr, Box<SyntaxError>> {
    parser::expression(text, tokens(text, PlainStrings::Standard, NEVER)?)
}
