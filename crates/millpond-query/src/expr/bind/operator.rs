//! Operators.

use millpond_syntax::tree::{self, AExpr, AExprKind, Name, Node, Operand};

use super::call::as_result;
use super::operator_call::{compared_records, is_record};
use super::{Binder, Coercion, ParamTypes, Scope, Typed, beyond};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::disjunction::disjunction;
use crate::expr::func::catalog::Param;
use crate::expr::func::operators::{self, Operator, Work};
use crate::expr::func::resolve::{self, Candidate, Choice};
use crate::expr::func::type_name;
use crate::expr::types::{Category, INTERVAL_TYPE, Ty, category, is_implicit, is_ordered};
use crate::expr::{Arith, Compare, Expr, Func, Like, arith};
use crate::lex::LiteralKind;

/// An operator of a chain: what it is, its right side, and its place.
struct Link<'e> {
    e: &'e AExpr,
    left: &'e tree::Expr,
    right: &'e tree::Expr,
    at: u32,
}

/// The binary operator that an expression is, if it is one.
fn link(e: &tree::Expr) -> Option<Link<'_>> {
    let at = e.location;
    match &e.node {
        Node::AExpr(e) if e.kind == AExprKind::Op => match (&e.lexpr, &e.rexpr) {
            (Some(left), Operand::Expr(right)) => Some(Link { e, left, right, at }),
            _ => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// `NOT condition`
    pub(super) fn not(&mut self, args: &[tree::Expr], scope: &dyn Scope) -> Result<Typed> {
        let [arg] = args else { return Err(SqlError::internal("NOT of several conditions")) };
        let value = self.condition(arg, "NOT", scope)?;
        Ok(Typed::bool(value.negated()))
    }

    /// Conditions with AND between them, or OR.
    pub(super) fn logic(
        &mut self,
        is_and: bool,
        args: &[tree::Expr],
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let what = if is_and { "AND" } else { "OR" };
        let mut list = Vec::with_capacity(args.len());
        for arg in args {
            match self.condition(arg, what, scope)? {
                Expr::And(more) if is_and => list.extend(more),
                Expr::Or(more) if !is_and => list.extend(more),
                one => list.push(one),
            }
        }
        Ok(Typed::bool(if is_and { Expr::And(list) } else { disjunction(list) }))
    }

    /// An operator in front of its only side.
    pub(super) fn unary(
        &mut self,
        name: &[Name],
        operand: &tree::Expr,
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let symbol = symbol_of(name)?;
        let value = self.bind(operand, scope)?;
        self.unary_by_symbol(symbol, value)
            .map_err(|error| self.place_operator(error, at, &[operand]))
    }

    /// The operator of a symbol in front of a bound side.
    pub(super) fn unary_by_symbol(&mut self, symbol: &str, value: Typed) -> Result<Typed> {
        match symbol {
            "+" | "-" => self.sign(symbol, value),
            _ => self.prefix(symbol, value),
        }
    }

    fn sign(&mut self, symbol: &str, value: Typed) -> Result<Typed> {
        let is_minus = symbol == "-";
        let (value, ty) = match value.ty {
            Ty::Known(ty) if category(ty) == Category::Number => (value.expr, ty),
            Ty::Known(ty) if is_implicit(ty, INTERVAL_TYPE) && is_minus => {
                return self.call("interval_um", vec![value]);
            }
            Ty::Unknown => return Err(ambiguous_operator(&format!("{symbol} unknown"))),
            Ty::Known(ty) => {
                return Err(undefined_prefix(symbol, Ty::Known(ty)));
            }
        };
        if !is_minus {
            return Ok(Typed::known(value, ty));
        }
        if self.is_lifted_large(&value) {
            return Err(beyond("a literal whose sign decides on its type"));
        }
        let negated = match value {
            Expr::Const(value) => Expr::Const(arith::negate(value.as_datum())?),
            value => Expr::Neg(Box::new(value)),
        };
        Ok(Typed::known(negated, ty.base()))
    }

    /// Whether a value is a literal that has been lifted out, and may be of a smaller type with a
    /// sign. What its digits are is not to be seen here: the plan is for other texts, too.
    fn is_lifted_large(&self, value: &Expr) -> bool {
        let (Expr::Param(index), ParamTypes::Lifted(literals, _)) = (value, &self.params) else {
            return false;
        };
        let kind = literals.get(*index).map(|literal| literal.kind);
        matches!(kind, Some(LiteralKind::Int8(_) | LiteralKind::Numeric))
    }

    fn prefix(&mut self, symbol: &str, value: Typed) -> Result<Typed> {
        let candidates = operators::candidates(symbol, 1);
        match resolve::choose(candidates, &[value.ty]) {
            Choice::One(chosen) => self.work(chosen, vec![value]),
            Choice::None => Err(undefined_prefix(symbol, value.ty)),
            Choice::Ambiguous => {
                Err(ambiguous_operator(&format!("{symbol} {}", name_of(value.ty))))
            }
        }
    }

    /// Binds a chain of binary operators. The parser leans `a + b + c` to the left as deep as it is
    /// long. So the left side is walked down in a loop, not by recursion.
    pub(super) fn binary(&mut self, chain: &tree::Expr, scope: &dyn Scope) -> Result<Typed> {
        let mut rest = Vec::new();
        let mut first = chain;
        while let Some(operator) = link(first) {
            first = operator.left;
            rest.push(operator);
        }
        self.deeper(rest.len(), |binder| binder.chain(first, rest, scope))
    }

    fn chain(
        &mut self,
        first: &tree::Expr,
        mut rest: Vec<Link<'_>>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let rows = match rest.last() {
            Some(Link { e, right, at, .. }) => {
                self.row_operator(first, &e.name, right, *at, scope)?
            }
            None => None,
        };
        let mut value = match rows {
            Some(compared) => {
                rest.pop();
                compared
            }
            None => self.bind(first, scope)?,
        };
        while let Some(Link { e, left, right: written, at }) = rest.pop() {
            let right = self.bind(written, scope)?;
            value = self
                .operator(&e.name, value, right)
                .map_err(|error| self.place_operator(error, at, &[written, left]))?;
        }
        Ok(value)
    }

    fn operator(&mut self, name: &[Name], a: Typed, b: Typed) -> Result<Typed> {
        self.binary_by_symbol(symbol_of(name)?, a, b)
    }

    /// The operator of a symbol between two bound sides.
    pub(super) fn binary_by_symbol(&mut self, symbol: &str, a: Typed, b: Typed) -> Result<Typed> {
        if let Some(compare) = comparison_of(symbol) {
            return Ok(Typed::bool(self.compare(compare, a, b)?));
        }
        if is_date(a.ty) || is_date(b.ty) {
            let arith = match symbol {
                "+" => Some(Arith::Add),
                "-" => Some(Arith::Sub),
                _ => None,
            };
            if let Some(arith) = arith.filter(|arith| counts_days(*arith, a.ty, b.ty)) {
                return self.date_arith(arith, symbol, a, b);
            }
        }
        self.binary_operator(symbol, a, b)
    }

    /// An operator of the catalog, chosen by the types of its sides.
    pub(super) fn binary_operator(&mut self, symbol: &str, a: Typed, b: Typed) -> Result<Typed> {
        let candidates = operators::candidates(symbol, 2);
        let sides = |a: &Typed, b: &Typed| format!("{} {symbol} {}", name_of(a.ty), name_of(b.ty));
        // These have operators of types that are not here, too.
        let of_many_types = matches!(symbol, "+" | "-" | "*" | "/");
        if of_many_types && (a.ty, b.ty) == (Ty::Unknown, Ty::Unknown) {
            return Err(ambiguous_operator(&sides(&a, &b)));
        }
        // PostgreSQL has several of these, of types that are not here.
        let is_of_shapes = matches!(symbol, "<->" | "@@@" | "&&" | "&<" | "&>" | "<<|" | "|>>");
        if is_of_shapes && (a.ty, b.ty) == (Ty::Unknown, Ty::Unknown) {
            return Err(ambiguous_operator(&sides(&a, &b)));
        }
        if candidates.is_empty() && is_absent(symbol, [a.ty, b.ty]) {
            return Err(beyond(&format!("the operator {symbol}")));
        }
        match resolve::choose_binary(candidates, [a.ty, b.ty]) {
            Choice::One(chosen) => self.work(chosen, vec![a, b]),
            Choice::None => Err(undefined_operator(&sides(&a, &b))),
            Choice::Ambiguous => Err(ambiguous_operator(&sides(&a, &b))),
        }
    }

    /// What computes an operator, with its arguments converted.
    fn work(
        &mut self,
        chosen: Candidate<&'static Operator>,
        mut args: Vec<Typed>,
    ) -> Result<Typed> {
        let operator = chosen.item;
        // Patterns see the spaces that a `character(n)` is stored without.
        if let (Some(first), Some(Param::Type(DataType::Char(_)))) =
            (args.first_mut(), operator.args.first())
        {
            self.pad(first)?;
        }
        let result = match operator.result {
            Param::Type(ty) => ty,
            _ => DataType::Text,
        };
        let as_type = match operator.work {
            Work::Arith(_, ty) => Some(ty),
            Work::Concat => Some(result),
            Work::Like { .. } => Some(DataType::Text),
            Work::Call(_) => None,
        };
        let mut exprs = match as_type {
            // Straight to the type that is computed with.
            Some(ty) => args
                .into_iter()
                .zip(&chosen.params)
                .map(|(arg, param)| match (arg.ty, param) {
                    // A literal takes the operator's type first, and fails as of that type.
                    (Ty::Unknown, Param::Type(own)) if own.oid() != ty.oid() => {
                        let expr = self.coerce(arg, *own, Coercion::Implicit)?;
                        self.coerce(Typed::known(expr, *own), ty, Coercion::Explicit)
                    }
                    _ => self.coerce(arg, ty, Coercion::Explicit),
                })
                .collect::<Result<Vec<_>>>()?,
            None => {
                let (exprs, element) = self.arguments(args, &chosen.params)?;
                if let Work::Call(name) = operator.work {
                    let call = Expr::Func(Func::exactly(name, operator.args)?, exprs);
                    return Ok(as_result(call, operator.result, element));
                }
                exprs
            }
        };
        let expr = match operator.work {
            Work::Call(name) => Expr::Func(Func::exactly(name, operator.args)?, exprs),
            work => {
                let (Some(b), Some(a)) = (exprs.pop(), exprs.pop()) else {
                    return Err(SqlError::internal("an operator without its sides"));
                };
                match work {
                    Work::Arith(arith, _) => Expr::Arith(arith, Box::new((a, b))),
                    Work::Like { ignore_case, negated } => {
                        let like =
                            Like { value: a, pattern: b, escape: None, ignore_case, negated };
                        Expr::Like(Box::new(like))
                    }
                    _ => Expr::Concat(Box::new((a, b))),
                }
            }
        };
        Ok(Typed::known(expr, result))
    }

    /// A comparison of two bound sides.
    pub(crate) fn compare(&mut self, op: Compare, a: Typed, b: Typed) -> Result<Expr> {
        if is_record(a.ty) && is_record(b.ty) && !self.records.are_alike(a.ty, b.ty) {
            return Ok(compared_records(op, a, b).expr);
        }
        let has_no_order = |ty: Ty| matches!(ty, Ty::Known(ty) if !is_ordered(ty));
        let is_equality = matches!(op, Compare::Eq | Compare::Ne);
        if !is_equality && (has_no_order(a.ty) || has_no_order(b.ty)) {
            return Err(no_operator(op.symbol(), a.ty, b.ty));
        }
        let pair = self.alike(a, b, op.symbol())?;
        Ok(Expr::Compare(op, Box::new(pair)))
    }

    /// Days are added to dates.
    fn date_arith(&mut self, arith: Arith, symbol: &str, a: Typed, b: Typed) -> Result<Typed> {
        let small = |ty: Ty| matches!(ty, Ty::Known(DataType::Int4 | DataType::Int2));
        match arith {
            Arith::Sub if !small(b.ty) => {
                let a = self.coerce(a, DataType::Date, Coercion::Implicit)?;
                let b = self.coerce(b, DataType::Date, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a, b))), DataType::Int4))
            }
            Arith::Add | Arith::Sub if is_date(a.ty) && small(b.ty) => {
                let b = self.coerce(b, DataType::Int4, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a.expr, b))), DataType::Date))
            }
            Arith::Add if small(a.ty) => {
                let a = self.coerce(a, DataType::Int4, Coercion::Implicit)?;
                Ok(Typed::known(Expr::Arith(arith, Box::new((a, b.expr))), DataType::Date))
            }
            _ => Err(no_operator(symbol, a.ty, b.ty)),
        }
    }
}

pub(super) fn no_operator(symbol: &str, a: Ty, b: Ty) -> SqlError {
    undefined_operator(&format!("{} {symbol} {}", name_of(a), name_of(b)))
}

/// Whether PostgreSQL has an operator for two sides like these that is not here. It has others of
/// the same names, but for types that are not here either.
fn is_absent(symbol: &str, sides: [Ty; 2]) -> bool {
    let takes_no_number = sides.iter().all(|ty| match ty {
        Ty::Known(ty) => matches!(category(*ty), Category::String | Category::Alone(_)),
        Ty::Unknown => true,
    });
    matches!(symbol, "@?" | "@@" | "@@@" | "~<~" | "~<=~" | "~>=~" | "~>~") && takes_no_number
}

fn undefined_prefix(symbol: &str, ty: Ty) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {symbol} {}", name_of(ty)),
    )
    .hint("No operator matches the given name and argument type. You might need to add an explicit type cast.")
}

fn undefined_operator(signature: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {signature}"),
    )
    .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous_operator(signature: &str) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {signature}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

fn name_of(ty: Ty) -> String {
    match ty {
        Ty::Known(ty) => type_name(ty),
        Ty::Unknown => "unknown".to_owned(),
    }
}

/// An operator without its schema, which can only be the catalog's.
pub(super) fn symbol_of(name: &[Name]) -> Result<&str> {
    match name {
        [symbol] => Ok(symbol),
        [schema, symbol] if &**schema == "pg_catalog" => Ok(symbol),
        name => Err(beyond(&format!("the operator {}", name.join(".")))),
    }
}

/// The comparison that an operator is, if it is one.
pub(super) fn comparison_of(symbol: &str) -> Option<Compare> {
    Some(match symbol {
        "=" => Compare::Eq,
        "<>" => Compare::Ne,
        "<" => Compare::Lt,
        "<=" => Compare::Le,
        ">" => Compare::Gt,
        ">=" => Compare::Ge,
        _ => return None,
    })
}

/// Whether dates are counted in days: a date and an integer, or the days between two dates.
fn counts_days(arith: Arith, a: Ty, b: Ty) -> bool {
    let small = |ty: Ty| matches!(ty, Ty::Known(DataType::Int4 | DataType::Int2));
    match arith {
        Arith::Sub => {
            is_date(a) && (is_date(b) || small(b) || b == Ty::Unknown)
                || a == Ty::Unknown && is_date(b)
        }
        _ => is_date(a) && small(b) || small(a) && is_date(b),
    }
}

fn is_date(ty: Ty) -> bool {
    ty == Ty::Known(DataType::Date)
}
