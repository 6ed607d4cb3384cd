//! The log, commits and checkpoints.

use super::{I32, ON_ONLY};
use crate::settings::definition::Context::{Internal, Postmaster, Sighup, User};
use crate::settings::definition::Kind::{Bool, Enum, Int, Real};
use crate::settings::definition::Unit::{Megabytes, Milliseconds, None as No, Pages, Seconds};
use crate::settings::definition::{Definition, def, unused};

const SYNCHRONOUS_COMMIT: &[(&str, &str)] = &[
    ("on", "on"),
    ("off", "off"),
    ("local", "local"),
    ("remote_write", "remote_write"),
    ("remote_apply", "remote_apply"),
    ("true", "on"),
    ("false", "off"),
    ("yes", "on"),
    ("no", "off"),
    ("1", "on"),
    ("0", "off"),
];

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "wal_level",
        Enum(&[("minimal", "minimal"), ("replica", "replica"), ("logical", "logical")]),
        Internal,
        "replica",
        "Said to clients that ask; there is no replication.",
    ),
    def(
        "fsync",
        Enum(ON_ONLY),
        Sighup,
        "on",
        "Files are synced, always: it can't be switched off.",
    ),
    def(
        "synchronous_commit",
        Enum(SYNCHRONOUS_COMMIT),
        User,
        "on",
        "Whether a commit waits until the log is on disk: off does not, all else does.",
    ),
    def(
        "wal_sync_method",
        Enum(&[("fsync", "fsync"), ("fdatasync", "fdatasync")]),
        Sighup,
        "fdatasync",
        "Accepted for compatibility, no effect: it is fdatasync.",
    ),
    def(
        "full_page_writes",
        Bool,
        Sighup,
        "on",
        "Accepted for compatibility, no effect: page images are always logged.",
    ),
    def(
        "wal_buffers",
        Int(8, I32 / 8192, Pages),
        Postmaster,
        "2048",
        "Memory for log records that are not yet written; rounded up to a power of two.",
    ),
    def(
        "wal_writer_delay",
        Int(1, 10000, Milliseconds),
        Sighup,
        "200",
        "How soon a commit that does not wait is written; three times this is the most that a crash can cost.",
    ),
    def(
        "wal_writer_flush_after",
        Int(0, I32, Pages),
        Sighup,
        "128",
        "After so much log since the last sync the log's thread syncs again; 0: whenever it writes.",
    ),
    def(
        "commit_delay",
        Int(0, 100_000, No),
        User,
        "0",
        "Microseconds that the leader of a group of commits waits for others to join.",
    ),
    def(
        "commit_siblings",
        Int(0, 1000, No),
        User,
        "5",
        "With fewer other transactions at work, commit_delay is skipped.",
    ),
    def(
        "checkpoint_timeout",
        Int(30, 86400, Seconds),
        Sighup,
        "300",
        "A checkpoint begins at the latest this long after the last one.",
    ),
    def(
        "checkpoint_completion_target",
        Real(0.0, 1.0, No),
        Sighup,
        "0.9",
        "The part of the time between checkpoints over which one spreads its writes.",
    ),
    def(
        "max_wal_size",
        Int(2, I32, Megabytes),
        Sighup,
        "1024",
        "How much log there may be before a checkpoint begins.",
    ),
    unused("min_wal_size", Int(2, I32, Megabytes), Sighup, "80"),
];
