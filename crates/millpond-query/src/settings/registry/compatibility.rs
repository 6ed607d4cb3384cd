//! Behaviour of older versions of PostgreSQL, and options for its developers.

use super::I32;
use crate::settings::definition::Context::User;
use crate::settings::definition::Kind::{Bool, Enum, Int};
use crate::settings::definition::Unit::{Kilobytes, None as No};
use crate::settings::definition::{Definition, def, reported, unused};

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "array_nulls",
        Bool,
        User,
        "on",
        "There are no arrays: accepted for compatibility, no effect.",
    ),
    def(
        "escape_string_warning",
        Bool,
        User,
        "on",
        "Whether a client is warned of escapes in plain strings.",
    ),
    unused("quote_all_identifiers", Bool, User, "off"),
    unused("debug_pretty_print", Bool, User, "on"),
    unused("debug_print_parse", Bool, User, "off"),
    unused("debug_print_plan", Bool, User, "off"),
    unused("debug_print_rewritten", Bool, User, "off"),
    unused("trace_sort", Bool, User, "off"),
    def(
        "session_replication_role",
        Enum(&[("origin", "origin"), ("replica", "replica"), ("local", "local")]),
        User,
        "origin",
        "There are no triggers and no rules: accepted for compatibility, no effect.",
    ),
    def(
        "default_toast_compression",
        Enum(&[("pglz", "pglz"), ("lz4", "lz4")]),
        User,
        "pglz",
        "Values are not compressed: accepted for compatibility, no effect.",
    ),
    def(
        "xmloption",
        Enum(&[("content", "content"), ("document", "document")]),
        User,
        "content",
        "There is no XML: accepted for compatibility, no effect.",
    ),
    def(
        "gin_fuzzy_search_limit",
        Int(0, I32, No),
        User,
        "0",
        "There are no GIN indexes: accepted for compatibility, no effect.",
    ),
    def(
        "gin_pending_list_limit",
        Int(64, I32, Kilobytes),
        User,
        "4096",
        "There are no GIN indexes: accepted for compatibility, no effect.",
    ),
    reported(def(
        "standard_conforming_strings",
        Bool,
        User,
        "on",
        "Whether a backslash in a plain string is a backslash. If not, it begins an escape.",
    )),
    def(
        "synchronize_seqscans",
        Bool,
        User,
        "on",
        "Whether a scan of a large table begins where another scan of it is.",
    ),
    def(
        "allow_in_place_tablespaces",
        Bool,
        User,
        "off",
        "There are no tablespaces: accepted for compatibility, no effect.",
    ),
];
