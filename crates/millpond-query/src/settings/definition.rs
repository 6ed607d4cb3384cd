//! What is known of a setting before it has a value: its kind, unit, range, context and default.

/// When a setting can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Never: it tells a fact.
    Internal,
    /// Only when the database is opened.
    Postmaster,
    /// When the database is opened; a running server would have to read its configuration again.
    Sighup,
    /// When the database is opened, and by a session for the whole database.
    Database,
    /// By a superuser's session at any time. Every user is one, for now.
    Superuser,
    /// By any session at any time.
    User,
}

impl Context {
    /// PostgreSQL's word, as `pg_settings.context` shows it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::Database | Context::Superuser => "superuser",
            Context::User => "user",
        }
    }

    /// Whether a session may have a value of its own.
    pub const fn is_of_session(self) -> bool {
        matches!(self, Context::Superuser | Context::User)
    }
}

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// on or off.
    Bool,
    /// An integer in a range, counted in a unit.
    Int(i64, i64, Unit),
    /// A number in a range, counted in a unit.
    Real(f64, f64, Unit),
    /// One of some words; the first spelling of a word is the one shown.
    Enum(&'static [(&'static str, &'static str)]),
    /// Any text.
    Text,
    /// A list of identifiers.
    List,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind,
    /// When it can be changed.
    pub context: Context,
    /// Whether clients are told about changes (`ParameterStatus`).
    pub report: bool,
    /// Its value unless it is set, in the setting's own syntax.
    pub default: &'static str,
    /// One line about it.
    pub about: &'static str,
}

/// A setting as the registry writes it.
pub(super) const fn def(
    name: &'static str,
    kind: Kind,
    context: Context,
    default: &'static str,
    about: &'static str,
) -> Definition {
    Definition { name, kind, context, report: false, default, about }
}

/// The same, told to clients when it changes.
pub(super) const fn reported(mut definition: Definition) -> Definition {
    definition.report = true;
    definition
}

/// A setting that is there because clients set it.
pub(super) const fn unused(
    name: &'static str,
    kind: Kind,
    context: Context,
    default: &'static str,
) -> Definition {
    def(name, kind, context, default, "Accepted for compatibility, no effect.")
}

/// In what an integer or real setting is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    None,
    /// Bytes.
    Bytes,
    /// Kilobytes.
    Kilobytes,
    /// Pages of 8 kB.
    Pages,
    /// Megabytes.
    Megabytes,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Permission bits of a file, which are written in octal.
    Permissions,
}

impl Unit {
    /// The words of this unit's family, and how much of the smallest word one unit is.
    pub(super) const fn family(self) -> Option<(&'static [(&'static str, i64)], i64)> {
        Some(match self {
            Unit::None | Unit::Permissions => return None,
            Unit::Bytes => (MEMORY_UNITS, 1),
            Unit::Kilobytes => (MEMORY_UNITS, 1 << 10),
            Unit::Pages => (MEMORY_UNITS, 8192),
            Unit::Megabytes => (MEMORY_UNITS, 1 << 20),
            Unit::Microseconds => (TIME_UNITS, 1),
            Unit::Milliseconds => (TIME_UNITS, 1_000),
            Unit::Seconds => (TIME_UNITS, 1_000_000),
            Unit::Minutes => (TIME_UNITS, 60_000_000),
        })
    }

    /// PostgreSQL's word for the unit, as `pg_settings.unit` shows it.
    pub const fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Unit::None | Unit::Permissions => return None,
            Unit::Bytes => "B",
            Unit::Kilobytes => "kB",
            Unit::Pages => "8kB",
            Unit::Megabytes => "MB",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
            Unit::Minutes => "min",
        })
    }
}

/// Units of memory, largest first, in bytes.
const MEMORY_UNITS: &[(&str, i64)] =
    &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

/// Units of time, largest first, in microseconds.
const TIME_UNITS: &[(&str, i64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
