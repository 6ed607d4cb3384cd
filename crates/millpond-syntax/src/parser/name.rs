//! Names: which words may be one is a question of the place.

use super::{Parse, Parser};
use crate::keyword::{Category, Keyword};
use crate::lexer::{Token, TokenKind, value};
use crate::tree::{Field, Indirection, Name, Persistence, QualifiedName, RangeVar, Text};

impl Parser<'_> {
    pub(super) fn is_ident_at(&self, ahead: usize) -> bool {
        matches!(
            self.kind_at(ahead),
            TokenKind::Ident | TokenKind::QuotedIdent | TokenKind::UnicodeIdent
        )
    }

    fn is_name_at(&self, ahead: usize, allowed: impl Fn(Category) -> bool) -> bool {
        match self.kind_at(ahead) {
            TokenKind::Ident | TokenKind::QuotedIdent | TokenKind::UnicodeIdent => true,
            TokenKind::Keyword(keyword) => allowed(keyword.category()),
            _ => false,
        }
    }

    /// A column, a table: ColId.
    pub(super) fn is_col_id_at(&self, ahead: usize) -> bool {
        self.is_name_at(ahead, |category| {
            matches!(category, Category::Unreserved | Category::ColName)
        })
    }

    pub(super) fn is_col_id(&self) -> bool {
        self.is_col_id_at(0)
    }

    /// A function or a type: type_function_name.
    pub(super) fn is_type_function_name_at(&self, ahead: usize) -> bool {
        self.is_name_at(ahead, |category| {
            matches!(category, Category::Unreserved | Category::TypeFuncName)
        })
    }

    fn is_non_reserved(&self) -> bool {
        self.is_name_at(0, |category| category != Category::Reserved)
    }

    /// A name without AS: BareColLabel.
    pub(super) fn is_bare_label(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(keyword) => keyword.bare_label(),
            _ => self.is_ident_at(0),
        }
    }

    /// Takes the token here as a name.
    pub(super) fn take_name(&mut self) -> Parse<Name> {
        let token = self.bump();
        self.name_of(token)
    }

    fn name_of(&mut self, token: Token) -> Parse<Name> {
        match token.kind {
            TokenKind::Keyword(keyword) => Ok(keyword.text().into()),
            TokenKind::Ident => Ok(value::fold(self.slice(token))),
            kind => value::quoted_ident(kind, self.slice(token), token.start),
        }
    }

    pub(super) fn col_id(&mut self) -> Parse<Name> {
        if self.is_col_id() { self.take_name() } else { Err(self.unexpected()) }
    }

    pub(super) fn type_function_name(&mut self) -> Parse<Name> {
        if self.is_type_function_name_at(0) { self.take_name() } else { Err(self.unexpected()) }
    }

    /// Any name but a reserved word: NonReservedWord.
    pub(super) fn non_reserved_word(&mut self) -> Parse<Name> {
        if self.is_non_reserved() { self.take_name() } else { Err(self.unexpected()) }
    }

    /// Any word: ColLabel.
    pub(super) fn col_label(&mut self) -> Parse<Name> {
        if self.is_name_at(0, |_| true) { self.take_name() } else { Err(self.unexpected()) }
    }

    pub(super) fn name_list(&mut self) -> Parse<Vec<Name>> {
        self.list(Self::col_id)
    }

    /// `(a, b)`, or nothing.
    pub(super) fn opt_column_list(&mut self) -> Parse<Vec<Name>> {
        if self.is_char(b'(') { self.paren_list(Self::col_id) } else { Ok(Vec::new()) }
    }

    /// A name with qualifiers that is no relation's: any_name.
    pub(super) fn any_name(&mut self) -> Parse<Vec<Name>> {
        let mut names = vec![self.col_id()?];
        self.attrs(&mut names)?;
        Ok(names)
    }

    pub(super) fn qualified(&mut self) -> Parse<QualifiedName> {
        let location = self.location();
        Ok(QualifiedName { names: self.any_name()?, location })
    }

    /// The names behind points.
    pub(super) fn attrs(&mut self, names: &mut Vec<Name>) -> Parse<()> {
        while self.take_char(b'.') {
            names.push(self.col_label()?);
        }
        Ok(())
    }

    /// A relation's name: qualified_name.
    pub(super) fn qualified_name(&mut self) -> Parse<RangeVar> {
        let location = self.location();
        let first = self.col_id()?;
        if !self.is_char(b'.') && !self.is_char(b'[') {
            return Ok(range_var(None, None, first, location));
        }
        let indirection = self.indirection()?;
        let mut names = vec![first];
        for part in indirection {
            match part {
                Indirection::Field(name) => names.push(name),
                _ => return Err(self.unexpected()),
            }
        }
        self.relation_of(names, location)
    }

    /// The relation that one to three names are.
    pub(super) fn relation_of(&mut self, names: Vec<Name>, location: u32) -> Parse<RangeVar> {
        let mut rest = names.into_iter().rev();
        match (rest.next(), rest.next(), rest.next(), rest.next()) {
            (Some(name), schema, catalog, None) => Ok(range_var(catalog, schema, name, location)),
            (Some(a), Some(b), Some(c), Some(d)) => {
                let mut all: Vec<Name> = rest.rev().collect();
                all.extend([d, c, b, a]);
                let name = all.join(".");
                let message = format!("improper qualified name (too many dotted names): {name}");
                Err(self.error_at(message, location))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `.name`, `.*`, `[...]`, as often as they come.
    pub(super) fn indirection(&mut self) -> Parse<Vec<Indirection>> {
        let mut list = Vec::new();
        loop {
            if self.take_char(b'.') {
                if self.take_char(b'*') {
                    list.push(Indirection::Star);
                } else {
                    list.push(Indirection::Field(self.col_label()?));
                }
            } else if self.is_char(b'[') {
                list.push(self.deeper(Self::subscript)?);
            } else {
                return Ok(list);
            }
        }
    }

    fn subscript(&mut self) -> Parse<Indirection> {
        self.expect_char(b'[')?;
        let lower = if self.is_char(b':') { None } else { Some(self.a_expr()?) };
        if self.take_char(b':') {
            let upper = if self.is_char(b']') { None } else { Some(self.a_expr()?) };
            self.expect_char(b']')?;
            return Ok(Indirection::Slice(lower, upper));
        }
        self.expect_char(b']')?;
        match lower {
            Some(index) => Ok(Indirection::Index(index)),
            None => Err(self.unexpected()),
        }
    }

    /// A star may only be last.
    pub(super) fn check_indirection(&mut self, list: &[Indirection]) -> Parse<()> {
        match list.iter().position(|part| *part == Indirection::Star) {
            Some(at) if at + 1 < list.len() => {
                let token = self.token(0);
                Err(self.error_near("improper use of \"*\"", token))
            }
            _ => Ok(()),
        }
    }

    /// Whether a string literal is here.
    pub(super) fn is_string(&self) -> bool {
        self.is_string_at(0)
    }

    pub(super) fn is_string_at(&self, ahead: usize) -> bool {
        matches!(
            self.kind_at(ahead),
            TokenKind::String
                | TokenKind::EscapeString
                | TokenKind::UnicodeString
                | TokenKind::DollarString
        )
    }

    pub(super) fn string(&mut self) -> Parse<Text> {
        if !self.is_string() {
            return Err(self.unexpected());
        }
        let token = self.bump();
        value::string(token.kind, self.slice(token), token.start)
    }

    /// An integer that fits into 32 bits: Iconst.
    pub(super) fn is_iconst_at(&self, ahead: usize) -> bool {
        let token = self.token(ahead);
        token.kind == TokenKind::Integer && self.slice(token).parse::<i32>().is_ok()
    }

    pub(super) fn iconst(&mut self) -> Parse<i32> {
        let token = self.token(0);
        let value = match token.kind {
            TokenKind::Integer => self.slice(token).parse().ok(),
            _ => None,
        };
        let Some(value) = value else { return Err(self.unexpected()) };
        self.bump();
        Ok(value)
    }

    pub(super) fn signed_iconst(&mut self) -> Parse<i32> {
        if self.take_char(b'-') {
            return Ok(self.iconst()?.wrapping_neg());
        }
        self.take_char(b'+');
        self.iconst()
    }

    /// The whole keyword as a name, for callers that know it is one.
    pub(super) fn keyword_name(keyword: Keyword) -> Name {
        keyword.text().into()
    }
}

pub(super) fn range_var(
    catalogname: Option<Name>,
    schemaname: Option<Name>,
    relname: Name,
    location: u32,
) -> RangeVar {
    RangeVar {
        catalogname,
        schemaname,
        relname,
        inh: true,
        relpersistence: Persistence::Permanent,
        alias: None,
        location,
    }
}

/// The fields that a column's name has in front of its first subscript, and what comes after.
pub(super) fn split_fields(
    first: Name,
    indirection: Vec<Indirection>,
) -> (Vec<Field>, Vec<Indirection>) {
    let mut fields = vec![Field::String(first)];
    let mut rest = Vec::new();
    for part in indirection {
        match part {
            Indirection::Field(name) if rest.is_empty() => fields.push(Field::String(name)),
            Indirection::Star if rest.is_empty() => fields.push(Field::Star),
            part => rest.push(part),
        }
    }
    (fields, rest)
}

/// A name of `pg_catalog`.
pub(super) fn system_name(name: &str) -> Vec<Name> {
    vec!["pg_catalog".into(), name.into()]
}
