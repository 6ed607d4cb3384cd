//! Comparisons of records by the bytes that PostgreSQL keeps of their values (`*=`, `*<` and so
//! on): values that are equal may have different bytes, as 1.0 and 1.00 have.
//!
//! Values have the same bytes here if they have them there. Which bytes come first is told only of
//! types whose layout is simple.

use std::cmp::Ordering;

use millpond_types::other::{
    CID, INTERVAL, JSON, PG_LSN, TID, TIME, TIMETZ, UUID, XID, XID8, names_objects, object_parts,
};
use millpond_types::record::Field;

use super::super::Body;
use super::super::catalog::{BOOL, INT4, Proc, RECORD_TYPE, proc};
use super::super::operators::{Operator, Work, op};
use super::super::value::wrong_arguments;
use super::order::{dissimilar_fields, fields_beside};
use crate::error::{Result, SqlError};
use crate::types::tid_image;
use crate::types::time::time_usecs;
use crate::{Datum, Value};

/// The function of a comparison.
macro_rules! image {
    ($oid:literal $name:literal $is:expr) => {
        proc(
            $oid,
            $name,
            &[RECORD_TYPE, RECORD_TYPE],
            BOOL,
            Body::Datums(|args, _| image_order(args, Asked::Order).map($is).map(Value::Bool)),
        )
    };
}

/// The function of a question for equality, which needs no order.
macro_rules! equality {
    ($oid:literal $name:literal $is:expr) => {
        proc(
            $oid,
            $name,
            &[RECORD_TYPE, RECORD_TYPE],
            BOOL,
            Body::Datums(|args, _| image_order(args, Asked::Equality).map($is).map(Value::Bool)),
        )
    };
}

pub(in super::super) static PROCS: &[Proc] = &[
    equality!(3181 "record_image_eq" Ordering::is_eq),
    equality!(3182 "record_image_ne" Ordering::is_ne),
    image!(3183 "record_image_lt" Ordering::is_lt),
    image!(3184 "record_image_gt" Ordering::is_gt),
    image!(3185 "record_image_le" Ordering::is_le),
    image!(3186 "record_image_ge" Ordering::is_ge),
    proc(
        3187,
        "btrecordimagecmp",
        &[RECORD_TYPE, RECORD_TYPE],
        INT4,
        Body::Datums(|args, _| {
            image_order(args, Asked::Order).map(|order| Value::Int4(order as i32))
        }),
    ),
];

const fn compared(symbol: &'static str, function: &'static str) -> Operator {
    op(symbol, &[RECORD_TYPE, RECORD_TYPE], BOOL, Work::Call(function))
}

pub(in super::super) static OPERATORS: &[Operator] = &[
    compared("*=", "record_image_eq"),
    compared("*<>", "record_image_ne"),
    compared("*<", "record_image_lt"),
    compared("*>", "record_image_gt"),
    compared("*<=", "record_image_le"),
    compared("*>=", "record_image_ge"),
];

/// What is asked of two records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Equality,
    Order,
}

/// The order of two records by the first fields whose bytes differ. Where only equality is asked
/// for, any order other than [`Ordering::Equal`] says that they differ.
fn image_order(args: &[Datum<'_>], told: Asked) -> Result<Ordering> {
    let [Datum::Other(_, a), Datum::Other(_, b)] = args else {
        return Err(wrong_arguments(args.len()));
    };
    let mut found = Ordering::Equal;
    for (place, pair) in fields_beside(a, b).enumerate() {
        let (a, b) = pair?;
        if a.type_oid != b.type_oid {
            return Err(dissimilar_fields(&a, &b, place + 1)?);
        }
        found = match (a.value.is_null(), b.value.is_null()) {
            (false, false) => order_of_values(&a, &b, told)?,
            (a, b) => a.cmp(&b),
        };
        if found.is_ne() {
            break;
        }
    }
    Ok(found)
}

fn order_of_values(a: &Field<'_>, b: &Field<'_>, told: Asked) -> Result<Ordering> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    a.value.push_bytes(&mut left);
    b.value.push_bytes(&mut right);
    if left == right {
        return Ok(Ordering::Equal);
    }
    match (told, image(&a.value), image(&b.value)) {
        (Asked::Equality, ..) => Ok(left.cmp(&right)),
        (Asked::Order, Some(left), Some(right)) => Ok(left.cmp(&right)),
        _ => {
            let name = super::super::format_type(a.type_oid.into(), None)?;
            Err(SqlError::unsupported(format!("the order of the bytes of type {name}")))
        }
    }
}

/// What PostgreSQL compares of a value: those that fit into a word as the word without a sign, the
/// bytes of others. All values of one type are of one kind.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Image {
    Word(u64),
    Bytes(Vec<u8>),
}

/// `None` of a type whose layout is not the same here and is not made.
fn image(value: &Datum<'_>) -> Option<Image> {
    let signed = |word: i64| Image::Word(word.cast_unsigned());
    Some(match *value {
        Datum::Bool(value) => Image::Word(value.into()),
        Datum::Int2(value) => signed(value.into()),
        Datum::Int4(value) | Datum::Date(value) => signed(value.into()),
        Datum::Int8(value) | Datum::Timestamp(value) | Datum::Timestamptz(value) => signed(value),
        Datum::Float4(value) => signed(value.to_bits().cast_signed().into()),
        Datum::Float8(value) => Image::Word(value.to_bits()),
        Datum::Text(text) => Image::Bytes(text.as_bytes().to_vec()),
        Datum::Bytea(bytes) => Image::Bytes(bytes.to_vec()),
        Datum::Other(TIME, bytes) => signed(time_usecs(bytes)?),
        // Numbers that are kept with their highest byte first.
        Datum::Other(XID | CID | XID8 | PG_LSN, bytes) => Image::Bytes(bytes.to_vec()),
        Datum::Other(TID, bytes) => Image::Bytes(tid_image(bytes)?.to_vec()),
        Datum::Other(UUID | INTERVAL | TIMETZ | JSON, bytes) => Image::Bytes(bytes.to_vec()),
        Datum::Other(oid, bytes) if names_objects(oid) => {
            Image::Word(object_parts(bytes)?.0.into())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(a: Datum<'_>, b: Datum<'_>) -> Option<Ordering> {
        Some(image(&a)?.cmp(&image(&b)?))
    }

    #[test]
    fn words_have_no_sign() {
        assert_eq!(order(Datum::Int4(-1), Datum::Int4(1)), Some(Ordering::Greater));
        assert_eq!(order(Datum::Int4(-1), Datum::Int4(-2)), Some(Ordering::Greater));
        assert_eq!(order(Datum::Float8(-0.0), Datum::Float8(0.0)), Some(Ordering::Greater));
        assert_eq!(order(Datum::Text("a"), Datum::Text("ab")), Some(Ordering::Less));
    }
}
