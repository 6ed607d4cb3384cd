//! The reclaimer: clean, free frames ahead of demand.
//!
//! A miss that finds a free frame neither sweeps nor writes. So one thread keeps each freelist at a
//! *target*: it sweeps as a session would, takes the clean frames that the sweep offers, writes all the dirty
//! ones that it meets in file order with neighbours joined, and then takes as many of those as are missing.
//!
//! **How many.** The target follows the demand: what was taken lately, more quickly up than down, times the
//! time that it takes to come back with more; within bounds that are parts of the pool, since a free frame
//! is one that holds nobody's page.
//!
//! **When.** A session that takes a frame and leaves fewer than half the target on its list wakes the
//! reclaimer. Nobody polls: while nobody needs frames the reclaimer sleeps, and what the sessions read to
//! know whether to wake it is a line that is written only when it falls asleep, wakes or changes its target.
//!
//! ```text
//! session                               reclaimer
//! pop a frame: few are left             state := ASLEEP
//! fence                                 fence
//! state is ASLEEP? := AWAKE, unpark     few are left somewhere? go on : park while ASLEEP
//! ```
//!
//! Either the session sees ASLEEP, or the reclaimer sees what the session has left: the two fences are
//! sequentially consistent. Unless the last attempt was in vain, for everything is pinned or can't be
//! written: then it sleeps until somebody takes, or misses, another frame.
//!
//! **Failure.** A page that can't be written stays dirty and where it is; the others are written all the
//! same, and the error is reported. If the reclaimer dies, sessions sweep for themselves.

use crate::claims::MAX_CLAIMS;
use crate::error::BufferError;
use crate::evict::MAX_ROUNDS;
use crate::policy::{self, Swept};
use crate::pool::BufferPool;
use crate::session::BufferSession;
use crate::stats::{Event, Histogram};
use millpond_sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use millpond_sync::{clock, mutant, parking};
use std::fmt;
use std::time::{Duration, Instant};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The bounds of the target, as parts of the pool and in frames.
const LEAST_PART: usize = 512;
const MOST_PART: usize = 64;
const LEAST: usize = 8;
const MOST: usize = 8192;

/// For how long the frames kept free should last, at the demand of late.
const HORIZON: Duration = Duration::from_millis(50);

/// How many dirty pages are gathered before they are written: the more, the more are neighbours.
const GATHER: usize = 256;

/// What sessions need to know of the reclaimer: read at each miss, seldom written.
#[derive(Default)]
pub(crate) struct Demand {
    state: AtomicU32,
    /// A list with fewer frames than that needs the reclaimer.
    low_water: AtomicUsize,
}

impl Demand {
    #[cfg(all(test, loom))]
    pub(crate) fn with_low_water(low_water: usize) -> Self {
        Self { low_water: AtomicUsize::new(low_water), ..Self::default() }
    }

    /// A frame was taken from a list that has so many left; or none was to be had.
    #[inline]
    pub(crate) fn taken(&self, left: usize) {
        if left < self.low_water.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == ASLEEP
            && self.state.swap(AWAKE, Ordering::SeqCst) == ASLEEP
        {
            parking::unpark_all(self.key());
        }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(&self.state) as usize
    }

    /// Waits until somebody wakes. `stay_awake` is asked once sessions can see that this one sleeps.
    pub(crate) fn sleep(&self, stay_awake: impl FnOnce() -> bool) {
        self.state.store(ASLEEP, Ordering::SeqCst);
        if !mutant!("pool-reclaimer-sleeps-without-fence") {
            fence(Ordering::SeqCst);
        }
        if !stay_awake() {
            let still = || self.state.load(Ordering::SeqCst) == ASLEEP;
            parking::park(self.key(), still, None);
        }
        self.state.store(AWAKE, Ordering::SeqCst);
    }
}

/// Keeps frames free ahead of demand; one a pool. What runs it is a thread of the caller's, with a session of its own
/// (of the kind [`BackendKind::BackgroundWriter`](crate::BackendKind::BackgroundWriter), for the statistics). An error of [`Reclaimer::work`] need not end it: pages
/// that can't be written stay where they are, and the next call tries again.
///
/// ```
/// # use millpond_buffer::*;
/// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// # let pool = BufferPool::new(PoolConfig::new(64, 4), Arc::new(MemoryStore::new()), Arc::new(NoLog))?;
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
    session: &'s BufferSession,
    /// Frames a second that were wanted of late.
    rate: f64,
    /// When that was last looked at, and what had been taken and was free then.
    since: Instant,
    taken: u64,
    free: usize,
    /// How many frames each list should have.
    target: usize,
    /// The last attempt has freed nothing.
    in_vain: bool,
}

impl<'s> Reclaimer<'s> {
    /// A reclaimer that uses that session.
    #[must_use]
    pub fn new(session: &'s BufferSession) -> Self {
        let mut this = Self {
            session,
            rate: 0.0,
            since: clock::now(),
            taken: session.pool.clock.taken(),
            free: session.pool.free_frames(),
            target: 0,
            in_vain: false,
        };
        this.set_target();
        this
    }

    fn pool(&self) -> &'s BufferPool {
        &self.session.pool
    }

    /// Sleeps until frames are wanted, [`BufferPool::wake_reclaimer`] is called, or `ending` is true. It
    /// is asked after whoever makes it true and then wakes the reclaimer can be sure to wake it.
    pub fn wait(&self, ending: impl FnOnce() -> bool) {
        let pool = self.pool();
        pool.demand.sleep(|| ending() || (!self.in_vain && self.neediest().is_some()));
    }

    /// The list with the fewest frames, if those are too few.
    fn neediest(&self) -> Option<usize> {
        let pool = self.pool();
        let low_water = pool.demand.low_water.load(Ordering::Relaxed);
        let shortest =
            (0..pool.free.lists()).map(|list| (pool.free.len_of(list, &pool.frames), list)).min();
        shortest.filter(|(len, _)| *len < low_water).map(|(_, list)| list)
    }

    /// Brings each list to its target. Returns how many frames it freed. After an error there may be
    /// fewer; it can be tried again.
    pub fn work(&mut self) -> Result<usize, BufferError> {
        self.set_target();
        let (mut freed, mut failure) = (0, None);
        for list in 0..self.pool().free.lists() {
            match self.session.refill(list, self.target) {
                Ok(some) => freed += some,
                Err(error) => failure = Some(error),
            }
        }
        self.in_vain = freed == 0;
        self.session.count(Event::Reclaimed, freed as u64);
        failure.map_or(Ok(freed), Err)
    }

    /// Sets the target by the demand of late.
    fn set_target(&mut self) {
        let pool = self.pool();
        let (taken, free) = (pool.clock.taken(), pool.free_frames());
        let elapsed = clock::since(self.since);
        // What came onto the lists and is no longer there.
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
        pool.demand.low_water.store(self.target.div_ceil(2), Ordering::Relaxed);
    }
}

impl Drop for Reclaimer<'_> {
    /// Nobody needs to wake it any more.
    fn drop(&mut self) {
        self.pool().demand.low_water.store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for Reclaimer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").field("target", &self.target).finish_non_exhaustive()
    }
}

impl BufferPool {
    /// Wakes the reclaimer, if it sleeps, so that it can see that it should end.
    pub fn wake_reclaimer(&self) {
        self.demand.wake();
    }

    /// How many frames are free, about.
    pub(crate) fn free_frames(&self) -> usize {
        self.free.len(&self.frames)
    }

    /// Frees frames, writing dirty pages on the way, until `target_clean` frames are free or no more can
    /// be had. Returns how many it freed.
    pub fn reclaim(
        &self,
        session: &BufferSession,
        target_clean: usize,
    ) -> Result<usize, BufferError> {
        self.check_session(session)?;
        let lists = self.free.lists();
        let wanted = target_clean.min(self.frames()).saturating_sub(self.free_frames());
        let near = session.near() % lists;
        let freed = session.refill(near, self.free.len_of(near, &self.frames) + wanted)?;
        session.count(Event::Reclaimed, freed as u64);
        Ok(freed)
    }
}

impl BufferSession {
    /// Brings a freelist to `target` frames, if they can be had. Others may take what is freed meanwhile;
    /// a call frees no more than what was missing when it began.
    fn refill(&self, list: usize, target: usize) -> Result<usize, BufferError> {
        let pool = &self.pool;
        let most = target.saturating_sub(pool.free.len_of(list, &pool.frames));
        let (mut freed, mut failure) = (0, None);
        let mut search = Search::new(pool.frames());
        let mut newcomers = pool.frames();
        while freed < most && search.goes_on() {
            let mut dirty = Vec::new();
            while freed + dirty.len() < most && dirty.len() < GATHER && search.goes_on() {
                let wanted = (most - freed - dirty.len()).min(MAX_CLAIMS);
                let (claims, met, swept) = self.sweep_clean(wanted, &mut newcomers);
                let clean = self.free_into(claims, list);
                // Also those that are not needed now: what has left the newcomers' queue is met again only when the hand
                // comes round, and meanwhile dirty pages that nobody wants would push out others that are in use.
                let met = met.frames().iter().copied();
                let new: Vec<u32> = met.filter(|frame| !dirty.contains(frame)).collect();
                search.spend(&swept);
                self.found(&mut search, clean);
                dirty.extend(new);
                freed += clean;
            }
            let written =
                self.write_and_free(&dirty, list, most.saturating_sub(freed), &mut failure);
            self.found(&mut search, written);
            freed += written;
        }
        match failure {
            Some(error) if freed == 0 => Err(error),
            _ => Ok(freed),
        }
    }

    /// Frames have been found, perhaps: a search is counted with what it took, like a foreground sweep.
    fn found(&self, search: &mut Search, frames: usize) {
        if frames > 0 && search.examined > 0 {
            self.count_log2(Histogram::ExaminedAhead, search.examined as u64);
            search.examined = 0;
        }
    }

    /// Writes pages in file order, neighbours joined, and then takes `most` of their frames unless they have been
    /// used meanwhile.
    fn write_and_free(
        &self,
        frames: &[u32],
        list: usize,
        most: usize,
        failure: &mut Option<BufferError>,
    ) -> usize {
        if let Err(error) = self.write_frames(frames) {
            *failure = Some(error);
        }
        let mut freed = 0;
        for batch in frames.chunks(MAX_CLAIMS) {
            let mut claims = self.no_claims();
            let unused =
                |number: &u32| policy::is_spent(self.pool.frames[*number as usize].usage());
            for number in batch.iter().copied().filter(unused).take(most.saturating_sub(freed)) {
                // In use again, or still dirty: then it stays.
                let _ = claims.claim(number);
            }
            freed += self.free_into(claims, list);
        }
        freed
    }

    /// Writes the pages in some frames in file order, neighbours joined. What can't be written stays.
    pub(crate) fn write_frames(&self, frames: &[u32]) -> Result<(), BufferError> {
        let descriptor = |number: u32| &self.pool.frames[number as usize];
        let named = frames.iter().filter_map(|&number| Some((descriptor(number).page()?, number)));
        self.write_victims(named.collect())
    }
}

/// How long to look for frames: as long as they are found, and otherwise as long as each round of the
/// pool brings one nearer to some.
struct Search {
    frames: usize,
    /// Examined since one was last found.
    examined: usize,
    hope: bool,
}

impl Search {
    fn new(frames: usize) -> Self {
        Self { frames, examined: 0, hope: true }
    }

    fn spend(&mut self, swept: &Swept) {
        self.hope |= swept.hope;
        self.examined += swept.examined;
    }

    /// Whether to look on. Asked once per piece.
    fn goes_on(&mut self) -> bool {
        let rounds = self.examined / self.frames.max(1);
        rounds == 0 || (self.hope && rounds < MAX_ROUNDS)
    }
}
