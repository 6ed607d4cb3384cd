//! Queries and changes of rows, parsed by sqlparser from their piece of a text.
//!
//! Nesting and chain lengths are limited before anything recurses ([`limits`]).

mod ast_type;
mod cursor;
mod dialect;
mod distinct_from;
mod limits;
mod operator;
mod row_lock;
mod rows_from;

use std::ops::Range;

use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

pub(crate) use ast_type::{ast_data_type, check_ast_collation};
use cursor::Cursor;
pub(crate) use row_lock::{clause_name as row_lock_name, of_clause as row_lock_of};
pub(crate) use rows_from::is_rows_from;

use super::data_type::is_bytewise;
use super::{Source, Statement};
use crate::error::{Result, SqlError, SqlState};
use crate::lex::{LiteralKind, Literals};
use crate::memory::ValueRoom;

/// Parses the query or the change of rows that a piece of the text is.
pub(super) fn parse(source: Source<'_>, piece: Range<usize>) -> Result<Statement> {
    let tokens = tokens_of(&source, piece)?;
    statement(source, &tokens)
}

/// The arguments of the EXECUTE that a piece of the text is.
pub(super) fn arguments(source: Source<'_>, piece: Range<usize>) -> Result<Vec<ast::Expr>> {
    let tokens = tokens_of(&source, piece)?;
    let open = tokens.iter().position(|token| token.token == Token::LParen);
    let Some(open) = open else { return Ok(Vec::new()) };
    let mut cursor = Cursor::new(source, &tokens[open + 1..]);
    let mut args = Vec::new();
    loop {
        args.push(cursor.with_parser(|parser| parser.parse_expr())?);
        if !cursor.accept_token(&Token::Comma) {
            return Ok(args);
        }
    }
}

/// The tokens of a piece of the text, in their places of the whole.
fn tokens_of(source: &Source<'_>, piece: Range<usize>) -> Result<Vec<TokenWithSpan>> {
    let before = source.sql.get(..piece.start).unwrap_or("");
    let mut tokens = tokenize(&Source::new(source.sql.get(piece).unwrap_or("")))?;
    let lines = before.matches('\n').count() as u64;
    let columns = before.rsplit('\n').next().unwrap_or("").chars().count() as u64;
    let shifted = |place: Location| {
        let columns = if place.line == 1 { columns } else { 0 };
        Location { line: place.line + lines, column: place.column + columns }
    };
    for token in &mut tokens {
        token.span = Span::new(shifted(token.span.start), shifted(token.span.end));
    }
    limits::check(&tokens)?;
    row_lock::rewrite(&mut tokens);
    rows_from::rewrite(&mut tokens);
    distinct_from::rewrite(&mut tokens);
    Ok(tokens)
}

/// Parses a text whose literals the lexer has lifted out: each becomes the parameter of its number.
/// `None`: the text only makes sense with its literals in place.
pub(crate) fn parse_lifted(sql: &str, literals: &Literals) -> Option<Statement> {
    let source = Source::new(sql);
    let mut tokens = tokenize(&source).ok()?;
    let mut number = 0;
    for token in &mut tokens {
        if matches!(token.token, Token::Number(..) | Token::SingleQuotedString(_)) {
            let literal = literals.get(number)?;
            let is_string = matches!(token.token, Token::SingleQuotedString(_));
            if is_string != matches!(literal.kind, LiteralKind::String(_)) {
                return None;
            }
            number += 1;
            token.token = Token::Placeholder(format!("${number}"));
        }
    }
    if number != literals.len() {
        return None;
    }
    limits::check(&tokens).ok()?;
    row_lock::rewrite(&mut tokens);
    rows_from::rewrite(&mut tokens);
    distinct_from::rewrite(&mut tokens);
    let mut statements = split(&tokens);
    let first = statements.next()?;
    statement(source, first).ok()
}

/// What in a query's text the query engine would take for something else: row locks that it would
/// not take, functions whose formats it would misread, collations and columns that it would ignore.
pub(crate) fn misunderstood(sql: &str) -> Option<String> {
    let tokens = tokenize(&Source::new(sql)).ok()?;
    let words: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    (0..words.len()).find_map(|at| {
        let [first, second, after @ ..] = &words[at..] else { return None };
        let (Token::Word(first), second) = (&first.token, &second.token) else { return None };
        if first.quote_style.is_some() {
            return None;
        }
        match (first.value.to_ascii_lowercase().as_str(), second) {
            ("for", Token::Word(next)) => {
                let next = next.value.to_ascii_lowercase();
                matches!(next.as_str(), "update" | "share" | "no" | "key")
                    .then(|| format!("FOR {} on anything but a table", next.to_uppercase()))
            }
            ("collate", Token::Word(name)) => {
                // COLLATE pg_catalog.default
                let name = match after {
                    [point, last, ..] if point.token == Token::Period => match &last.token {
                        Token::Word(last) => last,
                        _ => name,
                    },
                    _ => name,
                };
                (!is_bytewise(&name.value)).then(|| format!("the collation \"{}\"", name.value))
            }
            // After a function's arguments; elsewhere it may be what a common table expression is
            // called.
            ("with", Token::Word(next)) if at > 0 && words[at - 1].token == Token::RParen => {
                next.value.eq_ignore_ascii_case("ordinality").then(|| "WITH ORDINALITY".to_owned())
            }
            _ => None,
        }
    })
}

/// Parses an expression on its own (a column's default, kept as text in the catalog).
pub(crate) fn parse_expression(sql: &str) -> Result<ast::Expr> {
    let source = Source::new(sql);
    let tokens = tokenize(&source)?;
    limits::check(&tokens)?;
    let mut cursor = Cursor::new(source, &tokens);
    let expr = cursor.with_parser(|parser| parser.parse_expr())?;
    cursor.expect_end()?;
    Ok(expr)
}

/// About what a token of a long text takes until its statement is planned: the token, and its part
/// of the trees that the parser and the binder make. Measured with rows of VALUES.
const BYTES_OF_TOKEN: usize = 480;

fn tokenize(source: &Source<'_>) -> Result<Vec<TokenWithSpan>> {
    if source.sql.len() > u32::MAX as usize {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "statement is too long"));
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, source.sql)
        .tokenize_with_location()
        .map_err(|error| tokenizer_error(source, error))?;
    ValueRoom::check_for(tokens.len().saturating_mul(BYTES_OF_TOKEN), "parser")?;
    Ok(operator::rewrite(tokens))
}

fn split(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &[TokenWithSpan]> {
    tokens.split(|token| token.token == Token::SemiColon)
}

fn statement(source: Source<'_>, tokens: &[TokenWithSpan]) -> Result<Statement> {
    let mut cursor = Cursor::new(source, tokens);
    let parsed = cursor.with_parser(|parser| parser.parse_statement())?;
    let statement = match parsed {
        ast::Statement::Query(query) => without_query(query),
        ast::Statement::Insert(insert) => Statement::Insert(Box::new(insert), None),
        ast::Statement::Update(update) => Statement::Update(Box::new(update), None),
        ast::Statement::Delete(delete) => Statement::Delete(Box::new(delete), None),
        _ => return Err(SqlError::unsupported("this form of a query")),
    };
    cursor.expect_end()?;
    Ok(statement)
}

/// For sqlparser a statement after WITH is the body of a query.
fn without_query(mut query: Box<ast::Query>) -> Statement {
    use ast::SetExpr as S;
    match *query.body {
        S::Insert(ast::Statement::Insert(insert)) => {
            Statement::Insert(Box::new(insert), query.with.map(Box::new))
        }
        S::Update(ast::Statement::Update(update)) => {
            Statement::Update(Box::new(update), query.with.map(Box::new))
        }
        S::Delete(ast::Statement::Delete(delete)) => {
            Statement::Delete(Box::new(delete), query.with.map(Box::new))
        }
        body => {
            *query.body = body;
            Statement::Query(query)
        }
    }
}

fn tokenizer_error(source: &Source<'_>, error: TokenizerError) -> SqlError {
    let start = source.byte(error.location);
    let message = match error.message.to_ascii_lowercase() {
        m if m.contains("comment") => "unterminated /* comment",
        m if m.contains("dollar") => "unterminated dollar-quoted string",
        m if m.contains("quoted identifier") || m.contains("expected close delimiter") => {
            "unterminated quoted identifier"
        }
        m if m.contains("unterminated") => "unterminated quoted string",
        _ => "syntax error",
    };
    let near: String = source.sql.get(start..).unwrap_or("").chars().take(60).collect();
    SqlError::new(SqlState::SYNTAX_ERROR, format!("{message} at or near \"{near}\""))
        .at(source.position(start))
}

/// sqlparser's error as PostgreSQL would say it.
fn convert_error(source: &Source<'_>, error: ParserError) -> SqlError {
    let text = match error {
        ParserError::RecursionLimitExceeded => return limits::too_complex(),
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
    };
    let (what, location) = match text.rsplit_once(" at Line: ") {
        Some((what, place)) => (what, parse_location(place)),
        None => (text.as_str(), None),
    };
    if what.contains("recursion limit") {
        return limits::too_complex();
    }
    let error = match location {
        Some(location) => {
            let start = source.byte(location);
            source.syntax_error_at(start, token_end(source.sql, start))
        }
        None => source.syntax_error_at(source.sql.len(), source.sql.len()),
    };
    error.detail(format!("{what}."))
}

fn parse_location(place: &str) -> Option<Location> {
    let (line, column) = place.split_once(", Column: ")?;
    let digits: String = column.chars().take_while(char::is_ascii_digit).collect();
    let location = Location { line: line.parse().ok()?, column: digits.parse().ok()? };
    (location.line > 0).then_some(location)
}

/// Where the token that starts at a byte ends, roughly: enough for a message.
fn token_end(sql: &str, start: usize) -> usize {
    let rest = sql.get(start..).unwrap_or("");
    let mut chars = rest.char_indices();
    let Some((_, first)) = chars.next() else { return sql.len() };
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.';
    let len = if first == '\'' || first == '"' {
        chars.find(|(_, c)| *c == first).map_or(rest.len(), |(at, _)| at + 1)
    } else if is_word(first) {
        rest.find(|c| !is_word(c)).unwrap_or(rest.len())
    } else {
        first.len_utf8()
    };
    start + len
}
