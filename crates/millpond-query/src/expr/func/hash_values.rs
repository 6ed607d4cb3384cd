//! Hashes of values that are made of others: arrays, records and `jsonb`.

use millpond_types::array::ArrayRef;
use millpond_types::jsonb::Json;
use millpond_types::other::{self, timetz_parts};
use millpond_types::{Interval, record};

use super::Body;
use super::catalog::{
    ANYARRAY, BPCHAR, INT4, INT8, JSONB_TYPE, OIDVECTOR_TYPE, Proc, RECORD_TYPE, TID_TYPE, proc,
};
use super::hash::{Seed, bytes, float, long, low, numeric, span, word};
use super::value::wrong_arguments;
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::array_of;
use crate::types::time::time_usecs;
use crate::types::{number_of, tid_image};
use crate::{DataType, Datum, Value};

/// A hash of a value, as the argument of a function.
type Hash = fn(&Datum<'_>, Seed) -> Result<u64>;

/// A function of 32 bits, and the one of 64 bits that takes a seed as well.
macro_rules! hash {
    ($oid:literal $name:literal, $extended_oid:literal $extended:literal: $param:expr, $hash:expr) => {
        [
            proc($oid, $name, &[$param], INT4, Body::Datums(|args, _| short(args, $hash))),
            proc(
                $extended_oid,
                $extended,
                &[$param, INT8],
                INT8,
                Body::Datums(|args, _| seeded(args, $hash)),
            ),
        ]
    };
}

static OF_TYPES: [[Proc; 2]; 6] = [
    hash!(626 "hash_array", 782 "hash_array_extended": ANYARRAY, of_value),
    hash!(6192 "hash_record", 6193 "hash_record_extended": RECORD_TYPE, of_value),
    hash!(4045 "jsonb_hash", 3416 "jsonb_hash_extended": JSONB_TYPE, of_value),
    hash!(1080 "hashbpchar", 972 "hashbpcharextended": BPCHAR, |value, seed| {
        hash_of(DataType::Char(0).oid(), value, seed)
    }),
    hash!(457 "hashoidvector", 776 "hashoidvectorextended": OIDVECTOR_TYPE, of_value),
    hash!(2233 "hashtid", 2234 "hashtidextended": TID_TYPE, of_value),
];

pub(super) static PROCS: &[Proc] = OF_TYPES.as_flattened();

fn short(args: &[Datum<'_>], hash: Hash) -> Result<Value> {
    let [value] = args else { return Err(wrong_arguments(args.len())) };
    Ok(Value::Int4(low(hash(value, Seed::None)?)))
}

fn seeded(args: &[Datum<'_>], hash: Hash) -> Result<Value> {
    let [value, Datum::Int8(seed)] = args else { return Err(wrong_arguments(args.len())) };
    Ok(Value::Int8(hash(value, Seed::Some(seed.cast_unsigned()))?.cast_signed()))
}

/// The hash of a value that says of which type it is.
fn of_value(value: &Datum<'_>, seed: Seed) -> Result<u64> {
    match value {
        Datum::Other(oid, _) => hash_of(*oid, value, seed),
        _ => Err(wrong_arguments(1)),
    }
}

/// The hash by which PostgreSQL finds values of a type.
fn hash_of(ty: u32, value: &Datum<'_>, seed: Seed) -> Result<u64> {
    Ok(match *value {
        Datum::Null => 0,
        Datum::Bool(value) => word(value.into(), seed),
        Datum::Int2(value) => word(value.into(), seed),
        Datum::Int4(value) | Datum::Date(value) => word(value, seed),
        // An oid has 32 bits without a sign.
        Datum::Int8(value) if ty == DataType::Oid.oid() => word(low(value.cast_unsigned()), seed),
        Datum::Int8(value) | Datum::Timestamp(value) | Datum::Timestamptz(value) => {
            long(value, seed)
        }
        Datum::Float4(value) => float(value.into(), seed),
        Datum::Float8(value) => float(value, seed),
        Datum::Numeric(value) => numeric(value, seed),
        Datum::Text(text) if ty == DataType::Char(0).oid() => {
            bytes(text.trim_end_matches(' ').as_bytes(), seed)
        }
        Datum::Text(text) => bytes(text.as_bytes(), seed),
        Datum::Bytea(value) => bytes(value, seed),
        Datum::Other(oid, value) => of_other(oid, value, seed)?,
    })
}

fn of_other(ty: u32, value: &[u8], seed: Seed) -> Result<u64> {
    let found = match ty {
        other::TIME => time_usecs(value).map(|usecs| long(usecs, seed)),
        other::TIMETZ => {
            timetz_parts(value).map(|(usecs, west)| long(usecs, seed) ^ word(west, seed))
        }
        other::INTERVAL => Interval::from_bytes(value).map(|value| long(span(value), seed)),
        other::UUID => Some(bytes(value, seed)),
        other::TID => tid_image(value).map(|tid| bytes(&tid, seed)),
        other::XID8 => number_of(value).map(|xid| long(xid.cast_signed(), seed)),
        other::PG_LSN => number_of(value).map(|lsn| long(lsn.cast_signed(), seed)),
        other::XID => value.try_into().ok().map(|xid| word(i32::from_be_bytes(xid), seed)),
        other::JSONB => Json::from_bytes(value).map(|json| of_json(json, seed)),
        other::RECORD => return of_record(value, seed),
        other::OIDVECTOR => of_oidvector(value, seed),
        ty if other::names_objects(ty) => {
            other::object_parts(value).map(|(number, _)| word(number.cast_signed(), seed))
        }
        ty => match array_of(&Datum::Other(ty, value)) {
            Some(array) => return of_array(&array, seed),
            None => None,
        },
    };
    found.ok_or_else(|| no_hash(ty, seed))
}

#[cold]
fn no_hash(ty: u32, seed: Seed) -> SqlError {
    let what = match seed {
        Seed::None => "a hash function",
        Seed::Some(_) => "an extended hash function",
    };
    let name = super::format_type(ty.into(), None).unwrap_or_default();
    let message = format!("could not identify {what} for type {name}");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// Whether values of a type have a hash where they are parts of others.
fn has_hash(ty: u32) -> bool {
    let element = DataType::from_oid(ty, -1).and_then(DataType::element);
    match element {
        Some(element) => has_hash(element.oid()),
        // Of records, PostgreSQL does not know it before it sees their fields.
        None => !matches!(ty, other::JSON | other::JSONPATH | other::RECORD),
    }
}

/// Refuses a type whose values have no hash, also if there is no value.
fn check(ty: u32, seed: Seed) -> Result<()> {
    if has_hash(ty) { Ok(()) } else { Err(no_hash(ty, seed)) }
}

/// What the next part makes of the hash of the parts before it.
fn with(hash: u64, part: u64, seed: Seed) -> u64 {
    let sum = (hash << 5).wrapping_sub(hash).wrapping_add(part);
    match seed {
        Seed::None => sum & u64::from(u32::MAX),
        Seed::Some(_) => sum,
    }
}

/// The part of a hash that counts.
fn part(hash: u64, seed: Seed) -> u64 {
    match seed {
        Seed::None => hash & u64::from(u32::MAX),
        Seed::Some(_) => hash,
    }
}

fn of_array(array: &ArrayRef<'_>, seed: Seed) -> Result<u64> {
    // Records that are elements turn out to have a hash or not, if no seed is asked for.
    if !matches!((array.element(), seed), (other::RECORD, Seed::None)) {
        check(array.element(), seed)?;
    }
    array.iter().try_fold(1, |hash, element| {
        Ok(with(hash, part(hash_of(array.element(), &element, seed)?, seed), seed))
    })
}

fn of_record(value: &[u8], seed: Seed) -> Result<u64> {
    record::fields(value).try_fold(0, |hash, field| {
        check(field.type_oid, seed)?;
        Ok(with(hash, part(hash_of(field.type_oid, &field.value, seed)?, seed), seed))
    })
}

fn of_oidvector(value: &[u8], seed: Seed) -> Option<u64> {
    let array = ArrayRef::from_bytes(DataType::Oid.oid(), value)?;
    let mut all = Vec::new();
    for element in array.iter() {
        all.extend_from_slice(&low(element.as_i64()?.cast_unsigned()).to_le_bytes());
    }
    Some(bytes(&all, seed))
}

/// What an array or an object begins with.
const ARRAY: u64 = 0x4000_0000;
const OBJECT: u64 = 0x2000_0000;

fn of_json(json: Json<'_>, seed: Seed) -> u64 {
    match json {
        Json::Array(array) if array.is_empty() => seed.number(),
        Json::Object(object) if object.is_empty() => seed.number(),
        Json::Array(_) | Json::Object(_) => add_json(0, json, seed),
        // A value alone is held as the only element of an array.
        alone => add_json(begun(0, ARRAY, seed), alone, seed),
    }
}

fn begun(hash: u64, of: u64, seed: Seed) -> u64 {
    match seed {
        Seed::None => hash ^ of,
        Seed::Some(_) => hash ^ (of << 32 | of),
    }
}

fn add_json(hash: u64, json: Json<'_>, seed: Seed) -> u64 {
    let number = seed.number();
    match json {
        Json::Null => mixed(hash, number.wrapping_add(1), seed),
        Json::Bool(value) => {
            let plain = if value { 2 } else { 4 };
            let one = if number == 0 { plain } else { word(value.into(), seed) };
            mixed(hash, one, seed)
        }
        Json::Number(value) => mixed(hash, numeric(value, seed), seed),
        Json::String(text) => mixed(hash, bytes(text.as_bytes(), seed), seed),
        Json::Array(array) => {
            let hash = begun(hash, ARRAY, seed);
            array.iter().fold(hash, |hash, (element, _)| add_json(hash, element, seed))
        }
        Json::Object(object) => {
            object.iter().fold(begun(hash, OBJECT, seed), |hash, (name, value, _)| {
                add_json(mixed(hash, bytes(name.as_bytes(), seed), seed), value, seed)
            })
        }
    }
}

/// The hash turned by one bit, in its two halves if there are two, with a scalar's hash.
fn mixed(hash: u64, scalar: u64, seed: Seed) -> u64 {
    const HIGHEST_OF_HALVES: u64 = 0x1_0000_0001;
    match seed {
        #[expect(clippy::cast_possible_truncation, reason = "it has 32 bits")]
        Seed::None => u64::from((hash as u32).rotate_left(1) ^ scalar as u32),
        Seed::Some(_) => {
            ((hash << 1) & !HIGHEST_OF_HALVES | (hash >> 31) & HIGHEST_OF_HALVES) ^ scalar
        }
    }
}
