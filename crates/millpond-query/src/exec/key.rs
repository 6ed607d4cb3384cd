//! Keys from expressions.

mod cast_bounds;
mod ranges;
mod read_ahead;

use std::cmp::Ordering;

use millpond_types::key::RangeEnd;
use smallvec::SmallVec;

use crate::error::{Result, SqlError};
use crate::expr::{Env, Val};
use crate::plan::{KeyList, KeyPart, Matches};
use crate::types::array::array_of;
use crate::{DataType, Datum};

pub(crate) use ranges::KeyRanges;

/// Key values of one row.
pub(crate) type Key<'a> = SmallVec<[Datum<'a>; 4]>;
/// The same, owning what had to be computed.
pub(crate) type KeyVals<'a> = SmallVec<[Val<'a>; 4]>;

/// A value beside the values that its column can have.
enum Fit<'a> {
    /// NULL: nothing compares with it.
    Null,
    /// A value of the column's type.
    Exact(Datum<'a>),
    /// An integer below (or above) all that the column can hold.
    Beyond(Ordering),
}

fn fit<'a>(ty: DataType, datum: Datum<'a>) -> Fit<'a> {
    let int = match datum {
        Datum::Null => return Fit::Null,
        _ => match datum.as_i64() {
            Some(int) => int,
            None => return Fit::Exact(datum),
        },
    };
    let beyond = || Fit::Beyond(int.cmp(&0));
    match ty {
        DataType::Int2 => {
            i16::try_from(int).map_or_else(|_| beyond(), |i| Fit::Exact(Datum::Int2(i)))
        }
        DataType::Int4 => {
            i32::try_from(int).map_or_else(|_| beyond(), |i| Fit::Exact(Datum::Int4(i)))
        }
        DataType::Int8 | DataType::Oid => Fit::Exact(Datum::Int8(int)),
        _ => Fit::Exact(datum),
    }
}

/// The smallest and largest value of an integer type.
fn extremes(ty: DataType) -> (Datum<'static>, Datum<'static>) {
    match ty {
        DataType::Int2 => (Datum::Int2(i16::MIN), Datum::Int2(i16::MAX)),
        DataType::Int4 => (Datum::Int4(i32::MIN), Datum::Int4(i32::MAX)),
        _ => (Datum::Int8(i64::MIN), Datum::Int8(i64::MAX)),
    }
}

/// The column's value that matches a part of a key; `None` if there is none.
#[inline]
fn equal_to<'a>(part: &KeyPart, value: Datum<'a>) -> Option<Datum<'a>> {
    match fit(part.ty, value) {
        Fit::Exact(value) => Some(value),
        Fit::Null => (part.matches == Matches::Null).then_some(Datum::Null),
        Fit::Beyond(_) => None,
    }
}

/// Calls `take` with the number and the value of each part, up to one whose value the column can't
/// have. Returns false if there is such a part: no row can have the key.
fn each_exact<'a>(
    parts: &'a [KeyPart],
    env: &Env<'a>,
    mut take: impl FnMut(usize, Datum<'_>) -> Result<()>,
) -> Result<bool> {
    let mut is_possible = true;
    for (number, part) in parts.iter().enumerate() {
        let mut held = Val::null();
        // Parts behind an impossible one are still evaluated, because that may fail.
        match equal_to(part, part.expr.operand(env, &mut held)?) {
            Some(value) if is_possible => take(number, value)?,
            Some(_) => {}
            None => is_possible = false,
        }
    }
    Ok(is_possible)
}

/// The key that parts come to; `None` when no row can have it. What has to be computed is put into
/// `held`.
pub(crate) fn exact<'v, 'a: 'v>(
    parts: &'a [KeyPart],
    env: &Env<'a>,
    held: &'v mut KeyVals<'a>,
) -> Result<Option<Key<'v>>> {
    // Loops: what `collect` checks costs a lookup as much as the values.
    let mut key = Key::new();
    let mut add =
        |part: &KeyPart, datum| equal_to(part, datum).map(|value| key.push(value)).is_some();
    if parts.iter().all(|part| part.expr.is_given()) {
        for part in parts {
            if !add(part, part.expr.given(env)?) {
                return Ok(None);
            }
        }
        return Ok(Some(key));
    }
    for part in parts {
        held.push(part.expr.eval(env)?);
    }
    Ok(parts.iter().zip(&*held).all(|(part, value)| add(part, value.datum())).then_some(key))
}

/// One end of a range.
fn end<'v>(
    bound: Option<&(KeyPart, bool)>,
    value: Option<&'v Val<'_>>,
    lower: bool,
    env: &Env<'_>,
) -> Option<Option<RangeEnd<'v>>> {
    let (Some((part, inclusive)), Some(value)) = (bound, value) else { return Some(None) };
    if part.matches == Matches::Cast {
        let value = value.datum();
        let bound = cast_bounds::bound(part.ty, value, (lower, *inclusive), env);
        return (!value.is_null()).then(|| bound.map(|value| RangeEnd { value, inclusive: true }));
    }
    let (least, most) = extremes(part.ty);
    Some(Some(match fit(part.ty, value.datum()) {
        Fit::Null => return None,
        Fit::Exact(value) => RangeEnd { value, inclusive: *inclusive },
        // Above everything: no row is greater, every row is less (but for NULL).
        Fit::Beyond(Ordering::Greater) if lower => return None,
        Fit::Beyond(Ordering::Greater) => RangeEnd { value: most, inclusive: true },
        Fit::Beyond(_) if lower => RangeEnd { value: least, inclusive: true },
        Fit::Beyond(_) => return None,
    }))
}

/// Calls a function for each value of a list that the column can have, in the list's order.
pub(crate) fn each_value(
    list: &KeyList,
    env: &Env<'_>,
    take: &mut dyn FnMut(Datum<'_>) -> Result<()>,
) -> Result<()> {
    let mut fitting = |ty, datum: Datum<'_>| match fit(ty, datum) {
        Fit::Exact(datum) => take(datum),
        Fit::Null | Fit::Beyond(_) => Ok(()),
    };
    match list {
        KeyList::Items(parts) => {
            let mut held = Val::null();
            for part in parts {
                fitting(part.ty, part.expr.operand(env, &mut held)?)?;
            }
            Ok(())
        }
        KeyList::Array(part) => {
            let value = part.expr.eval(env)?;
            let datum = value.datum();
            if datum.is_null() {
                return Ok(());
            }
            let array = array_of(&datum).ok_or_else(|| SqlError::internal("no array in a key"))?;
            array.iter().try_for_each(|element| fitting(part.ty, element))
        }
    }
}
