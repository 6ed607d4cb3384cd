//! Casts to the types of the catalog. Here `xid` is a bigint, `name` and `"char"` are texts.
//!
//! A type that names objects (`regclass`) has no values of its own: a name that is cast to it is
//! the object's number, and a number that is cast to it is the object's name.

use millpond_syntax::tree::{self, TypeName};

use super::{Binder, Coercion, Scope, Typed};
use crate::DataType;
use crate::error::Result;
use crate::expr::types::{Ty, is_int};

/// A type of the catalog.
enum CatalogType {
    /// It is another type here.
    Plain(DataType),
    /// It names objects: the functions from a name to a number, and back.
    Object(&'static str, &'static str),
}

impl Binder<'_> {
    /// A cast to a type of the catalog; `None` if the type is another one.
    pub(super) fn catalog_cast(
        &mut self,
        expr: &tree::Expr,
        ty: &TypeName,
        scope: &dyn Scope,
    ) -> Result<Option<Typed>> {
        let (to_number, to_name) = match catalog_type(ty) {
            None => return Ok(None),
            Some(CatalogType::Plain(ty)) => {
                let value = self.bind_as(expr, ty, Coercion::Explicit, scope)?;
                return Ok(Some(Typed::known(value, ty)));
            }
            Some(CatalogType::Object(to_number, to_name)) => (to_number, to_name),
        };
        let value = self.bind(expr, scope)?;
        let is_number = matches!(value.ty, Ty::Known(ty) if is_int(ty));
        let (function, arg) =
            if is_number { (to_name, DataType::Int8) } else { (to_number, DataType::Text) };
        let value = Typed::known(self.coerce(value, arg, Coercion::Explicit)?, arg);
        let mut args = vec![value];
        if function == "format_type" {
            let none = crate::expr::Expr::NULL;
            args.push(Typed::known(none, DataType::Int4));
        }
        self.call(function, args).map(Some)
    }
}

fn catalog_type(ty: &TypeName) -> Option<CatalogType> {
    use CatalogType::{Object, Plain};
    let name = match ty.names.as_slice() {
        [name] => name,
        [schema, name] if &**schema == "pg_catalog" => name,
        _ => return None,
    };
    if !ty.typmods.is_empty() || ty.setof || ty.pct_type {
        return None;
    }
    let element = match &**name {
        "xid" | "cid" => Plain(DataType::Int8),
        "char" => Plain(DataType::Varchar(Some(1))),
        "name" | "pg_node_tree" => Plain(DataType::Text),
        "int2vector" => Plain(DataType::Int2.array()?),
        "oidvector" => Plain(DataType::Oid.array()?),
        "regclass" => Object("regclass_oid", "regclass_name"),
        "regtype" => Object("regtype_oid", "format_type"),
        "regnamespace" => Object("regnamespace_oid", "regnamespace_name"),
        "regrole" => Object("regrole_oid", "regrole_name"),
        "regproc" => Object("regproc_oid", "regproc_name"),
        "regprocedure" => Object("regprocedure_oid", "regprocedure_name"),
        _ => return None,
    };
    match element {
        element if ty.array_bounds.is_empty() => Some(element),
        Plain(ty) => ty.array().map(Plain),
        Object(..) => DataType::Oid.array().map(Plain),
    }
}
