//! PREPARE, EXECUTE and EXPLAIN: statements around statements.

use sqlparser::tokenizer::Token;

use super::maintenance::{is_on, options};
use super::unsupported;
use crate::error::Result;
use crate::parse::cursor::Cursor;
use crate::parse::{Statement, parse_one};

pub(super) fn explain(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let (mut analyze, mut text) = (false, true);
    if cursor.accept_token(&Token::LParen) {
        options(cursor, "EXPLAIN", &mut |name, value| {
            match name {
                "analyze" | "analyse" => analyze = is_on(value),
                "format" => text = value == Some("text"),
                "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
                | "generic_plan" | "memory" | "serialize" => {}
                _ => return Ok(false),
            }
            Ok(true)
        })?;
    } else {
        analyze = cursor.accept("analyze") || cursor.accept("analyse");
        cursor.accept("verbose");
    }
    if !text {
        return Err(cursor.unsupported("EXPLAIN in another format than text"));
    }
    if cursor.at_end() || cursor.is_word("explain") {
        return Err(cursor.unexpected());
    }
    let statement = Box::new(parse_one(cursor)?);
    Ok(Statement::Explain { analyze, statement })
}

pub(super) fn prepare(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    if cursor.is_word("transaction") {
        return Ok(unsupported(cursor, "PREPARE TRANSACTION"));
    }
    let name = cursor.ident()?;
    let mut types = Vec::new();
    if cursor.accept_token(&Token::LParen) {
        loop {
            types.push(cursor.with_parser(|parser| parser.parse_data_type())?);
            if cursor.accept_token(&Token::RParen) {
                break;
            }
            cursor.expect_token(&Token::Comma)?;
        }
    }
    cursor.expect("as")?;
    if !["select", "values", "with", "insert", "update", "delete"].iter().any(|w| cursor.is_word(w))
    {
        return Err(cursor.unexpected());
    }
    let start = cursor.source.byte(cursor.peek_token().span.start);
    // For its end, and the errors in it.
    parse_one(cursor)?;
    let end = match cursor.peek_token() {
        token if token.token == Token::EOF => cursor.source.sql.len(),
        token => cursor.source.byte(token.span.start),
    };
    let text = cursor.source.sql.get(start..end).unwrap_or("").to_owned();
    Ok(Statement::Prepare { name, types, text })
}

pub(super) fn execute(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let name = cursor.ident()?;
    let mut args = Vec::new();
    if cursor.accept_token(&Token::LParen) && !cursor.accept_token(&Token::RParen) {
        loop {
            args.push(cursor.with_parser(|parser| parser.parse_expr())?);
            if cursor.accept_token(&Token::RParen) {
                break;
            }
            cursor.expect_token(&Token::Comma)?;
        }
    }
    Ok(Statement::Execute { name, args })
}
