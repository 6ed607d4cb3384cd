//! Millpond's types as Arrow's, and back.
//!
//! | SQL | Arrow |
//! |---|---|
//! | `numeric(p, s)`, p to 38, s from 0 to p | `Decimal128(p, s)` |
//! | `numeric(p, s)`, p to 76, s from 0 to p | `Decimal256(p, s)` |
//! | any other `numeric` | `Decimal256(76, 20)` |
//! | `text`, `varchar`, `char` | `Utf8` |
//! | `timestamp`, `timestamptz` | microseconds, without and with the session's time zone |
//!
//! Arrow counts days and microseconds from 1970, PostgreSQL from 2000. The infinities of dates and
//! times are the extreme numbers in both. A field's metadata keeps what Arrow's type cannot say:
//! the type's number and modifier for clients, and the table and column it comes from. It also says
//! whether a `numeric` has a scale that the schema chose. Output then drops the trailing zeros.

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, TimeUnit};

use millpond_query::ColumnDesc;
use millpond_types::DataType;

/// The scale at which a `numeric` without modifier is computed.
pub const FREE_NUMERIC_SCALE: i8 = 20;
/// Days from 1970-01-01 to 2000-01-01.
pub const EPOCH_DAYS: i32 = 10_957;
/// Microseconds between the same.
pub const EPOCH_US: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

const TYPE_OID: &str = "millpond.type_oid";
const TYPMOD: &str = "millpond.typmod";
const TABLE_OID: &str = "millpond.table_oid";
const ATTNUM: &str = "millpond.attnum";

/// The Arrow type that values of `ty` are computed in.
pub fn arrow_type(ty: DataType) -> ArrowType {
    match ty {
        DataType::Bool => ArrowType::Boolean,
        DataType::Int2 => ArrowType::Int16,
        DataType::Int4 => ArrowType::Int32,
        DataType::Int8 | DataType::Oid => ArrowType::Int64,
        DataType::Float4 => ArrowType::Float32,
        DataType::Float8 => ArrowType::Float64,
        DataType::Numeric { precision_scale } => decimal_type(precision_scale),
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Name => {
            ArrowType::Utf8
        }
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp(_) => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamptz(_) => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        // Their text: values of such types are not computed here, see `params`.
        DataType::Other { .. } => ArrowType::Utf8,
    }
}

/// The same type with the time zone of a session: what DataFusion computes with such values goes by
/// that.
pub fn in_zone(arrow: ArrowType, zone: &str) -> ArrowType {
    match arrow {
        ArrowType::Timestamp(unit, Some(_)) => ArrowType::Timestamp(unit, Some(zone.into())),
        other => other,
    }
}

fn decimal_type(precision_scale: Option<(u16, i16)>) -> ArrowType {
    match precision_scale {
        Some((precision @ 1..=38, scale)) if fits(precision, scale) => {
            ArrowType::Decimal128(precision as u8, scale as i8)
        }
        Some((precision @ 39..=76, scale)) if fits(precision, scale) => {
            ArrowType::Decimal256(precision as u8, scale as i8)
        }
        _ => ArrowType::Decimal256(76, FREE_NUMERIC_SCALE),
    }
}

fn fits(precision: u16, scale: i16) -> bool {
    (0..=precision as i16).contains(&scale)
}

/// The SQL type of a computed column, or `None` for a type that clients cannot be sent.
pub fn sql_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Bool,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::Int2,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Int4,
        ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => DataType::Int8,
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float4,
        ArrowType::Float64 => DataType::Float8,
        ArrowType::Decimal32(..)
        | ArrowType::Decimal64(..)
        | ArrowType::Decimal128(..)
        | ArrowType::Decimal256(..) => DataType::Numeric { precision_scale: None },
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => {
            DataType::Text
        }
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => DataType::Bytea,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Timestamp(_, None) => DataType::Timestamp(None),
        ArrowType::Timestamp(_, Some(_)) => DataType::Timestamptz(None),
        ArrowType::Dictionary(_, values) => return sql_type(values),
        _ => return None,
    })
}

/// The one Arrow type that results of `ty` are brought to before they are read, whatever width
/// or encoding a plan chose.
pub fn result_type(arrow: &ArrowType) -> Option<ArrowType> {
    Some(match arrow {
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) => ArrowType::Decimal128(*p, *s),
        ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => arrow.clone(),
        other => arrow_type(sql_type(other)?),
    })
}

/// The field of a table's column.
pub fn table_field(
    name: &str,
    arrow: ArrowType,
    ty: DataType,
    nullable: bool,
    (table, attnum): (u32, i16),
) -> Field {
    let metadata = HashMap::from([
        (TYPE_OID.to_owned(), ty.oid().to_string()),
        (TYPMOD.to_owned(), ty.typmod().to_string()),
        (TABLE_OID.to_owned(), table.to_string()),
        (ATTNUM.to_owned(), attnum.to_string()),
    ]);
    Field::new(name, arrow, nullable).with_metadata(metadata)
}

/// The field of a system view's column that clients are told is of type `type_oid`.
pub fn view_field(name: &str, arrow: ArrowType, type_oid: u32) -> Field {
    let metadata = HashMap::from([(TYPE_OID.to_owned(), type_oid.to_string())]);
    Field::new(name, arrow, true).with_metadata(metadata)
}

/// What clients are told of a result's column; `None` if its type cannot be sent.
pub fn describe(field: &Field) -> Option<ColumnDesc> {
    let number = |key: &str| field.metadata().get(key).and_then(|text| text.parse::<i64>().ok());
    let computed = sql_type(field.data_type())?;
    let told = number(TYPE_OID).map_or(computed.oid(), |oid| oid as u32);
    // The metadata survives some expressions that change the type; it must not contradict it.
    let typmod = number(TYPMOD).unwrap_or(-1) as i32;
    let column_type = |typmod| DataType::from_oid(told, typmod).filter(|ty| ty.is_storable());
    let declared = column_type(typmod).filter(|ty| same_kind(*ty, computed));
    let is_view = column_type(-1).is_none();
    let ty = declared.unwrap_or(computed);
    Some(ColumnDesc {
        type_oid: if is_view { told } else { ty.oid() },
        ty,
        table_oid: number(TABLE_OID).unwrap_or(0) as u32,
        attnum: number(ATTNUM).unwrap_or(0) as i16,
        name: field.name().clone(),
    })
}

fn same_kind(declared: DataType, computed: DataType) -> bool {
    sql_type(&arrow_type(declared)).is_some_and(|ty| ty.base() == computed.base())
}

/// Whether the scale of a decimal result is not one that anybody asked for.
pub fn has_free_scale(field: &Field) -> bool {
    matches!(field.data_type(), ArrowType::Decimal256(76, FREE_NUMERIC_SCALE))
}
