//! What the pool counts.

use millpond_sync::counters::StripedCounters;

/// The events, as indices of the striped counters.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Event {
    Hit,
    Miss,
    Restart,
    LatchedRead,
    LoadWait,
    Read,
    Write,
    WriteCall,
    Eviction,
    DirtyEviction,
    Examined,
    Extended,
    Reclaimed,
}

pub(crate) const EVENTS: usize = Event::Reclaimed as usize + 1;

pub(crate) type Counters = StripedCounters<EVENTS>;

/// What has happened in a pool since it was made (sums of all sessions; approximate while they run).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Pages that were asked for and in memory.
    pub hits: u64,
    /// Pages that were asked for and had to be loaded.
    pub misses: u64,
    /// Optimistic reads that were repeated because the page changed meanwhile.
    pub restarts: u64,
    /// Optimistic reads that took the shared latch in the end.
    pub latched_reads: u64,
    /// Times a session waited for another's load.
    pub load_waits: u64,
    /// Pages read from the store.
    pub reads: u64,
    /// Pages written to the store.
    pub writes: u64,
    /// Writes, each of one page or of several neighbours.
    pub write_calls: u64,
    /// Pages that left memory.
    pub evictions: u64,
    /// Pages that had to be written before they left memory.
    pub dirty_evictions: u64,
    /// Frames that the clock sweep examined.
    pub frames_examined: u64,
    /// Pages added to the ends of relations.
    pub extended: u64,
    /// Frames freed ahead of demand.
    pub reclaimed: u64,
    /// Frames that hold no page now.
    pub free_frames: u64,
}

impl PoolStats {
    pub(crate) fn of(counters: &Counters, free_frames: usize) -> Self {
        let sum = |event: Event| counters.sum(event as usize);
        Self {
            hits: sum(Event::Hit),
            misses: sum(Event::Miss),
            restarts: sum(Event::Restart),
            latched_reads: sum(Event::LatchedRead),
            load_waits: sum(Event::LoadWait),
            reads: sum(Event::Read),
            writes: sum(Event::Write),
            write_calls: sum(Event::WriteCall),
            evictions: sum(Event::Eviction),
            dirty_evictions: sum(Event::DirtyEviction),
            frames_examined: sum(Event::Examined),
            extended: sum(Event::Extended),
            reclaimed: sum(Event::Reclaimed),
            free_frames: free_frames as u64,
        }
    }
}
