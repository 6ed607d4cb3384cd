//! The table of functions from which the binder chooses.

use super::Func;
use crate::DataType::{self, Bool, Date, Float8, Int4, Int8, Text, Timestamptz};
use crate::advisory;
use crate::expr::types::NUMERIC;

use Args::{Alike, Any, Exactly, Number, One, Pair};
use Returns::{Rounded, Same, Type};

/// What a function takes.
#[derive(Clone, Copy)]
pub(in crate::expr) enum Args {
    /// These types.
    Exactly(&'static [DataType]),
    /// One number of any type, kept.
    Number,
    /// One value, kept.
    One,
    /// Any values, kept, but at least one.
    Any,
    /// Values of one type, at least one.
    Alike,
    /// Two values of one type.
    Pair,
}

impl Args {
    fn fit(self, args: usize) -> bool {
        match self {
            Args::Exactly(types) => types.len() == args,
            Args::Number | Args::One => args == 1,
            Args::Any | Args::Alike => args >= 1,
            Args::Pair => args == 2,
        }
    }
}

/// What a function gives.
#[derive(Clone, Copy)]
pub(in crate::expr) enum Returns {
    Type(DataType),
    /// The type of its arguments.
    Same,
    /// Double precision for floats and integers, numeric for numeric.
    Rounded,
}

/// The functions: their names, what they take and what they give.
const FUNCTIONS: &[(&[&str], Func, Args, Returns)] = &[
    (
        &["now", "transaction_timestamp", "statement_timestamp"],
        Func::Now,
        Exactly(&[]),
        Type(Timestamptz),
    ),
    (&["clock_timestamp"], Func::ClockTimestamp, Exactly(&[]), Type(Timestamptz)),
    (&["current_date"], Func::CurrentDate, Exactly(&[]), Type(Date)),
    (&["version"], Func::Version, Exactly(&[]), Type(Text)),
    (&["current_database", "current_catalog"], Func::CurrentDatabase, Exactly(&[]), Type(Text)),
    (&["current_schema"], Func::CurrentSchema, Exactly(&[]), Type(Text)),
    (
        &["current_user", "session_user", "user", "current_role"],
        Func::CurrentUser,
        Exactly(&[]),
        Type(Text),
    ),
    (&["pg_backend_pid"], Func::BackendPid, Exactly(&[]), Type(Int4)),
    (&["current_setting"], Func::CurrentSetting, Exactly(&[Text]), Type(Text)),
    (&["current_setting"], Func::CurrentSetting, Exactly(&[Text, Bool]), Type(Text)),
    (&["pg_typeof"], Func::PgTypeof, One, Type(Text)),
    (&["abs"], Func::Abs, Number, Same),
    (&["ceil", "ceiling"], Func::Ceil, Number, Rounded),
    (&["floor"], Func::Floor, Number, Rounded),
    (&["round"], Func::Round, Number, Rounded),
    (&["round"], Func::RoundTo, Exactly(&[NUMERIC, Int4]), Type(NUMERIC)),
    (&["trunc"], Func::Trunc, Number, Rounded),
    (&["sign"], Func::Sign, Number, Rounded),
    (&["sqrt"], Func::Sqrt, Exactly(&[Float8]), Type(Float8)),
    (&["exp"], Func::Exp, Exactly(&[Float8]), Type(Float8)),
    (&["ln"], Func::Ln, Exactly(&[Float8]), Type(Float8)),
    (&["random"], Func::Random, Exactly(&[]), Type(Float8)),
    (&["length", "char_length", "character_length"], Func::Length, Exactly(&[Text]), Type(Int4)),
    (&["octet_length"], Func::OctetLength, Exactly(&[Text]), Type(Int4)),
    (&["lower"], Func::Lower, Exactly(&[Text]), Type(Text)),
    (&["upper"], Func::Upper, Exactly(&[Text]), Type(Text)),
    (&["btrim", "trim"], Func::TrimBoth, Exactly(&[Text]), Type(Text)),
    (&["btrim", "trim"], Func::TrimBoth, Exactly(&[Text, Text]), Type(Text)),
    (&["ltrim"], Func::TrimLeft, Exactly(&[Text]), Type(Text)),
    (&["ltrim"], Func::TrimLeft, Exactly(&[Text, Text]), Type(Text)),
    (&["rtrim"], Func::TrimRight, Exactly(&[Text]), Type(Text)),
    (&["rtrim"], Func::TrimRight, Exactly(&[Text, Text]), Type(Text)),
    (&["substr", "substring"], Func::Substr, Exactly(&[Text, Int4]), Type(Text)),
    (&["substr", "substring"], Func::Substr, Exactly(&[Text, Int4, Int4]), Type(Text)),
    (&["strpos", "position"], Func::Strpos, Exactly(&[Text, Text]), Type(Int4)),
    (&["replace"], Func::Replace, Exactly(&[Text, Text, Text]), Type(Text)),
    (&["left"], Func::Left, Exactly(&[Text, Int4]), Type(Text)),
    (&["right"], Func::Right, Exactly(&[Text, Int4]), Type(Text)),
    (&["repeat"], Func::Repeat, Exactly(&[Text, Int4]), Type(Text)),
    (&["reverse"], Func::Reverse, Exactly(&[Text]), Type(Text)),
    (&["concat"], Func::Concat, Any, Type(Text)),
    (&["greatest"], Func::Greatest, Alike, Same),
    (&["least"], Func::Least, Alike, Same),
    (&["nullif"], Func::NullIf, Pair, Same),
    (&["pg_sleep"], Func::PgSleep, Exactly(&[Float8]), Type(Text)),
    // Arrays are text here.
    (&["pg_blocking_pids"], Func::BlockingPids, Exactly(&[Int4]), Type(Text)),
    (
        &["pg_isolation_test_session_is_blocked"],
        Func::IsBlocked,
        Exactly(&[Int4, Text]),
        Type(Bool),
    ),
];

/// Finds a function by its name and the number of its arguments.
pub(in crate::expr) fn find(name: &str, args: usize) -> Option<(Func, Args, Returns)> {
    let listed =
        FUNCTIONS.iter().find(|(names, _, takes, _)| names.contains(&name) && takes.fit(args));
    match listed {
        Some((_, func, takes, gives)) => Some((*func, *takes, *gives)),
        None => advisory(name, args),
    }
}

/// A function of advisory locks, whose key is one bigint or two integers.
fn advisory(name: &str, args: usize) -> Option<(Func, Args, Returns)> {
    let function = advisory::find(name)?;
    let key: &[DataType] = match args {
        0 => &[],
        1 => &[Int8],
        2 => &[Int4, Int4],
        _ => return None,
    };
    let gives = Type(if function.is_void() { Text } else { Bool });
    (function.takes_key() == (args > 0)).then_some((Func::Advisory(function), Exactly(key), gives))
}

/// The names of all functions, for hints.
pub(in crate::expr) fn names() -> impl Iterator<Item = &'static str> {
    let listed = FUNCTIONS.iter().flat_map(|(names, ..)| names.iter().copied());
    listed.chain(advisory::FUNCTIONS.iter().map(|(name, _)| *name)).chain(["coalesce"])
}
