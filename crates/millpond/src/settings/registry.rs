//! The table of all settings, with PostgreSQL's names, units, ranges, contexts and defaults.

/// When a setting can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Never: it tells a fact.
    Internal,
    /// Only when the database is opened.
    Postmaster,
    /// When the database is opened; a running server would have to read its configuration again.
    Sighup,
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
            Context::User => "user",
        }
    }
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
    /// Its value unless somebody sets it, in the setting's own syntax.
    pub default: &'static str,
    /// One line about it.
    pub about: &'static str,
}

const fn def(
    name: &'static str,
    kind: Kind,
    context: Context,
    default: &'static str,
    about: &'static str,
) -> Definition {
    Definition { name, kind, context, report: false, default, about }
}

const fn reported(mut definition: Definition) -> Definition {
    definition.report = true;
    definition
}

use Context::{Internal, Postmaster, Sighup, User};
use Kind::{Bool, Enum, Int, List, Real, Text};
use Unit::{
    Bytes, Kilobytes, Megabytes, Microseconds, Milliseconds, Minutes, None as No, Pages, Seconds,
};

const I32: i64 = i32::MAX as i64;

const MESSAGE_LEVELS: &[(&str, &str)] = &[
    ("debug5", "debug5"),
    ("debug4", "debug4"),
    ("debug3", "debug3"),
    ("debug2", "debug2"),
    ("debug1", "debug1"),
    ("debug", "debug2"),
    ("log", "log"),
    ("notice", "notice"),
    ("info", "info"),
    ("warning", "warning"),
    ("error", "error"),
    ("fatal", "fatal"),
    ("panic", "panic"),
];
const ISOLATION: &[(&str, &str)] = &[
    ("serializable", "serializable"),
    ("repeatable read", "repeatable read"),
    ("read committed", "read committed"),
    ("read uncommitted", "read uncommitted"),
];
/// Switches that can't be switched off here.
const ON_ONLY: &[(&str, &str)] = &[("on", "on"), ("true", "on"), ("1", "on"), ("yes", "on")];
const ON_OFF_WORDS: &[(&str, &str)] = &[
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

/// All settings, sorted by name.
pub const SETTINGS: &[Definition] = &[
    def(
        "allow_in_place_tablespaces",
        Bool,
        User,
        "off",
        "There are no tablespaces: accepted for compatibility, no effect.",
    ),
    reported(def(
        "application_name",
        Text,
        User,
        "",
        "What the client calls itself; pg_stat_activity shows it.",
    )),
    def(
        "array_nulls",
        Bool,
        User,
        "on",
        "There are no arrays: accepted for compatibility, no effect.",
    ),
    def("autovacuum", Bool, Sighup, "on", "Whether tables are vacuumed in the background."),
    def(
        "autovacuum_analyze_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.1",
        "Accepted for compatibility, no effect: nothing is analyzed in the background.",
    ),
    def(
        "autovacuum_analyze_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "Accepted for compatibility, no effect: nothing is analyzed in the background.",
    ),
    def(
        "autovacuum_naptime",
        Int(1, I32 / 1000, Seconds),
        Sighup,
        "60",
        "How often autovacuum looks for tables that need it.",
    ),
    def(
        "autovacuum_vacuum_insert_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "Accepted for compatibility, no effect: 0.2 is used.",
    ),
    def(
        "autovacuum_vacuum_insert_threshold",
        Int(-1, I32, No),
        Sighup,
        "1000",
        "Accepted for compatibility, no effect: 1000 is used.",
    ),
    def(
        "autovacuum_vacuum_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "The share of a table's rows that may be dead, on top of the threshold, before it is vacuumed.",
    ),
    def(
        "autovacuum_vacuum_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "How many dead rows any table may have before it is vacuumed.",
    ),
    def(
        "backend_flush_after",
        Int(0, 256, Pages),
        User,
        "0",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "bgwriter_delay",
        Int(10, 10000, Milliseconds),
        Sighup,
        "200",
        "Accepted for compatibility, no effect: the reclaimer sets its own pace.",
    ),
    def(
        "bgwriter_lru_maxpages",
        Int(0, I32 / 2, No),
        Sighup,
        "100",
        "Accepted for compatibility, no effect: the reclaimer sets its own pace.",
    ),
    def(
        "bgwriter_lru_multiplier",
        Real(0.0, 10.0, No),
        Sighup,
        "2",
        "Accepted for compatibility, no effect: the reclaimer sets its own pace.",
    ),
    def("block_size", Int(8192, 8192, No), Internal, "8192", "Bytes of a page."),
    def(
        "bytea_output",
        Enum(&[("escape", "escape"), ("hex", "hex")]),
        User,
        "hex",
        "How bytea values are written.",
    ),
    def(
        "check_function_bodies",
        Bool,
        User,
        "on",
        "There are no functions of users: accepted for compatibility, no effect.",
    ),
    def(
        "checkpoint_completion_target",
        Real(0.0, 1.0, No),
        Sighup,
        "0.9",
        "The part of the time between checkpoints over which one spreads its writes.",
    ),
    def(
        "checkpoint_timeout",
        Int(30, 86400, Seconds),
        Sighup,
        "300",
        "A checkpoint begins at the latest this long after the last one.",
    ),
    reported(def(
        "client_encoding",
        Text,
        User,
        "UTF8",
        "How the client's text is encoded: UTF8, always.",
    )),
    def(
        "client_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "notice",
        "Accepted for compatibility, no effect: every notice is sent.",
    ),
    def(
        "commit_delay",
        Int(0, 100_000, No),
        User,
        "0",
        "Microseconds that the first of a group of commits waits for others; counts as set at start.",
    ),
    def(
        "commit_siblings",
        Int(0, 1000, No),
        User,
        "5",
        "With fewer others waiting to commit, commit_delay is skipped; counts as set at start.",
    ),
    def(
        "constraint_exclusion",
        Enum(&[
            ("partition", "partition"),
            ("on", "on"),
            ("off", "off"),
            ("true", "on"),
            ("false", "off"),
        ]),
        User,
        "partition",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "cpu_index_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.005",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "cpu_operator_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.0025",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "cpu_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.01",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    reported(def(
        "DateStyle",
        Text,
        User,
        "ISO, MDY",
        "Dates are written in ISO style and read as month, day, year; the order given here is only shown.",
    )),
    def("data_checksums", Bool, Internal, "on", "Every page carries a checksum, always."),
    def(
        "data_directory",
        Text,
        Postmaster,
        "",
        "Accepted for compatibility, no effect: the directory is given when the database is opened.",
    ),
    def(
        "deadlock_timeout",
        Int(1, I32, Milliseconds),
        User,
        "1000",
        "How long a lock is waited for before looking for a deadlock; counts as set at start.",
    ),
    def(
        "default_statistics_target",
        Int(1, 10000, No),
        User,
        "100",
        "Accepted for compatibility, no effect.",
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
        "default_text_search_config",
        Text,
        User,
        "pg_catalog.simple",
        "There is no text search: accepted for compatibility, no effect.",
    ),
    def(
        "default_transaction_deferrable",
        Bool,
        User,
        "off",
        "Accepted for compatibility, no effect.",
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
    def(
        "effective_cache_size",
        Int(1, I32, Pages),
        User,
        "524288",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "effective_io_concurrency",
        Int(0, 1000, No),
        User,
        "16",
        "Accepted for compatibility, no effect.",
    ),
    def("enable_bitmapscan", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_hashagg", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_hashjoin", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_indexonlyscan", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_indexscan", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_material", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_mergejoin", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_nestloop", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_seqscan", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("enable_sort", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("escape_string_warning", Bool, User, "on", "Accepted for compatibility, no effect."),
    def(
        "extra_float_digits",
        Int(-15, 3, No),
        User,
        "1",
        "Accepted for compatibility, no effect: floats are written so that they read back exactly.",
    ),
    def(
        "from_collapse_limit",
        Int(1, I32, No),
        User,
        "8",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "fsync",
        Enum(ON_ONLY),
        Sighup,
        "on",
        "Files are synced, always: it can't be switched off.",
    ),
    def(
        "full_page_writes",
        Bool,
        Sighup,
        "on",
        "Accepted for compatibility, no effect: page images are always logged.",
    ),
    def("geqo", Bool, User, "on", "Accepted for compatibility, no effect."),
    def(
        "huge_pages",
        Enum(&[("off", "off"), ("on", "on"), ("try", "try"), ("true", "on"), ("false", "off")]),
        Postmaster,
        "try",
        "Accepted for compatibility, no effect: they are asked for when the system has them.",
    ),
    def(
        "idle_in_transaction_session_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "idle_session_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Accepted for compatibility, no effect.",
    ),
    reported(def("in_hot_standby", Bool, Internal, "off", "Off: there are no standbys.")),
    reported(def(
        "integer_datetimes",
        Bool,
        Internal,
        "on",
        "Time stamps are whole microseconds, always.",
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
    reported(def("is_superuser", Bool, Internal, "on", "Every user may do everything, for now.")),
    def("jit", Bool, User, "off", "Accepted for compatibility, no effect."),
    def(
        "join_collapse_limit",
        Int(1, I32, No),
        User,
        "8",
        "Accepted for compatibility, no effect.",
    ),
    def("lc_collate", Text, Internal, "C", "Text is ordered bytewise."),
    def("lc_ctype", Text, Internal, "C", "Letters are classified as in C."),
    def(
        "lc_messages",
        Text,
        User,
        "C",
        "Accepted for compatibility, no effect: messages are English.",
    ),
    def("lc_monetary", Text, User, "C", "Accepted for compatibility, no effect."),
    def("lc_numeric", Text, User, "C", "Accepted for compatibility, no effect."),
    def("lc_time", Text, User, "C", "Accepted for compatibility, no effect."),
    def(
        "listen_addresses",
        Text,
        Postmaster,
        "localhost",
        "Accepted for compatibility, no effect: see serve --listen.",
    ),
    def(
        "lock_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "How long one lock is waited for; 0 is without limit.",
    ),
    def("log_checkpoints", Bool, Sighup, "on", "Accepted for compatibility, no effect."),
    def("log_duration", Bool, User, "off", "Accepted for compatibility, no effect."),
    def(
        "log_min_duration_statement",
        Int(-1, I32, Milliseconds),
        User,
        "-1",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "log_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "warning",
        "Accepted for compatibility, no effect: see the environment variable MILLPOND_LOG.",
    ),
    def(
        "log_statement",
        Enum(&[("none", "none"), ("ddl", "ddl"), ("mod", "mod"), ("all", "all")]),
        User,
        "none",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "maintenance_work_mem",
        Int(64, I32, Kilobytes),
        User,
        "65536",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "max_connections",
        Int(1, 60_000, No),
        Postmaster,
        "400",
        "How many sessions there may be at a time.",
    ),
    def("max_identifier_length", Int(63, 63, No), Internal, "63", "Bytes that a name may have."),
    def("max_index_keys", Int(32, 32, No), Internal, "32", "Columns that an index may have."),
    def(
        "max_locks_per_transaction",
        Int(10, I32, No),
        Postmaster,
        "64",
        "Accepted for compatibility, no effect: locks take the memory that they need.",
    ),
    def(
        "max_parallel_maintenance_workers",
        Int(0, 1024, No),
        User,
        "2",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "max_parallel_workers",
        Int(0, 1024, No),
        User,
        "8",
        "How many threads may scan for all sessions together.",
    ),
    def(
        "max_parallel_workers_per_gather",
        Int(0, 1024, No),
        User,
        "2",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "max_prepared_transactions",
        Int(0, 0, No),
        Postmaster,
        "0",
        "There is no two-phase commit.",
    ),
    def(
        "max_stack_depth",
        Int(100, I32, Kilobytes),
        User,
        "2048",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "max_wal_size",
        Int(2, I32, Megabytes),
        Sighup,
        "1024",
        "How much log there may be before a checkpoint begins.",
    ),
    def(
        "min_wal_size",
        Int(2, I32, Megabytes),
        Sighup,
        "80",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "password_encryption",
        Enum(&[("scram-sha-256", "scram-sha-256"), ("md5", "md5")]),
        User,
        "scram-sha-256",
        "There are no passwords yet: accepted for compatibility, no effect.",
    ),
    def(
        "plan_cache_mode",
        Enum(&[
            ("auto", "auto"),
            ("force_generic_plan", "force_generic_plan"),
            ("force_custom_plan", "force_custom_plan"),
        ]),
        User,
        "auto",
        "Accepted for compatibility, no effect: plans are made once and kept.",
    ),
    def(
        "port",
        Int(1, 65535, No),
        Postmaster,
        "5433",
        "The TCP port to listen on, which also names the Unix socket.",
    ),
    def("quote_all_identifiers", Bool, User, "off", "Accepted for compatibility, no effect."),
    def(
        "random_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "4",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    def(
        "row_security",
        Bool,
        User,
        "on",
        "There are no row policies: accepted for compatibility, no effect.",
    ),
    reported(def(
        "search_path",
        List,
        User,
        "\"$user\", public",
        "Accepted for compatibility, no effect: tables are in schema public.",
    )),
    def("seed", Real(-1.0, 1.0, No), User, "0", "Accepted for compatibility, no effect."),
    def(
        "segment_size",
        Int(131_072, 131_072, Pages),
        Internal,
        "131072",
        "Pages in one file of a relation.",
    ),
    def(
        "seq_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "1",
        "Accepted for compatibility, no effect: plans are not chosen by cost.",
    ),
    reported(def("server_encoding", Text, Internal, "UTF8", "How text is stored: UTF8.")),
    reported(def(
        "server_version",
        Text,
        Internal,
        super::SERVER_VERSION,
        "The PostgreSQL whose behaviour to expect, and what this is.",
    )),
    def(
        "server_version_num",
        Int(super::SERVER_VERSION_NUM, super::SERVER_VERSION_NUM, No),
        Internal,
        super::SERVER_VERSION_NUM_TEXT,
        "The same as a number to compare with.",
    ),
    reported(def(
        "session_authorization",
        Text,
        Internal,
        "postgres",
        "The user that everything belongs to.",
    )),
    def(
        "shared_buffers",
        Int(16, I32 / 2, Pages),
        Postmaster,
        "16384",
        "The size of the buffer pool.",
    ),
    def("ssl", Bool, Sighup, "off", "There is no TLS yet: accepted for compatibility, no effect."),
    reported(def(
        "standard_conforming_strings",
        Enum(ON_ONLY),
        User,
        "on",
        "A backslash in a string is a backslash, always.",
    )),
    def(
        "statement_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "How long a statement may run; 0 is without limit.",
    ),
    def(
        "superuser_reserved_connections",
        Int(0, 262_143, No),
        Postmaster,
        "3",
        "Accepted for compatibility, no effect.",
    ),
    def("synchronize_seqscans", Bool, User, "on", "Accepted for compatibility, no effect."),
    def(
        "synchronous_commit",
        Enum(ON_OFF_WORDS),
        User,
        "on",
        "Whether a commit waits until the log is on disk: off does not, all else does.",
    ),
    def(
        "tcp_keepalives_idle",
        Int(0, I32, Seconds),
        User,
        "0",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "temp_buffers",
        Int(100, I32 / 2, Pages),
        User,
        "1024",
        "There are no temporary tables: accepted for compatibility, no effect.",
    ),
    reported(def("TimeZone", Text, User, "UTC", "The zone of time stamps: UTC, for now.")),
    def("track_activities", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("track_counts", Bool, User, "on", "Accepted for compatibility, no effect."),
    def("track_io_timing", Bool, User, "off", "Accepted for compatibility, no effect."),
    def("transaction_deferrable", Bool, User, "off", "Accepted for compatibility, no effect."),
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
    def(
        "unix_socket_directories",
        Text,
        Postmaster,
        "",
        "Accepted for compatibility, no effect: see serve --socket-dir.",
    ),
    def(
        "vacuum_cost_delay",
        Real(0.0, 100.0, Milliseconds),
        User,
        "0",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "wal_buffers",
        Int(8, I32 / 8192, Pages),
        Postmaster,
        "2048",
        "Memory for log records that are not yet written; rounded up to a power of two.",
    ),
    def(
        "wal_level",
        Enum(&[("minimal", "minimal"), ("replica", "replica"), ("logical", "logical")]),
        Internal,
        "replica",
        "Said to clients that ask; there is no replication.",
    ),
    def(
        "wal_segment_size",
        Int(1_048_576, 1_073_741_824, Bytes),
        Internal,
        "16777216",
        "Bytes of a log file.",
    ),
    def(
        "wal_sync_method",
        Enum(&[("fsync", "fsync"), ("fdatasync", "fdatasync")]),
        Sighup,
        "fdatasync",
        "Accepted for compatibility, no effect: it is fdatasync.",
    ),
    def(
        "wal_writer_delay",
        Int(1, 10000, Milliseconds),
        Sighup,
        "200",
        "How soon a commit that does not wait is written; three times this is the most that a crash can cost.",
    ),
    def(
        "work_mem",
        Int(64, I32, Kilobytes),
        User,
        "4096",
        "Accepted for compatibility, no effect.",
    ),
    def(
        "xmlbinary",
        Enum(&[("base64", "base64"), ("hex", "hex")]),
        User,
        "base64",
        "There is no XML: accepted for compatibility, no effect.",
    ),
];

/// Units of memory, largest first, in bytes.
pub(super) const MEMORY_UNITS: &[(&str, i64)] =
    &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

/// Units of time, largest first, in microseconds.
pub(super) const TIME_UNITS: &[(&str, i64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Unit {
    /// The words of this unit's family, and how much of the smallest word one unit is.
    pub(super) const fn family(self) -> Option<(&'static [(&'static str, i64)], i64)> {
        Some(match self {
            Unit::None => return None,
            Bytes => (MEMORY_UNITS, 1),
            Kilobytes => (MEMORY_UNITS, 1 << 10),
            Pages => (MEMORY_UNITS, 8192),
            Megabytes => (MEMORY_UNITS, 1 << 20),
            Microseconds => (TIME_UNITS, 1),
            Milliseconds => (TIME_UNITS, 1_000),
            Seconds => (TIME_UNITS, 1_000_000),
            Minutes => (TIME_UNITS, 60_000_000),
        })
    }

    /// PostgreSQL's word for the unit, as `pg_settings.unit` shows it.
    pub const fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Unit::None => return None,
            Bytes => "B",
            Kilobytes => "kB",
            Pages => "8kB",
            Megabytes => "MB",
            Microseconds => "us",
            Milliseconds => "ms",
            Seconds => "s",
            Minutes => "min",
        })
    }
}
