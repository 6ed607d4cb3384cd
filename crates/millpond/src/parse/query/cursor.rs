//! A cursor over tokens, which lets sqlparser parse what is there.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::Bounded;
use super::{convert_error, limits};
use crate::error::{Result, SqlError};
use crate::parse::Source;

pub(super) struct Cursor<'t, 's> {
    source: Source<'s>,
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

    fn token(&self) -> &'t TokenWithSpan {
        self.tokens.get(self.at).unwrap_or(&END)
    }

    fn unexpected(&self) -> SqlError {
        self.source.syntax_error(self.token())
    }

    pub(super) fn expect_end(&self) -> Result<()> {
        if self.token().token == Token::EOF { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.token().token == *token;
        if found {
            self.at += 1;
            self.skip_space();
        }
        found
    }

    /// Lets sqlparser parse something from here, and moves behind it.
    pub(super) fn with_parser<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, sqlparser::parser::ParserError>,
    ) -> Result<T> {
        let rest = self.tokens.get(self.at..).unwrap_or_default().to_vec();
        let dialect = Bounded::new(rest.len());
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(limits::MAX_NESTING)
            .with_tokens_with_locations(rest);
        let parsed = parse(&mut parser).map_err(|error| convert_error(&self.source, error))?;
        self.at = (self.at + parser.index()).min(self.tokens.len());
        self.skip_space();
        Ok(parsed)
    }
}
