//! Casts to the types of the catalog. Here `xid` is a bigint, `name` and `"char"` are texts.
//!
//! A function makes a value of a type that names objects (`regclass`), because it takes a look into
//! the catalog. It gets the object's name or its number.

use millpond_syntax::tree::{self, TypeName};
use millpond_types::other::{REGCLASS, REGNAMESPACE, REGPROC, REGPROCEDURE, REGROLE, REGTYPE};

use super::{Binder, Coercion, Scope, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::Param;
use crate::expr::types::{Ty, is_int, is_object};
use crate::expr::{Expr, Func};
use crate::{DataType, Value};

/// The functions that make a value of a type that names objects, of a name and of a number.
fn makers(ty: DataType) -> Option<(&'static str, &'static str)> {
    Some(match ty.oid() {
        REGCLASS => ("regclass_of_name", "regclass_of_number"),
        REGNAMESPACE => ("regnamespace_of_name", "regnamespace_of_number"),
        REGPROC => ("regproc_of_name", "regproc_of_number"),
        REGPROCEDURE => ("regprocedure_of_name", "regprocedure_of_number"),
        REGROLE => ("regrole_of_name", "regrole_of_number"),
        REGTYPE => ("regtype_of_name", "regtype_of_number"),
        _ => return None,
    })
}

/// The type of objects that a function looks up, of those that give NULL for what is not there.
pub(super) fn looked_up(function: &str) -> Option<DataType> {
    let oid = match function {
        "to_regclass" => REGCLASS,
        "to_regnamespace" => REGNAMESPACE,
        "to_regproc" => REGPROC,
        "to_regprocedure" => REGPROCEDURE,
        "to_regrole" => REGROLE,
        "to_regtype" => REGTYPE,
        _ => return None,
    };
    Some(DataType::Other { oid, typmod: -1 })
}

/// A row's place as a `tid`, of the number that the row has it as.
pub(crate) fn tid_of(place: Expr) -> Result<Expr> {
    Ok(Expr::Func(Func::exactly("tid_of_number", &[Param::Type(DataType::Int8)])?, vec![place]))
}

impl Binder<'_> {
    /// A cast to a type of the catalog; `None` if the type is another one.
    pub(super) fn catalog_cast(
        &mut self,
        expr: &tree::Expr,
        ty: &TypeName,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let Some(ty) = catalog_type(ty) else { return Ok(None) };
        let value = self.bind_as(expr, ty, Coercion::Explicit, scope)?;
        Ok(Some(Typed::known(value, ty)))
    }

    /// Converts a value to a type that names objects.
    pub(super) fn coerce_object(
        &mut self,
        typed: Typed,
        to: DataType,
        how: Coercion,
    ) -> Result<Expr> {
        let Some((of_name, of_number)) = makers(to) else {
            return Err(SqlError::internal("no type of objects"));
        };
        let (maker, arg) = match typed.ty {
            Ty::Known(from) if from.oid() == to.oid() => return Ok(typed.expr),
            Ty::Known(from) if is_int(from) || is_object(from) => (of_number, DataType::Oid),
            Ty::Known(from) if !from.is_string() || how != Coercion::Explicit => {
                return Err(SqlError::new(
                    SqlState::CANNOT_COERCE,
                    format!("cannot cast type {from} to {to}"),
                ));
            }
            _ if matches!(typed.expr, Expr::Const(Value::Null)) => return Ok(Expr::NULL),
            _ => (of_name, DataType::Text),
        };
        let arg_expr = self.coerce(typed, arg, Coercion::Explicit)?;
        let maker = Func::exactly(maker, &[Param::Type(arg)])?;
        Ok(Expr::Func(maker, vec![arg_expr]))
    }
}

fn catalog_type(ty: &TypeName) -> Option<DataType> {
    let object = |oid| DataType::Other { oid, typmod: -1 };
    let name = match ty.names.as_slice() {
        [name] => name,
        [schema, name] if &**schema == "pg_catalog" => name,
        _ => return None,
    };
    if !ty.typmods.is_empty() || ty.setof || ty.pct_type {
        return None;
    }
    let element = match &**name {
        "char" => DataType::Varchar(Some(1)),
        "pg_node_tree" => DataType::Text,
        "regclass" => object(REGCLASS),
        "regtype" => object(REGTYPE),
        "regnamespace" => object(REGNAMESPACE),
        "regrole" => object(REGROLE),
        "regproc" => object(REGPROC),
        "regprocedure" => object(REGPROCEDURE),
        _ => return None,
    };
    match element {
        element if ty.array_bounds.is_empty() => Some(element),
        // Elements are numbers.
        element if is_object(element) => DataType::Oid.array(),
        element => element.array(),
    }
}
