//! Expressions: by kernels where these mean the same, else by the evaluator, row by row.

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_expr::expr::{Case, InList};
use datafusion_expr::{BinaryExpr, Expr as Planned, Operator, lit};
use millpond_query::expr::{Arith, Compare, Expr};
use millpond_types::{DataType, Value};

use super::operand_types::{common_type, declared_type, digits_of, is_wider, scale_of, type_of};
use super::{Translated, Translator, Typed, column};
use crate::batch::ColumnBuilder;
use crate::checked;
use crate::errors::Failure;
use crate::row_function::RowFunction;
use crate::types::{
    MOST_DIGITS, arrow_type, compare_alike, is_integer, is_numeric, is_text, numeric,
};

/// A number whose digits after the point may be others in each row.
pub(super) struct Scaled {
    pub(super) value: Typed,
    /// How many, if that is not always the same.
    pub(super) scale: Option<Planned>,
}

/// Fields of `extract` that are whole numbers.
const WHOLE_FIELDS: &[&str] = &[
    "century", "day", "decade", "dow", "doy", "hour", "isodow", "isoyear", "minute", "month",
    "quarter", "week", "year",
];

impl Translator<'_> {
    /// A condition.
    pub(super) fn condition(&mut self, expr: &Expr) -> Translated<Planned> {
        let typed = self.value(expr)?;
        if typed.ty == DataType::Bool { Ok(typed.expr) } else { Err(Failure::Declined) }
    }

    /// A value that is shown with the same number of digits after the point in each row, if it is
    /// numeric.
    pub(super) fn value(&mut self, expr: &Expr) -> Translated<Typed> {
        let Scaled { value, scale } = self.scaled(expr)?;
        if scale.is_some() { Err(Failure::Declined) } else { Ok(value) }
    }

    /// A value.
    pub(super) fn scaled(&mut self, expr: &Expr) -> Translated<Scaled> {
        let (whens, otherwise) = match expr {
            Expr::Case(whens, otherwise) => (whens.clone(), otherwise.as_deref().cloned()),
            Expr::Coalesce(list) => {
                let Some((last, others)) = list.split_last() else { return Err(Failure::Declined) };
                let given = |e: &Expr| (Expr::IsNull(Box::new(e.clone()), true), e.clone());
                (others.iter().map(given).collect(), Some(last.clone()))
            }
            _ => return Ok(Scaled { value: self.plain(expr)?, scale: None }),
        };
        if !has_columns(expr) {
            return Ok(Scaled { value: self.constant(expr, None)?, scale: None });
        }
        self.case(&whens, otherwise.as_ref())
    }

    fn case(&mut self, whens: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Translated<Scaled> {
        let mut conditions = Vec::new();
        for (when, _) in whens {
            conditions.push(self.condition(when)?);
        }
        // A NULL among the results has the type of the others.
        let results: Vec<&Expr> = whens.iter().map(|(_, then)| then).chain(otherwise).collect();
        let mut values = Vec::new();
        for result in &results {
            values.push(if is_null(result) { None } else { Some(self.value(result)?) });
        }
        let ty = common_type(values.iter().flatten().map(|value| value.ty))?;
        let null = null_of(ty)?;
        let is_fixed = |value: &Typed| scale_of(value.ty) == scale_of(ty);
        let scale = if values.iter().flatten().all(is_fixed) {
            None
        } else {
            let digits = |value: &Option<Typed>| match value.as_ref().and_then(|v| scale_of(v.ty)) {
                Some(scale) => lit(i32::from(scale)),
                None => lit(ScalarValue::Int32(None)),
            };
            Some(case_of(&conditions, values.iter().map(digits).collect()))
        };
        let converted = values
            .into_iter()
            .map(|value| value.map_or(Ok(null.clone()), |value| cast_typed(value, ty)))
            .collect::<Translated<Vec<_>>>()?;
        Ok(Scaled { value: Typed { expr: case_of(&conditions, converted), ty }, scale })
    }

    fn plain(&mut self, expr: &Expr) -> Translated<Typed> {
        if !has_columns(expr) {
            return self.constant(expr, None);
        }
        let bool = |expr| Ok(Typed { expr, ty: DataType::Bool });
        match expr {
            Expr::Column(packed) => self.column(*packed),
            Expr::Cast(inner, to, _) => self.cast(expr, inner, *to),
            Expr::Neg(inner) => self.negated(expr, inner),
            Expr::Arith(operator, pair) => self.arithmetic(expr, *operator, &pair.0, &pair.1),
            Expr::Compare(operator, pair) => match self.alike(&pair.0, &pair.1)? {
                Some((left, right)) => bool(binary(left, operator_of(*operator), right)),
                None => self.by_rows(expr, DataType::Bool),
            },
            Expr::Distinct(pair, negated) => match self.alike(&pair.0, &pair.1)? {
                Some((left, right)) => {
                    let operator = match negated {
                        true => Operator::IsNotDistinctFrom,
                        false => Operator::IsDistinctFrom,
                    };
                    bool(binary(left, operator, right))
                }
                None => self.by_rows(expr, DataType::Bool),
            },
            Expr::And(list) => bool(self.all(list, Operator::And, true)?),
            Expr::Or(list) => bool(self.all(list, Operator::Or, false)?),
            Expr::Not(inner) => bool(Planned::Not(Box::new(self.condition(inner)?))),
            Expr::IsNull(inner, negated) => {
                let inner = Box::new(self.value(inner)?.expr);
                bool(if *negated { Planned::IsNotNull(inner) } else { Planned::IsNull(inner) })
            }
            Expr::IsBool(inner, with, negated) => {
                let inner = Box::new(self.condition(inner)?);
                bool(match (with, negated) {
                    (Some(true), false) => Planned::IsTrue(inner),
                    (Some(true), true) => Planned::IsNotTrue(inner),
                    (Some(false), false) => Planned::IsFalse(inner),
                    (Some(false), true) => Planned::IsNotFalse(inner),
                    (None, false) => Planned::IsUnknown(inner),
                    (None, true) => Planned::IsNotUnknown(inner),
                })
            }
            Expr::In(value, list, negated) => self.in_list(expr, value, list, *negated),
            Expr::Like(_) => self.by_rows(expr, DataType::Bool),
            Expr::Concat(_) => self.by_rows(expr, DataType::Text),
            Expr::Func(func, args) => {
                let is_whole = |field: &Expr| matches!(field, Expr::Const(Value::Text(field)) if WHOLE_FIELDS.contains(&field.as_str()));
                let ty = match func.name() {
                    "extract" if args.first().is_some_and(is_whole) => Some(numeric(20, 0)),
                    _ => func.result_type(),
                };
                self.by_rows(expr, ty.ok_or(Failure::Declined)?)
            }
            _ => Err(Failure::Declined),
        }
    }

    fn column(&self, packed: usize) -> Translated<Typed> {
        let (slot, place) = millpond_query::plan::external::slot_of(packed);
        let types = self.types.get(&slot.0).ok_or(Failure::Declined)?;
        let ty = types.get(place).copied().flatten().ok_or(Failure::Declined)?;
        Ok(Typed { expr: column(packed), ty })
    }

    /// What uses no column is computed now. A NULL has the type that is wanted.
    fn constant(&self, expr: &Expr, wanted: Option<DataType>) -> Translated<Typed> {
        let value = self.local.with(|env| expr.eval(env).map(|value| value.into_value()))?;
        if value.is_null() {
            let ty = wanted.or_else(|| declared_type(expr)).ok_or(Failure::Declined)?;
            return Ok(Typed { expr: null_of(ty)?, ty });
        }
        let ty = type_of(&value).ok_or(Failure::Declined)?;
        let arrow = arrow_type(ty).ok_or(Failure::Declined)?;
        let mut builder = ColumnBuilder::new(&arrow, 1);
        builder.push(value.as_datum())?;
        Ok(Typed { expr: lit(ScalarValue::try_from_array(&builder.finish(), 0)?), ty })
    }

    fn cast(&mut self, expr: &Expr, inner: &Expr, to: DataType) -> Translated<Typed> {
        let from = self.value(inner);
        match (from, to) {
            (Ok(value), _) if value.ty == to => Ok(value),
            (Ok(value), _) if is_integer(value.ty) && is_wider(value.ty, to) => {
                Ok(Typed { expr: cast(value.expr, to)?, ty: to })
            }
            (Ok(value), DataType::Numeric { precision_scale: None }) if is_integer(value.ty) => {
                let ty = numeric(19, 0);
                Ok(Typed { expr: cast(value.expr, ty)?, ty })
            }
            (Ok(value), DataType::Numeric { precision_scale: None }) if is_numeric(value.ty) => {
                Ok(value)
            }
            (Ok(value), DataType::Text | DataType::Varchar(None)) if is_text(value.ty) => {
                // What is `char` has lost its padding, here and there.
                match value.ty {
                    DataType::Char(_) => self.by_rows(expr, to),
                    _ => Ok(Typed { ty: to, ..value }),
                }
            }
            (Err(Failure::Statement(error)), _) => Err(Failure::Statement(error)),
            _ => self.by_rows(expr, to),
        }
    }

    fn negated(&mut self, expr: &Expr, inner: &Expr) -> Translated<Typed> {
        let Typed { expr: value, ty } = self.value(inner)?;
        if is_integer(ty) {
            let zero = cast(lit(0i16), ty)?;
            return Ok(Typed { expr: checked::arithmetic(Operator::Minus, zero, value), ty });
        }
        if is_numeric(ty) {
            return Ok(Typed { expr: Planned::Negative(Box::new(value)), ty });
        }
        self.by_rows(expr, ty)
    }

    fn arithmetic(
        &mut self,
        expr: &Expr,
        operator: Arith,
        left: &Expr,
        right: &Expr,
    ) -> Translated<Typed> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let planned = match operator {
            Arith::Add => Operator::Plus,
            Arith::Sub => Operator::Minus,
            Arith::Mul => Operator::Multiply,
            _ if left.ty == right.ty && is_integer(left.ty) => return self.by_rows(expr, left.ty),
            _ => return Err(Failure::Declined),
        };
        if is_integer(left.ty) && left.ty == right.ty {
            let ty = left.ty;
            return Ok(Typed { expr: checked::arithmetic(planned, left.expr, right.expr), ty });
        }
        if let (Some((p1, s1)), Some((p2, s2))) = (digits_of(left.ty), digits_of(right.ty)) {
            // As DataFusion has it.
            let (precision, scale) = match operator {
                Arith::Mul => (p1 + p2 + 1, s1 + s2),
                _ => ((p1 - s1).max(p2 - s2) + s1.max(s2) + 1, s1.max(s2)),
            };
            let most = u16::from(MOST_DIGITS);
            if scale > most {
                return Err(Failure::Declined);
            }
            let precision = precision.min(most);
            let ty = numeric(precision as u8, scale as i8);
            return Ok(Typed { expr: binary(left.expr, planned, right.expr), ty });
        }
        if left.ty == right.ty && matches!(left.ty, DataType::Float4 | DataType::Float8) {
            return self.by_rows(expr, left.ty);
        }
        Err(Failure::Declined)
    }

    fn all(&mut self, list: &[Expr], operator: Operator, of_none: bool) -> Translated<Planned> {
        let mut all: Option<Planned> = None;
        for expr in list {
            let next = self.condition(expr)?;
            all = Some(match all {
                Some(before) => binary(before, operator, next),
                None => next,
            });
        }
        Ok(all.unwrap_or_else(|| lit(of_none)))
    }

    /// Two values of one type in Arrow, if they compare there as in PostgreSQL.
    fn alike(&mut self, left: &Expr, right: &Expr) -> Translated<Option<(Planned, Planned)>> {
        let (left, right) = match (self.value(left), self.value(right)) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(Failure::Statement(error)), _) | (_, Err(Failure::Statement(error))) => {
                return Err(Failure::Statement(error));
            }
            _ => return Ok(None),
        };
        if !compare_alike(left.ty, right.ty) {
            return Ok(None);
        }
        let ty = common_type([left.ty, right.ty].into_iter())?;
        Ok(Some((cast_typed(left, ty)?, cast_typed(right, ty)?)))
    }

    fn in_list(
        &mut self,
        expr: &Expr,
        value: &Expr,
        list: &[Expr],
        negated: bool,
    ) -> Translated<Typed> {
        let value = self.value(value)?;
        let mut items = Vec::new();
        for item in list {
            let item = match is_null(item) {
                true => self.constant(item, Some(value.ty))?,
                false => self.value(item)?,
            };
            if !compare_alike(value.ty, item.ty) {
                return self.by_rows(expr, DataType::Bool);
            }
            items.push(item);
        }
        let types = items.iter().map(|item| item.ty).chain([value.ty]);
        let ty = common_type(types)?;
        let list =
            items.into_iter().map(|item| cast_typed(item, ty)).collect::<Translated<Vec<_>>>()?;
        let expr = Planned::InList(InList::new(Box::new(cast_typed(value, ty)?), list, negated));
        Ok(Typed { expr, ty: DataType::Bool })
    }

    /// The evaluator computes it.
    fn by_rows(&mut self, expr: &Expr, ty: DataType) -> Translated<Typed> {
        let result = arrow_type(ty).ok_or(Failure::Declined)?;
        let mut used: Vec<usize> = Vec::new();
        expr.walk(&mut |e| {
            if let Expr::Column(column) = e
                && !used.contains(column)
            {
                used.push(*column);
            }
        });
        let numbered = expr.clone().map_columns(&mut |column| {
            used.iter().position(|used| *used == column).unwrap_or(usize::MAX)
        })?;
        let numbered = self.local.with(|env| numbered.folded(env))?;
        let (mut arguments, mut types) = (Vec::new(), Vec::new());
        for packed in &used {
            let argument = self.column(*packed)?;
            arguments.push(argument.expr);
            types.push(argument.ty);
        }
        let function = RowFunction {
            expr: numbered,
            arguments: types,
            result,
            surroundings: Arc::clone(self.surroundings),
        };
        Ok(Typed { expr: function.call(arguments), ty })
    }
}

fn has_columns(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e, Expr::Column(_)));
    found
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Const(value) => value.is_null(),
        Expr::Cast(inner, ..) => is_null(inner),
        _ => false,
    }
}

fn null_of(ty: DataType) -> Translated<Planned> {
    Ok(lit(ScalarValue::try_from(&arrow_type(ty).ok_or(Failure::Declined)?)?))
}

fn cast_typed(value: Typed, ty: DataType) -> Translated<Planned> {
    if arrow_type(value.ty) == arrow_type(ty) { Ok(value.expr) } else { cast(value.expr, ty) }
}

/// A conversion without loss. A constant is converted now.
pub(super) fn cast(expr: Planned, ty: DataType) -> Translated<Planned> {
    let arrow = arrow_type(ty).ok_or(Failure::Declined)?;
    Ok(match expr {
        Planned::Literal(value, _) => lit(value.cast_to(&arrow)?),
        expr => datafusion_expr::cast(expr, arrow),
    })
}

fn binary(left: Planned, operator: Operator, right: Planned) -> Planned {
    Planned::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

fn case_of(conditions: &[Planned], mut results: Vec<Planned>) -> Planned {
    let otherwise = (results.len() > conditions.len()).then(|| results.pop()).flatten();
    let whens = conditions.iter().cloned().map(Box::new).zip(results.into_iter().map(Box::new));
    Planned::Case(Case::new(None, whens.collect(), otherwise.map(Box::new)))
}

fn operator_of(compare: Compare) -> Operator {
    match compare {
        Compare::Eq => Operator::Eq,
        Compare::Ne => Operator::NotEq,
        Compare::Lt => Operator::Lt,
        Compare::Le => Operator::LtEq,
        Compare::Gt => Operator::Gt,
        Compare::Ge => Operator::GtEq,
    }
}
