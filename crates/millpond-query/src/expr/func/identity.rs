//! What an object of the catalog is, as messages and clients name it: its kind, its schema, its
//! name, and how it is written so that it can mean no other object.

use millpond_engine::catalog::CatalogState;

use super::object_name::{ACCESS_METHODS, COLLATIONS, OWNER, SCHEMAS, TABLESPACES, with_catalog};
use crate::error::{Result, SqlError};
use crate::expr::{Env, quoted_name};
use crate::system_relations::{self as system, DATABASE_OID};

/// An object.
pub(super) struct Identity {
    pub(super) kind: &'static str,
    pub(super) schema: Option<&'static str>,
    /// Its name, quoted where it has to be. `None` of what has no name that is its own.
    pub(super) name: Option<String>,
    /// With its schema.
    pub(super) identity: String,
    /// In words, without the schema if the name alone means it.
    pub(super) description: String,
    /// The parts of its name, and what tells it from others of that name.
    pub(super) address: (Vec<String>, Vec<String>),
}

/// The numbers of the system relations that have the objects.
pub(super) mod class {
    pub(in super::super) const RELATION: u32 = 1259;
    pub(in super::super) const TYPE: u32 = 1247;
    pub(in super::super) const ROUTINE: u32 = 1255;
    pub(in super::super) const SCHEMA: u32 = 2615;
    pub(in super::super) const ROLE: u32 = 1260;
    pub(in super::super) const DATABASE: u32 = 1262;
    pub(in super::super) const TABLESPACE: u32 = 1213;
    pub(in super::super) const ACCESS_METHOD: u32 = 2601;
    pub(in super::super) const LANGUAGE: u32 = 2612;
    pub(in super::super) const COLLATION: u32 = 3456;
    pub(in super::super) const CONSTRAINT: u32 = 2606;
    pub(in super::super) const CAST: u32 = 2605;
    pub(in super::super) const OPERATOR: u32 = 2617;
    pub(in super::super) const OPERATOR_CLASS: u32 = 2616;
}

/// Kinds of objects: the number of the system relation that has them, and what one is called that
/// is not there.
const KINDS: &[(u32, &str)] = &[
    (class::RELATION, "relation"),
    (class::TYPE, "type"),
    (class::ROUTINE, "routine"),
    (class::SCHEMA, "schema"),
    (class::ROLE, "role"),
    (class::DATABASE, "database"),
    (class::TABLESPACE, "tablespace"),
    (class::ACCESS_METHOD, "access method"),
    (class::LANGUAGE, "language"),
    (class::COLLATION, "collation"),
    (class::CONSTRAINT, "constraint"),
    (class::CAST, "cast"),
    (class::OPERATOR, "operator"),
    (class::OPERATOR_CLASS, "operator class"),
    (2753, "operator family"),
    (2602, "operator of access method"),
    (2603, "function of access method"),
    (2604, "default value"),
    (2607, "conversion"),
    (2613, "large object"),
    (2618, "rule"),
    (2620, "trigger"),
    (3381, "statistics object"),
    (3600, "text search dictionary"),
    (3601, "text search parser"),
    (3602, "text search configuration"),
    (3764, "text search template"),
    (2328, "foreign-data wrapper"),
    (1417, "server"),
    (1418, "user mapping"),
    (826, "default acl"),
    (3079, "extension"),
    (3466, "event trigger"),
    (3256, "policy"),
    (6104, "publication"),
    (6106, "publication relation"),
    (6237, "publication namespace"),
    (6100, "subscription"),
    (6243, "parameter ACL"),
    (3576, "transform"),
];

/// What an object is called that is not there.
pub(super) fn kind_of_absent(class: u32, column: i32) -> Result<&'static str> {
    let found = KINDS.iter().find(|(own, _)| *own == class);
    match found {
        Some((class::RELATION, _)) if column != 0 => Ok("table column"),
        Some((_, kind)) => Ok(kind),
        None => Err(SqlError::internal(format!("unrecognized object class: {class}"))),
    }
}

/// The object of a number in a system relation; `None` if there is none. Only relations have parts.
pub(super) fn find(
    class: u32,
    number: u32,
    column: i32,
    env: &Env<'_>,
) -> Result<Option<Identity>> {
    kind_of_absent(class, column)?;
    if class != class::RELATION && column != 0 {
        let message = format!("invalid non-zero objectSubId for object class {class}");
        return Err(SqlError::internal(message));
    }
    match class {
        class::RELATION => with_catalog(env, |catalog| relation(catalog, number, column)),
        class::CONSTRAINT => with_catalog(env, |catalog| constraint(catalog, number)),
        class::TYPE => type_of(number),
        class::ROUTINE => function(number),
        class::CAST => cast(number),
        class::OPERATOR => operator(number),
        _ => Ok(plain(class, number, env)),
    }
}

/// An object that is told by one name without a schema.
fn named(kind: &'static str, name: &str) -> Identity {
    Identity {
        kind,
        schema: None,
        name: Some(quoted_name(name)),
        identity: quoted_name(name),
        description: format!("{kind} {name}"),
        address: (vec![name.to_owned()], Vec::new()),
    }
}

fn plain(class: u32, number: u32, env: &Env<'_>) -> Option<Identity> {
    let number = i64::from(number);
    let of = |list: &[(i64, &'static str)]| {
        list.iter().find(|(own, _)| *own == number).map(|(_, name)| *name)
    };
    Some(match class {
        class::SCHEMA => named("schema", of(&SCHEMAS)?),
        class::TABLESPACE => named("tablespace", of(&TABLESPACES)?),
        class::ROLE => named("role", of(&[(OWNER, "postgres")])?),
        class::DATABASE if number == DATABASE_OID => named("database", env.facts.database),
        class::ACCESS_METHOD => named("access method", of(&ACCESS_METHODS)?),
        class::LANGUAGE => {
            let found = system::LANGUAGES.iter().find(|(own, _)| i64::from(*own) == number);
            named("language", found?.1)
        }
        class::COLLATION => collation(of(&COLLATIONS)?),
        class::OPERATOR_CLASS => {
            operator_class(system::operator_class(u32::try_from(number).ok()?)?)
        }
        _ => return None,
    })
}

fn collation(name: &str) -> Identity {
    let quoted = quoted_name(name);
    Identity {
        kind: "collation",
        schema: Some("pg_catalog"),
        identity: format!("pg_catalog.{quoted}"),
        description: format!("collation {quoted}"),
        name: Some(quoted),
        address: (vec!["pg_catalog".to_owned(), name.to_owned()], Vec::new()),
    }
}

fn operator_class(name: &str) -> Identity {
    let parts = ["btree", "pg_catalog", name].map(str::to_owned);
    Identity {
        kind: "operator class",
        schema: Some("pg_catalog"),
        name: Some(name.to_owned()),
        identity: format!("pg_catalog.{name} USING btree"),
        description: format!("operator class {name} for access method btree"),
        address: (parts.into(), Vec::new()),
    }
}

/// A relation's kind, schema, name and columns.
type RelationFacts<'a> = (&'static str, &'static str, &'a str, Vec<&'a str>);

fn facts_of(catalog: &CatalogState, number: u32) -> Option<RelationFacts<'_>> {
    if let Some(table) = catalog.table(number) {
        let columns = table.columns.iter().map(|column| &*column.name).collect();
        return Some(("table", "public", &table.name, columns));
    }
    if let Some((table, index)) = catalog.index(number) {
        let name = |column: usize| &*table.columns[column].name;
        let columns = index.columns.iter().map(|key| name(key.column)).collect();
        return Some(("index", "public", &index.name, columns));
    }
    let view = system::view_of(number)?;
    Some(("view", view.schema, view.name, view.columns.iter().map(|(name, _)| *name).collect()))
}

fn relation(catalog: &CatalogState, number: u32, column: i32) -> Option<Identity> {
    let (kind, schema, name, columns) = facts_of(catalog, number)?;
    let quoted = quoted_name(name);
    let shown = match schema {
        "pg_catalog" | "public" => quoted.clone(),
        schema => format!("{schema}.{quoted}"),
    };
    let mut object = Identity {
        kind,
        schema: Some(schema),
        identity: format!("{schema}.{quoted}"),
        name: Some(quoted),
        description: format!("{kind} {shown}"),
        address: (vec![schema.to_owned(), name.to_owned()], Vec::new()),
    };
    if column != 0 {
        let place = usize::try_from(column).ok()?.checked_sub(1)?;
        let column = *columns.get(place)?;
        object.kind = match kind {
            "table" => "table column",
            "view" => "view column",
            _ => "index column",
        };
        object.identity = format!("{}.{}", object.identity, quoted_name(column));
        object.description = format!("column {column} of {}", object.description);
        object.address.0.push(column.to_owned());
    }
    Some(object)
}

fn constraint(catalog: &CatalogState, number: u32) -> Option<Identity> {
    let index = system::constraint_index(number);
    let (table, index) = catalog.index(index).filter(|_| index != number)?;
    let (table, name) = (&*table.name, &*index.name);
    let (quoted_table, quoted) = (quoted_name(table), quoted_name(name));
    Some(Identity {
        kind: "table constraint",
        schema: Some("public"),
        name: None,
        identity: format!("{quoted} on public.{quoted_table}"),
        description: format!("constraint {name} on table {quoted_table}"),
        address: (["public", table, name].map(str::to_owned).into(), Vec::new()),
    })
}

fn type_name(number: u32) -> Result<String> {
    super::format_type(number.into(), None)
}

/// A type's name with its schema, but for those that are SQL's own.
fn qualified_type(number: u32) -> Result<String> {
    let name = type_name(number)?;
    let element = name.trim_end_matches("[]");
    let is_sql = matches!(
        element,
        "bit"
            | "boolean"
            | "character"
            | "real"
            | "double precision"
            | "smallint"
            | "integer"
            | "bigint"
            | "numeric"
            | "interval"
            | "bit varying"
            | "character varying"
    ) || element.ends_with(" time zone");
    Ok(if is_sql { name } else { format!("pg_catalog.{name}") })
}

fn type_of(number: u32) -> Result<Option<Identity>> {
    if !system::is_type(number.into()) {
        return Ok(None);
    }
    let identity = qualified_type(number)?;
    Ok(Some(Identity {
        kind: "type",
        schema: Some("pg_catalog"),
        name: system::type_name(number.into()).map(quoted_name),
        description: format!("type {}", type_name(number)?),
        address: (vec![identity.clone()], Vec::new()),
        identity,
    }))
}

fn function(number: u32) -> Result<Option<Identity>> {
    let Some(function) = system::function(number) else { return Ok(None) };
    let list = |name: fn(u32) -> Result<String>| {
        function.args.iter().map(|ty| name(*ty)).collect::<Result<Vec<_>>>()
    };
    let (args, qualified) = (list(type_name)?, list(qualified_type)?);
    let quoted = quoted_name(function.name);
    Ok(Some(Identity {
        kind: if function.is_aggregate() { "aggregate" } else { "function" },
        schema: Some("pg_catalog"),
        name: None,
        identity: format!("pg_catalog.{quoted}({})", qualified.join(",")),
        description: format!("function {quoted}({})", args.join(",")),
        address: (vec!["pg_catalog".to_owned(), function.name.to_owned()], qualified),
    }))
}

fn cast(number: u32) -> Result<Option<Identity>> {
    let Some((from, to)) = system::cast(number) else { return Ok(None) };
    let (source, target) = (qualified_type(from)?, qualified_type(to)?);
    Ok(Some(Identity {
        kind: "cast",
        schema: None,
        name: None,
        identity: format!("({source} AS {target})"),
        description: format!("cast from {} to {}", type_name(from)?, type_name(to)?),
        address: (vec![source], vec![target]),
    }))
}

fn operator(number: u32) -> Result<Option<Identity>> {
    let Some((symbol, left, right)) = system::operator(number) else { return Ok(None) };
    let list = |name: fn(u32) -> Result<String>| {
        let side = |ty: u32| if ty == 0 { Ok("NONE".to_owned()) } else { name(ty) };
        Ok::<_, SqlError>(format!("{},{}", side(left)?, side(right)?))
    };
    let sides = [left, right].into_iter().filter(|ty| *ty != 0);
    Ok(Some(Identity {
        kind: "operator",
        schema: Some("pg_catalog"),
        name: None,
        identity: format!("pg_catalog.{symbol}({})", list(qualified_type)?),
        description: format!("operator {symbol}({})", list(type_name)?),
        address: (
            vec!["pg_catalog".to_owned(), symbol.to_owned()],
            sides.map(qualified_type).collect::<Result<_>>()?,
        ),
    }))
}
