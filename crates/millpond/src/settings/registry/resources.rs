//! Memory, workers, background writing, locks.

use super::I32;
use crate::settings::definition::Context::{Postmaster, Sighup, Superuser, User};
use crate::settings::definition::Kind::{Enum, Int, Real, Text};
use crate::settings::definition::Unit::{Kilobytes, Milliseconds, None as No, Pages};
use crate::settings::definition::{Definition, def, unused};
use crate::settings::value::MAX_USAGE_LIMIT_KB;

pub(super) const SETTINGS: &[Definition] = &[
    def(
        "shared_buffers",
        Int(16, I32 / 2, Pages),
        Superuser,
        "16384",
        "The size of the buffer pool: SET changes it at once, for everybody, up to max_shared_buffers.",
    ),
    def(
        "max_shared_buffers",
        Int(0, I32 / 2, Pages),
        Postmaster,
        "0",
        "How large shared_buffers can be made while the server runs; 0 for a quarter of the machine's memory.",
    ),
    def(
        "replacement_policy",
        Enum(&[("probation", "probation"), ("clock-sweep", "clock-sweep")]),
        Postmaster,
        "probation",
        "Which pages leave the buffer pool.",
    ),
    def(
        "trace_pages",
        Text,
        Postmaster,
        "",
        "A file in which accesses to pages are recorded, for millpond replay.",
    ),
    def(
        "huge_pages",
        Enum(&[("off", "off"), ("on", "on"), ("try", "try"), ("true", "on"), ("false", "off")]),
        Postmaster,
        "try",
        "Accepted for compatibility, no effect: they are asked for when the system has them.",
    ),
    def(
        "temp_buffers",
        Int(100, I32 / 2, Pages),
        User,
        "1024",
        "There are no temporary tables: accepted for compatibility, no effect.",
    ),
    unused("work_mem", Int(64, I32, Kilobytes), User, "4096"),
    unused("maintenance_work_mem", Int(64, I32, Kilobytes), User, "65536"),
    unused("max_stack_depth", Int(100, I32, Kilobytes), User, "2048"),
    def(
        "vacuum_buffer_usage_limit",
        Int(0, MAX_USAGE_LIMIT_KB, Kilobytes),
        User,
        "2048",
        "How much of the buffer pool VACUUM and ANALYZE use at a time, at most an eighth; 0 for no limit.",
    ),
    def(
        "bulk_read_buffer_limit",
        Int(0, MAX_USAGE_LIMIT_KB, Kilobytes),
        User,
        "256",
        "How much of the buffer pool a scan of a large table uses, at most an eighth; 0 for no limit.",
    ),
    def(
        "bulk_write_buffer_limit",
        Int(0, MAX_USAGE_LIMIT_KB, Kilobytes),
        User,
        "16384",
        "How much of the buffer pool COPY, INSERT ... SELECT and index builds use, at most an eighth; 0 for no limit.",
    ),
    def(
        "max_prepared_transactions",
        Int(0, 0, No),
        Postmaster,
        "0",
        "There is no two-phase commit.",
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
    unused("backend_flush_after", Int(0, 256, Pages), User, "0"),
    unused("effective_io_concurrency", Int(0, 1000, No), User, "16"),
    unused("max_parallel_maintenance_workers", Int(0, 1024, No), User, "2"),
    def(
        "max_parallel_workers",
        Int(0, 1024, No),
        User,
        "8",
        "How many threads may scan for all sessions together.",
    ),
    unused("max_parallel_workers_per_gather", Int(0, 1024, No), User, "2"),
    unused("vacuum_cost_delay", Real(0.0, 100.0, Milliseconds), User, "0"),
    def(
        "deadlock_timeout",
        Int(1, I32, Milliseconds),
        User,
        "1000",
        "How long a lock is waited for before looking for a deadlock; counts as set at start.",
    ),
    def(
        "max_locks_per_transaction",
        Int(10, I32, No),
        Postmaster,
        "64",
        "Accepted for compatibility, no effect: locks take the memory that they need.",
    ),
];
