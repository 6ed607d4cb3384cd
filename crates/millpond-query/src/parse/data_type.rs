//! Types and collations by their names.

use millpond_syntax::tree::{Expr, Name, Node, TypeName, Value};
use millpond_types::other::{
    CID, INTERVAL, JSON, JSONB, JSONPATH, PG_LSN, RECORD, TID, TIME, TIMETZ, UUID, XID, XID8, types,
};

use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::types::NUMERIC;
use crate::settings::nearest;

/// The type that a statement names.
pub fn data_type(ty: &TypeName) -> Result<DataType> {
    if ty.setof || ty.pct_type {
        return Err(SqlError::unsupported("SETOF and %TYPE"));
    }
    let element = element_type(ty)?;
    if ty.array_bounds.is_empty() { Ok(element) } else { array(element) }
}

fn element_type(ty: &TypeName) -> Result<DataType> {
    let name = match ty.names.as_slice() {
        [name] => name,
        [schema, name] if &**schema == "pg_catalog" => name,
        names => return Err(unknown_type(&names.join("."))),
    };
    let modifiers = modifiers(ty)?;
    Ok(match (&**name, modifiers.as_slice()) {
        ("numeric", modifiers) => numeric(modifiers)?,
        ("varchar", []) => DataType::Varchar(None),
        ("varchar", [n]) => DataType::Varchar(Some(length(*n, "varchar")?)),
        ("bpchar", []) => DataType::Char(0),
        ("bpchar", [n]) => DataType::Char(length(*n, "char")?),
        ("time", [digits]) => other(TIME, precision(*digits)),
        ("timetz", [digits]) => other(TIMETZ, precision(*digits)),
        ("timestamp", [digits]) => DataType::Timestamp(Some(precision(*digits) as u8)),
        ("timestamptz", [digits]) => DataType::Timestamptz(Some(precision(*digits) as u8)),
        ("interval", [fields]) => other(INTERVAL, fields << 16 | 0xffff),
        ("interval", [fields, digits]) => other(INTERVAL, fields << 16 | precision(*digits)),
        (name, []) => plain(name)?,
        (name, _) => {
            plain(name)?;
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("type modifier is not allowed for type \"{name}\""),
            ));
        }
    })
}

/// A type without modifiers.
fn plain(name: &str) -> Result<DataType> {
    Ok(match name {
        "bool" => DataType::Bool,
        "int2" => DataType::Int2,
        "int4" => DataType::Int4,
        "int8" => DataType::Int8,
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "text" => DataType::Text,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp(None),
        "timestamptz" => DataType::Timestamptz(None),
        "time" => other(TIME, -1),
        "timetz" => other(TIMETZ, -1),
        "interval" => other(INTERVAL, -1),
        "uuid" => other(UUID, -1),
        "tid" => other(TID, -1),
        "xid" => other(XID, -1),
        "cid" => other(CID, -1),
        "xid8" => other(XID8, -1),
        "pg_lsn" => other(PG_LSN, -1),
        "json" => other(JSON, -1),
        "jsonb" => other(JSONB, -1),
        "jsonpath" => other(JSONPATH, -1),
        "record" => other(RECORD, -1),
        "oid" => DataType::Oid,
        "name" => DataType::Name,
        name => match types().find(|ty| ty.name == name && ty.element.is_some()) {
            Some(found) => other(found.oid, -1),
            None => return Err(unknown_type(name)),
        },
    })
}

/// The modifiers of a type as numbers.
fn modifiers(ty: &TypeName) -> Result<Vec<i32>> {
    let number = |modifier: &Expr| match &modifier.node {
        Node::AConst(Value::Integer(number)) => Ok(*number),
        Node::AConst(Value::Float(text) | Value::String(text)) => text
            .parse()
            .map_err(|_| invalid(format!("invalid input syntax for type integer: \"{text}\""))),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "type modifiers must be simple constants or identifiers",
        )),
    };
    ty.typmods.iter().map(number).collect()
}

fn other(oid: u32, typmod: i32) -> DataType {
    DataType::Other { oid, typmod }
}

/// Arrays of a type. Of arrays they are arrays of more dimensions, which is the same type.
fn array(element: DataType) -> Result<DataType> {
    if element.element().is_some() {
        return Ok(element);
    }
    element.array().ok_or_else(|| SqlError::unsupported(format!("type {element}[]")))
}

/// Digits after the second's point as a modifier. More than six are six.
fn precision(digits: i32) -> i32 {
    digits.clamp(0, 6)
}

/// The n of `varchar(n)` and `char(n)`.
fn length(n: i32, ty: &str) -> Result<u32> {
    const MOST: u32 = 10_485_760;
    match u32::try_from(n) {
        Ok(n) if (1..=MOST).contains(&n) => Ok(n),
        Ok(1..) => Err(invalid(format!("length for type {ty} cannot exceed {MOST}"))),
        _ => Err(invalid(format!("length for type {ty} must be at least 1"))),
    }
}

fn numeric(modifiers: &[i32]) -> Result<DataType> {
    let (precision, scale) = match modifiers {
        [] => return Ok(NUMERIC),
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(invalid("invalid NUMERIC type modifier")),
    };
    if !(1..=1000).contains(&precision) {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and 1000")));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(invalid(format!("NUMERIC scale {scale} must be between -1000 and 1000")));
    }
    Ok(DataType::Numeric { precision_scale: Some((precision as u16, scale as i16)) })
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// PostgreSQL's types that are not there yet. Names of arrays begin with `_`.
const ABSENT: &str = "aclitem any anyarray anycompatible anycompatiblearray \
    anycompatiblemultirange anycompatiblenonarray anycompatiblerange anyelement anyenum \
    anymultirange anynonarray anyrange bigserial bit box char cid cidr circle cstring \
    datemultirange daterange event_trigger fdw_handler gtsvector index_am_handler inet \
    int4multirange int4range int8multirange int8range internal jsonpath language_handler line lseg \
    macaddr macaddr8 money nummultirange numrange path pg_brin_bloom_summary \
    pg_brin_minmax_multi_summary pg_ddl_command pg_dependencies pg_mcv_list pg_ndistinct \
    pg_node_tree pg_snapshot point polygon refcursor regclass regcollation regconfig regdictionary \
    regnamespace regoper regoperator regproc regprocedure regrole regtype serial serial2 serial4 \
    serial8 smallserial table_am_handler tid trigger tsm_handler tsmultirange tsquery tsrange \
    tstzmultirange tstzrange tsvector txid_snapshot unknown varbit void xid xml";

fn unknown_type(name: &str) -> SqlError {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix('_').unwrap_or(&lower);
    if ABSENT.split_ascii_whitespace().any(|absent| absent == bare) {
        return SqlError::unsupported(format!("type {lower}"));
    }
    let error =
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{lower}\" does not exist"));
    let names = [
        "boolean",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "text",
        "varchar",
        "char",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "int",
    ];
    match nearest(&lower, names.iter().copied()) {
        Some(near) => error.hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}

/// Refuses collations other than those that order bytewise.
pub fn check_collation(names: &[Name]) -> Result<()> {
    match names.last() {
        Some(last) if is_bytewise(last) => Ok(()),
        _ => Err(SqlError::unsupported(format!("the collation {}", names.join(".")))),
    }
}

/// Whether a collation of that name orders bytewise, as everything here does.
pub fn is_bytewise(collation: &str) -> bool {
    matches!(collation, "C" | "POSIX" | "default" | "ucs_basic")
}
