//! From text to statements.
//!
//! Queries, INSERT, UPDATE, DELETE, CREATE TABLE, CREATE INDEX and ALTER TABLE are parsed by
//! sqlparser. Everything else (transaction control, settings, COPY, VACUUM, ...) is parsed here,
//! from sqlparser's tokens, because PostgreSQL's grammar for those differs in many small ways from
//! what sqlparser accepts.
//!
//! Nesting and chain lengths are limited before anything recurses ([`limits`]), and errors carry
//! the position in the text.

mod copy;
mod cursor;
mod data_type;
mod dialect;
mod distinct_from;
mod limits;
mod operator;
mod row_lock;
mod rows_from;
mod source;
#[cfg(test)]
mod tests;
mod utility;

use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

pub(crate) use copy::{Copy, CopyOptions, CopySource, ForceQuote};
use cursor::Cursor;
pub(crate) use data_type::{check_collation, data_type, interval_type};
pub(crate) use row_lock::{clause_name as row_lock_name, of_clause as row_lock_of};
pub(crate) use rows_from::is_rows_from;
pub(crate) use source::Source;

use crate::error::{Result, SqlError, SqlState};
use crate::lex::{LiteralKind, Literals};
use crate::memory::ValueRoom;

/// A table's or index's name, or a name of FROM in front of a column's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    /// Where it stands, in characters from 1.
    pub(crate) position: Option<usize>,
}

impl Name {
    fn from_parts(mut parts: Vec<String>, position: Option<usize>) -> Result<Self> {
        if let Some(mut error) = Self::refusal(&parts, &parts.join("."), "relation") {
            error.position = position;
            return Err(error);
        }
        let name = parts.pop().unwrap_or_default();
        Ok(Name { schema: parts.pop(), name, position })
    }

    /// Why these parts are no name: `whole` is the text that has them, a `kind` of name.
    fn refusal(parts: &[String], whole: &str, kind: &str) -> Option<SqlError> {
        // A database's name in front must be this database's; there is only one.
        match parts {
            [database, _, _] if database != "postgres" => Some(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cross-database references are not implemented: {whole}"),
            )),
            [_, _, _, _, ..] => Some(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("improper {kind} name (too many dotted names): {whole}"),
            )),
            _ => None,
        }
    }

    /// From sqlparser's.
    pub(crate) fn from_ast(name: &ast::ObjectName, source: &Source<'_>) -> Result<Self> {
        let mut parts = Vec::with_capacity(name.0.len());
        let mut position = None;
        for part in &name.0 {
            let ast::ObjectNamePart::Identifier(ident) = part else {
                return Err(SqlError::unsupported(format!("the name {name}")));
            };
            position = position.or_else(|| source.position_of(ident.span.start));
            parts.push(fold(&ident.value, ident.quote_style));
        }
        Self::from_parts(parts, position)
    }

    /// What stands before a column in a name with points, and the column.
    pub(crate) fn of_column(parts: &[ast::Ident], source: &Source<'_>) -> Result<(Self, String)> {
        let position = parts.first().and_then(|first| source.position_of(first.span.start));
        let mut parts: Vec<String> = parts.iter().map(ident).collect();
        let whole = parts.join(".");
        let column = parts.pop().unwrap_or_default();
        if let Some(mut error) = Self::refusal(&parts, &whole, "qualified") {
            error.position = position;
            return Err(error);
        }
        Ok((Self::from_parts(parts, position)?, column))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// An identifier as PostgreSQL stores it: lower case unless quoted, at most 63 bytes.
pub(crate) fn fold(value: &str, quote: Option<char>) -> String {
    let mut folded = if quote.is_some() { value.to_owned() } else { value.to_lowercase() };
    if folded.len() > 63 {
        let mut end = 63;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// sqlparser's identifier, folded.
pub(crate) fn ident(ident: &ast::Ident) -> String {
    fold(&ident.value, ident.quote_style)
}

/// What BEGIN or SET TRANSACTION ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TransactionModes {
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) read_only: Option<bool>,
}

/// The levels that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A setting, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Named(String),
}

/// What VACUUM or ANALYZE was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VacuumOptions {
    pub(crate) full: bool,
    pub(crate) analyze: bool,
    pub(crate) verbose: bool,
    /// `BUFFER_USAGE_LIMIT` in kB.
    pub(crate) usage_limit_kb: Option<u32>,
}

/// One statement.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Empty,
    Query(Box<ast::Query>),
    /// With the queries of WITH before it.
    Insert(Box<ast::Insert>, Option<Box<ast::With>>),
    Update(Box<ast::Update>, Option<Box<ast::With>>),
    Delete(Box<ast::Delete>, Option<Box<ast::With>>),
    CreateTable(Box<ast::CreateTable>),
    CreateIndex(Box<ast::CreateIndex>),
    AlterTable(Box<ast::AlterTable>),
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    Show(Which),
    Reset(Which),
    Discard {
        all: bool,
    },
    /// Without a name all; without a value `RESET`.
    AlterSystem {
        name: Option<String>,
        value: Option<String>,
    },
    DropTable {
        names: Vec<Name>,
        if_exists: bool,
    },
    DropIndex {
        names: Vec<Name>,
        if_exists: bool,
    },
    Truncate {
        names: Vec<Name>,
    },
    Vacuum {
        options: VacuumOptions,
        tables: Vec<Name>,
    },
    Analyze {
        options: VacuumOptions,
        tables: Vec<Name>,
    },
    Checkpoint,
    Copy(Box<Copy>),
    Explain {
        analyze: bool,
        statement: Box<Statement>,
    },
    Prepare {
        name: String,
        types: Vec<ast::DataType>,
        text: String,
    },
    Execute {
        name: String,
        args: Vec<ast::Expr>,
    },
    Deallocate(Which),
    /// CLOSE: no cursor can have been declared.
    Close(Which),
    /// UNLISTEN: no session listens.
    Unlisten,
    Lock {
        names: Vec<Name>,
        mode: &'static str,
        nowait: bool,
    },
    Unsupported(String),
}

impl Statement {
    /// Whether it only controls the transaction or settings. Such a statement is small and runs
    /// often, and its parse depends on nothing but its text.
    pub(crate) fn is_control(&self) -> bool {
        use Statement as S;
        matches!(
            self,
            S::Begin { .. }
                | S::Commit { .. }
                | S::Rollback { .. }
                | S::SetTransaction { .. }
                | S::Set { .. }
                | S::Show(_)
                | S::Reset(_)
        )
    }
}

/// A statement with what it came from.
#[derive(Debug, Clone)]
pub(crate) struct Parsed {
    pub(crate) statement: Statement,
}

/// Parses a text of any number of statements. Empty ones are left out.
pub(crate) fn parse(sql: &str) -> Result<Vec<Parsed>> {
    let source = Source::new(sql);
    let mut tokens = tokenize(&source)?;
    limits::check(&tokens)?;
    row_lock::rewrite(&mut tokens);
    rows_from::rewrite(&mut tokens);
    distinct_from::rewrite(&mut tokens);
    let mut parsed = Vec::new();
    for tokens in split(&tokens) {
        let statement = statement(source, tokens)?;
        if !matches!(statement, Statement::Empty) {
            parsed.push(Parsed { statement });
        }
    }
    Ok(parsed)
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
                (!data_type::is_bytewise(&name.value))
                    .then(|| format!("the collation \"{}\"", name.value))
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
    let statement = parse_one(&mut cursor)?;
    cursor.expect_end()?;
    Ok(statement)
}

/// Parses one statement from the cursor's place.
fn parse_one(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    if cursor.at_end() {
        return Ok(Statement::Empty);
    }
    if let Some(statement) = utility::parse(cursor)? {
        return Ok(statement);
    }
    let source = cursor.source;
    let first = cursor.peek_token();
    let parsed = cursor.with_parser(|parser| parser.parse_statement())?;
    Ok(match parsed {
        ast::Statement::Query(query) => without_query(query),
        ast::Statement::Insert(insert) => Statement::Insert(Box::new(insert), None),
        ast::Statement::Update(update) => Statement::Update(Box::new(update), None),
        ast::Statement::Delete(delete) => Statement::Delete(Box::new(delete), None),
        ast::Statement::CreateTable(create) => Statement::CreateTable(Box::new(create)),
        ast::Statement::CreateIndex(create) => Statement::CreateIndex(Box::new(create)),
        ast::Statement::AlterTable(alter) => Statement::AlterTable(Box::new(alter)),
        _ => {
            let text = source.sql.get(source.byte(first.span.start)..).unwrap_or("");
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            Statement::Unsupported(words.join(" ").to_uppercase())
        }
    })
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
