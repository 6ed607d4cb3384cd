//! Lists of options.

use super::{Parse, Parser};
use crate::keyword::{Category, Keyword};
use crate::lexer::TokenKind;
use crate::tree::{DefArg, DefElem, Name, Value};

impl Parser<'_> {
    /// `(name = value, ...)`: of WITH, and of storage parameters, whose names may be qualified.
    pub(super) fn definition(&mut self, qualified: bool) -> Parse<Vec<DefElem>> {
        self.paren_list(|parser| {
            let location = parser.location();
            let mut defname = parser.col_label()?;
            let mut defnamespace = None;
            if qualified && parser.take_char(b'.') {
                defnamespace = Some(std::mem::replace(&mut defname, parser.col_label()?));
            }
            let arg = if parser.take_char(b'=') { Some(parser.def_arg()?) } else { None };
            Ok(DefElem { defnamespace, defname, arg, location })
        })
    }

    fn def_arg(&mut self) -> Parse<DefArg> {
        match self.kind() {
            TokenKind::Integer | TokenKind::Float => self.number_arg(),
            TokenKind::Char(b'+' | b'-')
                if matches!(self.kind_at(1), TokenKind::Integer | TokenKind::Float) =>
            {
                self.number_arg()
            }
            TokenKind::Op
            | TokenKind::LessEquals
            | TokenKind::GreaterEquals
            | TokenKind::NotEquals
            | TokenKind::Char(_)
            | TokenKind::Keyword(Keyword::Operator) => Ok(DefArg::Operator(self.qual_all_op()?)),
            TokenKind::Keyword(Keyword::None) => {
                self.bump();
                Ok(DefArg::None)
            }
            TokenKind::Keyword(keyword) if keyword.category() == Category::Reserved => {
                self.bump();
                Ok(DefArg::String(Self::keyword_name(keyword)))
            }
            _ if self.is_string() => Ok(DefArg::String(self.string()?)),
            _ => Ok(DefArg::TypeName(self.type_name()?)),
        }
    }

    pub(super) fn number_arg(&mut self) -> Parse<DefArg> {
        match self.numeric_only()? {
            Value::Integer(integer) => Ok(DefArg::Integer(integer)),
            Value::Float(text) => Ok(DefArg::Float(text)),
            _ => Err(self.unexpected()),
        }
    }

    /// `(name value, ...)` of EXPLAIN, VACUUM, ANALYZE.
    pub(super) fn utility_options(&mut self) -> Parse<Vec<DefElem>> {
        self.paren_list(|parser| {
            let location = parser.location();
            let analyze = [Keyword::Analyze, Keyword::Analyse];
            let name = match parser.take_one_of(&analyze) {
                Some(_) => "analyze".into(),
                None => parser.non_reserved_word()?,
            };
            let arg = parser.opt_value()?;
            Ok(option(name, arg, location))
        })
    }

    /// A word, a string or a number, or nothing.
    pub(super) fn opt_value(&mut self) -> Parse<Option<DefArg>> {
        match self.kind() {
            TokenKind::Integer | TokenKind::Float | TokenKind::Char(b'+' | b'-') => {
                self.number_arg().map(Some)
            }
            _ if self.is_boolean_or_string() => Ok(Some(DefArg::String(self.boolean_or_string()?))),
            _ => Ok(None),
        }
    }

    /// OPTIONS (name 'value', ...) of foreign things.
    pub(super) fn opt_generic_options(&mut self) -> Parse<Vec<DefElem>> {
        if !self.is_keyword(Keyword::Options) || !self.is_char_at(1, b'(') {
            return Ok(Vec::new());
        }
        self.bump();
        self.paren_list(|parser| {
            let location = parser.location();
            let name = parser.col_label()?;
            let arg = Some(DefArg::String(parser.string()?));
            Ok(option(name, arg, location))
        })
    }
}

pub(super) fn option(defname: Name, arg: Option<DefArg>, location: u32) -> DefElem {
    DefElem { defnamespace: None, defname, arg, location }
}
