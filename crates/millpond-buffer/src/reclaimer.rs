//! The reclaimer: it keeps clean, free frames ready before sessions need them.
//!
//! A miss that finds a free frame neither sweeps nor writes. One thread serves all freelists. It
//! keeps each at a *target* ([`refill`]).
//!
//! **How many.** The target is the recent demand times the time that the reclaimer takes to come
//! back with more. It rises faster than it falls. It stays within bounds that are parts of the
//! pool, since a free frame holds no page.
//!
//! **When.** It sleeps while no session needs frames. A session that leaves less than half the
//! target on its list wakes it ([`crate::core::free_frames`]). But its last attempt may have freed
//! nothing, since all is pinned or can't be written. Then it sleeps until a session takes or misses
//! another frame.
//!
//! **Failure.** A page that can't be written stays dirty and in its frame. The others are written
//! nevertheless, and the error is reported. If the reclaimer ends, sessions sweep for themselves.

use crate::core::PoolCore;
use crate::core::session::SessionCore;
use crate::error::BufferError;
use crate::replacement::vacate::refill;
use crate::session::BufferSession;
use crate::stats::Event;
use millpond_sync::clock;
use std::fmt;
use std::time::{Duration, Instant};

/// The bounds of the target, as parts of the pool and in frames.
const LEAST_PART: usize = 512;
const MOST_PART: usize = 64;
const LEAST: usize = 8;
const MOST: usize = 8192;

/// How long the free frames should last at the recent demand.
const HORIZON: Duration = Duration::from_millis(50);

/// Frees frames before a session needs them; one is enough for a pool. The caller runs it on a
/// thread with a session of its own. For the statistics, that session should be of kind
/// [`BackendKind::BackgroundWriter`](crate::BackendKind::BackgroundWriter). The thread can go on
/// after an error of [`Reclaimer::work`]: pages that can't be written stay in memory, and the next
/// call tries again.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// # let store = Arc::new(MemoryStore::new());
/// # let pool = BufferPool::new(PoolConfig::new(64, 4), store, Arc::new(NoLog))?;
/// let ending = Arc::new(AtomicBool::new(false));
/// let thread = std::thread::spawn({
///     let (pool, ending) = (pool.clone(), ending.clone());
///     move || {
///         let session = pool.session()?;
///         session.set_backend_kind(BackendKind::BackgroundWriter);
///         let mut reclaimer = Reclaimer::new(&session);
///         while !ending.load(Ordering::SeqCst) {
///             reclaimer.wait(|| ending.load(Ordering::SeqCst));
///             if let Err(why) = reclaimer.work() {
///                 eprintln!("a page stays dirty: {why}");
///             }
///         }
///         Ok::<(), BufferError>(())
///     }
/// });
/// // When the pool is no longer used:
/// ending.store(true, Ordering::SeqCst);
/// pool.wake_reclaimer();
/// thread.join().expect("the reclaimer has not panicked")?;
/// # Ok::<(), BufferError>(())
/// ```
pub struct Reclaimer<'s> {
    session: &'s SessionCore,
    /// The recent demand, in frames a second.
    rate: f64,
    /// When the demand was last measured, and the counts of taken and free frames at that time.
    since: Instant,
    taken: u64,
    free: usize,
    /// How many frames each list should have.
    target: usize,
    /// Whether the last attempt freed nothing.
    freed_nothing: bool,
}

impl<'s> Reclaimer<'s> {
    /// A reclaimer that uses `session`.
    #[must_use]
    pub fn new(session: &'s BufferSession) -> Self {
        let session = &session.core;
        let mut this = Self {
            session,
            rate: 0.0,
            since: clock::now(),
            taken: session.pool.clock.taken(),
            free: session.pool.free_frames(),
            target: 0,
            freed_nothing: false,
        };
        this.set_target();
        this
    }

    fn pool(&self) -> &'s PoolCore {
        &self.session.pool
    }

    /// Sleeps until frames are wanted,
    /// [`BufferPool::wake_reclaimer`](crate::BufferPool::wake_reclaimer) is called, or `ending`
    /// returns true. The reclaimer can be woken before it calls `ending`. So a thread that makes
    /// `ending` true and then wakes the reclaimer always ends the wait.
    pub fn wait(&self, ending: impl FnOnce() -> bool) {
        let pool = self.pool();
        pool.demand.sleep(|| ending() || (!self.freed_nothing && self.neediest().is_some()));
    }

    /// The list with the fewest frames, if those are too few.
    fn neediest(&self) -> Option<usize> {
        let pool = self.pool();
        let low_water = pool.demand.low_water();
        let shortest =
            (0..pool.free.lists()).map(|list| (pool.free.len_of(list, &pool.frames), list)).min();
        shortest.filter(|(len, _)| *len < low_water).map(|(_, list)| list)
    }

    /// Brings each list to its target and returns how many frames it freed. After an error it may
    /// have freed fewer; the next call tries again.
    pub fn work(&mut self) -> Result<usize, BufferError> {
        self.set_target();
        let (mut freed, mut failure) = (0, None);
        for list in 0..self.pool().free.lists() {
            match refill(self.session, list, self.target) {
                Ok(some) => freed += some,
                Err(error) => failure = Some(error),
            }
        }
        self.freed_nothing = freed == 0;
        self.session.count(Event::Reclaimed, freed as u64);
        failure.map_or(Ok(freed), Err)
    }

    /// Sets the target by the recent demand.
    fn set_target(&mut self) {
        let pool = self.pool();
        let (taken, free) = (pool.clock.taken(), pool.free_frames());
        let elapsed = clock::since(self.since);
        // The frames that came onto the lists and are no longer there.
        let used =
            (taken.saturating_sub(self.taken) + self.free as u64).saturating_sub(free as u64);
        if elapsed >= HORIZON / 50 {
            let rate = used as f64 / elapsed.as_secs_f64();
            self.rate = rate.max(self.rate + (rate - self.rate) / 16.0);
            (self.since, self.taken, self.free) = (clock::now(), taken, free);
        }
        let frames = pool.frames();
        let wanted = (self.rate * HORIZON.as_secs_f64()) as usize;
        let least = (frames / LEAST_PART).max(LEAST).min(frames / 4);
        let most = (frames / MOST_PART).clamp(least, MOST.max(least));
        self.target = wanted.clamp(least, most).div_ceil(pool.free.lists());
        pool.demand.set_low_water(self.target.div_ceil(2));
    }
}

impl Drop for Reclaimer<'_> {
    /// Sessions need not wake it any more.
    fn drop(&mut self) {
        self.pool().demand.set_low_water(0);
    }
}

impl fmt::Debug for Reclaimer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").field("target", &self.target).finish_non_exhaustive()
    }
}
