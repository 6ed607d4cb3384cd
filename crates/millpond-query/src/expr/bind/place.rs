//! Where in the text an error of an operator or a literal is.

use millpond_syntax::tree::{CoercionForm, Expr, FuncCall, Node, Operand, Value};

use super::Binder;
use crate::error::SqlError;

impl Binder<'_> {
    /// Places an error of an operator: at the operator; at the literal if the error is that of a
    /// literal's text.
    pub(super) fn place_operator(&self, error: SqlError, at: u32, literals: &[&Expr]) -> SqlError {
        if error.position.is_none() && is_of_data(&error) {
            return self.place_literal(error, literals);
        }
        self.source.place(error, at)
    }

    /// Places an error of a literal's text at the first of these that is one.
    pub(crate) fn place_literal(&self, error: SqlError, among: &[&Expr]) -> SqlError {
        match among.iter().find(|e| matches!(e.node, Node::AConst(Value::String(_)))) {
            Some(literal) if is_of_data(&error) => self.source.place(error, literal.location),
            _ => error,
        }
    }

    /// Places an error at the beginning of an expression. A literal with its type in front of it
    /// begins behind the type.
    pub(crate) fn place_at(&self, error: SqlError, e: &Expr) -> SqlError {
        let start = match &e.node {
            Node::TypeCast(cast) if matches!(cast.arg.node, Node::AConst(_)) => cast.arg.location,
            _ => start_of(e),
        };
        self.source.place(error, start)
    }
}

/// Where an expression begins: an operator's place is behind its left side.
pub(crate) fn start_of(e: &Expr) -> u32 {
    let mut at = e;
    let mut start = e.location;
    loop {
        let left = match &at.node {
            Node::AExpr(e) => match (&e.lexpr, &e.rexpr) {
                (Some(left), _) => Some(left),
                (None, Operand::Expr(operand)) => Some(operand),
                (None, Operand::List(_)) => None,
            },
            Node::BoolExpr(_, args) => args.first(),
            Node::NullTest(_, arg)
            | Node::BooleanTest(_, arg)
            | Node::AIndirection(arg, _)
            | Node::CollateClause(arg, _) => Some(&**arg),
            Node::TypeCast(cast) => Some(&cast.arg),
            Node::SubLink(link) => link.testexpr.as_ref(),
            // `source AT TIME ZONE zone`
            Node::FuncCall(call) if is_called(call, "timezone") => call.args.last(),
            Node::FuncCall(call) => call.args.first(),
            _ => None,
        };
        match left {
            Some(left) => at = left,
            None => return start,
        }
        start = start.min(at.location);
    }
}

fn is_called(call: &FuncCall, name: &str) -> bool {
    call.funcformat == CoercionForm::SqlSyntax && call.funcname.last().is_some_and(|n| **n == *name)
}

/// Whether it is a value that is wrong, not the statement.
fn is_of_data(error: &SqlError) -> bool {
    error.sqlstate.as_str().starts_with("22")
}
