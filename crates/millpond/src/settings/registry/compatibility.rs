//! Behaviour of older versions of PostgreSQL, and options for its developers.

use super::ON_ONLY;
use crate::settings::definition::Context::User;
use crate::settings::definition::Kind::{Bool, Enum};
use crate::settings::definition::{Definition, def, reported, unused};

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "array_nulls",
        Bool,
        User,
        "on",
        "There are no arrays: accepted for compatibility, no effect.",
    ),
    unused("escape_string_warning", Bool, User, "on"),
    unused("quote_all_identifiers", Bool, User, "off"),
    reported(def(
        "standard_conforming_strings",
        Enum(ON_ONLY),
        User,
        "on",
        "A backslash in a string is a backslash, always.",
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
