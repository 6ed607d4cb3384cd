//! Keys from expressions.

use std::cmp::Ordering;

use millpond_engine::table::KeyRange;
use millpond_engine::types::key::RangeEnd;
use smallvec::SmallVec;

use crate::error::{Result, SqlError};
use crate::expr::{Env, Val};
use crate::plan::{IndexRange, KeyPart};
use crate::{DataType, Datum};

/// Key values of one row.
pub(super) type Key<'a> = SmallVec<[Datum<'a>; 4]>;
/// The same, owning what had to be computed.
pub(super) type KeyVals<'a> = SmallVec<[Val<'a>; 4]>;

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
        DataType::Int8 => Fit::Exact(Datum::Int8(int)),
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

/// Evaluates the parts of a key.
pub(super) fn values<'a>(parts: &'a [KeyPart], env: &Env<'a>) -> Result<KeyVals<'a>> {
    parts.iter().map(|part| part.expr.eval(env)).collect()
}

/// The key; `None` when no row can have it.
pub(super) fn exact<'v>(parts: &[KeyPart], values: &'v KeyVals<'_>) -> Option<Key<'v>> {
    parts
        .iter()
        .zip(values)
        .map(|(part, value)| match fit(part.ty, value.datum()) {
            Fit::Exact(datum) => Some(datum),
            _ => None,
        })
        .collect()
}

/// One end of a range.
fn end<'v>(
    bound: Option<&(KeyPart, bool)>,
    value: Option<&'v Val<'_>>,
    lower: bool,
) -> Option<Option<RangeEnd<'v>>> {
    let (Some((part, inclusive)), Some(value)) = (bound, value) else { return Some(None) };
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

/// The range of keys that a plan asks for; false when it is empty.
pub(super) fn range(plan: &IndexRange, env: &Env<'_>, into: &mut KeyRange) -> Result<bool> {
    let values = values(&plan.equal, env)?;
    let Some(equal) = exact(&plan.equal, &values) else { return Ok(false) };
    let from_value = plan.from.as_ref().map(|(part, _)| part.expr.eval(env)).transpose()?;
    let to_value = plan.to.as_ref().map(|(part, _)| part.expr.eval(env)).transpose()?;
    let Some(from) = end(plan.from.as_ref(), from_value.as_ref(), true) else { return Ok(false) };
    let Some(to) = end(plan.to.as_ref(), to_value.as_ref(), false) else { return Ok(false) };
    encode(plan, &equal, from, to, into)?;
    Ok(true)
}

/// The range of keys that begin with some values.
pub(super) fn prefix(plan: &IndexRange, equal: &[Datum<'_>], into: &mut KeyRange) -> Result<()> {
    encode(plan, equal, None, None, into)
}

fn encode(
    plan: &IndexRange,
    equal: &[Datum<'_>],
    from: Option<RangeEnd<'_>>,
    to: Option<RangeEnd<'_>>,
    into: &mut KeyRange,
) -> Result<()> {
    plan.index
        .keys
        .range(equal, from, to, &mut into.lower, &mut into.upper)
        .map_err(|error| SqlError::internal(error.to_string()))
}

/// The distinct values of an IN list, in the index's order of reading.
pub(super) fn list<'v>(parts: &[KeyPart], values: &'v KeyVals<'_>, descending: bool) -> Key<'v> {
    let mut found: Key<'v> = parts
        .iter()
        .zip(values)
        .filter_map(|(part, value)| match fit(part.ty, value.datum()) {
            Fit::Exact(datum) => Some(datum),
            _ => None,
        })
        .collect();
    found.sort_by(|a, b| if descending { b.sort_cmp(a) } else { a.sort_cmp(b) });
    found.dedup_by(|a, b| a.sort_cmp(b).is_eq());
    found
}
