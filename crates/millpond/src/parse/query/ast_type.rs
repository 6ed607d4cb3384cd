//! sqlparser's names of types and collations.

use millpond_engine::types::other::{JSON, JSONB, TIME, TIMETZ, UUID, types};
use sqlparser::ast;

use crate::DataType;
use crate::error::{Result, SqlError};
use crate::expr::types::NUMERIC;
use crate::parse::data_type::{
    array, interval_type, invalid, is_bytewise, other, precision_of, unknown_type,
};

/// sqlparser's type as ours.
pub(crate) fn ast_data_type(ty: &ast::DataType) -> Result<DataType> {
    use ast::DataType as T;
    Ok(match ty {
        T::Boolean | T::Bool => DataType::Bool,
        T::SmallInt(None) | T::Int2(None) => DataType::Int2,
        T::Int(None) | T::Integer(None) | T::Int4(None) => DataType::Int4,
        T::BigInt(None) | T::Int8(None) => DataType::Int8,
        T::Real | T::Float4 => DataType::Float4,
        T::DoublePrecision | T::Float8 | T::Double(_) => DataType::Float8,
        T::Float(ast::ExactNumberInfo::None) => DataType::Float8,
        T::Float(ast::ExactNumberInfo::Precision(p)) => match p {
            1..=24 => DataType::Float4,
            25..=53 => DataType::Float8,
            _ => return Err(invalid("precision for type float must be between 1 and 53 bits")),
        },
        T::Numeric(info) | T::Decimal(info) | T::Dec(info) => numeric(info)?,
        T::Text => DataType::Text,
        T::Varchar(n) | T::CharacterVarying(n) | T::CharVarying(n) => DataType::Varchar(length(n)?),
        T::Char(n) | T::Character(n) => DataType::Char(length(n)?.unwrap_or(1)),
        T::Bytea => DataType::Bytea,
        T::Date => DataType::Date,
        T::Timestamp(_, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp
        }
        T::Timestamp(_, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone) => {
            DataType::Timestamptz
        }
        T::Time(precision, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone) => {
            other(TIME, precision_of(*precision))
        }
        T::Time(precision, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone) => {
            other(TIMETZ, precision_of(*precision))
        }
        T::Interval { fields, precision } => {
            interval_type(fields.map(|fields| fields.to_string()).as_deref(), *precision)
        }
        T::Uuid => other(UUID, -1),
        T::JSON => other(JSON, -1),
        T::JSONB => other(JSONB, -1),
        T::Array(ast::ArrayElemTypeDef::SquareBracket(of, _)) => array(ast_data_type(of)?)?,
        T::Array(ast::ArrayElemTypeDef::AngleBracket(of)) => array(ast_data_type(of)?)?,
        T::Custom(name, modifiers) if modifiers.is_empty() => {
            match name.to_string().to_ascii_lowercase().trim_start_matches("pg_catalog.") {
                "bpchar" => DataType::Text,
                "name" => DataType::Varchar(Some(63)),
                "timestamptz" => DataType::Timestamptz,
                "bool" => DataType::Bool,
                "int2" => DataType::Int2,
                "int4" => DataType::Int4,
                "int8" => DataType::Int8,
                "oid" => DataType::Oid,
                "float4" => DataType::Float4,
                "float8" => DataType::Float8,
                "text" => DataType::Text,
                "timetz" => other(TIMETZ, -1),
                other => match types().find(|ty| ty.name == other && ty.element.is_some()) {
                    Some(found) => self::other(found.oid, -1),
                    None => return Err(unknown_type(other)),
                },
            }
        }
        other => return Err(unknown_type(&other.to_string())),
    })
}

/// The n of `varchar(n)` and `char(n)`.
fn length(length: &Option<ast::CharacterLength>) -> Result<Option<u32>> {
    const MOST: u32 = 10_485_760;
    let Some(ast::CharacterLength::IntegerLength { length, .. }) = length else { return Ok(None) };
    match u32::try_from(*length) {
        Ok(0) => Err(invalid("length for type character must be at least 1")),
        Ok(n) if n <= MOST => Ok(Some(n)),
        _ => Err(invalid("length for type character cannot exceed 10485760")),
    }
}

fn numeric(info: &ast::ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ast::ExactNumberInfo::None => return Ok(NUMERIC),
        ast::ExactNumberInfo::Precision(p) => (*p, 0),
        ast::ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    if !(1..=1000).contains(&precision) {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and 1000")));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000")));
    }
    Ok(DataType::Numeric { precision_scale: Some((precision as u16, scale as i16)) })
}

/// Refuses collations other than those that order bytewise.
pub(crate) fn check_ast_collation(name: &ast::ObjectName) -> Result<()> {
    match name.0.last() {
        Some(ast::ObjectNamePart::Identifier(last)) if is_bytewise(&last.value) => Ok(()),
        _ => Err(SqlError::unsupported(format!("the collation {name}"))),
    }
}
