//! What is logged, and what is counted.

use super::{I32, MESSAGE_LEVELS};
use crate::settings::definition::Context::{Sighup, User};
use crate::settings::definition::Kind::{Bool, Enum, Int, Text};
use crate::settings::definition::Unit::Milliseconds;
use crate::settings::definition::{Definition, def, reported, unused};

pub(super) const SETTINGS: &[Definition] = &[
    reported(def(
        "application_name",
        Text,
        User,
        "",
        "What the client calls itself; pg_stat_activity shows it.",
    )),
    def(
        "log_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "warning",
        "Accepted for compatibility, no effect: see the environment variable MILLPOND_LOG.",
    ),
    unused("log_min_duration_statement", Int(-1, I32, Milliseconds), User, "-1"),
    unused("log_checkpoints", Bool, Sighup, "on"),
    unused("log_duration", Bool, User, "off"),
    def(
        "log_lock_waits",
        Bool,
        User,
        "off",
        "Whether waits for locks that last longer than deadlock_timeout are logged.",
    ),
    unused(
        "log_statement",
        Enum(&[("none", "none"), ("ddl", "ddl"), ("mod", "mod"), ("all", "all")]),
        User,
        "none",
    ),
    unused("track_activities", Bool, User, "on"),
    unused("track_counts", Bool, User, "on"),
    def(
        "track_io_timing",
        Bool,
        User,
        "off",
        "Whether pg_stat_io says how long reading and writing took.",
    ),
];
