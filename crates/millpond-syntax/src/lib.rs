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

/// The longest text that is parsed, in bytes. PostgreSQL's limit is the same.
pub const LONGEST_TEXT: usize = (1 << 30) - 1;

/// Parses all statements of a text.
///
/// # Errors
///
/// The first thing in the text that PostgreSQL 15's scanner or grammar refuses; 54001 if a
/// statement nests too deep; 54000 if the text is too long.
pub fn parse(text: &str) -> Result<Vec<tree::RawStmt>, Box<SyntaxError>> {
    if text.len() > LONGEST_TEXT {
        let message = format!("statement of {} bytes is too long", text.len());
        let error = SyntaxError::new(SqlState::ProgramLimitExceeded, message, 0);
        return Err(error.without_location());
    }
    parser::statements(text)
}
