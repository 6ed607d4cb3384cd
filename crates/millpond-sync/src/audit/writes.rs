//! Records accesses to memory that sessions share: each one's cache line, kind, and line of code.
//!
//! [`writes_of`] records the accesses of one thread while it runs:
//!
//! - to the atomics ([`super::atomics`]);
//! - to the mutexes of [`crate::sync`] (locking and unlocking);
//! - to the queues of [`crate::parking`] (likewise);
//! - to bytes in bulk (pages, the log's ring), as one write for each cache line.
//!
//! Two kinds of writes are not recorded. Data that a mutex guards is covered by the record of the
//! mutex itself. Reference counts of `Arc`s are left out because no statement touches the count of
//! a shared object. For statements that read, the proof on read-only memory shows this.

use super::place;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// How memory was accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No write: a load of an atomic. (Other threads write to some of the atomics that are loaded.)
    Load,
    /// An atomic read-modify-write.
    ReadModifyWrite,
    /// A store to an atomic.
    Store,
    /// Locking or unlocking a mutex or a queue: an atomic read-modify-write, too.
    Lock,
    /// Content: bytes of a page or of a log record, all in one cache line.
    Content,
}

/// A recorded access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Its cache line, by number.
    pub line: usize,
    /// How the memory was accessed.
    pub kind: Kind,
    /// Whether the line belongs to a session.
    pub session_owned: bool,
    /// The source file of the code that wrote.
    pub file: &'static str,
    /// The line in that file.
    pub at: u32,
}

/// The parts of the system that write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subsystem {
    /// Entries of page tables: where pages are.
    PageTable,
    /// Descriptors of frames: state, usage, version.
    Descriptors,
    /// Freelists, the clock's hand, claims, rings.
    Replacement,
    /// Sizes of forks, read-ahead, and everything else of the pool.
    Pool,
    /// Bytes of pages.
    PageBytes,
    /// Slots of pins.
    Pins,
    /// Latches.
    Latch,
    /// Locks.
    Locks,
    /// Ids, statuses, the clock of commits, horizons.
    Transactions,
    /// Sessions' lines.
    Sessions,
    /// The log's control.
    Log,
    /// Bytes of log records in the ring.
    LogBytes,
    /// The published catalog and definitions.
    Catalog,
    /// Counters.
    Counters,
    /// Queues of parked threads.
    Parking,
    /// Anything else.
    Other,
}

impl Subsystem {
    /// All, in the order of a report.
    pub const ALL: [Self; 16] = [
        Self::PageTable,
        Self::Descriptors,
        Self::Replacement,
        Self::Pool,
        Self::PageBytes,
        Self::Pins,
        Self::Latch,
        Self::Locks,
        Self::Transactions,
        Self::Sessions,
        Self::Log,
        Self::LogBytes,
        Self::Catalog,
        Self::Counters,
        Self::Parking,
        Self::Other,
    ];

    /// Its name in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PageTable => "pool: page table",
            Self::Descriptors => "pool: descriptors",
            Self::Replacement => "pool: replacement",
            Self::Pool => "pool: other",
            Self::PageBytes => "pool: page bytes",
            Self::Pins => "pool: pins",
            Self::Latch => "latch",
            Self::Locks => "lmgr",
            Self::Transactions => "transam",
            Self::Sessions => "sessions' lines",
            Self::Log => "wal: control",
            Self::LogBytes => "wal: record bytes",
            Self::Catalog => "catalog",
            Self::Counters => "counters",
            Self::Parking => "parking",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Subsystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Write {
    /// The part of the system whose code wrote, found by its source file. So no code is left out.
    #[must_use]
    pub fn subsystem(&self) -> Subsystem {
        let Some((krate, path)) = self.file.split_once("/src/") else { return Subsystem::Other };
        let path = path.trim_end_matches(".rs");
        let part = path.split('/').next().unwrap_or(path);
        if krate.ends_with("millpond-sync") {
            return match part {
                "latch" => Subsystem::Latch,
                "version" => Subsystem::Descriptors,
                "counters" => Subsystem::Counters,
                "parking" => Subsystem::Parking,
                _ => Subsystem::Other,
            };
        }
        if krate.ends_with("millpond-buffer") {
            // In these two folders, a file is a part of its own.
            let within = path.strip_prefix("core/").or_else(|| path.strip_prefix("page/"));
            let part = within.and_then(|path| path.split('/').next()).unwrap_or(part);
            return match part {
                "words" => Subsystem::PageBytes,
                "frame" | "guard" => Subsystem::Descriptors,
                "page_table" | "relation" => Subsystem::PageTable,
                "pins" => Subsystem::Pins,
                "free_frames" | "policy" | "replacement" | "reclaimer" => Subsystem::Replacement,
                _ => Subsystem::Pool,
            };
        }
        match part {
            "lmgr" => Subsystem::Locks,
            "proc" => Subsystem::Sessions,
            "transam" => Subsystem::Transactions,
            "wal" if self.kind == Kind::Content => Subsystem::LogBytes,
            "wal" => Subsystem::Log,
            "catalog" => Subsystem::Catalog,
            _ => Subsystem::Other,
        }
    }
}

thread_local! {
    static WRITES: RefCell<Option<Vec<Write>>> = const { RefCell::new(None) };
    static CONTENT: Cell<bool> = const { Cell::new(false) };
}

/// Records a write to the cache line that holds `address`.
#[track_caller]
pub fn note(address: usize, kind: Kind) {
    let code = Location::caller();
    WRITES.with_borrow_mut(|writes| {
        if let Some(writes) = writes {
            let line = address / LINE_BYTES;
            let kind = if CONTENT.get() { Kind::Content } else { kind };
            let session_owned = place::is_session_owned(address);
            let again = |last: &Write| last.line == line && last.kind == Kind::Content;
            if kind == Kind::Content && writes.last().is_some_and(again) {
                return;
            }
            writes.push(Write { line, kind, session_owned, file: code.file(), at: code.line() });
        }
    });
}

/// Records bytes written in bulk, as one write for each cache line.
#[track_caller]
pub fn note_bytes(start: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    for line in start / LINE_BYTES..=(start + bytes - 1) / LINE_BYTES {
        note(line * LINE_BYTES, Kind::Content);
    }
}

/// Runs `f`, whose writes are recorded as content.
pub(super) fn content<R>(f: impl FnOnce() -> R) -> R {
    let before = CONTENT.replace(true);
    let result = f();
    CONTENT.set(before);
    result
}

/// The accesses of `f` on this thread.
pub fn writes_of(f: impl FnOnce()) -> Vec<Write> {
    WRITES.set(Some(Vec::with_capacity(1024)));
    f();
    WRITES.take().unwrap_or_default()
}
