//! Operands: c_expr and AexprConst.

use super::name::{split_fields, system_name};
use super::operator::{string_const, sub_link};
use super::paren::Paren;
use super::type_name::plain;
use super::{Parse, Parser};
use crate::error::SyntaxError;
use crate::keyword::{Category, Keyword};
use crate::lexer::{TokenKind, value};
use crate::tree::{
    AExprKind, CoercionForm, Expr, Field, FuncCall, Name, Node, Operand, SubLinkType, TypeCast,
    TypeName, Value,
};

impl Parser<'_> {
    pub(super) fn c_expr(&mut self) -> Parse<Expr> {
        let token = self.token(0);
        let location = token.start;
        match token.kind {
            TokenKind::Ident | TokenKind::QuotedIdent | TokenKind::UnicodeIdent => self.name_expr(),
            TokenKind::Keyword(keyword) => self.keyword_expr(keyword),
            TokenKind::Integer | TokenKind::Float => {
                self.bump();
                Ok(constant(number(self.slice(token), token.kind), location))
            }
            TokenKind::String
            | TokenKind::EscapeString
            | TokenKind::UnicodeString
            | TokenKind::DollarString => {
                let string = self.string()?;
                Ok(constant(Value::String(string), location))
            }
            TokenKind::BitString | TokenKind::HexString => {
                self.bump();
                let bits = value::string(token.kind, self.slice(token), location)?;
                Ok(constant(Value::BitString(bits), location))
            }
            TokenKind::Param => {
                let param = self.param()?;
                let expr = Expr { node: Node::ParamRef(param), location };
                self.with_indirection(expr, location)
            }
            TokenKind::Lifted(number) => {
                self.bump();
                Ok(Expr { node: Node::ParamRef(number.into()), location })
            }
            TokenKind::Char(b'(') => self.paren_expr(),
            _ => Err(self.unexpected()),
        }
    }

    fn param(&mut self) -> Parse<i32> {
        let token = self.bump();
        let digits = self.slice(token).get(1..).unwrap_or_default();
        match digits.parse() {
            Ok(param) => Ok(param),
            Err(_) => Err(self.error_near("parameter number too large", token)),
        }
    }

    /// An operand that begins with a keyword.
    fn keyword_expr(&mut self, keyword: Keyword) -> Parse<Expr> {
        let location = self.location();
        let value = match keyword {
            Keyword::True => Value::Boolean(true),
            Keyword::False => Value::Boolean(false),
            Keyword::Null => Value::Null,
            Keyword::Case => return self.deeper(Self::case),
            Keyword::Array => return self.array(),
            Keyword::Exists if self.is_char_at(1, b'(') => {
                self.bump();
                let query = self.select_with_parens()?;
                return Ok(sub_link(SubLinkType::Exists, None, Vec::new(), query, location));
            }
            Keyword::Row if self.is_char_at(1, b'(') => return self.row(),
            Keyword::Grouping if self.is_char_at(1, b'(') => {
                self.bump();
                let args = self.paren_list(Self::a_expr)?;
                return Ok(Expr { node: Node::GroupingFunc(args), location });
            }
            _ => return self.word_expr(keyword),
        };
        self.bump();
        Ok(constant(value, location))
    }

    fn word_expr(&mut self, keyword: Keyword) -> Parse<Expr> {
        if self.is_special_call(keyword) {
            return self.deeper(|parser| parser.special_call(keyword));
        }
        if self.is_type_literal(keyword) {
            return self.type_literal(keyword);
        }
        match keyword.category() {
            Category::Reserved => Err(self.unexpected()),
            _ => self.name_expr(),
        }
    }

    /// Whether the keyword begins a literal with one of SQL's own spellings of types in front.
    fn is_type_literal(&self, keyword: Keyword) -> bool {
        if keyword != Keyword::Interval && !self.is_const_type() {
            return false;
        }
        self.is_string_at(1)
            || self.is_char_at(1, b'(')
            || match keyword {
                Keyword::Double => true,
                Keyword::Bit | Keyword::Character | Keyword::Char | Keyword::Nchar => {
                    self.is_keyword_at(1, Keyword::Varying)
                }
                Keyword::National => {
                    self.is_keyword_at(1, Keyword::Character)
                        || self.is_keyword_at(1, Keyword::Char)
                }
                Keyword::Time | Keyword::Timestamp => {
                    (self.is_keyword_at(1, Keyword::With)
                        || self.is_keyword_at(1, Keyword::Without))
                        && self.is_keyword_at(2, Keyword::Time)
                }
                _ => false,
            }
    }

    fn type_literal(&mut self, keyword: Keyword) -> Parse<Expr> {
        let location = self.location();
        if keyword == Keyword::Interval {
            self.bump();
            let mut type_name = self.const_interval(location)?;
            let place = self.location();
            let string = self.string()?;
            if type_name.typmods.is_empty() {
                type_name.typmods = self.opt_interval()?;
            }
            return Ok(cast(string_const(&string, place), type_name, location));
        }
        let Some(type_name) = self.const_type_name()? else { return Err(self.unexpected()) };
        let place = self.location();
        let string = self.string()?;
        Ok(cast(string_const(&string, place), type_name, location))
    }

    /// A column, a call, or a literal with a type's name in front.
    fn name_expr(&mut self) -> Parse<Expr> {
        let location = self.location();
        let column = self.is_col_id();
        let function = self.is_type_function_name_at(0);
        let first = self.take_name()?;
        if !self.is_char(b'.') && !self.is_char(b'[') {
            if function && self.is_char(b'(') {
                return self.func_expr(vec![first], location);
            }
            if function && self.is_string() {
                return self.generic_literal(vec![first], location);
            }
            if !column {
                return Err(self.unexpected());
            }
            return Ok(Expr { node: Node::ColumnRef(vec![Field::String(first)]), location });
        }
        if !column {
            return Err(self.unexpected());
        }
        self.qualified_expr(first, location)
    }

    fn qualified_expr(&mut self, first: Name, location: u32) -> Parse<Expr> {
        let indirection = self.indirection()?;
        let (fields, rest) = split_fields(first, indirection);
        if rest.is_empty() && (self.is_char(b'(') || self.is_string()) {
            if let Some(names) = plain_names(&fields) {
                if self.is_char(b'(') {
                    return self.func_expr(names, location);
                }
                return self.generic_literal(names, location);
            }
        }
        let star = fields.iter().position(|field| *field == Field::Star);
        if star.is_some_and(|at| at + 1 < fields.len() || !rest.is_empty()) {
            let token = self.token(0);
            return Err(self.error_near("improper use of \"*\"", token));
        }
        let column = Expr { node: Node::ColumnRef(fields), location };
        if rest.is_empty() {
            return Ok(column);
        }
        self.check_indirection(&rest)?;
        Ok(Expr { node: Node::AIndirection(Box::new(column), rest), location })
    }

    /// `name '...'`
    fn generic_literal(&mut self, names: Vec<Name>, location: u32) -> Parse<Expr> {
        let place = self.location();
        let string = self.string()?;
        Ok(cast(string_const(&string, place), plain(names, location), location))
    }

    /// `name(...)`: a call, or a type with modifiers in front of a literal.
    fn func_expr(&mut self, names: Vec<Name>, location: u32) -> Parse<Expr> {
        let call = self.deeper(|parser| parser.func_application(names))?;
        if self.is_string() {
            return self.literal_after_modifiers(call, location);
        }
        self.rest_of_call(call, location)
    }

    fn literal_after_modifiers(&mut self, call: FuncCall, location: u32) -> Parse<Expr> {
        if call.agg_star || call.agg_distinct || call.func_variadic || call.args.is_empty() {
            return Err(self.unexpected());
        }
        let named = call.args.iter().find(|arg| matches!(arg.node, Node::NamedArgExpr(..)));
        if let Some(named) = named {
            let message = "type modifier cannot have parameter name";
            return Err(self.error_at(message, named.location));
        }
        if !call.agg_order.is_empty() {
            return Err(self.error_at("type modifier cannot have ORDER BY", location));
        }
        let mut type_name = plain(call.funcname, location);
        type_name.typmods = call.args;
        let place = self.location();
        let string = self.string()?;
        Ok(cast(string_const(&string, place), type_name, location))
    }

    fn array(&mut self) -> Parse<Expr> {
        let location = self.bump().start;
        if self.is_char(b'[') {
            let mut array = self.deeper(Self::array_elements)?;
            array.location = location;
            return Ok(array);
        }
        let query = self.select_with_parens()?;
        Ok(sub_link(SubLinkType::Array, None, Vec::new(), query, location))
    }

    /// `[...]`, whose elements may be such lists themselves.
    fn array_elements(&mut self) -> Parse<Expr> {
        let location = self.expect_char(b'[')?.start;
        let list = if self.is_char(b']') {
            Vec::new()
        } else if self.is_char(b'[') {
            self.list(|parser| parser.deeper(Self::array_elements))?
        } else {
            self.expr_list()?
        };
        self.expect_char(b']')?;
        Ok(Expr { node: Node::AArrayExpr(list), location })
    }

    fn row(&mut self) -> Parse<Expr> {
        let location = self.bump().start;
        let fields = self.row_fields()?;
        if self.is_keyword(Keyword::Overlaps) {
            return self.overlaps(fields, location);
        }
        Ok(Expr { node: Node::RowExpr(fields, CoercionForm::ExplicitCall), location })
    }

    /// The fields of ROW.
    pub(super) fn row_fields(&mut self) -> Parse<Vec<Expr>> {
        self.expect_char(b'(')?;
        if self.take_char(b')') {
            return Ok(Vec::new());
        }
        let fields = self.expr_list()?;
        self.expect_char(b')')?;
        Ok(fields)
    }

    /// A query in parentheses.
    pub(super) fn select_with_parens(&mut self) -> Parse<crate::tree::SelectStmt> {
        if !self.is_char(b'(') {
            return Err(self.unexpected());
        }
        if !self.is_select_in_parens() {
            return Err(self.no_select_in_parens());
        }
        match self.paren()? {
            Paren::Select(select) => Ok(*select),
            Paren::List(_) => Err(self.unexpected()),
        }
    }

    /// The token behind the parentheses is the wrong one.
    fn no_select_in_parens(&mut self) -> Box<SyntaxError> {
        let mut ahead = 0;
        while self.is_char_at(ahead, b'(') {
            ahead += 1;
        }
        self.unexpected_at(ahead)
    }
}

pub(super) fn constant(value: Value, location: u32) -> Expr {
    Expr { node: Node::AConst(value), location }
}

pub(super) fn cast(arg: Expr, type_name: TypeName, location: u32) -> Expr {
    Expr { node: Node::TypeCast(Box::new(TypeCast { arg, type_name })), location }
}

/// A number: an integer if it fits into 32 bits.
pub(super) fn number(text: &str, kind: TokenKind) -> Value {
    match text.parse() {
        Ok(integer) if kind == TokenKind::Integer => Value::Integer(integer),
        _ => Value::Float(text.into()),
    }
}

/// The value with the other sign, if it is a number.
pub(super) fn negated(value: Value) -> Value {
    match value {
        Value::Integer(integer) => match integer.checked_neg() {
            Some(integer) => Value::Integer(integer),
            None => Value::Float(format!("{}", -i64::from(integer)).into()),
        },
        Value::Float(text) => match text.strip_prefix('-') {
            Some(positive) => Value::Float(positive.into()),
            None => Value::Float(format!("-{text}").into()),
        },
        other => other,
    }
}

/// Minus in front of an operand: part of a number, or an operator.
pub(super) fn negate(operand: Expr, location: u32) -> Expr {
    match operand.node {
        Node::AConst(value @ (Value::Integer(_) | Value::Float(_))) => {
            constant(negated(value), location)
        }
        node => {
            let operand = Operand::Expr(Expr { node, location: operand.location });
            super::expr::a_expr(AExprKind::Op, vec!["-".into()], None, operand, location)
        }
    }
}

/// The names, if all fields are names.
fn plain_names(fields: &[Field]) -> Option<Vec<Name>> {
    fields
        .iter()
        .map(|field| match field {
            Field::String(name) => Some(name.clone()),
            Field::Star => None,
        })
        .collect()
}

/// A call with syntax of its own: its function is in `pg_catalog`.
pub(super) fn system_call(name: &str, args: Vec<Expr>, location: u32) -> Expr {
    Expr {
        node: Node::FuncCall(Box::new(FuncCall::new(
            system_name(name),
            args,
            CoercionForm::SqlSyntax,
        ))),
        location,
    }
}
