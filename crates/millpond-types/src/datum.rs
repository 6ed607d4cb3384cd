//! One value: [`Datum`] borrows its bytes (from a page's copy, a message, a literal), [`Value`]
//! owns them.

use super::numeric::{Numeric, NumericRef};

/// A borrowed value of any type, or NULL. Small and cheap to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Datum<'a> {
    /// The absence of a value.
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(NumericRef<'a>),
    /// `text`, `varchar`, and `char` without its trailing spaces
    Text(&'a str),
    /// `bytea`
    Bytea(&'a [u8]),
    /// Days since 2000-01-01
    Date(i32),
    /// Microseconds since 2000-01-01
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC
    Timestamptz(i64),
    /// A value of the type of this number, as [`super::other`] lays it out
    Other(u32, &'a [u8]),
}

/// An owned value of any type, or NULL. Two are equal if they are the same in every respect:
/// numbers with as many decimals, zeros of one sign, and a NaN is itself. [`Datum::sql_cmp`]
/// compares as SQL does.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// The absence of a value.
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar`, and `char` without its trailing spaces
    Text(String),
    /// `bytea`
    Bytea(Vec<u8>),
    /// Days since 2000-01-01
    Date(i32),
    /// Microseconds since 2000-01-01
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC
    Timestamptz(i64),
    /// A value of the type of this number, as [`super::other`] lays it out
    Other(u32, Box<[u8]>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self.as_datum(), other.as_datum()) {
            (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.bytes() == b.bytes(),
            (a, b) => a == b,
        }
    }
}

impl Datum<'_> {
    /// Whether this is NULL.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A copy that owns its bytes.
    pub fn to_value(&self) -> Value {
        match *self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(v),
            Self::Int2(v) => Value::Int2(v),
            Self::Int4(v) => Value::Int4(v),
            Self::Int8(v) => Value::Int8(v),
            Self::Float4(v) => Value::Float4(v),
            Self::Float8(v) => Value::Float8(v),
            Self::Numeric(v) => Value::Numeric(v.to_owned()),
            Self::Text(v) => Value::Text(v.to_owned()),
            Self::Bytea(v) => Value::Bytea(v.to_owned()),
            Self::Date(v) => Value::Date(v),
            Self::Timestamp(v) => Value::Timestamp(v),
            Self::Timestamptz(v) => Value::Timestamptz(v),
            Self::Other(oid, v) => Value::Other(oid, v.into()),
        }
    }

    /// The value as a 64-bit integer, if it is of an integer type.
    pub const fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Int2(v) => Some(v as i64),
            Self::Int4(v) => Some(v as i64),
            Self::Int8(v) => Some(v),
            _ => None,
        }
    }
}

impl Value {
    /// Whether this is NULL.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value, borrowed.
    pub fn as_datum(&self) -> Datum<'_> {
        match self {
            Self::Null => Datum::Null,
            Self::Bool(v) => Datum::Bool(*v),
            Self::Int2(v) => Datum::Int2(*v),
            Self::Int4(v) => Datum::Int4(*v),
            Self::Int8(v) => Datum::Int8(*v),
            Self::Float4(v) => Datum::Float4(*v),
            Self::Float8(v) => Datum::Float8(*v),
            Self::Numeric(v) => Datum::Numeric(v.as_ref()),
            Self::Text(v) => Datum::Text(v),
            Self::Bytea(v) => Datum::Bytea(v),
            Self::Date(v) => Datum::Date(*v),
            Self::Timestamp(v) => Datum::Timestamp(*v),
            Self::Timestamptz(v) => Datum::Timestamptz(*v),
            Self::Other(oid, v) => Datum::Other(*oid, v),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}
value_from!(bool => Bool, i16 => Int2, i32 => Int4, i64 => Int8, f32 => Float4, f64 => Float8,
    Numeric => Numeric, String => Text, Vec<u8> => Bytea);

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytea(value.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
