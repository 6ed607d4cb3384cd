//! Calls of functions, with what aggregates and windows add.

use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::{CoercionForm, Expr, FuncCall, Name, Node};

pub(super) fn call(name: Vec<Name>, args: Vec<Expr>, form: CoercionForm, location: u32) -> Expr {
    Expr { node: Node::FuncCall(Box::new(FuncCall::new(name, args, form))), location }
}

impl Parser<'_> {
    /// The arguments of a call.
    pub(super) fn func_application(&mut self, names: Vec<Name>) -> Parse<FuncCall> {
        let mut call = FuncCall::new(names, Vec::new(), CoercionForm::ExplicitCall);
        self.expect_char(b'(')?;
        if self.take_char(b')') {
            return Ok(call);
        }
        if self.take_char(b'*') {
            self.expect_char(b')')?;
            call.agg_star = true;
            return Ok(call);
        }
        let quantified = self.take_one_of(&[Keyword::All, Keyword::Distinct]);
        call.agg_distinct = quantified == Some(Keyword::Distinct);
        loop {
            if quantified.is_none() && self.take_keyword(Keyword::Variadic) {
                call.func_variadic = true;
                call.args.push(self.func_arg()?);
                break;
            }
            call.args.push(self.func_arg()?);
            if !self.take_char(b',') {
                break;
            }
        }
        call.agg_order = self.opt_sort_clause()?;
        self.expect_char(b')')?;
        Ok(call)
    }

    /// An argument, which may have a name.
    pub(super) fn func_arg(&mut self) -> Parse<Expr> {
        let named = matches!(self.kind_at(1), TokenKind::ColonEquals | TokenKind::EqualsGreater);
        if !named || !self.is_type_function_name_at(0) {
            return self.a_expr();
        }
        let location = self.location();
        let name = self.type_function_name()?;
        self.bump();
        let arg = self.a_expr()?;
        Ok(Expr { node: Node::NamedArgExpr(name, Box::new(arg)), location })
    }

    /// WITHIN GROUP, FILTER and OVER.
    pub(super) fn rest_of_call(&mut self, mut call: FuncCall, location: u32) -> Parse<Expr> {
        // None of the three words may be a label without AS.
        if self.is_keyword(Keyword::Within) {
            self.within_group(&mut call)?;
        }
        if self.take_keyword(Keyword::Filter) {
            self.expect_char(b'(')?;
            self.expect_keyword(Keyword::Where)?;
            call.agg_filter = Some(self.a_expr()?);
            self.expect_char(b')')?;
        }
        if self.take_keyword(Keyword::Over) {
            call.over = Some(self.over()?);
        }
        Ok(Expr { node: Node::FuncCall(Box::new(call)), location })
    }

    fn within_group(&mut self, call: &mut FuncCall) -> Parse<()> {
        let place = self.location();
        self.expect_keywords(&[Keyword::Within, Keyword::Group])?;
        self.expect_char(b'(')?;
        if !self.is_keyword(Keyword::Order) {
            return Err(self.unexpected());
        }
        let order = self.opt_sort_clause()?;
        self.expect_char(b')')?;
        let message = if !call.agg_order.is_empty() {
            "cannot use multiple ORDER BY clauses with WITHIN GROUP"
        } else if call.agg_distinct {
            "cannot use DISTINCT with WITHIN GROUP"
        } else if call.func_variadic {
            "cannot use VARIADIC with WITHIN GROUP"
        } else {
            call.agg_order = order;
            call.agg_within_group = true;
            return Ok(());
        };
        Err(self.error_at(message, place))
    }
}
