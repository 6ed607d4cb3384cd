//! How tightly operators bind, and those that are written as words.

use super::call::call;
use super::expr::{Mode, a_expr, not};
use super::name::system_name;
use super::paren::Paren;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{
    AExprKind, BoolTestType, CoercionForm, Expr, Name, Node, NullTestType, Operand, SubLink,
    SubLinkType, Value, XmlExpr, XmlExprOp,
};

/// The higher, the tighter.
pub(super) type Level = u8;

pub(super) const LOWEST: Level = 0;
const OR: Level = 1;
pub(super) const AND: Level = 2;
pub(super) const NOT: Level = 3;
const IS: Level = 4;
const COMPARISON: Level = 5;
/// BETWEEN, IN, LIKE, ILIKE, SIMILAR.
const MATCH: Level = 6;
pub(super) const OP: Level = 8;
const ADD: Level = 9;
const MULTIPLY: Level = 10;
const POWER: Level = 11;
const AT: Level = 12;
const COLLATE: Level = 13;
pub(super) const UMINUS: Level = 14;
const TYPECAST: Level = 15;

/// Whether an operator of this level may not stand behind the right side of another.
pub(super) fn is_nonassoc(level: Level) -> bool {
    matches!(level, IS | COMPARISON | MATCH)
}

impl Parser<'_> {
    /// The level of the operator here; none if no operator is here.
    #[inline]
    pub(super) fn operator_level(&self, mode: Mode) -> Option<Level> {
        match self.kind() {
            TokenKind::Char(b'<' | b'>' | b'=')
            | TokenKind::LessEquals
            | TokenKind::GreaterEquals
            | TokenKind::NotEquals => Some(COMPARISON),
            TokenKind::Char(b'+' | b'-') => Some(ADD),
            TokenKind::Char(b'*' | b'/' | b'%') => Some(MULTIPLY),
            TokenKind::Char(b'^') => Some(POWER),
            TokenKind::Op => Some(OP),
            TokenKind::Typecast => Some(TYPECAST),
            TokenKind::Keyword(keyword) => self.word_level(keyword, mode),
            _ => None,
        }
    }

    fn word_level(&self, keyword: Keyword, mode: Mode) -> Option<Level> {
        match keyword {
            Keyword::Operator if self.is_char_at(1, b'(') => return Some(OP),
            Keyword::Is if mode == Mode::B => {
                let ahead = if self.is_keyword_at(1, Keyword::Not) { 2 } else { 1 };
                let tests = [Keyword::Distinct, Keyword::Document];
                let known = tests.iter().any(|&test| self.is_keyword_at(ahead, test));
                return known.then_some(IS);
            }
            _ if mode == Mode::B => return None,
            _ => {}
        }
        Some(match keyword {
            Keyword::Or => OR,
            Keyword::And => AND,
            Keyword::Is | Keyword::Isnull | Keyword::Notnull => IS,
            Keyword::Between | Keyword::In | Keyword::Like | Keyword::Ilike => MATCH,
            Keyword::Similar if self.is_keyword_at(1, Keyword::To) => MATCH,
            Keyword::Not if self.is_match_at(1) => MATCH,
            Keyword::At if self.is_keyword_at(1, Keyword::Time) => AT,
            Keyword::Collate => COLLATE,
            _ => return None,
        })
    }

    fn is_match_at(&self, ahead: usize) -> bool {
        matches!(
            self.kind_at(ahead),
            TokenKind::Keyword(
                Keyword::Between | Keyword::In | Keyword::Like | Keyword::Ilike | Keyword::Similar
            )
        )
    }

    /// An operator's name: qual_Op, or one of the operators with a token of their own.
    pub(super) fn qual_all_op(&mut self) -> Parse<Vec<Name>> {
        if self.take_keyword(Keyword::Operator) {
            self.expect_char(b'(')?;
            let name = self.any_operator()?;
            self.expect_char(b')')?;
            return Ok(name);
        }
        Ok(vec![self.all_op()?])
    }

    pub(super) fn qual_op(&mut self) -> Parse<Vec<Name>> {
        if self.is(TokenKind::Op) || self.is_keyword(Keyword::Operator) {
            self.qual_all_op()
        } else {
            Err(self.unexpected())
        }
    }

    /// An operator with its schemas in front.
    pub(super) fn any_operator(&mut self) -> Parse<Vec<Name>> {
        let mut name = Vec::new();
        while self.is_col_id() {
            name.push(self.col_id()?);
            self.expect_char(b'.')?;
        }
        name.push(self.all_op()?);
        Ok(name)
    }

    fn all_op(&mut self) -> Parse<Name> {
        let token = self.token(0);
        let name = match token.kind {
            TokenKind::NotEquals => "<>",
            TokenKind::Op
            | TokenKind::LessEquals
            | TokenKind::GreaterEquals
            | TokenKind::Char(b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'<' | b'>' | b'=') => {
                self.slice(token)
            }
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(name.into())
    }

    /// Whether ANY, SOME or ALL comes here.
    pub(super) fn is_sub_type(&self) -> bool {
        matches!(self.keyword(), Some(Keyword::Any | Keyword::Some | Keyword::All))
    }

    /// ANY, SOME or ALL and what is in the parentheses: a subquery or an array.
    pub(super) fn any_or_all(&mut self, left: Expr, name: Vec<Name>, location: u32) -> Parse<Expr> {
        let all = self.bump().kind == TokenKind::Keyword(Keyword::All);
        if !self.is_char(b'(') {
            return Err(self.unexpected());
        }
        match self.paren()? {
            Paren::Select(subselect) => {
                let sub_link_type = if all { SubLinkType::All } else { SubLinkType::Any };
                Ok(sub_link(sub_link_type, Some(left), name, *subselect, location))
            }
            Paren::List(mut list) => {
                let kind = if all { AExprKind::OpAll } else { AExprKind::OpAny };
                match (list.pop(), list.is_empty()) {
                    (Some(array), true) => {
                        Ok(a_expr(kind, name, Some(left), Operand::Expr(array), location))
                    }
                    _ => Err(self.unexpected()),
                }
            }
        }
    }

    /// An operator that is a word, except AND, OR, IS and OPERATOR.
    pub(super) fn keyword_operator(
        &mut self,
        keyword: Keyword,
        left: Expr,
    ) -> Parse<(Expr, Option<Level>)> {
        let location = self.location();
        self.bump();
        let (negated, keyword) = match keyword {
            Keyword::Not => {
                let keyword = self.keyword().unwrap_or(keyword);
                self.bump();
                (true, keyword)
            }
            _ => (false, keyword),
        };
        match keyword {
            Keyword::Isnull => Ok((null_test(NullTestType::IsNull, left, location), None)),
            Keyword::Notnull => Ok((null_test(NullTestType::IsNotNull, left, location), None)),
            Keyword::Collate => {
                let collation = self.any_name()?;
                let node = Node::CollateClause(Box::new(left), collation);
                Ok((Expr { node, location }, None))
            }
            Keyword::At => {
                self.expect_keywords(&[Keyword::Time, Keyword::Zone])?;
                let zone = self.expression(AT + 1, Mode::A)?;
                let name = system_name("timezone");
                Ok((call(name, vec![zone, left], CoercionForm::SqlSyntax, location), None))
            }
            Keyword::In => Ok((self.in_list(left, negated, location)?, None)),
            Keyword::Between => Ok((self.between(left, negated, location)?, Some(MATCH))),
            Keyword::Similar => {
                self.expect_keyword(Keyword::To)?;
                Ok((self.similar(left, negated, location)?, Some(MATCH)))
            }
            _ => self.like(keyword == Keyword::Ilike, left, negated, location),
        }
    }

    fn in_list(&mut self, left: Expr, negated: bool, location: u32) -> Parse<Expr> {
        if !self.is_char(b'(') {
            return Err(self.unexpected());
        }
        match self.paren()? {
            Paren::Select(query) => {
                let any = sub_link(SubLinkType::Any, Some(left), Vec::new(), *query, location);
                Ok(if negated { not(any, location) } else { any })
            }
            Paren::List(list) => {
                let name = vec![if negated { "<>".into() } else { "=".into() }];
                let list = Operand::List(list);
                Ok(a_expr(AExprKind::In, name, Some(left), list, location))
            }
        }
    }

    fn between(&mut self, left: Expr, negated: bool, location: u32) -> Parse<Expr> {
        let symmetric = self.take_keyword(Keyword::Symmetric);
        if !symmetric {
            self.take_keyword(Keyword::Asymmetric);
        }
        let low = self.b_expr()?;
        self.expect_keyword(Keyword::And)?;
        let high = self.expression(MATCH + 1, Mode::A)?;
        let (kind, name) = match (negated, symmetric) {
            (false, false) => (AExprKind::Between, "BETWEEN"),
            (true, false) => (AExprKind::NotBetween, "NOT BETWEEN"),
            (false, true) => (AExprKind::BetweenSym, "BETWEEN SYMMETRIC"),
            (true, true) => (AExprKind::NotBetweenSym, "NOT BETWEEN SYMMETRIC"),
        };
        let bounds = Operand::List(vec![low, high]);
        Ok(a_expr(kind, vec![name.into()], Some(left), bounds, location))
    }

    /// A pattern, with its escape if one is written.
    fn pattern(&mut self) -> Parse<(Expr, Option<Expr>)> {
        let pattern = self.expression(MATCH + 1, Mode::A)?;
        let escape = if self.take_keyword(Keyword::Escape) {
            Some(self.expression(MATCH + 1, Mode::A)?)
        } else {
            None
        };
        Ok((pattern, escape))
    }

    fn like(
        &mut self,
        insensitive: bool,
        left: Expr,
        negated: bool,
        location: u32,
    ) -> Parse<(Expr, Option<Level>)> {
        let (kind, name) = match (insensitive, negated) {
            (false, false) => (AExprKind::Like, "~~"),
            (false, true) => (AExprKind::Like, "!~~"),
            (true, false) => (AExprKind::ILike, "~~*"),
            (true, true) => (AExprKind::ILike, "!~~*"),
        };
        if self.is_sub_type() {
            return Ok((self.any_or_all(left, vec![name.into()], location)?, None));
        }
        let right = match self.pattern()? {
            (pattern, None) => pattern,
            (pattern, Some(escape)) => call(
                system_name("like_escape"),
                vec![pattern, escape],
                CoercionForm::ExplicitCall,
                location,
            ),
        };
        let expr = a_expr(kind, vec![name.into()], Some(left), Operand::Expr(right), location);
        Ok((expr, Some(MATCH)))
    }

    fn similar(&mut self, left: Expr, negated: bool, location: u32) -> Parse<Expr> {
        let (pattern, escape) = self.pattern()?;
        let mut args = vec![pattern];
        args.extend(escape);
        let name = system_name("similar_to_escape");
        let pattern = call(name, args, CoercionForm::ExplicitCall, location);
        let name = vec![if negated { "!~".into() } else { "~".into() }];
        Ok(a_expr(AExprKind::Similar, name, Some(left), Operand::Expr(pattern), location))
    }

    /// IS and what it asks.
    pub(super) fn is_test(&mut self, left: Expr, mode: Mode) -> Parse<(Expr, Option<Level>)> {
        let location = self.bump().start;
        let negated = self.take_keyword(Keyword::Not);
        let boolean = |yes, no| if negated { no } else { yes };
        let test = match self.keyword() {
            Some(Keyword::Distinct) => {
                self.bump();
                self.expect_keyword(Keyword::From)?;
                let right = Operand::Expr(self.expression(IS + 1, mode)?);
                let kind = if negated { AExprKind::NotDistinct } else { AExprKind::Distinct };
                let expr = a_expr(kind, vec!["=".into()], Some(left), right, location);
                return Ok((expr, Some(IS)));
            }
            Some(Keyword::Document) => {
                self.bump();
                let xml = XmlExpr {
                    op: XmlExprOp::Document,
                    name: None,
                    named_args: Vec::new(),
                    args: vec![left],
                };
                let expr = Expr { node: Node::XmlExpr(Box::new(xml)), location };
                return Ok((if negated { not(expr, location) } else { expr }, None));
            }
            Some(Keyword::Null) => {
                self.bump();
                let test = if negated { NullTestType::IsNotNull } else { NullTestType::IsNull };
                return Ok((null_test(test, left, location), None));
            }
            Some(Keyword::True) => boolean(BoolTestType::IsTrue, BoolTestType::IsNotTrue),
            Some(Keyword::False) => boolean(BoolTestType::IsFalse, BoolTestType::IsNotFalse),
            Some(Keyword::Unknown) => boolean(BoolTestType::IsUnknown, BoolTestType::IsNotUnknown),
            _ => return Ok((self.is_normalized(left, negated, location)?, None)),
        };
        self.bump();
        Ok((Expr { node: Node::BooleanTest(test, Box::new(left)), location }, None))
    }

    fn is_normalized(&mut self, left: Expr, negated: bool, location: u32) -> Parse<Expr> {
        let mut args = vec![left];
        if let Some(form) = self.normal_form() {
            args.push(form);
        }
        self.expect_keyword(Keyword::Normalized)?;
        let name = system_name("is_normalized");
        let expr = call(name, args, CoercionForm::SqlSyntax, location);
        Ok(if negated { not(expr, location) } else { expr })
    }

    /// NFC, NFD, NFKC or NFKD as a string.
    pub(super) fn normal_form(&mut self) -> Option<Expr> {
        let location = self.location();
        let forms = [Keyword::Nfc, Keyword::Nfd, Keyword::Nfkc, Keyword::Nfkd];
        let form = self.take_one_of(&forms)?;
        Some(string_const(&form.text().to_uppercase(), location))
    }
}

fn null_test(test: NullTestType, arg: Expr, location: u32) -> Expr {
    Expr { node: Node::NullTest(test, Box::new(arg)), location }
}

pub(super) fn string_const(text: &str, location: u32) -> Expr {
    Expr { node: Node::AConst(Value::String(text.into())), location }
}

pub(super) fn sub_link(
    sub_link_type: SubLinkType,
    testexpr: Option<Expr>,
    oper_name: Vec<Name>,
    subselect: crate::tree::SelectStmt,
    location: u32,
) -> Expr {
    let link = SubLink { sub_link_type, testexpr, oper_name, subselect };
    Expr { node: Node::SubLink(Box::new(link)), location }
}
