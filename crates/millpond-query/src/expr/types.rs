//! PostgreSQL's rules for which types go together.

use millpond_types::other::{CID, INTERVAL, JSON, JSONB, TIME, TIMETZ, XID, XID8, is_vector};

use crate::DataType;

/// A length of time without a modifier.
pub(crate) const INTERVAL_TYPE: DataType = DataType::Other { oid: INTERVAL, typmod: -1 };

/// A type, or that of a literal or parameter which takes the type that its place wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    Known(DataType),
    Unknown,
}

/// `numeric` without precision.
pub const NUMERIC: DataType = DataType::Numeric { precision_scale: None };

/// Kinds of types that convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Bool,
    Number,
    String,
    Bytes,
    Time,
    Interval,
    Array,
    /// A type that converts into no other by itself.
    Alone(u32),
}

pub(crate) fn category(ty: DataType) -> Category {
    match ty {
        DataType::Bool => Category::Bool,
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Oid
        | DataType::Float4
        | DataType::Float8
        | DataType::Numeric { .. } => Category::Number,
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            Category::String
        }
        DataType::Bytea => Category::Bytes,
        DataType::Date | DataType::Timestamp(_) | DataType::Timestamptz(_) => Category::Time,
        DataType::Other { oid: TIME | TIMETZ, .. } => Category::Time,
        DataType::Other { oid: INTERVAL, .. } => Category::Interval,
        ty if ty.names_objects() => Category::Number,
        DataType::Other { oid, .. } => match ty.element() {
            Some(_) => Category::Array,
            None => Category::Alone(oid),
        },
    }
}

/// Whether it is the type that its category prefers.
pub(crate) fn is_preferred(ty: DataType) -> bool {
    matches!(
        ty,
        DataType::Bool
            | DataType::Float8
            | DataType::Oid
            | DataType::Text
            | DataType::Timestamptz(_)
    )
}

/// Whether it is one of the types of whole numbers, whose values compare with each other as they
/// are.
pub(crate) fn is_int(ty: DataType) -> bool {
    matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Oid)
}

/// Whether a type's values name objects, as those of `regclass` do.
pub(crate) fn is_object(ty: DataType) -> bool {
    ty.names_objects()
}

/// The type as which a number is compared: an object as its number.
fn compared(ty: DataType) -> DataType {
    if is_object(ty) { DataType::Oid } else { ty }
}

fn number_rank(ty: DataType) -> u8 {
    match ty {
        DataType::Int2 => 0,
        DataType::Int4 => 1,
        DataType::Int8 => 2,
        DataType::Oid => 3,
        DataType::Other { .. } => 3,
        DataType::Numeric { .. } => 4,
        DataType::Float4 => 5,
        _ => 6,
    }
}

/// The type in which two numbers are added.
pub(crate) fn promote_numbers(a: DataType, b: DataType) -> DataType {
    let (low, high) = if number_rank(a) <= number_rank(b) { (a, b) } else { (b, a) };
    match high {
        // real meets anything else in double precision.
        DataType::Float4 if low != DataType::Float4 => DataType::Float8,
        high => high.base(),
    }
}

/// The type in which two values are compared; `None` when they don't compare.
pub(crate) fn comparable(a: DataType, b: DataType) -> Option<DataType> {
    if category(a) != category(b) {
        // A time of day is a length of time by itself.
        let of_time = |one: DataType, other: DataType| {
            category(one) == Category::Interval && other.oid() == TIME
        };
        if a.oid() == XID && matches!(b, DataType::Int2 | DataType::Int4) {
            return Some(a.base());
        }
        return (of_time(a, b) || of_time(b, a)).then_some(INTERVAL_TYPE);
    }
    Some(match category(a) {
        Category::Bool => DataType::Bool,
        Category::Bytes => DataType::Bytea,
        // `char(n)` has no trailing spaces, and `varchar` beside it loses them. With text, all meet
        // in text.
        Category::String => match (a, b) {
            (DataType::Char(_), DataType::Char(_) | DataType::Varchar(_))
            | (DataType::Varchar(_), DataType::Char(_)) => DataType::Char(0),
            _ => DataType::Text,
        },
        Category::Number => promote_numbers(compared(a), compared(b)),
        Category::Interval => a.base(),
        // JSON has no order, nor has it equality.
        Category::Alone(JSON) => return None,
        Category::Alone(_) => a.base(),
        Category::Array => {
            let (x, y) = (a.element()?, b.element()?);
            if a.oid() != b.oid() {
                return None;
            }
            // Elements have to compare, too.
            comparable(x, y)?;
            a.base()
        }
        Category::Time if is_clock(a) || is_clock(b) => match (is_clock(a), is_clock(b)) {
            (true, true) if a.oid() == b.oid() => a.base(),
            (true, true) => DataType::Other { oid: TIMETZ, typmod: -1 },
            _ => return None,
        },
        Category::Time => match (a, b) {
            _ if a == b => a,
            (DataType::Timestamptz(_), _) | (_, DataType::Timestamptz(_)) => {
                DataType::Timestamptz(None)
            }
            _ => DataType::Timestamp(None),
        },
    })
}

/// Whether values of a type that have equality have an order, too. Those of transactions and of
/// commands begin from 0 again when all numbers are used up.
pub(crate) fn is_ordered(ty: DataType) -> bool {
    match ty.element() {
        Some(element) => is_ordered(element),
        None => !matches!(ty.oid(), XID | CID),
    }
}

/// Whether it is a time of day.
fn is_clock(ty: DataType) -> bool {
    matches!(ty.oid(), TIME | TIMETZ)
}

/// The type of a CASE, COALESCE or VALUES column whose parts have these types; `Err` with two that
/// don't go together.
pub(crate) fn unify(types: impl IntoIterator<Item = Ty>) -> Result<Ty, (DataType, DataType)> {
    let mut found: Option<DataType> = None;
    // A literal fits the type, but need not fit its length.
    let mut has_literal = false;
    for ty in types {
        let Ty::Known(ty) = ty else {
            has_literal = true;
            continue;
        };
        found = Some(match found {
            None => ty,
            Some(before) if before == ty => ty,
            Some(before) => match category(before) {
                c if c != category(ty) => return Err((before, ty)),
                // Text converts into varchar by itself, so the first of them stays.
                Category::String => match unmodified(before) {
                    DataType::Text => DataType::Text,
                    // They convert into names by themselves, and names not into them.
                    _ if ty == DataType::Name => DataType::Name,
                    base => base,
                },
                Category::Number if before.base() == ty.base() => ty.base(),
                // The preferred type wins: double precision, else the larger.
                Category::Number => promote_union(before, ty),
                _ if before.oid() == ty.oid() => ty.base(),
                _ if is_preferred(before) => before.base(),
                _ if is_implicit(before, ty) && !is_implicit(ty, before) => ty.base(),
                _ => before.base(),
            },
        });
    }
    let found = if has_literal { found.map(unmodified) } else { found };
    Ok(found.map_or(Ty::Unknown, Ty::Known))
}

/// A type without its length or precision.
pub(crate) fn unmodified(ty: DataType) -> DataType {
    match ty {
        DataType::Char(_) => DataType::Char(0),
        ty => ty.base(),
    }
}

/// The type whose operators a type has: `varchar` has none of its own.
pub(crate) fn operator_type(ty: DataType) -> DataType {
    if matches!(ty, DataType::Varchar(_)) { DataType::Text } else { ty }
}

fn promote_union(a: DataType, b: DataType) -> DataType {
    if number_rank(a) >= number_rank(b) { a.base() } else { b.base() }
}

/// Whether PostgreSQL converts by itself, in any expression.
pub(crate) fn is_implicit(from: DataType, to: DataType) -> bool {
    if from.base() == to.base() {
        return true;
    }
    match (category(from), category(to)) {
        (Category::Number, Category::Number) => match (from, to) {
            (from, DataType::Oid) => is_int(from) || is_object(from),
            (from, to) if is_object(to) => is_int(from),
            (from, _) if from == DataType::Oid || is_object(from) => false,
            _ => number_rank(from) < number_rank(to),
        },
        (Category::String, Category::String) => true,
        (Category::Time, Category::Time) => {
            matches!(
                (from, to),
                (DataType::Date, DataType::Timestamp(_) | DataType::Timestamptz(_))
                    | (DataType::Timestamp(_), DataType::Timestamptz(_))
            ) || (from.oid(), to.oid()) == (TIME, TIMETZ)
        }
        (Category::Time, Category::Interval) => from.oid() == TIME,
        (Category::Array, Category::Array) => elements(from, to, is_implicit),
        _ => false,
    }
}

/// Whether a rule holds for the elements of two array types. No other array converts to a vector.
fn elements(from: DataType, to: DataType, rule: fn(DataType, DataType) -> bool) -> bool {
    (!is_vector(to.oid()) || from.oid() == to.oid())
        && from.element().zip(to.element()).is_some_and(|(from, to)| rule(from, to))
}

/// Whether PostgreSQL converts by itself when a value is stored in a column.
pub(crate) fn is_assignable(from: DataType, to: DataType) -> bool {
    match (category(from), category(to)) {
        (Category::Number, Category::Number) => match (from, to) {
            (from, to) if is_object(from) && is_object(to) => from.oid() == to.oid(),
            (a, b) if is_object(a) => is_int(b),
            (a, b) if is_object(b) => is_int(a),
            (DataType::Oid, other) | (other, DataType::Oid) => is_int(other),
            _ => true,
        },
        (Category::Time, Category::Time) => match (is_clock(from), is_clock(to)) {
            // Of a date alone there is no time of day, and a time has no day.
            (false, true) => {
                from != DataType::Date
                    && (matches!(from, DataType::Timestamptz(_)) || to.oid() == TIME)
            }
            (true, false) => false,
            _ => true,
        },
        (_, Category::String) => true,
        (Category::Time, Category::Interval) => from.oid() == TIME,
        (Category::Interval, Category::Time) => to.oid() == TIME,
        (Category::Alone(JSON), Category::Alone(JSONB))
        | (Category::Alone(JSONB), Category::Alone(JSON)) => true,
        (Category::Array, Category::Array) => elements(from, to, is_assignable),
        (a, b) => a == b,
    }
}

/// Whether a cast that is written out converts.
pub(crate) fn is_castable(from: DataType, to: DataType) -> bool {
    is_assignable(from, to)
        || category(from) == Category::String
        || matches!((from, to), (DataType::Bool, DataType::Int4) | (DataType::Int4, DataType::Bool))
        || (from.oid(), to.oid()) == (XID8, XID)
        || from.oid() == JSONB && matches!(category(to), Category::Number | Category::Bool)
        || elements(from, to, is_castable)
}

/// Whether the type limits its values beyond what they are.
pub(crate) fn has_modifier(ty: DataType) -> bool {
    matches!(
        ty,
        DataType::Varchar(Some(_))
            | DataType::Char(1..)
            | DataType::Numeric { precision_scale: Some(_) }
            | DataType::Timestamp(Some(_))
            | DataType::Timestamptz(Some(_))
            | DataType::Other { typmod: 0.., .. }
    )
}
