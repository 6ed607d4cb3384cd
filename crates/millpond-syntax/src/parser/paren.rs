//! What stands in parentheses: a query, or expressions. Which of them is known only behind the
//! inner parentheses, so both are read at once, and no token twice.

use super::call::call;
use super::expr::Mode;
use super::name::system_name;
use super::operator::{LOWEST, sub_link};
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{CoercionForm, Expr, Node, SelectStmt, SubLinkType};

/// What was in parentheses.
pub(super) enum Paren {
    Select(Box<SelectStmt>),
    List(Vec<Expr>),
}

impl Parser<'_> {
    /// Whether a query without parentheses begins `ahead` of here.
    pub(super) fn is_select_at(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            TokenKind::Keyword(Keyword::Select | Keyword::Table | Keyword::With) => true,
            TokenKind::Keyword(Keyword::Values) => self.is_char_at(ahead + 1, b'('),
            _ => false,
        }
    }

    /// Whether a query begins here, behind any number of parentheses.
    pub(super) fn is_select_in_parens(&self) -> bool {
        let mut ahead = 0;
        while self.is_char_at(ahead, b'(') {
            ahead += 1;
        }
        self.is_select_at(ahead)
    }

    /// Whether what comes here can only continue a query.
    pub(super) fn continues_select(&self) -> bool {
        matches!(
            self.keyword(),
            Some(
                Keyword::Union
                    | Keyword::Intersect
                    | Keyword::Except
                    | Keyword::Order
                    | Keyword::Limit
                    | Keyword::Offset
                    | Keyword::Fetch
                    | Keyword::For
            )
        )
    }

    /// From a parenthesis to the one that closes it.
    pub(super) fn paren(&mut self) -> Parse<Paren> {
        self.deeper(Self::paren_inside)
    }

    fn paren_inside(&mut self) -> Parse<Paren> {
        self.expect_char(b'(')?;
        if self.is_select_at(0) {
            let select = self.select_no_parens()?;
            self.expect_char(b')')?;
            return Ok(Paren::Select(Box::new(select)));
        }
        let first = if self.is_char(b'(') {
            let location = self.location();
            match self.paren()? {
                Paren::Select(select) if self.continues_select() => {
                    let select = self.rest_of_select(*select)?;
                    self.expect_char(b')')?;
                    return Ok(Paren::Select(Box::new(select)));
                }
                Paren::Select(select) if self.take_char(b')') => {
                    return Ok(Paren::Select(select));
                }
                inner => {
                    let left = self.paren_operand(inner, location)?;
                    self.rest_of_expression(left, LOWEST, Mode::A)?
                }
            }
        } else {
            self.a_expr()?
        };
        let mut list = vec![first];
        while self.take_char(b',') {
            list.push(self.a_expr()?);
        }
        self.expect_char(b')')?;
        Ok(Paren::List(list))
    }

    /// An operand in parentheses.
    pub(super) fn paren_expr(&mut self) -> Parse<Expr> {
        let location = self.location();
        let paren = self.paren()?;
        self.paren_operand(paren, location)
    }

    /// The operand that parentheses are, with what selects a part of it.
    fn paren_operand(&mut self, paren: Paren, location: u32) -> Parse<Expr> {
        let expr = match paren {
            Paren::Select(select) => {
                sub_link(SubLinkType::Expr, None, Vec::new(), *select, location)
            }
            Paren::List(mut list) if list.len() != 1 => {
                if self.is_keyword(Keyword::Overlaps) {
                    return self.overlaps(list, location);
                }
                list.shrink_to_fit();
                let node = Node::RowExpr(list, CoercionForm::ImplicitCast);
                return Ok(Expr { node, location });
            }
            Paren::List(mut list) => match list.pop() {
                Some(only) => only,
                None => return Err(self.unexpected()),
            },
        };
        self.with_indirection(expr, location)
    }

    pub(super) fn with_indirection(&mut self, expr: Expr, location: u32) -> Parse<Expr> {
        let indirection = self.indirection()?;
        if indirection.is_empty() {
            return Ok(expr);
        }
        self.check_indirection(&indirection)?;
        Ok(Expr { node: Node::AIndirection(Box::new(expr), indirection), location })
    }

    /// `row OVERLAPS row`, from the word on.
    pub(super) fn overlaps(&mut self, left: Vec<Expr>, location: u32) -> Parse<Expr> {
        let place = self.expect_keyword(Keyword::Overlaps)?.start;
        let right = if self.take_keyword(Keyword::Row) {
            self.row_fields()?
        } else if self.is_char(b'(') {
            match self.paren()? {
                Paren::List(list) if list.len() > 1 => list,
                _ => return Err(self.unexpected()),
            }
        } else {
            return Err(self.unexpected());
        };
        for (side, row) in [("left", &left), ("right", &right)] {
            if row.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return Err(self.error_at(message, if side == "left" { location } else { place }));
            }
        }
        let mut args = left;
        args.extend(right);
        let name = system_name("overlaps");
        Ok(call(name, args, CoercionForm::SqlSyntax, place))
    }
}
