//! Values of system relations, and the types of their columns.

use millpond_types::Interval;
use millpond_types::array::Dimension;
use millpond_types::format;
use millpond_types::other::{
    INT2VECTOR, INTERVAL, OIDVECTOR, PG_LSN, REGTYPE, XID, is_vector, object_value,
};

use crate::error::Result;
use crate::types::array;
use crate::{DataType, Datum, Numeric, Value};

/// Microseconds from 1970 to 2000, where time stamps begin.
pub const EPOCH_US: i64 = 946_684_800_000_000;

/// One value of a view's row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// An array of integers.
    Ints(Vec<i64>),
    /// An array of texts.
    Texts(Vec<String>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Int(value as i64)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The types of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Oid,
    /// A transaction id.
    Xid,
    /// A position in the log.
    Lsn,
    Name,
    Text,
    /// PostgreSQL's `"char"`: one byte.
    Char,
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// A `numeric` without decimals.
    Numeric,
    /// Microseconds since 1970.
    TimestampTz,
    /// Microseconds.
    Interval,
    /// `aclitem[]`, which is always NULL.
    AclArray,
    TextArray,
    CharArray,
    Int2Array,
    OidArray,
    /// `regtype[]`, whose cells are the numbers of types.
    TypeArray,
    /// `int2vector`: its subscripts begin at 0.
    Int2Vector,
    /// `oidvector`, likewise.
    OidVector,
}

impl Kind {
    /// The number of the type that clients are told.
    pub fn told_oid(self) -> u32 {
        match self {
            Kind::Oid => 26,
            Kind::Xid => XID,
            Kind::Lsn => PG_LSN,
            Kind::Name => 19,
            Kind::Text => 25,
            Kind::AclArray => 1034,
            Kind::Char => 18,
            Kind::Bool => 16,
            Kind::Int2 => 21,
            Kind::Int4 => 23,
            Kind::Int8 => 20,
            Kind::Float4 => 700,
            Kind::Float8 => 701,
            Kind::Numeric => 1700,
            Kind::TimestampTz => 1184,
            Kind::Interval => INTERVAL,
            Kind::TextArray => 1009,
            Kind::CharArray => 1002,
            Kind::Int2Array => 1005,
            Kind::OidArray => 1028,
            Kind::TypeArray => REGTYPE_ARRAY,
            Kind::Int2Vector => INT2VECTOR,
            Kind::OidVector => OIDVECTOR,
        }
    }

    /// The type that the executor has values in.
    pub(crate) fn data_type(self) -> DataType {
        let other = |oid| DataType::Other { oid, typmod: -1 };
        match self {
            Kind::Oid => DataType::Oid,
            Kind::Xid => other(XID),
            Kind::Lsn => other(PG_LSN),
            Kind::Int8 => DataType::Int8,
            Kind::Name => DataType::Name,
            Kind::Text | Kind::Char => DataType::Text,
            Kind::Bool => DataType::Bool,
            Kind::Int2 => DataType::Int2,
            Kind::Int4 => DataType::Int4,
            Kind::Float4 => DataType::Float4,
            Kind::Float8 => DataType::Float8,
            Kind::Numeric => DataType::Numeric { precision_scale: None },
            Kind::TimestampTz => DataType::Timestamptz(None),
            Kind::Interval => other(INTERVAL),
            Kind::TextArray | Kind::CharArray | Kind::AclArray => other(TEXT_ARRAY),
            Kind::Int2Array => other(INT2_ARRAY),
            Kind::OidArray => other(OID_ARRAY),
            Kind::Int2Vector => other(INT2VECTOR),
            Kind::OidVector => other(OIDVECTOR),
            Kind::TypeArray => other(REGTYPE_ARRAY),
        }
    }

    /// A cell of a column of this type as the executor has it.
    pub(crate) fn value(self, cell: Cell) -> Result<Value> {
        Ok(match (self, cell) {
            (_, Cell::Null) => Value::Null,
            (_, Cell::Bool(value)) => Value::Bool(value),
            (_, Cell::Text(text)) => Value::Text(text),
            (Kind::Int2, Cell::Int(int)) => i16::try_from(int).map_or(Value::Null, Value::Int2),
            (Kind::Int4, Cell::Int(int)) => i32::try_from(int).map_or(Value::Null, Value::Int4),
            (Kind::Numeric, Cell::Int(int)) => Value::Numeric(Numeric::from(int)),
            (Kind::TimestampTz, Cell::Int(us)) => Value::Timestamptz(us.saturating_sub(EPOCH_US)),
            (Kind::Interval, Cell::Int(usecs)) => Interval { months: 0, days: 0, usecs }.into(),
            (Kind::Float8, Cell::Int(int)) => Value::Float8(int as f64),
            (Kind::Float4, Cell::Int(int)) => Value::Float4(int as f32),
            // A transaction has 64 bits, of which clients see the low half.
            (Kind::Xid, Cell::Int(xid)) => format::xid(XID, xid as u32),
            (Kind::Lsn, Cell::Int(lsn)) => format::lsn(lsn.cast_unsigned()),
            (_, Cell::Int(int)) => Value::Int8(int),
            (Kind::Float4, Cell::Float(float)) => Value::Float4(float as f32),
            (_, Cell::Float(float)) => Value::Float8(float),
            (Kind::TypeArray, Cell::Ints(oids)) => {
                let types: Vec<Value> = oids.iter().map(|oid| type_value(*oid)).collect();
                self.array(types.len(), &mut types.iter().map(Value::as_datum))?
            }
            (kind, Cell::Ints(ints)) => kind.array(
                ints.len(),
                &mut ints.iter().map(|int| match kind.data_type().element() {
                    Some(DataType::Int2) => Datum::Int2(*int as i16),
                    _ => Datum::Int8(*int),
                }),
            )?,
            (kind, Cell::Texts(texts)) => {
                kind.array(texts.len(), &mut texts.iter().map(|text| Datum::Text(text)))?
            }
        })
    }

    fn array<'a>(
        self,
        length: usize,
        elements: &mut dyn Iterator<Item = Datum<'a>>,
    ) -> Result<Value> {
        let oid = self.data_type().oid();
        let lower = if is_vector(oid) { 0 } else { 1 };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Ok(array::build(oid, &[Dimension { length, lower }], elements)?)
    }
}

const TEXT_ARRAY: u32 = 1009;
const INT2_ARRAY: u32 = 1005;
const OID_ARRAY: u32 = 1028;
const REGTYPE_ARRAY: u32 = 2211;

/// A type as a value.
fn type_value(oid: i64) -> Value {
    let number = u32::try_from(oid).unwrap_or(0);
    let name = DataType::from_oid(number, -1).map(|ty| ty.to_string()).unwrap_or_default();
    object_value(REGTYPE, number, &name)
}
