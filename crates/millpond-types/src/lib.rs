#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod array;
pub mod compare;
mod datum;
pub mod error;
pub mod format;
pub mod jsonb;
pub mod key;
pub mod numeric;
pub mod other;
pub mod record;
pub mod sqlstate;
mod string_key;
pub mod tuple;

pub use datum::{Datum, Value};
pub use error::DataException;
pub use numeric::{Numeric, NumericRef};
pub use other::Interval;
pub use sqlstate::SqlState;
pub use tuple::{ColumnOffsets, Int, IntWidth};

/// The date after every other.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The date before every other.
pub const DATE_NEG_INFINITY: i32 = i32::MIN;
/// The time stamp after every other.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// The time stamp before every other.
pub const TIMESTAMP_NEG_INFINITY: i64 = i64::MIN;

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's dates and time stamps begin.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// The current time stamp, UTC.
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
    /// `oid`: a number without sign in 32 bits, whose value is held as a bigint. No column's yet.
    Oid,
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
    /// `character(n)`: stored without its trailing spaces, which do not count in comparisons. They
    /// are added again when the value is printed. 0 is `bpchar` without a length.
    Char(u32),
    /// `name`: at most 63 bytes of text. What is longer is cut.
    Name,
    /// `bytea`
    Bytea,
    /// `date`: days since 2000-01-01
    Date,
    /// `timestamp without time zone`: microseconds since 2000-01-01
    Timestamp(Option<u8>),
    /// `timestamp with time zone`: microseconds since 2000-01-01 UTC
    Timestamptz(Option<u8>),
    /// A type that is no column's: see [`other`].
    Other {
        /// PostgreSQL's `pg_type.oid`.
        oid: u32,
        /// PostgreSQL's `pg_attribute.atttypmod`.
        typmod: i32,
    },
}

impl DataType {
    /// PostgreSQL's `pg_type.oid`.
    pub const fn oid(self) -> u32 {
        match self {
            Self::Bool => 16,
            Self::Bytea => 17,
            Self::Name => 19,
            Self::Int8 => 20,
            Self::Oid => 26,
            Self::Int2 => 21,
            Self::Int4 => 23,
            Self::Text => 25,
            Self::Float4 => 700,
            Self::Float8 => 701,
            Self::Char(_) => 1042,
            Self::Varchar(_) => 1043,
            Self::Date => 1082,
            Self::Timestamp(_) => 1114,
            Self::Timestamptz(_) => 1184,
            Self::Numeric { .. } => 1700,
            Self::Other { oid, .. } => oid,
        }
    }

    /// PostgreSQL's `pg_type.typlen`: the width in bytes, or -1 for variable width.
    pub fn typlen(self) -> i16 {
        match self {
            Self::Bool => 1,
            Self::Int2 => 2,
            Self::Int4 | Self::Float4 | Self::Date | Self::Oid => 4,
            Self::Int8 | Self::Float8 | Self::Timestamp(_) | Self::Timestamptz(_) => 8,
            Self::Numeric { .. } | Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Bytea => {
                -1
            }
            Self::Name => 64,
            Self::Other { oid, .. } => other::find(oid).map_or(-1, |ty| ty.typlen),
        }
    }

    /// PostgreSQL's `pg_attribute.atttypmod`: -1 without a modifier.
    pub const fn typmod(self) -> i32 {
        match self {
            Self::Char(0) => -1,
            Self::Varchar(Some(n)) | Self::Char(n) => n as i32 + 4,
            Self::Numeric { precision_scale: Some((precision, scale)) } => {
                (((precision as i32) << 16) | (scale as i32 & 0x7ff)) + 4
            }
            Self::Timestamp(Some(digits)) | Self::Timestamptz(Some(digits)) => digits as i32,
            // Below -1 are numbers of record types, which mean something within a statement only.
            Self::Other { typmod: ..-1, .. } => -1,
            Self::Other { typmod, .. } => typmod,
            _ => -1,
        }
    }

    /// PostgreSQL's `pg_type.typname`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytea => "bytea",
            Self::Name => "name",
            Self::Int8 => "int8",
            Self::Oid => "oid",
            Self::Int2 => "int2",
            Self::Int4 => "int4",
            Self::Text => "text",
            Self::Float4 => "float4",
            Self::Float8 => "float8",
            Self::Char(_) => "bpchar",
            Self::Varchar(_) => "varchar",
            Self::Date => "date",
            Self::Timestamp(_) => "timestamp",
            Self::Timestamptz(_) => "timestamptz",
            Self::Numeric { .. } => "numeric",
            Self::Other { oid, .. } => other::find(oid).map_or("unknown", |ty| ty.name),
        }
    }

    /// The type with this PostgreSQL number and modifier; `None` if Millpond has no such type.
    pub fn from_oid(oid: u32, typmod: i32) -> Option<Self> {
        let length = typmod.checked_sub(4).and_then(|length| u32::try_from(length).ok());
        let digits = u8::try_from(typmod).ok();
        Some(match oid {
            16 => Self::Bool,
            17 => Self::Bytea,
            19 => Self::Name,
            20 => Self::Int8,
            21 => Self::Int2,
            23 => Self::Int4,
            25 => Self::Text,
            26 => Self::Oid,
            700 => Self::Float4,
            701 => Self::Float8,
            1042 => Self::Char(length.unwrap_or(0)),
            1043 => Self::Varchar(length),
            1082 => Self::Date,
            1114 => Self::Timestamp(digits),
            1184 => Self::Timestamptz(digits),
            1700 => Self::Numeric {
                precision_scale: length.map(|packed| {
                    // The scale is an 11-bit signed number.
                    let scale = ((packed & 0x7ff) ^ 1024) as i16 - 1024;
                    ((packed >> 16) as u16, scale)
                }),
            },
            _ => Self::Other { oid: other::find(oid)?.oid, typmod },
        })
    }

    /// The same type without its modifier. (`char` always keeps its length.)
    pub const fn base(self) -> Self {
        match self {
            Self::Numeric { .. } => Self::Numeric { precision_scale: None },
            Self::Varchar(_) => Self::Varchar(None),
            Self::Timestamp(_) => Self::Timestamp(None),
            Self::Timestamptz(_) => Self::Timestamptz(None),
            Self::Other { oid, .. } => Self::Other { oid, typmod: -1 },
            other => other,
        }
    }

    /// Bytes of a value in a stored row, if all values have the same width.
    #[inline]
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            // As a bigint.
            Self::Oid => Some(8),
            // As text.
            Self::Name => None,
            _ => usize::try_from(self.typlen()).ok(),
        }
    }

    /// Whether tables can have columns of the type.
    pub const fn is_storable(self) -> bool {
        !matches!(self, Self::Other { .. } | Self::Oid)
    }

    /// Whether its values name objects of the catalog, as those of `regclass` do.
    pub const fn names_objects(self) -> bool {
        matches!(self, Self::Other { oid, .. } if other::names_objects(oid))
    }

    /// The type of an array's elements; `None` if it is no array.
    pub fn element(self) -> Option<Self> {
        match self {
            Self::Other { oid, typmod } => Self::from_oid(other::find(oid)?.element?, typmod),
            _ => None,
        }
    }

    /// The type of arrays of this type; `None` if there is none.
    pub fn array(self) -> Option<Self> {
        let array = other::array_of(self.oid())?;
        Some(Self::Other { oid: array.oid, typmod: self.typmod() })
    }

    /// Whether values are character strings.
    pub const fn is_string(self) -> bool {
        matches!(self, Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Name)
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
            Self::Oid => f.write_str("oid"),
            Self::Float4 => f.write_str("real"),
            Self::Float8 => f.write_str("double precision"),
            Self::Numeric { precision_scale: None } => f.write_str("numeric"),
            Self::Numeric { precision_scale: Some((p, s)) } => write!(f, "numeric({p},{s})"),
            Self::Text => f.write_str("text"),
            Self::Varchar(None) => f.write_str("character varying"),
            Self::Varchar(Some(n)) => write!(f, "character varying({n})"),
            Self::Char(0) => f.write_str("character"),
            Self::Char(n) => write!(f, "character({n})"),
            Self::Name => f.write_str("name"),
            Self::Bytea => f.write_str("bytea"),
            Self::Date => f.write_str("date"),
            Self::Timestamp(None) => f.write_str("timestamp without time zone"),
            Self::Timestamp(Some(digits)) => write!(f, "timestamp({digits}) without time zone"),
            Self::Timestamptz(None) => f.write_str("timestamp with time zone"),
            Self::Timestamptz(Some(digits)) => write!(f, "timestamp({digits}) with time zone"),
            Self::Other { oid, typmod } => match other::find(*oid) {
                Some(ty) => other::write_name(ty, *typmod, f),
                None => write!(f, "type {oid}"),
            },
        }
    }
}

#[cfg(test)]
mod tests;
