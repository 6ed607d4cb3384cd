//! Calls of the functions of operators, which become what the operators become.

use millpond_types::other::RECORD;

use super::operator::comparison_of;
use super::{Binder, Typed};
use crate::error::{Result, SqlError};
use crate::expr::func::catalog::Param;
use crate::expr::func::operator_functions::{ORDER, ORDER_FOR_EQUALITY, OfOperator};
use crate::expr::func::resolve::Params;
use crate::expr::types::Ty;
use crate::expr::{Compare, Expr, Func};
use crate::{DataType, Value};

impl Binder<'_> {
    /// A call of an operator's function.
    pub(super) fn operator_call(
        &mut self,
        of: OfOperator,
        args: Vec<Typed>,
        params: &Params,
    ) -> Result<Typed> {
        let is_char = |(arg, param): (&Typed, &Param)| {
            matches!(param, Param::Type(DataType::Char(_)))
                && !matches!(arg.ty, Ty::Known(DataType::Char(_)))
        };
        let untrimmed: Vec<bool> = args.iter().zip(params).map(is_char).collect();
        let compares = !matches!(of, OfOperator::Symbol(symbol) if symbol.contains('~'));
        let (exprs, element) = self.arguments(args, params)?;
        let mut sides = Vec::with_capacity(exprs.len());
        for ((expr, param), untrimmed) in exprs.into_iter().zip(params).zip(untrimmed) {
            sides.push(match (param, element) {
                // Spaces at the end count in a pattern, and not in a comparison.
                (Param::Type(DataType::Char(_)), _) if !compares => {
                    Typed::known(expr, DataType::Text)
                }
                (Param::Type(ty @ DataType::Char(_)), _) if untrimmed => {
                    let rtrim = Func::exactly("rtrim", &[Param::Type(DataType::Text)])?;
                    Typed::known(Expr::Func(rtrim, vec![expr]), *ty)
                }
                (Param::Type(ty), _) => Typed::known(expr, *ty),
                (Param::AnyArray, Some(element)) => {
                    Typed::known(expr, element.array().unwrap_or(DataType::Text))
                }
                (_, element) => Typed::known(expr, element.unwrap_or(DataType::Text)),
            });
        }
        self.operator_of_sides(of, sides)
    }

    fn operator_of_sides(&mut self, of: OfOperator, mut sides: Vec<Typed>) -> Result<Typed> {
        let missing = || SqlError::internal("an operator without its sides");
        let last = sides.pop().ok_or_else(missing)?;
        match (of, sides.pop()) {
            (OfOperator::Symbol(symbol), Some(first)) => match comparison_of(symbol) {
                Some(compare) if is_record(first.ty) => Ok(compared_records(compare, first, last)),
                _ => self.binary_by_symbol(symbol, first, last),
            },
            (OfOperator::Symbol(symbol), None) => self.unary_by_symbol(symbol, last),
            (OfOperator::Order, Some(first)) => {
                let (a, b) = self.alike(first, last, "<")?;
                let call = Expr::Func(Func::new(&ORDER), vec![a, b]);
                Ok(Typed::known(call, DataType::Int4))
            }
            (OfOperator::Order, None) => Err(missing()),
        }
    }
}

pub(super) fn is_record(ty: Ty) -> bool {
    matches!(ty, Ty::Known(ty) if ty.oid() == RECORD)
}

/// A comparison of records of whatever types, which may turn out not to compare.
pub(super) fn compared_records(compare: Compare, first: Typed, last: Typed) -> Typed {
    let order = match compare {
        Compare::Eq | Compare::Ne => &ORDER_FOR_EQUALITY,
        _ => &ORDER,
    };
    let order = Expr::Func(Func::new(order), vec![first.expr, last.expr]);
    Typed::bool(Expr::Compare(compare, Box::new((order, Expr::Const(Value::Int4(0))))))
}
