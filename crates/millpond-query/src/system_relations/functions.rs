//! Functions and what belongs to them: `pg_proc`, `pg_language`.

use std::sync::LazyLock;

use super::Kind::{
    AclArray, Bool, Char, CharArray, Float4, Int2, Name, Oid, OidArray, OidVector, Text, TextArray,
};
use super::aggregates::{Aggregate, aggregates};
use super::types::{IoFunction, io_functions};
use super::{Cell, Columns, Source, View, key, table_functions, unique, view};
use crate::expr::functions::{self, Proc, Volatility, type_number};

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    view("pg_proc", 1255, PG_PROC, pg_proc).keyed(&[
        unique("pg_proc_oid_index", 2690, &["oid"]),
        key("pg_proc_proname_args_nsp_index", 2691, &["proname"]),
    ]),
    view("pg_language", 2612, PG_LANGUAGE, pg_language).keyed(&[unique(
        "pg_language_oid_index",
        2682,
        &["oid"],
    )]),
];

const PG_PROC: Columns = &[
    ("oid", Oid),
    ("proname", Name),
    ("pronamespace", Oid),
    ("proowner", Oid),
    ("prolang", Oid),
    ("procost", Float4),
    ("prorows", Float4),
    ("provariadic", Oid),
    ("prosupport", Oid),
    ("prokind", Char),
    ("prosecdef", Bool),
    ("proleakproof", Bool),
    ("proisstrict", Bool),
    ("proretset", Bool),
    ("provolatile", Char),
    ("proparallel", Char),
    ("pronargs", Int2),
    ("pronargdefaults", Int2),
    ("prorettype", Oid),
    ("proargtypes", OidVector),
    ("proallargtypes", OidArray),
    ("proargmodes", CharArray),
    ("proargnames", TextArray),
    ("proargdefaults", Text),
    ("protrftypes", OidArray),
    ("prosrc", Text),
    ("probin", Text),
    ("prosqlbody", Text),
    ("proconfig", TextArray),
    ("proacl", AclArray),
];

/// All functions that PostgreSQL has a number for.
fn all() -> impl Iterator<Item = Function> {
    let own = functions::all().filter(|proc| proc.oid != 0).map(of_catalog);
    let of_types = io_functions().filter(|function| in_catalog(function.oid).is_none());
    own.chain(of_types.map(of_type))
        .chain(aggregates().iter().map(of_aggregate))
        .chain(functions_of_views())
}

/// The functions whose rows are those of views.
fn functions_of_views() -> impl Iterator<Item = Function> {
    table_functions().filter(|view| view.is_catalog()).map(of_view)
}

/// The catalog's function of a number.
fn in_catalog(oid: u32) -> Option<&'static Proc> {
    static BY_NUMBER: LazyLock<Vec<&'static Proc>> = LazyLock::new(|| {
        let mut procs: Vec<_> = functions::all().filter(|proc| proc.oid != 0).collect();
        procs.sort_by_key(|proc| proc.oid);
        procs
    });
    let place = BY_NUMBER.binary_search_by_key(&oid, |proc| proc.oid).ok();
    place.and_then(|place| BY_NUMBER.get(place)).copied()
}

/// The function of a number.
pub(crate) fn function(oid: u32) -> Option<Function> {
    let own = in_catalog(oid).map(of_catalog);
    own.or_else(|| io_functions().find(|function| function.oid == oid).map(of_type))
        .or_else(|| aggregates().iter().find(|aggregate| aggregate.oid == oid).map(of_aggregate))
        .or_else(|| functions_of_views().find(|function| function.oid == oid))
}

/// The functions of a name.
pub(crate) fn functions_named(name: &str) -> impl Iterator<Item = Function> {
    let own =
        functions::named(name).iter().filter(|proc| proc.oid != 0).map(|proc| of_catalog(proc));
    let is_meant =
        move |function: &&IoFunction| function.name == name && in_catalog(function.oid).is_none();
    let of_types = io_functions().filter(is_meant).map(of_type);
    let aggregates = aggregates().iter().filter(move |aggregate| aggregate.name == name);
    let of_views = functions_of_views().filter(move |function| function.name == name);
    own.chain(of_types).chain(aggregates.map(of_aggregate)).chain(of_views)
}

fn pg_proc(source: &Source<'_>) -> Vec<Vec<Cell>> {
    if let Some(oid) = source.wanted_oid("oid") {
        return function(oid).map(row).into_iter().collect();
    }
    match source.wanted_name("proname") {
        Some(name) => functions_named(name).map(row).collect(),
        None => all().map(row).collect(),
    }
}

/// What `pg_proc` says of a function. The rest is the same for all.
pub(crate) struct Function {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    kind: &'static str,
    strict: bool,
    pub(crate) returns_rows: bool,
    volatility: Volatility,
    /// The type of the arguments that there may be any number of; 0 if none.
    pub(crate) variadic: u32,
    pub(crate) result: u32,
    pub(crate) args: Vec<u32>,
    source: &'static str,
}

impl Function {
    /// Whether it is an aggregate.
    pub(crate) fn is_aggregate(&self) -> bool {
        self.kind == "a"
    }
}

/// A function of input or output. All its types are said to be `internal`: clients look for its
/// name.
fn of_type(function: &IoFunction) -> Function {
    const INTERNAL_TYPE: u32 = 2281;
    Function {
        oid: function.oid,
        name: function.name,
        kind: "f",
        strict: true,
        returns_rows: false,
        volatility: Volatility::Immutable,
        variadic: 0,
        result: INTERNAL_TYPE,
        args: vec![INTERNAL_TYPE],
        source: function.name,
    }
}

fn of_view(view: &View) -> Function {
    const RECORD_TYPE: u32 = 2249;
    // What locks there are, and what the files say, changes within a statement.
    let is_volatile = matches!(view.name, "pg_lock_status" | "pg_show_all_file_settings");
    Function {
        oid: view.oid,
        name: view.name,
        kind: "f",
        strict: true,
        returns_rows: true,
        volatility: if is_volatile { Volatility::Volatile } else { Volatility::Stable },
        variadic: 0,
        result: RECORD_TYPE,
        args: Vec::new(),
        source: view.name,
    }
}

fn of_catalog(proc: &Proc) -> Function {
    let last = proc.args.last().filter(|_| proc.variadic);
    Function {
        oid: proc.oid,
        name: proc.name,
        kind: "f",
        strict: proc.strict,
        returns_rows: proc.returns_rows(),
        volatility: proc.volatility,
        variadic: last.map_or(0, |param| type_number(*param)),
        result: type_number(proc.result),
        args: proc.args.iter().map(|param| type_number(*param)).collect(),
        source: proc.name,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> Function {
    Function {
        oid: aggregate.oid,
        name: aggregate.name,
        kind: aggregate.kind,
        strict: aggregate.strict,
        returns_rows: false,
        volatility: Volatility::Immutable,
        variadic: aggregate.variadic,
        result: aggregate.result,
        args: aggregate.args.clone(),
        source: if aggregate.is_window() { aggregate.name } else { "aggregate_dummy" },
    }
}

fn row(function: Function) -> Vec<Cell> {
    let volatility = match function.volatility {
        Volatility::Immutable => "i",
        Volatility::Stable => "s",
        Volatility::Volatile => "v",
    };
    let cell = |(column, kind): &(&str, super::Kind)| match *column {
        "oid" => function.oid.into(),
        "proname" => function.name.into(),
        "pronamespace" => 11.into(),
        "proowner" => 10.into(),
        "prolang" => INTERNAL.into(),
        "procost" => 1.into(),
        "prorows" => if function.returns_rows { 1000 } else { 0 }.into(),
        "provariadic" => function.variadic.into(),
        "prokind" => function.kind.into(),
        "proisstrict" => function.strict.into(),
        "proretset" => function.returns_rows.into(),
        "provolatile" => volatility.into(),
        "proparallel" => "s".into(),
        "pronargs" => function.args.len().into(),
        "prorettype" => function.result.into(),
        "proargtypes" => Cell::Ints(function.args.iter().map(|ty| (*ty).into()).collect()),
        "prosrc" => function.source.into(),
        _ => match kind {
            Bool => false.into(),
            Oid | Int2 | Float4 => 0.into(),
            _ => Cell::Null,
        },
    };
    PG_PROC.iter().map(cell).collect()
}

/// The number of the language of functions that are part of the server.
const INTERNAL: u32 = 12;

/// The languages there are.
pub(crate) const LANGUAGES: [(u32, &str); 1] = [(INTERNAL, "internal")];

const PG_LANGUAGE: Columns = &[
    ("oid", Oid),
    ("lanname", Name),
    ("lanowner", Oid),
    ("lanispl", Bool),
    ("lanpltrusted", Bool),
    ("lanplcallfoid", Oid),
    ("laninline", Oid),
    ("lanvalidator", Oid),
    ("lanacl", AclArray),
];

fn pg_language(_: &Source<'_>) -> Vec<Vec<Cell>> {
    vec![vec![
        INTERNAL.into(),
        "internal".into(),
        10.into(),
        false.into(),
        false.into(),
        0.into(),
        0.into(),
        2246.into(),
        Cell::Null,
    ]]
}
