//! SQL's types as the engine stores, compares and orders them.
//!
//! - [`DataType`]: a column's type with its modifier, and PostgreSQL's names and numbers for it;
//! - [`Datum`] (borrowed) and [`Value`] (owned): one value of any type, or NULL;
//! - [`numeric`]: exact decimal numbers, their storage form and arithmetic;
//! - [`mod@tuple`]: a row as bytes;
//! - [`key`]: index keys as byte strings whose order is SQL's order.
//!
//! Text formats and the wire's binary formats are not here: they belong to the layer that talks
//! to clients.

mod compare;
mod datum;
pub mod key;
pub mod numeric;
pub mod tuple;

pub use datum::{Datum, Value};
pub use numeric::{Numeric, NumericRef};

/// The date after every other.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The date before every other.
pub const DATE_NEG_INFINITY: i32 = i32::MIN;
/// The time stamp after every other.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// The time stamp before every other.
pub const TIMESTAMP_NEG_INFINITY: i64 = i64::MIN;

/// Microseconds from 1970-01-01 to 2000-01-01, from which dates and time stamps are counted, as PostgreSQL
/// counts them.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// The time stamp of now, UTC.
pub fn current_timestamp() -> i64 {
    let since_1970 = millpond_sync::clock::since_1970();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX) - EPOCH_2000_US
}

/// A column's type, with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric` or `numeric(precision, scale)`
    Numeric {
        /// Digits in all, and digits after the point (may be negative, or exceed the precision).
        precision_scale: Option<(u16, i16)>,
    },
    /// `text`
    Text,
    /// `character varying(n)`, `n` in characters
    Varchar(Option<u32>),
    /// `character(n)`: stored without its trailing spaces, which do not count in comparisons;
    /// printed with them.
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`: days since 2000-01-01
    Date,
    /// `timestamp without time zone`: microseconds since 2000-01-01
    Timestamp,
    /// `timestamp with time zone`: microseconds since 2000-01-01 UTC
    Timestamptz,
}

impl DataType {
    /// PostgreSQL's `pg_type.oid`.
    pub const fn oid(self) -> u32 {
        match self {
            Self::Bool => 16,
            Self::Bytea => 17,
            Self::Int8 => 20,
            Self::Int2 => 21,
            Self::Int4 => 23,
            Self::Text => 25,
            Self::Float4 => 700,
            Self::Float8 => 701,
            Self::Char(_) => 1042,
            Self::Varchar(_) => 1043,
            Self::Date => 1082,
            Self::Timestamp => 1114,
            Self::Timestamptz => 1184,
            Self::Numeric { .. } => 1700,
        }
    }

    /// PostgreSQL's `pg_type.typlen`: the width in bytes, or -1 for variable width.
    pub const fn typlen(self) -> i16 {
        match self {
            Self::Bool => 1,
            Self::Int2 => 2,
            Self::Int4 | Self::Float4 | Self::Date => 4,
            Self::Int8 | Self::Float8 | Self::Timestamp | Self::Timestamptz => 8,
            Self::Numeric { .. } | Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Bytea => {
                -1
            }
        }
    }

    /// PostgreSQL's `pg_attribute.atttypmod`: -1 without a modifier.
    pub const fn typmod(self) -> i32 {
        match self {
            Self::Varchar(Some(n)) | Self::Char(n) => n as i32 + 4,
            Self::Numeric { precision_scale: Some((precision, scale)) } => {
                (((precision as i32) << 16) | (scale as i32 & 0x7ff)) + 4
            }
            _ => -1,
        }
    }

    /// PostgreSQL's `pg_type.typname`.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytea => "bytea",
            Self::Int8 => "int8",
            Self::Int2 => "int2",
            Self::Int4 => "int4",
            Self::Text => "text",
            Self::Float4 => "float4",
            Self::Float8 => "float8",
            Self::Char(_) => "bpchar",
            Self::Varchar(_) => "varchar",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::Numeric { .. } => "numeric",
        }
    }

    /// The type of PostgreSQL's number and modifier; `None` when there is none such here.
    pub fn from_oid(oid: u32, typmod: i32) -> Option<Self> {
        let length = typmod.checked_sub(4).and_then(|length| u32::try_from(length).ok());
        Some(match oid {
            16 => Self::Bool,
            17 => Self::Bytea,
            20 => Self::Int8,
            21 => Self::Int2,
            23 => Self::Int4,
            25 => Self::Text,
            700 => Self::Float4,
            701 => Self::Float8,
            1042 => Self::Char(length.unwrap_or(1)),
            1043 => Self::Varchar(length),
            1082 => Self::Date,
            1114 => Self::Timestamp,
            1184 => Self::Timestamptz,
            1700 => Self::Numeric {
                precision_scale: length.map(|packed| {
                    // The scale is an 11-bit signed number.
                    let scale = ((packed & 0x7ff) ^ 1024) as i16 - 1024;
                    ((packed >> 16) as u16, scale)
                }),
            },
            _ => return None,
        })
    }

    /// The same type without its modifier (`char` has none without).
    pub const fn base(self) -> Self {
        match self {
            Self::Numeric { .. } => Self::Numeric { precision_scale: None },
            Self::Varchar(_) => Self::Varchar(None),
            other => other,
        }
    }

    /// Bytes in a stored row, when every value takes as many.
    pub const fn fixed_width(self) -> Option<usize> {
        match self.typlen() {
            -1 => None,
            width => Some(width as usize),
        }
    }

    /// Whether values are character strings.
    pub const fn is_string(self) -> bool {
        matches!(self, Self::Text | Self::Varchar(_) | Self::Char(_))
    }
}

/// The name as PostgreSQL's `format_type` prints it.
impl std::fmt::Display for DataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool => f.write_str("boolean"),
            Self::Int2 => f.write_str("smallint"),
            Self::Int4 => f.write_str("integer"),
            Self::Int8 => f.write_str("bigint"),
            Self::Float4 => f.write_str("real"),
            Self::Float8 => f.write_str("double precision"),
            Self::Numeric { precision_scale: None } => f.write_str("numeric"),
            Self::Numeric { precision_scale: Some((p, s)) } => write!(f, "numeric({p},{s})"),
            Self::Text => f.write_str("text"),
            Self::Varchar(None) => f.write_str("character varying"),
            Self::Varchar(Some(n)) => write!(f, "character varying({n})"),
            Self::Char(n) => write!(f, "character({n})"),
            Self::Bytea => f.write_str("bytea"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp without time zone"),
            Self::Timestamptz => f.write_str("timestamp with time zone"),
        }
    }
}

#[cfg(test)]
mod tests;
