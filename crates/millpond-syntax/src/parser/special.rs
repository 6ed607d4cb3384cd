//! Calls with syntax of their own, and CASE.

use super::call::call;
use super::expr::a_expr;
use super::name::system_name;
use super::operator::string_const;
use super::primary::{cast, constant, number, system_call};
use super::type_name::plain;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{
    AExprKind, CaseExpr, CaseWhen, CoercionForm, Expr, MinMaxOp, Node, Operand, SqlValueFunctionOp,
    Value,
};

impl Parser<'_> {
    /// Whether the keyword begins a call with syntax of its own here.
    pub(super) fn is_special_call(&self, keyword: Keyword) -> bool {
        match keyword {
            Keyword::Collation => self.is_keyword_at(1, Keyword::For),
            // With parentheses it is a function like others.
            Keyword::CurrentSchema => !self.is_char_at(1, b'('),
            Keyword::Cast
            | Keyword::Extract
            | Keyword::Normalize
            | Keyword::Overlay
            | Keyword::Position
            | Keyword::Substring
            | Keyword::Treat
            | Keyword::Trim
            | Keyword::Nullif
            | Keyword::Coalesce
            | Keyword::Greatest
            | Keyword::Least
            | Keyword::Xmlconcat
            | Keyword::Xmlelement
            | Keyword::Xmlexists
            | Keyword::Xmlforest
            | Keyword::Xmlparse
            | Keyword::Xmlpi
            | Keyword::Xmlroot
            | Keyword::Xmlserialize => self.is_char_at(1, b'(') || keyword == Keyword::Cast,
            keyword => value_function(keyword).is_some(),
        }
    }

    /// func_expr_common_subexpr.
    pub(super) fn special_call(&mut self, keyword: Keyword) -> Parse<Expr> {
        let location = self.bump().start;
        if let Some(op) = value_function(keyword) {
            return self.value_function(op, location);
        }
        if keyword == Keyword::Collation {
            self.bump();
        }
        self.expect_char(b'(')?;
        let expr = match keyword {
            Keyword::Collation => system_call("pg_collation_for", vec![self.a_expr()?], location),
            Keyword::Cast => {
                let arg = self.a_expr()?;
                self.expect_keyword(Keyword::As)?;
                cast(arg, self.type_name()?, location)
            }
            Keyword::Treat => {
                let arg = self.a_expr()?;
                self.expect_keyword(Keyword::As)?;
                let mut names = self.type_name()?.names;
                let name = names.pop().unwrap_or_default();
                call(system_name(&name), vec![arg], CoercionForm::ExplicitCall, location)
            }
            Keyword::Extract => self.extract(location)?,
            Keyword::Normalize => self.normalize(location)?,
            Keyword::Overlay => self.overlay(location)?,
            Keyword::Position => {
                let needle = self.b_expr()?;
                self.expect_keyword(Keyword::In)?;
                let hay = self.b_expr()?;
                system_call("position", vec![hay, needle], location)
            }
            Keyword::Substring => self.substring(location)?,
            Keyword::Trim => self.trim(location)?,
            Keyword::Nullif => {
                let left = self.a_expr()?;
                self.expect_char(b',')?;
                let right = Operand::Expr(self.a_expr()?);
                a_expr(AExprKind::NullIf, vec!["=".into()], Some(left), right, location)
            }
            Keyword::Coalesce => Expr { node: Node::CoalesceExpr(self.expr_list()?), location },
            Keyword::Greatest | Keyword::Least => {
                let greatest = keyword == Keyword::Greatest;
                let op = if greatest { MinMaxOp::Greatest } else { MinMaxOp::Least };
                Expr { node: Node::MinMaxExpr(op, self.expr_list()?), location }
            }
            keyword => self.xml_call(keyword, location)?,
        };
        self.expect_char(b')')?;
        Ok(expr)
    }

    fn value_function(&mut self, op: SqlValueFunctionOp, location: u32) -> Parse<Expr> {
        let precise = matches!(
            op,
            SqlValueFunctionOp::CurrentTime
                | SqlValueFunctionOp::CurrentTimestamp
                | SqlValueFunctionOp::LocalTime
                | SqlValueFunctionOp::LocalTimestamp
        );
        let mut precision = None;
        if precise && self.take_char(b'(') {
            precision = Some(self.iconst()?);
            self.expect_char(b')')?;
        }
        Ok(Expr { node: Node::SqlValueFunction(op, precision), location })
    }

    fn extract(&mut self, location: u32) -> Parse<Expr> {
        let place = self.location();
        let field = if self.is_string() {
            self.string()?
        } else {
            let unit = matches!(
                self.keyword(),
                Some(
                    Keyword::Year
                        | Keyword::Month
                        | Keyword::Day
                        | Keyword::Hour
                        | Keyword::Minute
                        | Keyword::Second
                )
            );
            if !unit && !self.is_ident_at(0) {
                return Err(self.unexpected());
            }
            self.take_name()?
        };
        self.expect_keyword(Keyword::From)?;
        let source = self.a_expr()?;
        Ok(system_call("extract", vec![string_const(&field, place), source], location))
    }

    fn normalize(&mut self, location: u32) -> Parse<Expr> {
        let mut args = vec![self.a_expr()?];
        if self.take_char(b',') {
            match self.normal_form() {
                Some(form) => args.push(form),
                None => return Err(self.unexpected()),
            }
        }
        Ok(system_call("normalize", args, location))
    }

    /// The arguments of a call whose syntax of its own was not used. The first is read.
    fn plain_args(&mut self, name: &str, first: Option<Expr>, location: u32) -> Parse<Expr> {
        let mut args = Vec::new();
        if let Some(first) = first {
            args.push(first);
            while self.take_char(b',') {
                args.push(self.func_arg()?);
            }
        }
        Ok(call(vec![name.into()], args, CoercionForm::ExplicitCall, location))
    }

    fn overlay(&mut self, location: u32) -> Parse<Expr> {
        if self.is_char(b')') {
            return self.plain_args("overlay", None, location);
        }
        let first = self.func_arg()?;
        if !self.take_keyword(Keyword::Placing) {
            return self.plain_args("overlay", Some(first), location);
        }
        let mut args = vec![first, self.a_expr()?];
        self.expect_keyword(Keyword::From)?;
        args.push(self.a_expr()?);
        if self.take_keyword(Keyword::For) {
            args.push(self.a_expr()?);
        }
        Ok(system_call("overlay", args, location))
    }

    fn substring(&mut self, location: u32) -> Parse<Expr> {
        if self.is_char(b')') {
            return self.plain_args("substring", None, location);
        }
        let first = self.func_arg()?;
        let mut args = vec![first];
        match self.take_one_of(&[Keyword::From, Keyword::For, Keyword::Similar]) {
            Some(Keyword::From) => {
                args.push(self.a_expr()?);
                if self.take_keyword(Keyword::For) {
                    args.push(self.a_expr()?);
                }
            }
            Some(Keyword::For) => {
                let length = self.a_expr()?;
                if self.take_keyword(Keyword::From) {
                    args.push(self.a_expr()?);
                    args.push(length);
                } else {
                    args.push(constant(Value::Integer(1), location));
                    let int4 = plain(system_name("int4"), location);
                    args.push(cast(length, int4, location));
                }
            }
            Some(_) => {
                args.push(self.a_expr()?);
                self.expect_keyword(Keyword::Escape)?;
                args.push(self.a_expr()?);
            }
            None => return self.plain_args("substring", args.pop(), location),
        }
        Ok(system_call("substring", args, location))
    }

    fn trim(&mut self, location: u32) -> Parse<Expr> {
        let side = self.take_one_of(&[Keyword::Both, Keyword::Leading, Keyword::Trailing]);
        let name = match side {
            Some(Keyword::Leading) => "ltrim",
            Some(Keyword::Trailing) => "rtrim",
            _ => "btrim",
        };
        if self.take_keyword(Keyword::From) {
            return Ok(system_call(name, self.expr_list()?, location));
        }
        let first = self.a_expr()?;
        if self.take_keyword(Keyword::From) {
            let mut args = self.expr_list()?;
            args.push(first);
            return Ok(system_call(name, args, location));
        }
        let mut args = vec![first];
        while self.take_char(b',') {
            args.push(self.a_expr()?);
        }
        Ok(system_call(name, args, location))
    }

    pub(super) fn case(&mut self) -> Parse<Expr> {
        let location = self.expect_keyword(Keyword::Case)?.start;
        let arg = if self.is_keyword(Keyword::When) { None } else { Some(self.a_expr()?) };
        let mut args = Vec::new();
        while self.is_keyword(Keyword::When) {
            let location = self.bump().start;
            let expr = self.a_expr()?;
            self.expect_keyword(Keyword::Then)?;
            args.push(CaseWhen { expr, result: self.a_expr()?, location });
        }
        if args.is_empty() {
            return Err(self.unexpected());
        }
        let defresult = if self.take_keyword(Keyword::Else) { Some(self.a_expr()?) } else { None };
        self.expect_keyword(Keyword::End)?;
        let case = CaseExpr { arg, args, defresult };
        Ok(Expr { node: Node::CaseExpr(Box::new(case)), location })
    }

    /// A number with its sign: NumericOnly.
    pub(super) fn numeric_only(&mut self) -> Parse<Value> {
        let negative = self.take_char(b'-');
        if !negative {
            self.take_char(b'+');
        }
        let token = self.token(0);
        if !matches!(token.kind, TokenKind::Integer | TokenKind::Float) {
            return Err(self.unexpected());
        }
        self.bump();
        let value = number(self.slice(token), token.kind);
        Ok(if negative { super::primary::negated(value) } else { value })
    }
}

fn value_function(keyword: Keyword) -> Option<SqlValueFunctionOp> {
    Some(match keyword {
        Keyword::CurrentDate => SqlValueFunctionOp::CurrentDate,
        Keyword::CurrentTime => SqlValueFunctionOp::CurrentTime,
        Keyword::CurrentTimestamp => SqlValueFunctionOp::CurrentTimestamp,
        Keyword::Localtime => SqlValueFunctionOp::LocalTime,
        Keyword::Localtimestamp => SqlValueFunctionOp::LocalTimestamp,
        Keyword::CurrentRole => SqlValueFunctionOp::CurrentRole,
        Keyword::CurrentUser => SqlValueFunctionOp::CurrentUser,
        Keyword::SessionUser => SqlValueFunctionOp::SessionUser,
        Keyword::User => SqlValueFunctionOp::User,
        Keyword::CurrentCatalog => SqlValueFunctionOp::CurrentCatalog,
        Keyword::CurrentSchema => SqlValueFunctionOp::CurrentSchema,
        _ => return None,
    })
}
