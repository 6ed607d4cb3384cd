//! The catalog of functions. Each has PostgreSQL's number and name, the types of its arguments and
//! of its result, and the Rust function that computes it.
//!
//! A family of functions is a file with a table of [`Proc`]s. To add a function, add an entry to
//! its family's table; to add a family, add its table to [`FAMILIES`].

use std::collections::HashMap;
use std::sync::LazyLock;

use millpond_types::numeric::Small;
use millpond_types::other;

use super::Body;
use super::operator_functions::OfOperator;
use crate::expr::types::NUMERIC as ANY_NUMERIC;
use crate::{DataType, Datum};

/// What an argument or a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    /// A value of this type. The type's modifier does not matter.
    Type(DataType),
    /// A value of any type, as it is.
    Any,
    /// A value of any type. All arguments of this kind in a call are of one type, which is also the
    /// type of a result of this kind.
    AnyElement,
    /// The same, but no array.
    AnyNonArray,
    /// An array whose elements are of the type that [`Param::AnyElement`] stands for.
    AnyArray,
    /// A value of any type. All arguments of this kind are converted to the type that they have in
    /// common. A result of this kind has that type, too.
    AnyCompatible,
    /// An array whose elements are of the type that [`Param::AnyCompatible`] stands for.
    AnyCompatibleArray,
    /// No value: as a result, an empty text that clients are told is of type `void`.
    Void,
}

// The tables' words.
pub(super) const BOOL: Param = Param::Type(DataType::Bool);
pub(super) const INT2: Param = Param::Type(DataType::Int2);
pub(super) const INT4: Param = Param::Type(DataType::Int4);
pub(super) const INT8: Param = Param::Type(DataType::Int8);
pub(super) const FLOAT4: Param = Param::Type(DataType::Float4);
pub(super) const FLOAT8: Param = Param::Type(DataType::Float8);
pub(super) const NUMERIC: Param = Param::Type(ANY_NUMERIC);
pub(super) const TEXT: Param = Param::Type(DataType::Text);
/// `character` of any length.
pub(super) const BPCHAR: Param = Param::Type(DataType::Char(0));
pub(super) const BYTEA: Param = Param::Type(DataType::Bytea);
pub(super) const DATE: Param = Param::Type(DataType::Date);
pub(super) const TIMESTAMPTZ: Param = Param::Type(DataType::Timestamptz(None));
pub(super) const NAME: Param = Param::Type(DataType::Name);
/// Arguments that name objects (`regclass`) are `oid` here, to which such values convert.
pub(super) const OID: Param = Param::Type(DataType::Oid);
pub(super) const VOID: Param = Param::Void;
pub(super) const ANY: Param = Param::Any;
pub(super) const ANYARRAY: Param = Param::AnyArray;
pub(super) const ANYNONARRAY: Param = Param::AnyNonArray;

/// A type whose values are held as bytes.
pub(super) const fn other(oid: u32) -> Param {
    Param::Type(DataType::Other { oid, typmod: -1 })
}

// These have a suffix, because the words alone are the numbers of the types.
pub(super) const JSONB_TYPE: Param = other(other::JSONB);
pub(super) const OIDVECTOR_TYPE: Param = other(other::OIDVECTOR);
/// `record`, of whatever fields.
pub(super) const RECORD_TYPE: Param = other(other::RECORD);
pub(super) const REGCLASS_TYPE: Param = other(other::REGCLASS);
pub(super) const LSN_TYPE: Param = other(other::PG_LSN);
pub(super) const TID_TYPE: Param = other(other::TID);
pub(super) const UUID_TYPE: Param = other(other::UUID);
pub(super) const XID_TYPE: Param = other(other::XID);
pub(super) const XID8_TYPE: Param = other(other::XID8);
pub(super) const INT4_ARRAY: Param = other(1007);
pub(super) const NAME_ARRAY: Param = other(1003);
pub(super) const OID_ARRAY: Param = other(1028);
pub(super) const TEXT_ARRAY: Param = other(1009);

/// How far a function's result depends on more than its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volatility {
    /// The same for the same arguments, always.
    Immutable,
    /// The same within a statement.
    Stable,
    /// It may differ at each call.
    Volatile,
}

/// A function.
pub(crate) struct Proc {
    /// PostgreSQL's `pg_proc.oid`; 0 for what is grammar there (`GREATEST`).
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    pub(crate) args: &'static [Param],
    /// The last argument may be there any number of times, but at least once.
    pub(crate) variadic: bool,
    pub(crate) result: Param,
    pub(crate) volatility: Volatility,
    /// An argument that is NULL makes the result NULL.
    pub(crate) strict: bool,
    pub(super) body: Body,
    pub(super) small: Option<OfSmall>,
}

/// What a function makes of a decimal number that fits a machine's integer and of an integer, which
/// is 0 if there is no second argument. `None`: the function's body says what it is.
pub(in crate::expr) type OfSmall = fn(Small, i32) -> Option<Small>;

impl std::fmt::Debug for Proc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A function that is immutable and strict.
pub(super) const fn proc(
    oid: u32,
    name: &'static str,
    args: &'static [Param],
    result: Param,
    body: Body,
) -> Proc {
    let volatility = Volatility::Immutable;
    Proc { oid, name, args, variadic: false, result, volatility, strict: true, body, small: None }
}

impl Proc {
    pub(super) const fn of_small(mut self, small: OfSmall) -> Self {
        self.small = Some(small);
        self
    }

    pub(super) const fn stable(mut self) -> Self {
        self.volatility = Volatility::Stable;
        self
    }

    pub(super) const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }

    /// Whether it takes arguments that are an array to PostgreSQL. It has no number if it does not
    /// stand in PostgreSQL's catalog.
    pub(super) fn takes_variadic_array(&self) -> bool {
        self.variadic && self.oid != 0
    }

    /// Whether these arguments make the result NULL without a call. Those at the end that are an
    /// array to PostgreSQL don't.
    pub(super) fn is_null_for(&self, args: &[Datum<'_>]) -> bool {
        let counted = match self.takes_variadic_array() {
            true => self.args.len().saturating_sub(1),
            false => args.len(),
        };
        self.strict && args.iter().take(counted).any(Datum::is_null)
    }

    /// Whether it returns rows, or records of several columns.
    pub(crate) fn makes_rows(&self) -> bool {
        matches!(self.body, Body::Rows(_) | Body::Records(_))
    }

    /// Whether it returns any number of rows.
    pub(crate) fn returns_rows(&self) -> bool {
        match self.body {
            Body::Rows(rows) => rows.is_set,
            Body::Records(records) => records.is_set,
            _ => false,
        }
    }

    /// Whether its first argument may be a row of any type.
    pub(super) fn takes_a_row(&self) -> bool {
        self.args.first() == Some(&Param::AnyElement)
    }

    /// Whether it fills one row, which is a value.
    fn fills_one_row(&self) -> bool {
        matches!(self.body, Body::Records(records) if !records.is_set) && self.takes_a_row()
    }

    /// Whether it is a cast by the name of its type.
    pub(in crate::expr) fn is_conversion(&self) -> bool {
        matches!(self.body, Body::Conversion)
    }

    /// What the binder makes of a call, if the function is that of an operator.
    pub(in crate::expr) fn of_operator(&self) -> Option<OfOperator> {
        match self.body {
            Body::OfOperator(of) => Some(of),
            _ => None,
        }
    }

    pub(super) const fn called_on_null(mut self) -> Self {
        self.strict = false;
        self
    }

    pub(super) const fn variadic(mut self) -> Self {
        self.variadic = true;
        self
    }
}

/// The tables of all families.
pub(super) static FAMILIES: &[&[Proc]] = &[
    super::address::PROCS,
    super::array::PROCS,
    super::backend::PROCS,
    super::backend_io::PROCS,
    super::array::ROWS,
    super::bytes::PROCS,
    super::send::PROCS,
    super::send::SENDS,
    super::conversions::CONVERSIONS,
    super::conversions::CONVERSIONS_IN_SESSION,
    super::conversions::LENGTHS,
    super::conditional::PROCS,
    super::datetime::AGE,
    super::datetime::ARITH,
    super::datetime::INTERVALS,
    super::datetime::MAKE,
    super::datetime::OVERLAPS,
    super::datetime::PARTS,
    super::datetime::TRUNC,
    super::datetime::ZONES,
    super::describe::PROCS,
    super::digest::PROCS,
    super::float::PROCS,
    super::hash::PROCS,
    super::hash_values::PROCS,
    super::identifier::PROCS,
    super::in_range::PROCS,
    super::transitions::PROCS,
    super::index_method::PROCS,
    super::index_property::PROCS,
    super::integer::PROCS,
    super::json::BUILD,
    super::json::CHANGE,
    super::json::CONTAIN,
    super::json::JSONPATH,
    super::json::PATH,
    super::json::PATH_OPERATOR_PROCS,
    super::json::PROCS,
    super::json::RECORDS,
    super::json::ROWS,
    super::json::STRIP,
    super::json::UPDATE,
    super::keywords::PROCS,
    super::large_object::DESCRIPTORS,
    super::large_object::OBJECTS,
    super::lsn::PROCS,
    super::no_rows::PROCS,
    super::numeric::PROCS,
    super::operator_functions::ARITHMETIC,
    super::operator_functions::COMPARISONS,
    super::operator_functions::COMPARISONS_IN_ZONE,
    super::operator_functions::EQUALITIES,
    super::operator_functions::EXTREMES,
    super::operator_functions::EXTREMES_OF_CHARS,
    super::operator_functions::IMAGES,
    super::operator_functions::ORDERS,
    super::operator_functions::PATTERNS,
    super::operator_functions::TEXTS,
    super::pattern::MATCHES,
    super::pattern::PROCS,
    super::privilege::PROCS,
    super::privilege::OTHERS,
    super::quote::PROCS,
    super::reg::PROCS,
    super::row_transactions::PROCS,
    super::relation::PROCS,
    super::transaction_ids::PROCS,
    super::storage::PROCS,
    super::storage::SIZES,
    super::series::PROCS,
    super::server::PROCS,
    super::object_facts::PROCS,
    super::replication::COMMIT_TIMES,
    super::replication::POSITIONS,
    super::replication::RECOVERY,
    super::replication::SENDERS,
    super::replication::SLOTS,
    super::sequence::PROCS,
    super::session_facts::PROCS,
    super::steps::COUNTS,
    super::steps::DISTANCES,
    super::steps::SUMS,
    super::stat_counters::DATABASES,
    super::stat_counters::DATABASE_TIMES,
    super::stat_counters::FUNCTIONS,
    super::stat_counters::IN_TRANSACTION,
    super::stat_counters::RELATIONS,
    super::stat_counters::RESETS,
    super::stat_counters::SERVER,
    super::stat_counters::SESSIONS,
    super::stat_counters::TABLES,
    super::stat_counters::TIMES,
    super::upgrade::MOMENTS,
    super::upgrade::UPGRADE,
    super::session::PROCS,
    super::session::LOCKS,
    super::size::PROCS,
    super::string::PROCS,
    super::system::PROCS,
    super::template::PROCS,
    super::unicode::PROCS,
    super::uuid::PROCS,
];

/// Whether functions of this name return rows, or records of several columns.
pub(crate) fn returns_rows(name: &str) -> bool {
    named(name).iter().any(|proc| proc.makes_rows())
}

/// Whether functions of this name fill one row, which is a value.
pub(crate) fn fills_one_row(name: &str) -> bool {
    named(name).iter().any(|proc| proc.fills_one_row())
}

/// All functions.
pub(crate) fn all() -> impl Iterator<Item = &'static Proc> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// PostgreSQL's number of the type of an argument or a result.
pub(crate) fn type_number(param: Param) -> u32 {
    match param {
        Param::Type(ty) => ty.oid(),
        Param::Any => 2276,
        Param::AnyElement => 2283,
        Param::AnyNonArray => 2776,
        Param::AnyArray => 2277,
        Param::AnyCompatible => 5077,
        Param::AnyCompatibleArray => 5078,
        Param::Void => 2278,
    }
}

/// The functions of one name.
pub(crate) fn named(name: &str) -> &'static [&'static Proc] {
    static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Proc>>> = LazyLock::new(|| {
        let mut map: HashMap<_, Vec<_>> = HashMap::new();
        for proc in all() {
            map.entry(proc.name).or_default().push(proc);
        }
        map
    });
    BY_NAME.get(name).map_or(&[], Vec::as_slice)
}

/// Whether PostgreSQL has a function of this name, here or not.
pub(crate) fn is_known_name(name: &str) -> bool {
    static NAMES: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| include_str!("names.txt").lines().collect());
    NAMES.binary_search(&name).is_ok()
}
