//! SET, RESET, SHOW.

use super::{Parse, Parser};
use crate::keyword::{Category, Keyword};
use crate::lexer::TokenKind;
use crate::tree::{Name, Statement, Text, Value, VariableSetKind, VariableSetStmt, VariableValue};

impl Parser<'_> {
    pub(super) fn variable_set(&mut self) -> Parse<Statement> {
        self.expect_keyword(Keyword::Set)?;
        // LOCAL and SESSION may be names of settings, too.
        let named = matches!(self.kind_at(1), TokenKind::Char(b'=' | b'.'))
            || self.is_keyword_at(1, Keyword::To);
        let mut is_local = false;
        if !named {
            is_local = self.take_keyword(Keyword::Local);
            let session = !is_local
                && self.is_keyword(Keyword::Session)
                && !self.is_keyword_at(1, Keyword::Authorization)
                && !self.is_keyword_at(1, Keyword::Characteristics);
            if session {
                self.bump();
            }
        }
        let mut stmt = self.set_rest()?;
        stmt.is_local = is_local;
        Ok(Statement::VariableSet(Box::new(stmt)))
    }

    fn set_rest(&mut self) -> Parse<VariableSetStmt> {
        let named = matches!(self.kind_at(1), TokenKind::Char(b'=' | b'.'))
            || self.is_keyword_at(1, Keyword::To)
            || self.is_keyword_at(1, Keyword::From);
        if named {
            return self.generic_set();
        }
        match self.keyword() {
            Some(Keyword::Transaction) => self.set_transaction(),
            Some(Keyword::Session) => self.set_session(),
            Some(Keyword::Time) => {
                self.expect_keywords(&[Keyword::Time, Keyword::Zone])?;
                self.zone_value()
            }
            Some(Keyword::Catalog) => {
                self.bump();
                let place = self.location();
                self.string()?;
                Err(self.unsupported("current database cannot be changed", place))
            }
            Some(Keyword::Schema) => {
                self.bump();
                Ok(set("search_path", vec![text(self.string()?)]))
            }
            Some(Keyword::Names) => {
                self.bump();
                self.set_names()
            }
            Some(Keyword::Role) => {
                self.bump();
                Ok(set("role", vec![text(self.word_or_string()?)]))
            }
            Some(Keyword::Xml) => {
                self.expect_keywords(&[Keyword::Xml, Keyword::Option])?;
                match self.take_one_of(&[Keyword::Document, Keyword::Content]) {
                    Some(Keyword::Document) => Ok(set("xmloption", vec![text("DOCUMENT".into())])),
                    Some(_) => Ok(set("xmloption", vec![text("CONTENT".into())])),
                    None => Err(self.unexpected()),
                }
            }
            _ => self.generic_set(),
        }
    }

    fn set_transaction(&mut self) -> Parse<VariableSetStmt> {
        self.bump();
        if self.take_keyword(Keyword::Snapshot) {
            let snapshot = text(self.string()?);
            let mut stmt = set("TRANSACTION SNAPSHOT", vec![snapshot]);
            stmt.kind = VariableSetKind::Multi;
            return Ok(stmt);
        }
        let mut stmt = set("TRANSACTION", Vec::new());
        stmt.kind = VariableSetKind::Multi;
        stmt.options = self.transaction_modes()?;
        Ok(stmt)
    }

    fn set_session(&mut self) -> Parse<VariableSetStmt> {
        self.bump();
        if self.take_keyword(Keyword::Authorization) {
            if self.take_keyword(Keyword::Default) {
                return Ok(default("session_authorization"));
            }
            return Ok(set("session_authorization", vec![text(self.word_or_string()?)]));
        }
        self.expect_keywords(&[Keyword::Characteristics, Keyword::As, Keyword::Transaction])?;
        let mut stmt = set("SESSION CHARACTERISTICS", Vec::new());
        stmt.kind = VariableSetKind::Multi;
        stmt.options = self.transaction_modes()?;
        Ok(stmt)
    }

    fn set_names(&mut self) -> Parse<VariableSetStmt> {
        if self.is_string() {
            return Ok(set("client_encoding", vec![text(self.string()?)]));
        }
        self.take_keyword(Keyword::Default);
        Ok(default("client_encoding"))
    }

    fn generic_set(&mut self) -> Parse<VariableSetStmt> {
        let name = self.var_name()?;
        if self.take_keyword(Keyword::From) {
            self.expect_keyword(Keyword::Current)?;
            let mut stmt = set(&name, Vec::new());
            stmt.kind = VariableSetKind::Current;
            return Ok(stmt);
        }
        if !self.take_char(b'=') {
            self.expect_keyword(Keyword::To)?;
        }
        if self.take_keyword(Keyword::Default) {
            return Ok(default(&name));
        }
        let args = self.list(Self::var_value)?;
        Ok(set(&name, args))
    }

    pub(super) fn var_name(&mut self) -> Parse<Name> {
        let mut name = String::from(self.col_id()?);
        while self.take_char(b'.') {
            name.push('.');
            name.push_str(&self.col_id()?);
        }
        Ok(name.into())
    }

    fn var_value(&mut self) -> Parse<VariableValue> {
        match self.kind() {
            TokenKind::Integer | TokenKind::Float | TokenKind::Char(b'+' | b'-') => {
                Ok(VariableValue::Const(self.numeric_only()?))
            }
            _ => Ok(text(self.boolean_or_string()?)),
        }
    }

    /// opt_boolean_or_string: TRUE, FALSE, ON, another word that is not reserved, a string.
    pub(super) fn boolean_or_string(&mut self) -> Parse<Text> {
        match self.take_one_of(&[Keyword::True, Keyword::False, Keyword::On]) {
            Some(keyword) => Ok(keyword.text().into()),
            None => self.word_or_string(),
        }
    }

    /// Whether opt_boolean_or_string begins here.
    pub(super) fn is_boolean_or_string(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(Keyword::True | Keyword::False | Keyword::On) => true,
            TokenKind::Keyword(keyword) => keyword.category() != Category::Reserved,
            _ => self.is_ident_at(0) || self.is_string(),
        }
    }

    /// NonReservedWord_or_Sconst.
    pub(super) fn word_or_string(&mut self) -> Parse<Text> {
        if self.is_string() { self.string() } else { self.non_reserved_word() }
    }

    fn zone_value(&mut self) -> Parse<VariableSetStmt> {
        let location = self.location();
        let value = match self.kind() {
            TokenKind::Keyword(Keyword::Default | Keyword::Local) => {
                self.bump();
                return Ok(default("timezone"));
            }
            TokenKind::Keyword(Keyword::Interval) => {
                self.bump();
                let mut type_name = self.const_interval(location)?;
                let string = self.string()?;
                if type_name.typmods.is_empty() {
                    type_name.typmods = self.opt_interval()?;
                }
                VariableValue::Interval(string, type_name)
            }
            TokenKind::Integer | TokenKind::Float | TokenKind::Char(b'+' | b'-') => {
                VariableValue::Const(self.numeric_only()?)
            }
            _ if self.is_string() => text(self.string()?),
            _ if self.is_ident_at(0) => text(self.take_name()?),
            _ => return Err(self.unexpected()),
        };
        Ok(set("timezone", vec![value]))
    }

    /// The name behind RESET and SHOW.
    fn reset_name(&mut self) -> Parse<Name> {
        if self.take_keywords(&[Keyword::Time, Keyword::Zone]) {
            return Ok("timezone".into());
        }
        if self.take_keywords(&[Keyword::Transaction, Keyword::Isolation]) {
            self.expect_keyword(Keyword::Level)?;
            return Ok("transaction_isolation".into());
        }
        if self.take_keywords(&[Keyword::Session, Keyword::Authorization]) {
            return Ok("session_authorization".into());
        }
        self.var_name()
    }

    pub(super) fn variable_reset(&mut self) -> Parse<Statement> {
        Ok(Statement::VariableSet(Box::new(self.reset()?)))
    }

    fn reset(&mut self) -> Parse<VariableSetStmt> {
        self.bump();
        let mut stmt = set("", Vec::new());
        if self.take_keyword(Keyword::All) {
            stmt.kind = VariableSetKind::ResetAll;
        } else {
            stmt.kind = VariableSetKind::Reset;
            stmt.name = self.reset_name()?;
        }
        Ok(stmt)
    }

    /// ALTER SYSTEM SET and RESET.
    pub(super) fn alter_system(&mut self) -> Parse<Statement> {
        self.expect_keywords(&[Keyword::Alter, Keyword::System])?;
        let stmt = match self.keyword() {
            Some(Keyword::Set) => {
                self.bump();
                self.generic_set()?
            }
            Some(Keyword::Reset) => self.reset()?,
            _ => return Err(self.unexpected()),
        };
        Ok(Statement::AlterSystem(Box::new(stmt)))
    }

    pub(super) fn variable_show(&mut self) -> Parse<Statement> {
        self.bump();
        if self.take_keyword(Keyword::All) {
            return Ok(Statement::VariableShow("all".into()));
        }
        Ok(Statement::VariableShow(self.reset_name()?))
    }
}

fn text(text: Text) -> VariableValue {
    VariableValue::Const(Value::String(text))
}

fn set(name: &str, args: Vec<VariableValue>) -> VariableSetStmt {
    VariableSetStmt {
        kind: VariableSetKind::Value,
        name: name.into(),
        args,
        options: Vec::new(),
        is_local: false,
    }
}

fn default(name: &str) -> VariableSetStmt {
    let mut stmt = set(name, Vec::new());
    stmt.kind = VariableSetKind::Default;
    stmt
}
