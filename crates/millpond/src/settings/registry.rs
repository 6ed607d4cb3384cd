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
        "Allows tablespaces directly inside pg_tblspc, for testing.",
    ),
    reported(def(
        "application_name",
        Text,
        User,
        "",
        "Sets the application name to be reported in statistics and logs.",
    )),
    def("array_nulls", Bool, User, "on", "Enables input of NULL elements in arrays."),
    def("autovacuum", Bool, Sighup, "on", "Starts the autovacuum subprocess."),
    def(
        "autovacuum_analyze_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.1",
        "Number of tuple inserts, updates, or deletes prior to analyze as a fraction of reltuples.",
    ),
    def(
        "autovacuum_analyze_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "Minimum number of tuple inserts, updates, or deletes prior to analyze.",
    ),
    def(
        "autovacuum_naptime",
        Int(1, I32 / 1000, Seconds),
        Sighup,
        "60",
        "Time to sleep between autovacuum runs.",
    ),
    def(
        "autovacuum_vacuum_insert_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "Number of tuple inserts prior to vacuum as a fraction of reltuples.",
    ),
    def(
        "autovacuum_vacuum_insert_threshold",
        Int(-1, I32, No),
        Sighup,
        "1000",
        "Minimum number of tuple inserts prior to vacuum, or -1 to disable insert vacuums.",
    ),
    def(
        "autovacuum_vacuum_scale_factor",
        Real(0.0, 100.0, No),
        Sighup,
        "0.2",
        "Number of tuple updates or deletes prior to vacuum as a fraction of reltuples.",
    ),
    def(
        "autovacuum_vacuum_threshold",
        Int(0, I32, No),
        Sighup,
        "50",
        "Minimum number of tuple updates or deletes prior to vacuum.",
    ),
    def(
        "backend_flush_after",
        Int(0, 256, Pages),
        User,
        "0",
        "Number of pages after which previously performed writes are flushed to disk.",
    ),
    def(
        "bgwriter_delay",
        Int(10, 10000, Milliseconds),
        Sighup,
        "200",
        "Background writer sleep time between rounds.",
    ),
    def(
        "bgwriter_lru_maxpages",
        Int(0, I32 / 2, No),
        Sighup,
        "100",
        "Background writer maximum number of LRU pages to flush per round.",
    ),
    def(
        "bgwriter_lru_multiplier",
        Real(0.0, 10.0, No),
        Sighup,
        "2",
        "Multiple of the average buffer usage to free per round.",
    ),
    def("block_size", Int(8192, 8192, No), Internal, "8192", "Shows the size of a disk block."),
    def(
        "bytea_output",
        Enum(&[("escape", "escape"), ("hex", "hex")]),
        User,
        "hex",
        "Sets the output format for bytea.",
    ),
    def(
        "check_function_bodies",
        Bool,
        User,
        "on",
        "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE.",
    ),
    def(
        "checkpoint_completion_target",
        Real(0.0, 1.0, No),
        Sighup,
        "0.9",
        "Time spent flushing dirty buffers during checkpoint, as fraction of checkpoint interval.",
    ),
    def(
        "checkpoint_timeout",
        Int(30, 86400, Seconds),
        Sighup,
        "300",
        "Sets the maximum time between automatic WAL checkpoints.",
    ),
    reported(def(
        "client_encoding",
        Text,
        User,
        "UTF8",
        "Sets the client's character set encoding.",
    )),
    def(
        "client_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "notice",
        "Sets the message levels that are sent to the client.",
    ),
    def(
        "commit_delay",
        Int(0, 100_000, No),
        User,
        "0",
        "Sets the delay in microseconds between transaction commit and flushing WAL to disk.",
    ),
    def(
        "commit_siblings",
        Int(0, 1000, No),
        User,
        "5",
        "Sets the minimum number of concurrent open transactions required before performing commit_delay.",
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
        "Enables the planner to use constraints to optimize queries.",
    ),
    def(
        "cpu_index_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.005",
        "Sets the planner's estimate of the cost of processing each index entry during an index scan.",
    ),
    def(
        "cpu_operator_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.0025",
        "Sets the planner's estimate of the cost of processing each operator or function call.",
    ),
    def(
        "cpu_tuple_cost",
        Real(0.0, f64::MAX, No),
        User,
        "0.01",
        "Sets the planner's estimate of the cost of processing each tuple (row).",
    ),
    reported(def(
        "DateStyle",
        Text,
        User,
        "ISO, MDY",
        "Sets the display format for date and time values.",
    )),
    def("data_checksums", Bool, Internal, "on", "Shows whether data checksums are turned on."),
    def("data_directory", Text, Postmaster, "", "Sets the server's data directory."),
    def(
        "deadlock_timeout",
        Int(1, I32, Milliseconds),
        User,
        "1000",
        "Sets the time to wait on a lock before checking for deadlock.",
    ),
    def(
        "default_statistics_target",
        Int(1, 10000, No),
        User,
        "100",
        "Sets the default statistics target.",
    ),
    def(
        "default_table_access_method",
        Text,
        User,
        "heap",
        "Sets the default table access method for new tables.",
    ),
    def(
        "default_tablespace",
        Text,
        User,
        "",
        "Sets the default tablespace to create tables and indexes in.",
    ),
    def(
        "default_text_search_config",
        Text,
        User,
        "pg_catalog.simple",
        "Sets default text search configuration.",
    ),
    def(
        "default_transaction_deferrable",
        Bool,
        User,
        "off",
        "Sets the default deferrable status of new transactions.",
    ),
    def(
        "default_transaction_isolation",
        Enum(ISOLATION),
        User,
        "read committed",
        "Sets the transaction isolation level of each new transaction.",
    ),
    reported(def(
        "default_transaction_read_only",
        Bool,
        User,
        "off",
        "Sets the default read-only status of new transactions.",
    )),
    def(
        "effective_cache_size",
        Int(1, I32, Pages),
        User,
        "524288",
        "Sets the planner's assumption about the total size of the data caches.",
    ),
    def(
        "effective_io_concurrency",
        Int(0, 1000, No),
        User,
        "16",
        "Number of simultaneous requests that can be handled efficiently by the disk subsystem.",
    ),
    def("enable_bitmapscan", Bool, User, "on", "Enables the planner's use of bitmap-scan plans."),
    def(
        "enable_hashagg",
        Bool,
        User,
        "on",
        "Enables the planner's use of hashed aggregation plans.",
    ),
    def("enable_hashjoin", Bool, User, "on", "Enables the planner's use of hash join plans."),
    def(
        "enable_indexonlyscan",
        Bool,
        User,
        "on",
        "Enables the planner's use of index-only-scan plans.",
    ),
    def("enable_indexscan", Bool, User, "on", "Enables the planner's use of index-scan plans."),
    def("enable_material", Bool, User, "on", "Enables the planner's use of materialization."),
    def("enable_mergejoin", Bool, User, "on", "Enables the planner's use of merge join plans."),
    def(
        "enable_nestloop",
        Bool,
        User,
        "on",
        "Enables the planner's use of nested-loop join plans.",
    ),
    def("enable_seqscan", Bool, User, "on", "Enables the planner's use of sequential-scan plans."),
    def("enable_sort", Bool, User, "on", "Enables the planner's use of explicit sort steps."),
    def(
        "escape_string_warning",
        Bool,
        User,
        "on",
        "Warn about backslash escapes in ordinary string literals.",
    ),
    def(
        "extra_float_digits",
        Int(-15, 3, No),
        User,
        "1",
        "Sets the number of digits displayed for floating-point values.",
    ),
    def(
        "from_collapse_limit",
        Int(1, I32, No),
        User,
        "8",
        "Sets the FROM-list size beyond which subqueries are not collapsed.",
    ),
    def("fsync", Enum(ON_ONLY), Sighup, "on", "Forces synchronization of updates to disk."),
    def(
        "full_page_writes",
        Bool,
        Sighup,
        "on",
        "Writes full pages to WAL when first modified after a checkpoint.",
    ),
    def("geqo", Bool, User, "on", "Enables genetic query optimization."),
    def(
        "huge_pages",
        Enum(&[("off", "off"), ("on", "on"), ("try", "try"), ("true", "on"), ("false", "off")]),
        Postmaster,
        "try",
        "Use of huge pages on Linux or Windows.",
    ),
    def(
        "idle_in_transaction_session_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Sets the maximum allowed idle time between queries, when in a transaction.",
    ),
    def(
        "idle_session_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Sets the maximum allowed idle time between queries, when not in a transaction.",
    ),
    reported(def(
        "in_hot_standby",
        Bool,
        Internal,
        "off",
        "Shows whether hot standby is currently active.",
    )),
    reported(def(
        "integer_datetimes",
        Bool,
        Internal,
        "on",
        "Shows whether datetimes are integer based.",
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
        "Sets the display format for interval values.",
    )),
    reported(def(
        "is_superuser",
        Bool,
        Internal,
        "on",
        "Shows whether the current user is a superuser.",
    )),
    def("jit", Bool, User, "off", "Allow JIT compilation."),
    def(
        "join_collapse_limit",
        Int(1, I32, No),
        User,
        "8",
        "Sets the FROM-list size beyond which JOIN constructs are not flattened.",
    ),
    def("lc_collate", Text, Internal, "C", "Shows the collation order locale."),
    def(
        "lc_ctype",
        Text,
        Internal,
        "C",
        "Shows the character classification and case conversion locale.",
    ),
    def("lc_messages", Text, User, "C", "Sets the language in which messages are displayed."),
    def("lc_monetary", Text, User, "C", "Sets the locale for formatting monetary amounts."),
    def("lc_numeric", Text, User, "C", "Sets the locale for formatting numbers."),
    def("lc_time", Text, User, "C", "Sets the locale for formatting date and time values."),
    def(
        "listen_addresses",
        Text,
        Postmaster,
        "localhost",
        "Sets the host name or IP address(es) to listen to.",
    ),
    def(
        "lock_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Sets the maximum allowed duration of any wait for a lock.",
    ),
    def("log_checkpoints", Bool, Sighup, "on", "Logs each checkpoint."),
    def("log_duration", Bool, User, "off", "Logs the duration of each completed SQL statement."),
    def(
        "log_min_duration_statement",
        Int(-1, I32, Milliseconds),
        User,
        "-1",
        "Sets the minimum execution time above which all statements will be logged.",
    ),
    def(
        "log_min_messages",
        Enum(MESSAGE_LEVELS),
        User,
        "warning",
        "Sets the message levels that are logged.",
    ),
    def(
        "log_statement",
        Enum(&[("none", "none"), ("ddl", "ddl"), ("mod", "mod"), ("all", "all")]),
        User,
        "none",
        "Sets the type of statements logged.",
    ),
    def(
        "maintenance_work_mem",
        Int(64, I32, Kilobytes),
        User,
        "65536",
        "Sets the maximum memory to be used for maintenance operations.",
    ),
    def(
        "max_connections",
        Int(1, 60_000, No),
        Postmaster,
        "400",
        "Sets the maximum number of concurrent connections.",
    ),
    def(
        "max_identifier_length",
        Int(63, 63, No),
        Internal,
        "63",
        "Shows the maximum identifier length.",
    ),
    def(
        "max_index_keys",
        Int(32, 32, No),
        Internal,
        "32",
        "Shows the maximum number of index keys.",
    ),
    def(
        "max_locks_per_transaction",
        Int(10, I32, No),
        Postmaster,
        "64",
        "Sets the maximum number of locks per transaction.",
    ),
    def(
        "max_parallel_maintenance_workers",
        Int(0, 1024, No),
        User,
        "2",
        "Sets the maximum number of parallel processes per maintenance operation.",
    ),
    def(
        "max_parallel_workers",
        Int(0, 1024, No),
        User,
        "8",
        "Sets the maximum number of parallel workers that can be active at one time.",
    ),
    def(
        "max_parallel_workers_per_gather",
        Int(0, 1024, No),
        User,
        "2",
        "Sets the maximum number of parallel processes per executor node.",
    ),
    def(
        "max_prepared_transactions",
        Int(0, 0, No),
        Postmaster,
        "0",
        "Sets the maximum number of simultaneously prepared transactions.",
    ),
    def(
        "max_stack_depth",
        Int(100, I32, Kilobytes),
        User,
        "2048",
        "Sets the maximum stack depth, in kilobytes.",
    ),
    def(
        "max_wal_size",
        Int(2, I32, Megabytes),
        Sighup,
        "1024",
        "Sets the WAL size that triggers a checkpoint.",
    ),
    def(
        "min_wal_size",
        Int(2, I32, Megabytes),
        Sighup,
        "80",
        "Sets the minimum size to shrink the WAL to.",
    ),
    def(
        "password_encryption",
        Enum(&[("scram-sha-256", "scram-sha-256"), ("md5", "md5")]),
        User,
        "scram-sha-256",
        "Chooses the algorithm for encrypting passwords.",
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
        "Controls the planner's selection of custom or generic plan.",
    ),
    def("port", Int(1, 65535, No), Postmaster, "5433", "Sets the TCP port the server listens on."),
    def(
        "quote_all_identifiers",
        Bool,
        User,
        "off",
        "When generating SQL fragments, quote all identifiers.",
    ),
    def(
        "random_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "4",
        "Sets the planner's estimate of the cost of a nonsequentially fetched disk page.",
    ),
    def("row_security", Bool, User, "on", "Enable row security."),
    reported(def(
        "search_path",
        List,
        User,
        "\"$user\", public",
        "Sets the schema search order for names that are not schema-qualified.",
    )),
    def("seed", Real(-1.0, 1.0, No), User, "0", "Sets the seed for random-number generation."),
    def(
        "segment_size",
        Int(131_072, 131_072, Pages),
        Internal,
        "131072",
        "Shows the number of pages per disk file.",
    ),
    def(
        "seq_page_cost",
        Real(0.0, f64::MAX, No),
        User,
        "1",
        "Sets the planner's estimate of the cost of a sequentially fetched disk page.",
    ),
    reported(def(
        "server_encoding",
        Text,
        Internal,
        "UTF8",
        "Shows the server (database) character set encoding.",
    )),
    reported(def(
        "server_version",
        Text,
        Internal,
        super::SERVER_VERSION,
        "Shows the server version.",
    )),
    def(
        "server_version_num",
        Int(super::SERVER_VERSION_NUM, super::SERVER_VERSION_NUM, No),
        Internal,
        super::SERVER_VERSION_NUM_TEXT,
        "Shows the server version as an integer.",
    ),
    reported(def(
        "session_authorization",
        Text,
        Internal,
        "postgres",
        "Shows the session user name.",
    )),
    def(
        "shared_buffers",
        Int(16, I32 / 2, Pages),
        Postmaster,
        "16384",
        "Sets the number of shared memory buffers used by the server.",
    ),
    def("ssl", Bool, Sighup, "off", "Enables SSL connections."),
    reported(def(
        "standard_conforming_strings",
        Enum(ON_ONLY),
        User,
        "on",
        "Causes '...' strings to treat backslashes literally.",
    )),
    def(
        "statement_timeout",
        Int(0, I32, Milliseconds),
        User,
        "0",
        "Sets the maximum allowed duration of any statement.",
    ),
    def(
        "superuser_reserved_connections",
        Int(0, 262_143, No),
        Postmaster,
        "3",
        "Sets the number of connection slots reserved for superusers.",
    ),
    def("synchronize_seqscans", Bool, User, "on", "Enable synchronized sequential scans."),
    def(
        "synchronous_commit",
        Enum(ON_OFF_WORDS),
        User,
        "on",
        "Sets the current transaction's synchronization level.",
    ),
    def(
        "tcp_keepalives_idle",
        Int(0, I32, Seconds),
        User,
        "0",
        "Time between issuing TCP keepalives.",
    ),
    def(
        "temp_buffers",
        Int(100, I32 / 2, Pages),
        User,
        "1024",
        "Sets the maximum number of temporary buffers used by each session.",
    ),
    reported(def(
        "TimeZone",
        Text,
        User,
        "UTC",
        "Sets the time zone for displaying and interpreting time stamps.",
    )),
    def("track_activities", Bool, User, "on", "Collects information about executing commands."),
    def("track_counts", Bool, User, "on", "Collects statistics on database activity."),
    def(
        "track_io_timing",
        Bool,
        User,
        "off",
        "Collects timing statistics for database I/O activity.",
    ),
    def(
        "transaction_deferrable",
        Bool,
        User,
        "off",
        "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures.",
    ),
    def(
        "transaction_isolation",
        Enum(ISOLATION),
        User,
        "read committed",
        "Sets the current transaction's isolation level.",
    ),
    def(
        "transaction_read_only",
        Bool,
        User,
        "off",
        "Sets the current transaction's read-only status.",
    ),
    def(
        "unix_socket_directories",
        Text,
        Postmaster,
        "",
        "Sets the directories where Unix-domain sockets will be created.",
    ),
    def(
        "vacuum_cost_delay",
        Real(0.0, 100.0, Milliseconds),
        User,
        "0",
        "Vacuum cost delay in milliseconds.",
    ),
    def(
        "wal_buffers",
        Int(8, I32 / 8192, Pages),
        Postmaster,
        "2048",
        "Sets the number of disk-page buffers in shared memory for WAL.",
    ),
    def(
        "wal_level",
        Enum(&[("minimal", "minimal"), ("replica", "replica"), ("logical", "logical")]),
        Internal,
        "replica",
        "Sets the level of information written to the WAL.",
    ),
    def(
        "wal_segment_size",
        Int(1_048_576, 1_073_741_824, Bytes),
        Internal,
        "16777216",
        "Shows the size of write ahead log segments.",
    ),
    def(
        "wal_sync_method",
        Enum(&[("fsync", "fsync"), ("fdatasync", "fdatasync")]),
        Sighup,
        "fdatasync",
        "Selects the method used for forcing WAL updates to disk.",
    ),
    def(
        "wal_writer_delay",
        Int(1, 10000, Milliseconds),
        Sighup,
        "200",
        "Time between WAL flushes performed in the WAL writer.",
    ),
    def(
        "work_mem",
        Int(64, I32, Kilobytes),
        User,
        "4096",
        "Sets the maximum memory to be used for query workspaces.",
    ),
    def(
        "xmlbinary",
        Enum(&[("base64", "base64"), ("hex", "hex")]),
        User,
        "base64",
        "Sets how binary values are to be encoded in XML.",
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
