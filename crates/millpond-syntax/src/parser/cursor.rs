//! Looking at tokens and taking them.

use super::{BUDGET, LEVEL, PIECES_BETWEEN_LOOKS, Parse, Parser};
use crate::error::{SqlState, SyntaxError};
use crate::keyword::Keyword;
use crate::lexer::{Token, TokenKind};

impl<'a> Parser<'a> {
    /// The token `ahead` of here. The last one repeats.
    #[inline]
    pub(super) fn token(&self, ahead: usize) -> Token {
        let end = Token { kind: TokenKind::End, start: 0, end: 0 };
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(end)
    }

    #[inline]
    pub(super) fn kind(&self) -> TokenKind {
        self.token(0).kind
    }

    #[inline]
    pub(super) fn kind_at(&self, ahead: usize) -> TokenKind {
        self.token(ahead).kind
    }

    #[inline]
    pub(super) fn location(&self) -> u32 {
        self.token(0).start
    }

    /// The end of the last token that was taken.
    pub(super) fn previous_end(&self) -> u32 {
        match self.at.checked_sub(1).and_then(|before| self.tokens.get(before)) {
            Some(token) => token.end,
            None => 0,
        }
    }

    pub(super) fn slice(&self, token: Token) -> &'a str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Takes the token here. The end is never passed.
    #[inline]
    pub(super) fn bump(&mut self) -> Token {
        let token = self.token(0);
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    #[inline]
    pub(super) fn is(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    #[inline]
    pub(super) fn is_char(&self, byte: u8) -> bool {
        self.kind() == TokenKind::Char(byte)
    }

    pub(super) fn is_char_at(&self, ahead: usize, byte: u8) -> bool {
        self.kind_at(ahead) == TokenKind::Char(byte)
    }

    #[inline]
    pub(super) fn is_keyword(&self, keyword: Keyword) -> bool {
        self.kind() == TokenKind::Keyword(keyword)
    }

    pub(super) fn is_keyword_at(&self, ahead: usize, keyword: Keyword) -> bool {
        self.kind_at(ahead) == TokenKind::Keyword(keyword)
    }

    /// Whether the keywords come one after the other.
    pub(super) fn are_keywords(&self, keywords: &[Keyword]) -> bool {
        keywords.iter().enumerate().all(|(ahead, &keyword)| self.is_keyword_at(ahead, keyword))
    }

    /// The keyword here.
    pub(super) fn keyword(&self) -> Option<Keyword> {
        match self.kind() {
            TokenKind::Keyword(keyword) => Some(keyword),
            _ => None,
        }
    }

    pub(super) fn keyword_at(&self, ahead: usize) -> Option<Keyword> {
        match self.kind_at(ahead) {
            TokenKind::Keyword(keyword) => Some(keyword),
            _ => None,
        }
    }

    /// Takes the token if it is of this kind.
    #[inline]
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        let is = self.kind() == kind;
        if is {
            self.bump();
        }
        is
    }

    #[inline]
    pub(super) fn take_char(&mut self, byte: u8) -> bool {
        self.take(TokenKind::Char(byte))
    }

    #[inline]
    pub(super) fn take_keyword(&mut self, keyword: Keyword) -> bool {
        self.take(TokenKind::Keyword(keyword))
    }

    /// Takes all of the keywords, or none.
    pub(super) fn take_keywords(&mut self, keywords: &[Keyword]) -> bool {
        let are = self.are_keywords(keywords);
        if are {
            for _ in keywords {
                self.bump();
            }
        }
        are
    }

    /// Takes the keyword that comes first of these.
    pub(super) fn take_one_of(&mut self, keywords: &[Keyword]) -> Option<Keyword> {
        let keyword = self.keyword().filter(|keyword| keywords.contains(keyword))?;
        self.bump();
        Some(keyword)
    }

    pub(super) fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        if self.kind() == kind { Ok(self.bump()) } else { Err(self.unexpected()) }
    }

    #[inline]
    pub(super) fn expect_char(&mut self, byte: u8) -> Parse<Token> {
        self.expect(TokenKind::Char(byte))
    }

    #[inline]
    pub(super) fn expect_keyword(&mut self, keyword: Keyword) -> Parse<Token> {
        self.expect(TokenKind::Keyword(keyword))
    }

    pub(super) fn expect_keywords(&mut self, keywords: &[Keyword]) -> Parse<()> {
        for &keyword in keywords {
            self.expect_keyword(keyword)?;
        }
        Ok(())
    }

    /// The error that the token here fits nowhere.
    #[cold]
    pub(super) fn unexpected(&mut self) -> Box<SyntaxError> {
        self.unexpected_at(0)
    }

    #[cold]
    pub(super) fn unexpected_at(&mut self, ahead: usize) -> Box<SyntaxError> {
        let token = self.token(ahead);
        if token.kind == TokenKind::Bad {
            if let Some(error) = self.error.take() {
                return error;
            }
        }
        SyntaxError::near("syntax error", self.text, token.start as usize, token.end as usize)
    }

    /// An error that names the token here.
    #[cold]
    pub(super) fn error_near(&self, message: &str, token: Token) -> Box<SyntaxError> {
        SyntaxError::near(message, self.text, token.start as usize, token.end as usize)
    }

    /// A syntax error with a message of its own.
    #[cold]
    pub(super) fn error_at(&self, message: impl Into<String>, location: u32) -> Box<SyntaxError> {
        SyntaxError::new(SqlState::SyntaxError, message, location)
    }

    #[cold]
    pub(super) fn unsupported(
        &self,
        message: impl Into<String>,
        location: u32,
    ) -> Box<SyntaxError> {
        SyntaxError::new(SqlState::FeatureNotSupported, message, location)
    }

    /// Goes a level deeper for the time of `parse`.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.spend(LEVEL)?;
        let parsed = parse(self);
        self.depth -= LEVEL;
        parsed
    }

    /// Counts what makes the tree deeper. The caller gives it back.
    pub(super) fn spend(&mut self, cost: u32) -> Parse<()> {
        if self.depth + cost > BUDGET {
            return Err(too_deep(self.location()));
        }
        self.left -= 1;
        if self.left == 0 {
            self.look()?;
        }
        self.depth += cost;
        Ok(())
    }

    #[cold]
    fn look(&mut self) -> Parse<()> {
        self.left = PIECES_BETWEEN_LOOKS;
        if (self.stop)() { Err(SyntaxError::stopped()) } else { Ok(()) }
    }

    pub(super) fn give_back(&mut self, cost: u32) {
        self.depth -= cost;
    }

    /// One or more, with commas between them.
    pub(super) fn list<T>(&mut self, one: impl Fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.take_char(b',') {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// One or more in parentheses.
    pub(super) fn paren_list<T>(&mut self, one: impl Fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        self.expect_char(b'(')?;
        let list = self.list(one)?;
        self.expect_char(b')')?;
        Ok(list)
    }
}

#[cold]
pub(super) fn too_deep(location: u32) -> Box<SyntaxError> {
    SyntaxError::new(SqlState::StatementTooComplex, "stack depth limit exceeded", location)
        .with_detail("The statement nests too many levels.")
        .without_location()
}
