//! A cursor over tokens, for the statements that are parsed here rather than by sqlparser.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::Bounded;
use super::source::Source;
use super::{Name, convert_error, limits};
use crate::error::{Result, SqlError};

pub(super) struct Cursor<'t, 's> {
    pub(super) source: Source<'s>,
    tokens: &'t [TokenWithSpan],
    at: usize,
}

static END: std::sync::LazyLock<TokenWithSpan> =
    std::sync::LazyLock::new(|| TokenWithSpan::wrap(Token::EOF));

impl<'t, 's> Cursor<'t, 's> {
    pub(super) fn new(source: Source<'s>, tokens: &'t [TokenWithSpan]) -> Self {
        let mut cursor = Cursor { source, tokens, at: 0 };
        cursor.skip_space();
        cursor
    }

    fn skip_space(&mut self) {
        while matches!(self.tokens.get(self.at).map(|t| &t.token), Some(Token::Whitespace(_))) {
            self.at += 1;
        }
    }

    pub(super) fn peek_token(&self) -> &'t TokenWithSpan {
        self.tokens.get(self.at).unwrap_or(&END)
    }

    pub(super) fn peek(&self) -> &'t Token {
        &self.peek_token().token
    }

    pub(super) fn advance(&mut self) -> &'t Token {
        let token = self.peek();
        if self.at < self.tokens.len() {
            self.at += 1;
        }
        self.skip_space();
        token
    }

    /// The tokens that are left.
    pub(super) fn rest(&self) -> &'t [TokenWithSpan] {
        &self.tokens[self.at.min(self.tokens.len())..]
    }

    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), Token::EOF | Token::SemiColon)
    }

    pub(super) fn unexpected(&self) -> SqlError {
        self.source.syntax_error(self.peek_token())
    }

    pub(super) fn expect_end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether the next token is this unquoted word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    /// The next token as an unquoted word in lower case.
    pub(super) fn word(&self) -> Option<String> {
        match self.peek() {
            Token::Word(w) if w.quote_style.is_none() => Some(w.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Whether the token after the next is this unquoted word.
    pub(super) fn is_second_word(&self, word: &str) -> bool {
        let mut tokens = self.rest().iter().map(|token| &token.token);
        let second = tokens.by_ref().filter(|token| !matches!(token, Token::Whitespace(_))).nth(1);
        matches!(second, Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
    }

    pub(super) fn accept(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.accept_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// An identifier, folded to lower case unless it is quoted.
    pub(super) fn ident(&mut self) -> Result<String> {
        let Token::Word(word) = self.peek() else { return Err(self.unexpected()) };
        let folded = super::fold(&word.value, word.quote_style);
        self.advance();
        Ok(folded)
    }

    /// A name that may be qualified.
    pub(super) fn name(&mut self) -> Result<Name> {
        let span = self.peek_token().span;
        let mut parts = vec![self.ident()?];
        while self.accept_token(&Token::Period) {
            parts.push(self.ident()?);
        }
        Name::from_parts(parts, self.source.position_of(span.start))
    }

    pub(super) fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name()?];
        while self.accept_token(&Token::Comma) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// A string literal.
    pub(super) fn string(&mut self) -> Result<String> {
        let text = match self.peek() {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(text)
    }

    /// A setting's or option's value: a word, a string or a number with a sign.
    pub(super) fn value(&mut self) -> Result<String> {
        if matches!(self.peek(), Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) {
            return self.string();
        }
        let sign = if self.accept_token(&Token::Minus) { "-" } else { "" };
        self.accept_token(&Token::Plus);
        match self.peek() {
            Token::Number(number, _) => {
                let number = format!("{sign}{number}");
                self.advance();
                Ok(number)
            }
            Token::Word(word) if sign.is_empty() => {
                let value = match word.quote_style {
                    None => word.value.to_ascii_lowercase(),
                    Some(_) => word.value.clone(),
                };
                self.advance();
                Ok(value)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The tokens up to the parenthesis that closes one already passed; moves behind it.
    pub(super) fn inside_parentheses(&mut self) -> Result<&'t [TokenWithSpan]> {
        let start = self.at;
        let mut depth = 1usize;
        loop {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return Err(self.unexpected()),
                _ => {}
            }
            if depth == 0 {
                let inside = &self.tokens[start..self.at];
                self.advance();
                return Ok(inside);
            }
            self.advance();
        }
    }

    /// Lets sqlparser parse something from here, and moves behind it.
    pub(super) fn with_parser<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, sqlparser::parser::ParserError>,
    ) -> Result<T> {
        let rest = self.rest().to_vec();
        let dialect = Bounded::new(rest.len());
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(limits::MAX_NESTING)
            .with_tokens_with_locations(rest);
        let parsed = parse(&mut parser).map_err(|error| convert_error(&self.source, error))?;
        self.at = (self.at + parser.index()).min(self.tokens.len());
        self.skip_space();
        Ok(parsed)
    }

    /// Moves to the end of the statement.
    pub(super) fn skip_all(&mut self) {
        while !self.at_end() {
            self.advance();
        }
    }

    /// "... is not supported yet" at this place.
    pub(super) fn unsupported(&self, what: &str) -> SqlError {
        self.source.place(SqlError::unsupported(what), self.peek_token().span)
    }
}
