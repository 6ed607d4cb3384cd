//! Calls by the name of a type.

use super::call_errors::undefined_function;
use super::{Binder, Coercion, Typed};
use crate::DataType;
use crate::error::Result;
use crate::expr::func::catalog;
use crate::expr::types::{NUMERIC, Ty, is_castable};

impl Binder<'_> {
    /// A call of one argument by the name of a type is a cast.
    pub(super) fn cast_call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        let to = type_named(name);
        match (to, <[Typed; 1]>::try_from(args)) {
            (Some(to), Ok([arg])) => {
                let castable = match arg.ty {
                    Ty::Known(from) => is_castable(from, to),
                    Ty::Unknown => true,
                };
                if !castable {
                    return Err(undefined_function(name, &[arg]));
                }
                Ok(Typed::known(self.coerce(arg, to, Coercion::Explicit)?, to))
            }
            (_, Ok(args)) => Err(undefined_function(name, &args)),
            (_, Err(args)) => Err(undefined_function(name, &args)),
        }
    }
}

/// Whether a call of one argument by the name of a type is a cast of the argument as it is.
pub(super) fn is_cast(name: &str, args: &[Typed]) -> bool {
    let ([arg], Some(to)) = (args, type_named(name)) else { return false };
    let has_others =
        catalog::named(name).iter().any(|proc| proc.args.len() == 1 && !proc.is_conversion());
    let castable = match arg.ty {
        Ty::Known(from) => is_castable(from, to),
        Ty::Unknown => true,
    };
    castable && (!has_others || arg.ty == Ty::Unknown)
}

/// The type that PostgreSQL's catalog has under this name.
fn type_named(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "int2" => DataType::Int2,
        "int4" => DataType::Int4,
        "int8" => DataType::Int8,
        "float4" => DataType::Float4,
        "float8" => DataType::Float8,
        "numeric" => NUMERIC,
        "text" => DataType::Text,
        "varchar" => DataType::Varchar(None),
        "bpchar" => DataType::Char(0),
        "oid" => DataType::Oid,
        "name" => DataType::Name,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp(None),
        "timestamptz" => DataType::Timestamptz(None),
        _ => {
            let found = millpond_types::other::types().find(|ty| ty.name == name)?;
            DataType::Other { oid: found.oid, typmod: -1 }
        }
    })
}
