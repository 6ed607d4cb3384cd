//! Expressions: a_expr and b_expr by precedence.

use super::operator::{self, Level};
use super::primary::negate;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{AExpr, AExprKind, BoolExprType, Expr, Name, Node, Operand, TypeCast};

/// Which expressions a place takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// All.
    A,
    /// Those without AND, OR, NOT, IN, LIKE, BETWEEN and the like: in BETWEEN, DEFAULT, POSITION.
    B,
}

impl Parser<'_> {
    pub(super) fn a_expr(&mut self) -> Parse<Expr> {
        self.expression(operator::LOWEST, Mode::A)
    }

    pub(super) fn b_expr(&mut self) -> Parse<Expr> {
        self.expression(operator::LOWEST, Mode::B)
    }

    pub(super) fn expr_list(&mut self) -> Parse<Vec<Expr>> {
        self.list(Self::a_expr)
    }

    /// An expression whose operators bind at least as tightly as `least`.
    pub(super) fn expression(&mut self, least: Level, mode: Mode) -> Parse<Expr> {
        self.deeper(|parser| {
            let left = parser.prefix(mode)?;
            parser.rest_of_expression(left, least, mode)
        })
    }

    /// What comes after the first operand.
    pub(super) fn rest_of_expression(
        &mut self,
        mut left: Expr,
        least: Level,
        mode: Mode,
    ) -> Parse<Expr> {
        let mut steps = 0;
        // The level of the operator whose right side has just ended, if it must not repeat.
        let mut barred = None;
        while let Some(level) = self.operator_level(mode) {
            if level < least {
                break;
            }
            if barred == Some(level) {
                return Err(self.unexpected());
            }
            // AND and OR make flat lists.
            let cost = u32::from(level > operator::AND);
            self.spend(cost)?;
            steps += cost;
            (left, barred) = self.infix(left, level, mode)?;
        }
        self.give_back(steps);
        Ok(left)
    }

    /// An operand with the operators in front of it.
    fn prefix(&mut self, mode: Mode) -> Parse<Expr> {
        let location = self.location();
        match self.kind() {
            TokenKind::Char(sign @ (b'+' | b'-')) => {
                self.bump();
                let operand = self.expression(operator::UMINUS, mode)?;
                if sign == b'-' {
                    return Ok(negate(operand, location));
                }
                Ok(unary(vec!["+".into()], operand, location))
            }
            TokenKind::Op => {
                let name = self.qual_op()?;
                let operand = self.expression(operator::OP + 1, mode)?;
                Ok(unary(name, operand, location))
            }
            TokenKind::Keyword(Keyword::Operator) if self.is_char_at(1, b'(') => {
                let name = self.qual_op()?;
                let operand = self.expression(operator::OP + 1, mode)?;
                Ok(unary(name, operand, location))
            }
            TokenKind::Keyword(Keyword::Not) if mode == Mode::A => {
                self.bump();
                let operand = self.expression(operator::NOT, mode)?;
                Ok(not(operand, location))
            }
            TokenKind::Keyword(Keyword::Default) if mode == Mode::A => {
                self.bump();
                Ok(Expr { node: Node::SetToDefault, location })
            }
            TokenKind::Keyword(Keyword::Unique) if mode == Mode::A => {
                self.bump();
                self.select_with_parens()?;
                Err(self.unsupported("UNIQUE predicate is not yet implemented", location))
            }
            _ => self.c_expr(),
        }
    }

    /// The operator here and its right side. Answers the level that must not come next, too.
    fn infix(&mut self, left: Expr, level: Level, mode: Mode) -> Parse<(Expr, Option<Level>)> {
        let location = self.location();
        match self.kind() {
            TokenKind::Typecast => {
                self.bump();
                let type_name = self.type_name()?;
                let cast = Node::TypeCast(Box::new(TypeCast { arg: left, type_name }));
                Ok((Expr { node: cast, location }, None))
            }
            TokenKind::Keyword(Keyword::And) => {
                self.logic(BoolExprType::And, left, level, location)
            }
            TokenKind::Keyword(Keyword::Or) => self.logic(BoolExprType::Or, left, level, location),
            TokenKind::Keyword(Keyword::Is) => self.is_test(left, mode),
            TokenKind::Keyword(keyword) if keyword != Keyword::Operator => {
                self.keyword_operator(keyword, left)
            }
            _ => self.symbol(left, level, mode),
        }
    }

    fn logic(
        &mut self,
        op: BoolExprType,
        left: Expr,
        level: Level,
        location: u32,
    ) -> Parse<(Expr, Option<Level>)> {
        self.bump();
        let right = self.expression(level + 1, Mode::A)?;
        let (mut args, location) = match left {
            Expr { node: Node::BoolExpr(same, args), location } if same == op => (args, location),
            left => (vec![left], location),
        };
        args.push(right);
        Ok((Expr { node: Node::BoolExpr(op, args), location }, None))
    }

    /// An operator that is made of symbols.
    fn symbol(&mut self, left: Expr, level: Level, mode: Mode) -> Parse<(Expr, Option<Level>)> {
        let location = self.location();
        let name = self.qual_all_op()?;
        if mode == Mode::A && self.is_sub_type() {
            return Ok((self.any_or_all(left, name, location)?, None));
        }
        let right = self.expression(level + 1, mode)?;
        let expr = a_expr(AExprKind::Op, name, Some(left), Operand::Expr(right), location);
        Ok((expr, operator::is_nonassoc(level).then_some(level)))
    }
}

pub(super) fn a_expr(
    kind: AExprKind,
    name: Vec<Name>,
    lexpr: Option<Expr>,
    rexpr: Operand,
    location: u32,
) -> Expr {
    Expr { node: Node::AExpr(Box::new(AExpr { kind, name, lexpr, rexpr })), location }
}

fn unary(name: Vec<Name>, operand: Expr, location: u32) -> Expr {
    a_expr(AExprKind::Op, name, None, Operand::Expr(operand), location)
}

pub(super) fn not(operand: Expr, location: u32) -> Expr {
    Expr { node: Node::BoolExpr(BoolExprType::Not, vec![operand]), location }
}
