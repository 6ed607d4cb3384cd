//! The state shared by the threads that make the log durable. It says how far the log is durable,
//! which threads wait, and what the log's thread is asked for.

use millpond_buffer::Lsn;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::parking;
use millpond_sync::sync::Mutex;
use millpond_sync::thread::NamedThread;

use super::companions::Companions;
use super::group::Group;
use super::stats::FlushCounts;

/// State of flushing.
pub(super) struct Flushing {
    pub(super) flushed: CachePadded<AtomicU64>,
    pub(super) group: Group<Synced>,
    pub(super) writing: CachePadded<Mutex<Writing>>,
    /// The log's thread is asked to write up to here.
    pub(super) wanted: CachePadded<AtomicU64>,
    /// A thread that accepts no leader's pause waits for the log to be durable up to here.
    pub(super) hurried: AtomicU64,
    /// The log's thread has something to do.
    pub(super) work: CachePadded<AtomicBool>,
    pub(super) ending: AtomicBool,
    pub(super) thread: Mutex<Option<NamedThread<()>>>,
    pub(super) counts: FlushCounts,
    /// The end of the last mark, see `mark_durable`.
    pub(super) marked: AtomicU64,
    /// The segment with which `on_growth` was last called.
    pub(super) grown: AtomicU64,
    /// The log's thread has reported that it cannot make a segment, and need not report it again.
    pub(super) complained: AtomicBool,
    pub(super) on_growth: Mutex<Option<OnGrowth>>,
}

type OnGrowth = Box<dyn Fn(Lsn) + Send + Sync>;

/// State that only the leader uses.
pub(super) struct Synced {
    /// Up to where the log has been synced.
    pub(super) upto: Lsn,
    pub(super) companions: Companions,
}

/// State that one writing thread uses at a time.
pub(super) struct Writing {
    pub(super) written: Lsn,
    pub(super) buffer: Vec<u8>,
}

impl Flushing {
    pub fn new(start: Lsn) -> Self {
        Self {
            flushed: CachePadded::new(AtomicU64::new(start.get())),
            group: Group::new(Synced { upto: start, companions: Companions::default() }),
            writing: CachePadded::new(Mutex::new(Writing { written: start, buffer: Vec::new() })),
            wanted: CachePadded::default(),
            hurried: AtomicU64::new(0),
            work: CachePadded::default(),
            ending: AtomicBool::new(false),
            thread: Mutex::default(),
            counts: FlushCounts::default(),
            marked: AtomicU64::new(start.get()),
            grown: AtomicU64::new(0),
            complained: AtomicBool::new(false),
            on_growth: Mutex::default(),
        }
    }

    pub fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// [`Flushing::kick`], unless the thread has work already. For very frequent callers: the
    /// flag's cache line does not move to their processor each time. The thread may have just
    /// cleared the flag without seeing this request. So use it only for requests that are repeated
    /// (wal rule 15).
    pub fn nudge(&self) {
        if !self.work.load(Ordering::Relaxed) {
            self.kick();
        }
    }

    /// Gives the log's thread something to do.
    pub fn kick(&self) {
        if !self.work.swap(true, Ordering::AcqRel) {
            parking::unpark_one(self.work_key());
        }
    }

    /// The address on which a leader parks while it lets others join.
    pub fn pause_key(&self) -> usize {
        self.group.pause_key()
    }

    pub fn work_key(&self) -> usize {
        std::ptr::from_ref(&*self.work).addr()
    }

    /// Calls the function that [`Log::on_growth`](super::Log::on_growth) was given.
    pub fn tell_growth(&self, position: Lsn) {
        if let Some(call) = &*self.on_growth.lock() {
            call(position);
        }
    }
}
