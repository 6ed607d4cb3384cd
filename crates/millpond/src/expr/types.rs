//! PostgreSQL's rules for which types go together.

use crate::DataType;

/// A type, or that of a literal or parameter which takes the type that its place wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    Known(DataType),
    Unknown,
}

/// `numeric` without precision.
pub(crate) const NUMERIC: DataType = DataType::Numeric { precision_scale: None };

/// Kinds of types that convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Bool,
    Number,
    String,
    Bytes,
    Time,
}

pub(crate) fn category(ty: DataType) -> Category {
    match ty {
        DataType::Bool => Category::Bool,
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Float4
        | DataType::Float8
        | DataType::Numeric { .. } => Category::Number,
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => Category::String,
        DataType::Bytea => Category::Bytes,
        DataType::Date | DataType::Timestamp | DataType::Timestamptz => Category::Time,
    }
}

/// Whether it is one of the integer types.
pub(crate) fn is_int(ty: DataType) -> bool {
    matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

fn number_rank(ty: DataType) -> u8 {
    match ty {
        DataType::Int2 => 0,
        DataType::Int4 => 1,
        DataType::Int8 => 2,
        DataType::Numeric { .. } => 3,
        DataType::Float4 => 4,
        _ => 5,
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
        return None;
    }
    Some(match category(a) {
        Category::Bool => DataType::Bool,
        Category::Bytes => DataType::Bytea,
        Category::String => DataType::Text,
        Category::Number => promote_numbers(a, b),
        Category::Time => match (a, b) {
            _ if a == b => a,
            (DataType::Timestamptz, _) | (_, DataType::Timestamptz) => DataType::Timestamptz,
            _ => DataType::Timestamp,
        },
    })
}

/// The type of a CASE, COALESCE or VALUES column whose parts have these types; `Err` with two that don't go together.
pub(crate) fn unify(types: impl IntoIterator<Item = Ty>) -> Result<Ty, (DataType, DataType)> {
    let mut found: Option<DataType> = None;
    for ty in types {
        let Ty::Known(ty) = ty else { continue };
        found = Some(match found {
            None => ty,
            Some(before) if before == ty => ty,
            Some(before) => match category(before) {
                c if c != category(ty) => return Err((before, ty)),
                Category::String => {
                    if before.base() == ty.base() {
                        before.base()
                    } else {
                        DataType::Text
                    }
                }
                Category::Number if before.base() == ty.base() => ty.base(),
                // The preferred type wins: double precision, else the larger.
                Category::Number => promote_union(before, ty),
                _ => comparable(before, ty).unwrap_or(ty),
            },
        });
    }
    Ok(found.map_or(Ty::Unknown, Ty::Known))
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
        (Category::Number, Category::Number) => number_rank(from) < number_rank(to),
        (Category::String, Category::String) => true,
        (Category::Time, Category::Time) => {
            matches!((from, to), (DataType::Date, _) | (DataType::Timestamp, DataType::Timestamptz))
        }
        _ => false,
    }
}

/// Whether PostgreSQL converts by itself when a value is stored in a column.
pub(crate) fn is_assignable(from: DataType, to: DataType) -> bool {
    match (category(from), category(to)) {
        (Category::Number, Category::Number) | (Category::Time, Category::Time) => true,
        (_, Category::String) => true,
        (a, b) => a == b,
    }
}

/// Whether a cast that is written out converts.
pub(crate) fn is_castable(from: DataType, to: DataType) -> bool {
    is_assignable(from, to)
        || category(from) == Category::String
        || matches!((from, to), (DataType::Bool, DataType::Int4) | (DataType::Int4, DataType::Bool))
}

/// Whether the type limits its values beyond what they are.
pub(crate) fn has_modifier(ty: DataType) -> bool {
    matches!(
        ty,
        DataType::Varchar(Some(_))
            | DataType::Char(_)
            | DataType::Numeric { precision_scale: Some(_) }
    )
}
