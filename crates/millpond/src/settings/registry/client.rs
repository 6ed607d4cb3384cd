//! What a session starts with: how statements behave, how values are written.

use super::{I32, MESSAGE_LEVELS};
use crate::settings::definition::Context::{Internal, User};
use crate::settings::definition::Kind::{Bool, Enum, Int, List, Real, Text};
use crate::settings::definition::Unit::{Milliseconds, None as No};
use crate::settings::definition::{Definition, def, reported, unused};

const ISOLATION: &[(&str, &str)] = &[
    ("serializable", "serializable"),
    ("repeatable read", "repeatable read"),
    ("read committed", "read committed"),
    ("read uncommitted", "read uncommitted"),
];

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "client_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "notice",
        "Accepted for compatibility, no effect: every notice is sent.",
    ),
    reported(def(
        "search_path",
        List,
        User,
        "\"$user\", public",
        "Accepted for compatibility, no effect: tables are in schema public.",
    )),
    def(
        "row_security",
        Bool,
        User,
        "on",
        "There are no row policies: accepted for compatibility, no effect.",
    ),
    def(
        "default_table_access_method",
        Text,
        User,
        "heap",
        "Accepted for compatibility, no effect: tables are heaps.",
    ),
    def(
        "default_tablespace",
        Text,
        User,
        "",
        "There are no tablespaces: accepted for compatibility, no effect.",
    ),
    def(
        "check_function_bodies",
        Bool,
        User,
        "on",
        "There are no functions of users: accepted for compatibility, no effect.",
    ),
    def(
        "default_transaction_isolation",
        Enum(ISOLATION),
        User,
        "read committed",
        "The isolation level of transactions that do not name one.",
    ),
    reported(def(
        "default_transaction_read_only",
        Bool,
        User,
        "off",
        "Whether transactions that do not say otherwise may only read.",
    )),
    unused("default_transaction_deferrable", Bool, User, "off"),
    def(
        "transaction_isolation",
        Enum(ISOLATION),
        User,
        "read committed",
        "The isolation level of the transaction that is running.",
    ),
    def(
        "transaction_read_only",
        Bool,
        User,
        "off",
        "Whether the transaction that is running may only read.",
    ),
    unused("transaction_deferrable", Bool, User, "off"),
    def(
        "statement_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "How long a statement may run; 0 is without limit.",
    ),
    def(
        "lock_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "How long one lock is waited for; 0 is without limit.",
    ),
    unused("idle_in_transaction_session_timeout", Int(0, I32, Milliseconds), User, "0"),
    unused("idle_session_timeout", Int(0, I32, Milliseconds), User, "0"),
    def(
        "bytea_output",
        Enum(&[("escape", "escape"), ("hex", "hex")]),
        User,
        "hex",
        "How bytea values are written.",
    ),
    def(
        "xmlbinary",
        Enum(&[("base64", "base64"), ("hex", "hex")]),
        User,
        "base64",
        "There is no XML: accepted for compatibility, no effect.",
    ),
    reported(def(
        "DateStyle",
        Text,
        User,
        "ISO, MDY",
        "Dates are written in ISO style and read as month, day, year; the order given here is only shown.",
    )),
    reported(def(
        "IntervalStyle",
        Enum(&[
            ("postgres", "postgres"),
            ("postgres_verbose", "postgres_verbose"),
            ("sql_standard", "sql_standard"),
            ("iso_8601", "iso_8601"),
        ]),
        User,
        "postgres",
        "There are no intervals in tables: accepted for compatibility, no effect.",
    )),
    reported(def("TimeZone", Text, User, "UTC", "The zone of time stamps: UTC, for now.")),
    def(
        "extra_float_digits",
        Int(-15, 3, No),
        User,
        "1",
        "Accepted for compatibility, no effect: floats are written so that they read back exactly.",
    ),
    reported(def(
        "client_encoding",
        Text,
        User,
        "UTF8",
        "How the client's text is encoded: UTF8, always.",
    )),
    def(
        "lc_messages",
        Text,
        User,
        "C",
        "Accepted for compatibility, no effect: messages are English.",
    ),
    unused("lc_monetary", Text, User, "C"),
    unused("lc_numeric", Text, User, "C"),
    unused("lc_time", Text, User, "C"),
    def(
        "default_text_search_config",
        Text,
        User,
        "pg_catalog.simple",
        "There is no text search: accepted for compatibility, no effect.",
    ),
    unused("seed", Real(-1.0, 1.0, No), User, "0"),
    reported(def("is_superuser", Bool, Internal, "on", "Every user may do everything, for now.")),
    reported(def(
        "session_authorization",
        Text,
        Internal,
        "postgres",
        "The user that everything belongs to.",
    )),
];
