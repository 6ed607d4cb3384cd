//! What roles may do with objects. There is one role, a superuser: it may do everything with what
//! exists. Other roles have what PostgreSQL grants to `PUBLIC` by default.

use super::Body;
use super::catalog::{BOOL, INT2, NAME, OID, Proc, TEXT, proc};
use super::object_name as names;
use super::value::wrong_arguments;
use crate::analyze::tree::{SYSTEM_COLUMNS, is_system_column};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations as system;
use crate::{Datum, Value};

/// The forms of a function: with and without a role, by name or by number, of an object by name or
/// by number. Their numbers stand in this order.
macro_rules! privileges {
    ($($name:literal $body:ident $of:ident $oids:tt;)*) => {
        &[$(privileges!(@one $name $body $of $oids)),*]
    };
    (@one $name:literal $body:ident $of:ident
     [$a:literal, $b:literal, $c:literal, $d:literal, $e:literal, $f:literal]) => {
        [
            proc($a, $name, &[NAME, $of, TEXT], BOOL, Body::Datums($body)).stable(),
            proc($b, $name, &[NAME, OID, TEXT], BOOL, Body::Datums($body)).stable(),
            proc($c, $name, &[OID, $of, TEXT], BOOL, Body::Datums($body)).stable(),
            proc($d, $name, &[OID, OID, TEXT], BOOL, Body::Datums($body)).stable(),
            proc($e, $name, &[$of, TEXT], BOOL, Body::Datums($body)).stable(),
            proc($f, $name, &[OID, TEXT], BOOL, Body::Datums($body)).stable(),
        ]
    };
}

const KINDS: &[[Proc; 6]] = privileges! {
    "has_table_privilege" table TEXT [1922, 1923, 1924, 1925, 1926, 1927];
    "has_sequence_privilege" sequence TEXT [2181, 2182, 2183, 2184, 2185, 2186];
    "has_any_column_privilege" any_column TEXT [3024, 3025, 3026, 3027, 3028, 3029];
    "has_database_privilege" database TEXT [2250, 2251, 2252, 2253, 2254, 2255];
    "has_schema_privilege" schema TEXT [2268, 2269, 2270, 2271, 2272, 2273];
    "has_function_privilege" function TEXT [2256, 2257, 2258, 2259, 2260, 2261];
    "has_language_privilege" language TEXT [2262, 2263, 2264, 2265, 2266, 2267];
    "has_type_privilege" data_type TEXT [3138, 3139, 3140, 3141, 3142, 3143];
    "has_tablespace_privilege" tablespace TEXT [2390, 2391, 2392, 2393, 2394, 2395];
    "has_foreign_data_wrapper_privilege" wrapper TEXT [3000, 3001, 3002, 3003, 3004, 3005];
    "has_server_privilege" server TEXT [3006, 3007, 3008, 3009, 3010, 3011];
    "pg_has_role" role NAME [2705, 2706, 2707, 2708, 2709, 2710];
};

pub(super) static PROCS: &[Proc] = KINDS.as_flattened();

/// The forms that only some functions have.
pub(super) static OTHERS: &[Proc] = &[
    of_column(3012, &[NAME, TEXT, TEXT, TEXT]),
    of_column(3013, &[NAME, TEXT, INT2, TEXT]),
    of_column(3014, &[NAME, OID, TEXT, TEXT]),
    of_column(3015, &[NAME, OID, INT2, TEXT]),
    of_column(3016, &[OID, TEXT, TEXT, TEXT]),
    of_column(3017, &[OID, TEXT, INT2, TEXT]),
    of_column(3018, &[OID, OID, TEXT, TEXT]),
    of_column(3019, &[OID, OID, INT2, TEXT]),
    of_column(3020, &[TEXT, TEXT, TEXT]),
    of_column(3021, &[TEXT, INT2, TEXT]),
    of_column(3022, &[OID, TEXT, TEXT]),
    of_column(3023, &[OID, INT2, TEXT]),
    of_parameter(6205, &[NAME, TEXT, TEXT]),
    of_parameter(6206, &[OID, TEXT, TEXT]),
    of_parameter(6207, &[TEXT, TEXT]),
    // There are no policies for rows.
    proc(3298, "row_security_active", &[OID], BOOL, Body::Datums(row_security)).stable(),
    proc(3299, "row_security_active", &[TEXT], BOOL, Body::Datums(row_security)).stable(),
];

const fn of_column(oid: u32, args: &'static [super::catalog::Param]) -> Proc {
    proc(oid, "has_column_privilege", args, BOOL, Body::Datums(column)).stable()
}

const fn of_parameter(oid: u32, args: &'static [super::catalog::Param]) -> Proc {
    proc(oid, "has_parameter_privilege", args, BOOL, Body::Datums(parameter)).stable()
}

/// Whose privileges are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grantee {
    Superuser,
    Public,
}

/// The grantee, and the arguments behind it, of which there are `count`. A number that is no role's
/// has what `PUBLIC` has.
fn grantee<'a, 'd>(
    args: &'a [Datum<'d>],
    count: usize,
    env: &Env<'_>,
) -> Result<(Grantee, &'a [Datum<'d>])> {
    let (role, rest) = args.split_at(args.len().saturating_sub(count));
    let grantee = match role {
        [] | [Datum::Int8(names::OWNER)] => Grantee::Superuser,
        [Datum::Text("public")] | [Datum::Int8(_)] => Grantee::Public,
        [Datum::Text(name)] => names::role(name, env).map(|_| Grantee::Superuser)?,
        _ => return Err(wrong_arguments(args.len())),
    };
    Ok((grantee, rest))
}

/// A kind of object: its privileges, and those that `PUBLIC` has.
struct Kind {
    all: &'static [&'static str],
    public: &'static [&'static str],
}

/// Whether a grantee has one of the privileges in a list. `WITH GRANT OPTION` may follow each.
fn has(kind: &Kind, grantee: Grantee, privileges: &str) -> Result<bool> {
    let mut has_one = false;
    for privilege in privileges.split(',') {
        let shown = privilege.trim_matches(|c: char| c.is_ascii_whitespace());
        let word = shown.to_ascii_uppercase();
        let plain = word.strip_suffix(" WITH GRANT OPTION");
        let name = plain.unwrap_or(&word);
        if !kind.all.contains(&name) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized privilege type: \"{shown}\""),
            ));
        }
        has_one |= match grantee {
            // RULE was a privilege once. Its name is left, and grants nothing.
            Grantee::Superuser => name != "RULE",
            Grantee::Public => plain.is_none() && kind.public.contains(&name),
        };
    }
    Ok(has_one)
}

/// The answer for an object: NULL if its number is no object's.
fn answer(kind: &Kind, grantee: Grantee, exists: bool, privileges: &Datum<'_>) -> Result<Value> {
    let Datum::Text(privileges) = privileges else { return Err(wrong_arguments(1)) };
    let has = has(kind, grantee, privileges)?;
    Ok(if exists { Value::Bool(has) } else { Value::Null })
}

const TABLE: Kind = Kind {
    all: &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"],
    public: &[],
};
const SYSTEM_TABLE: Kind = Kind { public: &["SELECT"], ..TABLE };
const COLUMN: Kind = Kind { all: &["SELECT", "INSERT", "UPDATE", "REFERENCES"], public: &[] };
const SYSTEM_COLUMN: Kind = Kind { public: &["SELECT"], ..COLUMN };
const SEQUENCE: Kind = Kind { all: &["USAGE", "SELECT", "UPDATE"], public: &[] };
const DATABASE: Kind = Kind {
    all: &["CREATE", "CONNECT", "TEMPORARY", "TEMP"],
    public: &["CONNECT", "TEMPORARY", "TEMP"],
};
const SCHEMA: Kind = Kind { all: &["CREATE", "USAGE"], public: &["USAGE"] };
const FUNCTION: Kind = Kind { all: &["EXECUTE"], public: &["EXECUTE"] };
const USAGE: Kind = Kind { all: &["USAGE"], public: &["USAGE"] };
const OWNED: Kind = Kind { all: &["USAGE"], public: &[] };
const TABLESPACE: Kind = Kind { all: &["CREATE"], public: &[] };
const PARAMETER: Kind = Kind { all: &["SET", "ALTER SYSTEM"], public: &[] };

/// System relations that only the superuser reads.
const SECRET: [&str; 14] = [
    "pg_authid",
    "pg_backend_memory_contexts",
    "pg_config",
    "pg_file_settings",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_largeobject",
    "pg_replication_origin_status",
    "pg_shadow",
    "pg_shmem_allocations",
    "pg_statistic",
    "pg_statistic_ext_data",
    "pg_subscription",
    "pg_user_mapping",
];

/// A relation: its number, and whether it is there.
struct Relation {
    oid: u32,
    exists: bool,
}

impl Relation {
    fn of(datum: &Datum<'_>, env: &Env<'_>) -> Result<Self> {
        let number = match datum {
            Datum::Text(name) => names::relation(name, env)?,
            Datum::Int8(number) => *number,
            _ => return Err(wrong_arguments(1)),
        };
        let oid = u32::try_from(number).unwrap_or(0);
        let exists = system::view_of(oid).is_some()
            || names::with_catalog(env, |catalog| {
                catalog.table(oid).is_some() || catalog.index(oid).is_some()
            })?;
        Ok(Relation { oid, exists })
    }

    /// Whether all roles may read it.
    fn is_public(&self) -> bool {
        system::view_of(self.oid).is_some_and(|view| !SECRET.contains(&view.name))
    }

    fn name(&self, env: &Env<'_>) -> Result<String> {
        names::with_catalog(env, |catalog| system::relation_name(catalog, self.oid.into()))
    }

    /// Whether it has a column of this name or number. Every relation has the system columns, whose
    /// numbers are negative.
    fn has_column(&self, column: &Datum<'_>, env: &Env<'_>) -> Result<bool> {
        names::with_catalog(env, |catalog| {
            let found: Vec<&str> = match system::view_of(self.oid) {
                Some(view) => view.columns.iter().map(|(name, _)| *name).collect(),
                None => match catalog.table(self.oid) {
                    Some(table) => table.columns.iter().map(|column| &*column.name).collect(),
                    None => Vec::new(),
                },
            };
            match column {
                Datum::Text(name) => found.contains(name) || is_system_column(name),
                Datum::Int2(number) if *number < 0 => *number >= -(SYSTEM_COLUMNS.len() as i16),
                Datum::Int2(number) => (1..=found.len()).contains(&(*number as usize)),
                _ => false,
            }
        })
    }
}

fn table(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    relation_privilege(args, env, [&TABLE, &SYSTEM_TABLE])
}

fn any_column(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    relation_privilege(args, env, [&COLUMN, &SYSTEM_COLUMN])
}

fn relation_privilege(args: &[Datum<'_>], env: &Env<'_>, kinds: [&Kind; 2]) -> Result<Value> {
    let (grantee, [object, privileges]) = grantee(args, 2, env)? else {
        return Err(wrong_arguments(args.len()));
    };
    let relation = Relation::of(object, env)?;
    let kind = kinds[usize::from(relation.is_public())];
    answer(kind, grantee, relation.exists, privileges)
}

/// There are no sequences: a relation is something else.
fn sequence(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let (grantee, [object, privileges]) = grantee(args, 2, env)? else {
        return Err(wrong_arguments(args.len()));
    };
    let relation = Relation::of(object, env)?;
    let answer = answer(&SEQUENCE, grantee, false, privileges)?;
    if relation.exists {
        let name = relation.name(env)?;
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a sequence"),
        ));
    }
    Ok(answer)
}

fn column(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let (grantee, [object, column, privileges]) = grantee(args, 3, env)? else {
        return Err(wrong_arguments(args.len()));
    };
    let relation = Relation::of(object, env)?;
    let kind = if relation.is_public() { &SYSTEM_COLUMN } else { &COLUMN };
    let exists = relation.has_column(column, env)?;
    if let Datum::Text(name) = column
        && relation.exists
        && !exists
    {
        let table = relation.name(env)?;
        return Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{table}\" does not exist"),
        ));
    }
    answer(kind, grantee, exists, privileges)
}

fn database(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &DATABASE, |database| match database {
        Datum::Text(name) if *name == env.facts.database => Ok(true),
        Datum::Text(name) => Err(SqlError::new(
            SqlState::UNDEFINED_DATABASE,
            format!("database \"{name}\" does not exist"),
        )),
        other => Ok(*other == Datum::Int8(system::DATABASE_OID)),
    })
}

fn schema(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &SCHEMA, |schema| match schema {
        Datum::Text(name) => names::schema_number(name).map(|_| true),
        // PostgreSQL doesn't look whether a superuser's schema is there.
        other => Ok(matches!(other, Datum::Int8(_))),
    })
}

fn function(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &FUNCTION, |function| match function {
        Datum::Text(name) => names::signature(name).map(|_| true),
        Datum::Int8(oid) => Ok(u32::try_from(*oid).ok().and_then(system::function).is_some()),
        _ => Ok(false),
    })
}

fn language(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &USAGE, |language| match language {
        Datum::Text(name) => names::language(name).map(|_| true),
        other => Ok(system::LANGUAGES.iter().any(|(oid, _)| *other == Datum::Int8((*oid).into()))),
    })
}

fn data_type(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &USAGE, |ty| match ty {
        Datum::Text(name) => names::type_number(name).map(|_| true),
        Datum::Int8(oid) => Ok(system::is_type(*oid)),
        _ => Ok(false),
    })
}

fn tablespace(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &TABLESPACE, |space| match space {
        Datum::Text(name) => names::tablespace(name).map(|_| true),
        other => Ok(names::TABLESPACES.iter().any(|(oid, _)| *other == Datum::Int8(*oid))),
    })
}

/// There are no foreign-data wrappers.
fn wrapper(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &OWNED, |wrapper| absent("foreign-data wrapper", wrapper))
}

/// There are no foreign servers.
fn server(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &OWNED, |server| absent("server", server))
}

fn absent(kind: &str, object: &Datum<'_>) -> Result<bool> {
    let Datum::Text(name) = object else { return Ok(false) };
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("{kind} \"{name}\" does not exist")))
}

/// A parameter may have any name: that of an extension's setting among them.
fn parameter(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    object(args, env, &PARAMETER, |_| Ok(true))
}

fn object<'d>(
    args: &[Datum<'d>],
    env: &Env<'_>,
    kind: &Kind,
    exists: impl FnOnce(&Datum<'d>) -> Result<bool>,
) -> Result<Value> {
    let (grantee, [object, privileges]) = grantee(args, 2, env)? else {
        return Err(wrong_arguments(args.len()));
    };
    let exists = exists(object)?;
    answer(kind, grantee, exists, privileges)
}

/// Whether one role has the privileges of another. `public` is no role here.
fn role(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    const ROLE: Kind = Kind {
        all: &["USAGE", "MEMBER", "USAGE WITH ADMIN OPTION", "MEMBER WITH ADMIN OPTION"],
        public: &[],
    };
    let number = |datum: &Datum<'_>| match datum {
        Datum::Text(name) => names::role(name, env),
        Datum::Int8(number) => Ok(*number),
        _ => Err(wrong_arguments(args.len())),
    };
    let (member, of, privileges) = match args {
        [of, privileges] => (names::OWNER, number(of)?, privileges),
        [member, of, privileges] => (number(member)?, number(of)?, privileges),
        _ => return Err(wrong_arguments(args.len())),
    };
    let grantee = match member {
        names::OWNER => Grantee::Superuser,
        other if other == of => Grantee::Superuser,
        _ => Grantee::Public,
    };
    answer(&ROLE, grantee, true, privileges)
}

fn row_security(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    if let [Datum::Text(name)] = args {
        names::relation(name, env)?;
    }
    Ok(Value::Bool(false))
}
