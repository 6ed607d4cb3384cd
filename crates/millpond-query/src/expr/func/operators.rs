//! The catalog of operators, and what each is to the evaluator. Comparisons are not here: they are
//! expressions of their own, because indexes answer them.

use super::catalog::{BOOL, BPCHAR, BYTEA, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, Param, TEXT};
use super::resolve::{Candidate, Params};
use crate::DataType;
use crate::expr::Arith;
use crate::expr::types::NUMERIC as ANY_NUMERIC;

/// What computes an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Arithmetic, for which both sides are converted to this type.
    Arith(Arith, DataType),
    /// The function of this name with the operator's arguments.
    Call(&'static str),
    /// Two texts or two byte strings, one behind the other.
    Concat,
    /// `LIKE`
    Like { ignore_case: bool, negated: bool },
}

/// An operator.
pub(crate) struct Operator {
    pub(crate) symbol: &'static str,
    /// One or two.
    pub(crate) args: &'static [Param],
    pub(crate) result: Param,
    pub(crate) work: Work,
}

pub(super) const fn op(
    symbol: &'static str,
    args: &'static [Param],
    result: Param,
    work: Work,
) -> Operator {
    Operator { symbol, args, result, work }
}

/// An arithmetic operator of two types of numbers, and the type in which they meet.
macro_rules! meet {
    ($symbol:literal $arith:ident: $($left:ident $right:ident $as:expr, $result:ident;)*) => {
        &[$(op($symbol, &[$left, $right], $result, Work::Arith(Arith::$arith, $as))),*]
    };
}

/// The four operators that any two types of numbers have.
macro_rules! plain {
    ($symbol:literal $arith:ident) => {
        meet! { $symbol $arith:
            INT2 INT2 DataType::Int2, INT2;
            INT4 INT4 DataType::Int4, INT4;
            INT8 INT8 DataType::Int8, INT8;
            INT2 INT4 DataType::Int4, INT4;
            INT4 INT2 DataType::Int4, INT4;
            INT2 INT8 DataType::Int8, INT8;
            INT8 INT2 DataType::Int8, INT8;
            INT4 INT8 DataType::Int8, INT8;
            INT8 INT4 DataType::Int8, INT8;
            FLOAT4 FLOAT4 DataType::Float4, FLOAT4;
            FLOAT8 FLOAT8 DataType::Float8, FLOAT8;
            FLOAT4 FLOAT8 DataType::Float8, FLOAT8;
            FLOAT8 FLOAT4 DataType::Float8, FLOAT8;
            NUMERIC NUMERIC ANY_NUMERIC, NUMERIC;
        }
    };
}

/// The operators of integers' bits.
macro_rules! bitwise {
    ($symbol:literal $arith:ident) => {
        meet! { $symbol $arith:
            INT2 INT2 DataType::Int2, INT2;
            INT4 INT4 DataType::Int4, INT4;
            INT8 INT8 DataType::Int8, INT8;
        }
    };
}

const LIKE: Work = Work::Like { ignore_case: false, negated: false };
const NOT_LIKE: Work = Work::Like { ignore_case: false, negated: true };
const ILIKE: Work = Work::Like { ignore_case: true, negated: false };
const NOT_ILIKE: Work = Work::Like { ignore_case: true, negated: true };

static TABLES: &[&[Operator]] = &[
    super::array::OPERATORS,
    super::json::CHANGE_OPERATORS,
    super::json::CONTAIN_OPERATORS,
    super::json::JSONPATH_OPERATORS,
    super::json::OPERATORS,
    super::json::PATH_OPERATORS,
    super::datetime::OPERATORS,
    super::lsn::OPERATORS,
    super::operator_functions::IMAGE_OPERATORS,
    plain! { "+" Add },
    plain! { "-" Sub },
    plain! { "*" Mul },
    plain! { "/" Div },
    meet! { "%" Rem:
        INT2 INT2 DataType::Int2, INT2;
        INT4 INT4 DataType::Int4, INT4;
        INT8 INT8 DataType::Int8, INT8;
        NUMERIC NUMERIC ANY_NUMERIC, NUMERIC;
    },
    bitwise! { "&" BitAnd },
    bitwise! { "|" BitOr },
    bitwise! { "#" BitXor },
    meet! { "<<" ShiftLeft: INT4 INT4 DataType::Int4, INT4; INT8 INT4 DataType::Int8, INT8; },
    meet! { ">>" ShiftRight: INT4 INT4 DataType::Int4, INT4; INT8 INT4 DataType::Int8, INT8; },
    &[
        op("<<", &[INT2, INT4], INT2, Work::Call("int2shl")),
        op(">>", &[INT2, INT4], INT2, Work::Call("int2shr")),
        op("~", &[INT2], INT2, Work::Call("int2not")),
        op("~", &[INT4], INT4, Work::Call("int4not")),
        op("~", &[INT8], INT8, Work::Call("int8not")),
        op("^", &[FLOAT8, FLOAT8], FLOAT8, Work::Arith(Arith::Power, DataType::Float8)),
        op("^", &[NUMERIC, NUMERIC], NUMERIC, Work::Call("power")),
        op("@", &[INT2], INT2, Work::Call("abs")),
        op("@", &[INT4], INT4, Work::Call("abs")),
        op("@", &[INT8], INT8, Work::Call("abs")),
        op("@", &[FLOAT4], FLOAT4, Work::Call("abs")),
        op("@", &[FLOAT8], FLOAT8, Work::Call("abs")),
        op("@", &[NUMERIC], NUMERIC, Work::Call("abs")),
        op("|/", &[FLOAT8], FLOAT8, Work::Call("sqrt")),
        op("||/", &[FLOAT8], FLOAT8, Work::Call("cbrt")),
    ],
    &[
        op("||", &[TEXT, TEXT], TEXT, Work::Concat),
        op("||", &[BYTEA, BYTEA], BYTEA, Work::Concat),
        op("||", &[Param::AnyNonArray, TEXT], TEXT, Work::Concat),
        op("||", &[TEXT, Param::AnyNonArray], TEXT, Work::Concat),
        op("^@", &[TEXT, TEXT], BOOL, Work::Call("starts_with")),
        op("~", &[TEXT, TEXT], BOOL, Work::Call("textregexeq")),
        op("~", &[BPCHAR, TEXT], BOOL, Work::Call("bpcharregexeq")),
        op("!~", &[TEXT, TEXT], BOOL, Work::Call("textregexne")),
        op("!~", &[BPCHAR, TEXT], BOOL, Work::Call("bpcharregexne")),
        op("~*", &[TEXT, TEXT], BOOL, Work::Call("texticregexeq")),
        op("~*", &[BPCHAR, TEXT], BOOL, Work::Call("bpcharicregexeq")),
        op("!~*", &[TEXT, TEXT], BOOL, Work::Call("texticregexne")),
        op("!~*", &[BPCHAR, TEXT], BOOL, Work::Call("bpcharicregexne")),
        op("~~", &[BYTEA, BYTEA], BOOL, Work::Call("bytealike")),
        op("!~~", &[BYTEA, BYTEA], BOOL, Work::Call("byteanlike")),
        op("~~", &[TEXT, TEXT], BOOL, LIKE),
        op("~~", &[BPCHAR, TEXT], BOOL, LIKE),
        op("!~~", &[TEXT, TEXT], BOOL, NOT_LIKE),
        op("!~~", &[BPCHAR, TEXT], BOOL, NOT_LIKE),
        op("~~*", &[TEXT, TEXT], BOOL, ILIKE),
        op("~~*", &[BPCHAR, TEXT], BOOL, ILIKE),
        op("!~~*", &[TEXT, TEXT], BOOL, NOT_ILIKE),
        op("!~~*", &[BPCHAR, TEXT], BOOL, NOT_ILIKE),
    ],
];

/// All operators.
pub(crate) fn all() -> impl Iterator<Item = &'static Operator> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The operators of this symbol and number of sides.
pub(crate) fn candidates(symbol: &str, sides: usize) -> Vec<Candidate<&'static Operator>> {
    all()
        .filter(|operator| operator.symbol == symbol && operator.args.len() == sides)
        .map(|operator| Candidate { item: operator, params: Params::from_slice(operator.args) })
        .collect()
}
