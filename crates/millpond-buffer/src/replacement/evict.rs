//! Eviction: finding a frame for a page that is about to be loaded.
//!
//! A frame comes from a freelist. If none is free, it comes from newcomers (recently loaded pages)
//! that were not used ([`crate::policy::judge`]), or from the clock sweep. Both give candidates in
//! batches:
//!
//! 1. **Sweep**: a session examines newcomers and pieces of the circle ([`crate::policy::search`]).
//!    It *claims* the frames that are unpinned, clean and whose usage count is spent, up to
//!    [`MAX_CLAIMS_ON_THE_WAY`]. Once it has one, it goes on until the batch is full, a piece
//!    yields none, or the search becomes long.
//! 2. **Settle**: the session checks the claims of a batch against the pins that sessions have
//!    published, with one barrier for them all ([`VictimBatch::settle`]). It gives claimed frames
//!    that are in use back unchanged. It owns the others: their pages have been unlinked.
//! 3. The session **keeps one** and pushes the others to the freelist near it, in one step.
//!
//! So a session writes what all sessions write (the clock hand, a freelist's head) once per batch,
//! not once per miss. A session writes a dirty page only if a piece has offered nothing else. To
//! write dirty pages in time is the reclaimer's job.
//!
//! **Pages in constant use.** Optimistic readers raise usage counts and pin nothing. In a small
//! pool, a few of them may raise all counts faster than one session lowers them, without limit. So
//! after enough rounds to spend any count, a session takes any unpinned frame, whatever its count.
//!
//! **Waiting.** After several rounds without a frame, or one in which no frame could come free
//! soon, the session finds out what holds the frames. If sessions have all frames pinned, it gives
//! up after some milliseconds: "no unpinned buffers available". If threads that load, write or take
//! pages hold some frames for a moment, it waits until they are done. It sleeps meanwhile, since
//! such a thread may have been descheduled. It waits ten seconds at most, but for reads ahead as
//! long as they take.

use super::{Backoff, Lost, MAX_CLAIMS, Owned, VictimBatch};
use crate::config::Wait;
use crate::core::PoolCore;
use crate::core::frame::{Claimer, DAMAGED, Leaves, NoTake, PINS};
use crate::core::session::{MAX_CLAIMS_ON_THE_WAY, SessionCore};
use crate::error::BufferError;
use crate::policy::{self, SweepFrames, Take};
use crate::stats::{Event, Histogram};
use crate::write_back::{Attempt, write_frame};
use std::cell::RefCell;
use std::collections::HashSet;

/// A session claims at most one frame at a time per this many frames of the pool.
const FRAMES_PER_CLAIM: usize = if cfg!(shuttle) { 2 } else { 64 };

/// Rounds in which a sweep respects usage counts; each lowers every count once. Then it takes any
/// unpinned frame.
pub(crate) const MAX_ROUNDS: usize = policy::MAX_USAGE as usize + 2;

#[cfg(all(test, not(any(loom, shuttle))))]
thread_local! {
    /// Tests set this: whenever this thread's sweep lowers a count, the page is used again at once.
    pub(crate) static USED_BEHIND_THE_HAND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

struct Victims<'a> {
    pool: &'a PoolCore,
    /// Whether to ignore usage counts.
    any: bool,
    claims: RefCell<VictimBatch<'a>>,
    dirty: RefCell<Dirty>,
}

/// Frames that could be claimed if their pages were written: the first ones that a sweep met.
pub(crate) struct Dirty {
    frames: [u32; MAX_CLAIMS],
    len: usize,
}

impl Default for Dirty {
    fn default() -> Self {
        Self { frames: [0; MAX_CLAIMS], len: 0 }
    }
}

impl Dirty {
    fn note(&mut self, frame: u32) {
        if let Some(slot) = self.frames.get_mut(self.len) {
            *slot = frame;
            self.len += 1;
        }
    }

    pub(crate) fn frames(&self) -> &[u32] {
        &self.frames[..self.len]
    }
}

impl SweepFrames for Victims<'_> {
    #[inline]
    fn is_pinned(&self, frame: usize) -> bool {
        self.pool.frames[frame].is_pinned()
    }

    #[inline]
    fn usage(&self, frame: usize) -> u8 {
        if self.any { policy::SPENT } else { self.pool.frames[frame].usage() }
    }

    #[inline]
    fn set_usage(&self, frame: usize, usage: u8) {
        self.pool.frames[frame].set_usage(usage);
        #[cfg(all(test, not(any(loom, shuttle))))]
        if USED_BEHIND_THE_HAND.get() {
            self.pool.frames[frame].used(false);
        }
    }

    fn take(&self, number: usize) -> Take {
        match self.claims.borrow_mut().claim(number as u32) {
            Ok(()) => Take::Taken,
            Err(NoTake::Pinned | NoTake::Damaged) => Take::Pinned,
            Err(NoTake::Busy) => Take::Busy,
            Err(NoTake::Dirty) => {
                self.dirty.borrow_mut().note(number as u32);
                Take::Pinned
            }
        }
    }
}

/// Takes a free frame, or else evicts a page.
pub(crate) fn common_frame(session: &SessionCore, wait: Wait) -> Result<Owned<'_>, BufferError> {
    let wanted = (session.pool.frames() / FRAMES_PER_CLAIM).clamp(1, MAX_CLAIMS_ON_THE_WAY);
    loop {
        if let Some(owned) = free_frame(session) {
            return Ok(owned);
        }
        // `evict` returns no claims if another session has freed a frame meanwhile.
        let (mut claims, examined) = evict(session, wanted, wait)?;
        if let Some(number) = claims.take_out() {
            return Ok(Owned::taken_by(session, number).allocated(session, examined));
        }
    }
}

pub(crate) fn free_frame(session: &SessionCore) -> Option<Owned<'_>> {
    loop {
        let popped = session.pool.free.pop(session.near(), &session.pool.frames);
        session.pool.demand.taken(popped.map_or(0, |popped| popped.left));
        let frame = popped?.frame;
        if (frame as usize) < session.pool.frames() {
            return Some(Owned::taken_by(session, frame).allocated(session, 0));
        }
        // The pool has been made smaller: this retires the frame.
        session.pool.give_back(session.near(), &[frame]);
    }
}

fn count_victims(session: &SessionCore, taken: &[u32]) {
    let now = session.pool.clock.taken();
    session.pool.clock.count_taken(taken.len());
    session.count(Event::Eviction, taken.len() as u64);
    for &number in taken {
        let frame = &session.pool.frames[number as usize];
        session.count_log2(Histogram::VictimAge, now.saturating_sub(frame.loaded_at()));
        session.count_nth(Histogram::VictimUsage, usize::from(frame.usage_at_first_sight()));
    }
}

/// Evicts pages until there is a frame, at most `wanted` of them, and returns how many frames
/// it examined. It returns no claims if another session has freed a frame meanwhile.
pub(crate) fn evict(
    session: &SessionCore,
    wanted: usize,
    wait: Wait,
) -> Result<(VictimBatch<'_>, usize), BufferError> {
    let frames = session.pool.frames();
    let mut patience = Backoff::default();
    // Why the last dirty page could not be written. The sweep goes on to look for a clean page.
    let mut failure = None;
    let mut examined = 0;
    let mut round = 0;
    // In a small pool, newcomers may all be in use, again and again: then the clock hand
    // searches.
    let mut newcomers = policy::MAX_NEWCOMERS;
    loop {
        let (end, mut hope) = (examined + frames, false);
        // During the first rounds, sessions may unpin their pages. After them the sweep ignores
        // usage counts: readers may raise them as fast as it lowers them.
        let grace = round < MAX_ROUNDS;
        if !grace {
            newcomers = 0;
        }
        while examined < end {
            let (claims, swept, lost) =
                sweep(session, wanted, &mut newcomers, wait, grace, &mut failure);
            examined += swept.examined;
            hope |= swept.hope || lost.otherwise > 0 || grace && lost.pinned > 0;
            if !claims.frames().is_empty() {
                return Ok((claims, examined));
            }
        }
        if !session.pool.free.is_empty() {
            return Ok((no_claims(session), examined));
        }
        round += 1;
        if hope && round <= MAX_ROUNDS {
            continue;
        }
        // Waiting does not help a dirty page that can't be written, and this session may itself
        // hold the other frames. It has looked for a clean page often enough.
        if wait == Wait::Never || failure.is_some() || !wait_for_others(session, &mut patience) {
            break;
        }
    }
    match (wait, failure) {
        (Wait::Never, _) => Err(BufferError::WouldBlock),
        (Wait::Allowed, Some(failure)) => Err(failure),
        (Wait::Allowed, None) => Err(BufferError::NoUnpinnedBuffers { frames }),
    }
}

/// Waits a little for threads that hold unpinned frames. They are loading, writing or taking
/// them and will soon be done, even if they have been descheduled. `false`: there is no such
/// thread, or the wait has taken too long.
#[cold]
fn wait_for_others(session: &SessionCore, patience: &mut Backoff) -> bool {
    // Frames that idle jobs keep in reserve.
    let spare = session.pool.reserves.beyond(0);
    if !spare.is_empty() {
        session.pool.give_back(session.near(), &spare);
        return true;
    }
    // A read-ahead unpins its frames when it ends, however long that takes.
    if patience.has_yielded() && session.pool.ahead.wait_for_one(&*session.pool.store) {
        *patience = Backoff::default();
        return true;
    }
    patience.wait(are_all_pinned(session))
}

/// Whether each frame is pinned or latched by a session, or its page is damaged. The frames are
/// read one after the other.
fn are_all_pinned(session: &SessionCore) -> bool {
    let frames = session.pool.frames();
    let is_unavailable = |number: &usize| {
        let frame = &session.pool.frames[*number];
        // A write-back with the latch also has a raw pin, and is soon done.
        let state = frame.state();
        state & DAMAGED != 0 || state & PINS == 0 && frame.latch().is_held()
    };
    let mut unavailable: HashSet<usize> = (0..frames).filter(is_unavailable).collect();
    session.pool.pins.scan(|number| {
        unavailable.insert(number as usize);
    });
    unavailable.iter().filter(|number| **number < frames).count() == frames
}

/// Sweeps one piece, or judges newcomers, for up to `wanted` frames. If there are only dirty
/// pages, it writes one.
fn sweep<'a>(
    session: &'a SessionCore,
    wanted: usize,
    newcomers: &mut usize,
    wait: Wait,
    grace: bool,
    failure: &mut Option<BufferError>,
) -> (VictimBatch<'a>, policy::Swept, Lost) {
    let (mut claims, dirty, mut swept) = sweep_for(session, wanted, newcomers, !grace);
    let mut lost = settle(session, &mut claims, grace);
    // This also holds if all claims were lost to pins.
    let may_write = claims.frames().is_empty() && wait == Wait::Allowed;
    for &number in dirty.frames().iter().filter(|_| may_write) {
        let mut written = no_claims(session);
        match write_frame(session, number, Attempt::IfEasy) {
            Ok(true) if written.claim(number).is_ok() => {
                let pinned = settle(session, &mut written, grace);
                lost.pinned += pinned.pinned;
                lost.otherwise += pinned.otherwise;
                if !written.frames().is_empty() {
                    session.count(Event::DirtyEviction, 1);
                    return (written, swept, lost);
                }
            }
            // Another session has it latched, or has pinned or changed it meanwhile.
            Ok(_) => swept.hope = true,
            Err(error) => *failure = Some(error),
        }
    }
    (claims, swept, lost)
}

/// Settles claims of the sweep's victims, and counts them.
pub(crate) fn settle(session: &SessionCore, claims: &mut VictimBatch<'_>, grace: bool) -> Lost {
    let lost = claims.settle(Leaves::Evicted { now: session.pool.clock.taken() }, grace);
    if !claims.frames().is_empty() {
        count_victims(session, claims.frames());
        if let Some(probation) = &session.pool.probation {
            probation.push(claims.frames(), session.pool.frames());
        }
    }
    lost
}

/// Settles claims of pages whose ring has come round. Neither the reclaimer nor the victim
/// statistics count them: they say nothing about the demand for frames or the sweep's quality.
pub(crate) fn settle_in_ring(session: &SessionCore, claims: &mut VictimBatch<'_>) {
    claims.settle(Leaves::OutOfRing, false);
    session.count(Event::Reuse, claims.frames().len() as u64);
}

/// Settles claims and pushes the owned frames to a freelist. Returns how many.
pub(crate) fn free_into(session: &SessionCore, mut claims: VictimBatch<'_>, list: usize) -> usize {
    settle(session, &mut claims, true);
    claims.give_to(list);
    claims.frames().len()
}

pub(crate) fn no_claims(session: &SessionCore) -> VictimBatch<'_> {
    VictimBatch::none(&session.pool, Claimer::session(session.number), session.near())
}

/// Searches ([`policy::search`]) for up to `wanted` clean frames. It claims them but does not
/// settle them, and also returns the dirty frames that it met. `limit`: how many newcomers it
/// may judge; it is lowered by those judged.
pub(crate) fn sweep_clean<'a>(
    session: &'a SessionCore,
    wanted: usize,
    limit: &mut usize,
) -> (VictimBatch<'a>, Dirty, policy::Swept) {
    sweep_for(session, wanted, limit, false)
}

/// The same; `any`: ignore usage counts.
fn sweep_for<'a>(
    session: &'a SessionCore,
    wanted: usize,
    limit: &mut usize,
    any: bool,
) -> (VictimBatch<'a>, Dirty, policy::Swept) {
    let victims = Victims {
        pool: &session.pool,
        any,
        claims: RefCell::new(no_claims(session)),
        dirty: RefCell::default(),
    };
    let (clock, probation) = (&session.pool.clock, session.pool.probation.as_ref());
    let mut piece = session.piece.get();
    let swept = policy::search(clock, &mut piece, probation, &victims, wanted, limit);
    session.piece.set(piece);
    session.count(Event::Examined, swept.examined as u64);
    (victims.claims.into_inner(), victims.dirty.into_inner(), swept)
}
