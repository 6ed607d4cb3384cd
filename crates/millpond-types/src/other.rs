//! Types that exist as values, not as columns of tables: the engine holds a value as the type's
//! number and bytes.
//!
//! A table says per type what the engine needs: its names, its width and how its bytes become an
//! index key. Comparison, equality and hashing follow from the key, because a key's byte order is
//! SQL's order. The bytes are:
//!
//! ```text
//! time        microseconds since midnight (i64)
//! timetz      the same (i64), then seconds west of UTC (i32)
//! interval    microseconds (i64), days (i32), months (i32)
//! uuid        its 16 bytes
//! tid         the block (u32), then the row's number in it (u16), both big-endian
//! xid, cid    the number (u32), big-endian
//! xid8        the number (u64), big-endian
//! pg_lsn      the position (u64), big-endian
//! json        the text
//! jsonb       a tree, see `jsonb`
//! arrays      see `array`
//! record      see `record`
//! regclass    the object's number (u32), then its name when the value was made
//! ```
//!
//! Numbers are little-endian.

mod interval;

use std::cmp::Ordering;

pub use interval::{INTERVAL_FIELDS, Interval};

use super::key::encode_any;
use super::{DataType, Datum, NumericRef, Value};

/// `time without time zone`
pub const TIME: u32 = 1083;
/// `time with time zone`
pub const TIMETZ: u32 = 1266;
/// `interval`
pub const INTERVAL: u32 = 1186;
/// `uuid`
pub const UUID: u32 = 2950;
/// `tid`
pub const TID: u32 = 27;
/// `xid`
pub const XID: u32 = 28;
/// `cid`
pub const CID: u32 = 29;
/// `xid8`
pub const XID8: u32 = 5069;
/// `pg_lsn`
pub const PG_LSN: u32 = 3220;
/// `json`
pub const JSON: u32 = 114;
/// `jsonb`
pub const JSONB: u32 = 3802;
/// `jsonpath`: its text, in the form that is printed.
pub const JSONPATH: u32 = 4072;

/// `record`
pub const RECORD: u32 = 2249;

/// `regclass`
pub const REGCLASS: u32 = 2205;
/// `regnamespace`
pub const REGNAMESPACE: u32 = 4089;
/// `regproc`
pub const REGPROC: u32 = 24;
/// `regprocedure`
pub const REGPROCEDURE: u32 = 2202;
/// `regrole`
pub const REGROLE: u32 = 4096;
/// `regtype`
pub const REGTYPE: u32 = 2206;

/// `int2vector`, an array of numbers whose text has no braces, with subscripts from 0.
pub const INT2VECTOR: u32 = 22;
/// `oidvector`, likewise.
pub const OIDVECTOR: u32 = 30;

/// How a type's bytes are appended to a key; `None` if the type has no order, or the bytes are
/// damaged.
type EncodeKey = fn(&[u8], &mut Vec<u8>) -> Option<()>;

/// What the engine knows about a type.
#[derive(Debug)]
pub struct OtherType {
    /// PostgreSQL's `pg_type.oid`.
    pub oid: u32,
    /// PostgreSQL's `pg_type.typname`.
    pub name: &'static str,
    /// The name as `format_type` prints it; of an array, that of its elements.
    pub title: &'static str,
    /// PostgreSQL's `pg_type.typlen`.
    pub typlen: i16,
    /// The type of an array's elements.
    pub element: Option<u32>,
    encode_key: EncodeKey,
}

const fn scalar(
    oid: u32,
    name: &'static str,
    title: &'static str,
    typlen: i16,
    encode_key: EncodeKey,
) -> OtherType {
    OtherType { oid, name, title, typlen, element: None, encode_key }
}

/// A type whose values name objects of the catalog.
const fn object(oid: u32, name: &'static str) -> OtherType {
    scalar(oid, name, name, 4, |bytes, out| {
        let (number, _) = object_parts(bytes)?;
        encode_any(&Datum::Int8(number.into()), out)
    })
}

macro_rules! arrays {
    ($($oid:literal $name:literal $title:literal of $element:literal;)*) => {
        [$(OtherType {
            oid: $oid,
            name: $name,
            title: $title,
            typlen: -1,
            element: Some($element),
            encode_key: |bytes, out| super::array::encode_key($element, bytes, out),
        }),*]
    };
}

/// The types that are not arrays.
static SCALARS: [OtherType; 19] = [
    scalar(TIME, "time", "time without time zone", 8, |bytes, out| {
        let usecs = i64::from_le_bytes(bytes.try_into().ok()?);
        encode_any(&Datum::Int8(usecs), out)
    }),
    scalar(TIMETZ, "timetz", "time with time zone", 12, |bytes, out| {
        let (usecs, west) = timetz_parts(bytes)?;
        encode_any(&Datum::Int8(usecs.checked_add(i64::from(west) * 1_000_000)?), out)?;
        encode_any(&Datum::Int4(west), out)
    }),
    scalar(INTERVAL, "interval", "interval", 16, |bytes, out| {
        let span = Interval::from_bytes(bytes)?.span();
        out.extend_from_slice(&((span as u128) ^ 1 << 127).to_be_bytes());
        Some(())
    }),
    scalar(UUID, "uuid", "uuid", 16, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(TID, "tid", "tid", 6, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(XID, "xid", "xid", 4, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(CID, "cid", "cid", 4, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(XID8, "xid8", "xid8", 8, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(PG_LSN, "pg_lsn", "pg_lsn", 8, |bytes, out| {
        out.extend_from_slice(bytes);
        Some(())
    }),
    scalar(JSON, "json", "json", -1, |_, _| None),
    scalar(JSONB, "jsonb", "jsonb", -1, super::jsonb::encode_key),
    scalar(JSONPATH, "jsonpath", "jsonpath", -1, |_, _| None),
    scalar(RECORD, "record", "record", -1, super::record::encode_key),
    object(REGCLASS, "regclass"),
    object(REGNAMESPACE, "regnamespace"),
    object(REGPROC, "regproc"),
    object(REGPROCEDURE, "regprocedure"),
    object(REGROLE, "regrole"),
    object(REGTYPE, "regtype"),
];

/// The arrays.
static ARRAYS: [OtherType; 35] = arrays! {
    1000 "_bool" "boolean" of 16;
    2287 "_record" "record" of 2249;
    1001 "_bytea" "bytea" of 17;
    1016 "_int8" "bigint" of 20;
    1005 "_int2" "smallint" of 21;
    1007 "_int4" "integer" of 23;
    1003 "_name" "name" of 19;
    1009 "_text" "text" of 25;
    1010 "_tid" "tid" of 27;
    1011 "_xid" "xid" of 28;
    1012 "_cid" "cid" of 29;
    271 "_xid8" "xid8" of 5069;
    3221 "_pg_lsn" "pg_lsn" of 3220;
    1028 "_oid" "oid" of 26;
    1021 "_float4" "real" of 700;
    1022 "_float8" "double precision" of 701;
    1014 "_bpchar" "character" of 1042;
    1015 "_varchar" "character varying" of 1043;
    1182 "_date" "date" of 1082;
    1115 "_timestamp" "timestamp without time zone" of 1114;
    1185 "_timestamptz" "timestamp with time zone" of 1184;
    1231 "_numeric" "numeric" of 1700;
    1183 "_time" "time without time zone" of 1083;
    1270 "_timetz" "time with time zone" of 1266;
    1187 "_interval" "interval" of 1186;
    2951 "_uuid" "uuid" of 2950;
    199 "_json" "json" of 114;
    3807 "_jsonb" "jsonb" of 3802;
    4073 "_jsonpath" "jsonpath" of 4072;
    2210 "_regclass" "regclass" of 2205;
    4090 "_regnamespace" "regnamespace" of 4089;
    1008 "_regproc" "regproc" of 24;
    2207 "_regprocedure" "regprocedure" of 2202;
    4097 "_regrole" "regrole" of 4096;
    2211 "_regtype" "regtype" of 2206;
};

/// The arrays that no type has as that of its arrays.
static VECTORS: [OtherType; 2] = {
    let [int2vector, mut oidvector] = arrays! {
        22 "int2vector" "int2vector" of 21;
        30 "oidvector" "oidvector" of 26;
    };
    oidvector.encode_key = encode_oidvector_key;
    [int2vector, oidvector]
};

/// The longer vector comes last, whatever is in it.
fn encode_oidvector_key(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let array = super::array::ArrayRef::from_bytes(DataType::Oid.oid(), bytes)?;
    out.extend_from_slice(&u32::try_from(array.iter().count()).ok()?.to_be_bytes());
    super::array::encode_key(DataType::Oid.oid(), bytes, out)
}

/// All types that are held as bytes.
pub fn types() -> impl Iterator<Item = &'static OtherType> {
    SCALARS.iter().chain(&ARRAYS).chain(&VECTORS)
}

/// Whether it is `int2vector` or `oidvector`.
pub const fn is_vector(oid: u32) -> bool {
    matches!(oid, INT2VECTOR | OIDVECTOR)
}

/// What is known about a type; `None` if it is not one of these.
pub fn find(oid: u32) -> Option<&'static OtherType> {
    types().find(|ty| ty.oid == oid)
}

/// The type of arrays of these elements.
pub fn array_of(element: u32) -> Option<&'static OtherType> {
    ARRAYS.iter().find(|ty| ty.element == Some(element))
}

/// Appends the key of a value: keys compare bytewise as the values do, and are equal when the
/// values are. `None` if the type has no order, or the bytes are damaged.
pub fn encode_key(oid: u32, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    (find(oid)?.encode_key)(bytes, out)
}

/// Compares two values of one type; `None` if it has no order.
pub fn compare(oid: u32, a: &[u8], b: &[u8]) -> Option<Ordering> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    encode_key(oid, a, &mut left)?;
    encode_key(oid, b, &mut right)?;
    Some(left.cmp(&right))
}

/// The name as `format_type` prints it.
pub(super) fn write_name(
    ty: &OtherType,
    typmod: i32,
    f: &mut std::fmt::Formatter<'_>,
) -> std::fmt::Result {
    use std::fmt::Display;
    if let Some(element) = ty.element
        && !is_vector(ty.oid)
    {
        return match DataType::from_oid(element, typmod) {
            Some(element) if typmod != -1 => write!(f, "{element}[]"),
            _ => write!(f, "{}[]", ty.title),
        };
    }
    match (ty.oid, typmod) {
        (_, -1) => ty.title.fmt(f),
        (TIME, precision) => write!(f, "time({precision}) without time zone"),
        (TIMETZ, precision) => write!(f, "time({precision}) with time zone"),
        (INTERVAL, typmod) => interval::write_name(typmod, f),
        _ => ty.title.fmt(f),
    }
}

/// A time of day and its zone, in seconds west of UTC.
pub fn timetz_parts(bytes: &[u8]) -> Option<(i64, i32)> {
    let (usecs, west) = bytes.split_first_chunk()?;
    Some((i64::from_le_bytes(*usecs), i32::from_le_bytes(west.try_into().ok()?)))
}

/// Whether a type's values name objects of the catalog.
pub const fn names_objects(oid: u32) -> bool {
    matches!(oid, REGCLASS | REGNAMESPACE | REGPROC | REGPROCEDURE | REGROLE | REGTYPE)
}

/// The number and the name of an object.
pub fn object_parts(bytes: &[u8]) -> Option<(u32, &str)> {
    let (number, name) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), std::str::from_utf8(name).ok()?))
}

/// A value that names an object, of the type with this number.
pub fn object_value(oid: u32, number: u32, name: &str) -> Value {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    Value::Other(oid, bytes.into())
}

impl<'a> Datum<'a> {
    /// A value of this type from the bytes that [`Datum::push_bytes`] has made.
    pub fn from_bytes(oid: u32, bytes: &'a [u8]) -> Option<Self> {
        Some(match DataType::from_oid(oid, -1)? {
            DataType::Bool => Datum::Bool(*bytes.first()? != 0),
            DataType::Int2 => Datum::Int2(i16::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Int4 => Datum::Int4(i32::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Int8 | DataType::Oid => {
                Datum::Int8(i64::from_le_bytes(bytes.try_into().ok()?))
            }
            DataType::Float4 => Datum::Float4(f32::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Float8 => Datum::Float8(f64::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Date => Datum::Date(i32::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Timestamp(_) => Datum::Timestamp(i64::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Timestamptz(_) => {
                Datum::Timestamptz(i64::from_le_bytes(bytes.try_into().ok()?))
            }
            DataType::Numeric { .. } => Datum::Numeric(NumericRef::from_bytes(bytes)?),
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
                Datum::Text(std::str::from_utf8(bytes).ok()?)
            }
            DataType::Bytea => Datum::Bytea(bytes),
            DataType::Other { oid, .. } => Datum::Other(oid, bytes),
        })
    }

    /// Appends the bytes of a value that is not NULL (of NULL: nothing).
    pub fn push_bytes(&self, out: &mut Vec<u8>) {
        match *self {
            Datum::Null => {}
            Datum::Bool(v) => out.push(u8::from(v)),
            Datum::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
            Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
            Datum::Int8(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
                out.extend_from_slice(&v.to_le_bytes());
            }
            Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
            Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
            Datum::Numeric(v) => out.extend_from_slice(v.bytes()),
            Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
            Datum::Bytea(v) | Datum::Other(_, v) => out.extend_from_slice(v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_types_are_distinct() {
        let mut oids = Vec::from_iter(types().map(|ty| ty.oid));
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), types().count());
        for ty in types() {
            assert_eq!(DataType::from_oid(ty.oid, -1).map(DataType::oid), Some(ty.oid));
            if let Some(element) = ty.element
                && !is_vector(ty.oid)
            {
                assert_eq!(array_of(element).map(|found| found.oid), Some(ty.oid));
            }
        }
    }

    #[test]
    fn times_with_zones_compare_at_one_meridian_first() {
        let of = |usecs: i64, west: i32| {
            let mut bytes = usecs.to_le_bytes().to_vec();
            bytes.extend_from_slice(&west.to_le_bytes());
            bytes
        };
        let hour = 3_600_000_000;
        let noon = of(12 * hour, 0);
        assert_eq!(compare(TIMETZ, &noon, &of(13 * hour, -3600)), Some(Ordering::Greater));
        assert_eq!(compare(TIMETZ, &noon, &of(12 * hour, 3600)), Some(Ordering::Less));
        assert_eq!(compare(TIMETZ, &noon, &[1]), None);
    }
}
