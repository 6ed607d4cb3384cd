//! Making room: a frame for the page that arrives.
//!
//! A frame comes from a freelist, else from newcomers that were not used ([`crate::policy::judge`]) or the clock
//! sweep, which takes candidates in batches:
//!
//! 1. **Sweep**: a session examines newcomers and pieces of the circle ([`crate::policy::search`]) and *claims* the frames
//!    that are unpinned, clean and whose usage count is spent, up to [`MAX_CLAIMS_ON_THE_WAY`]. Once there is one, it goes on until
//!    the batch is full, a piece brings none, or the search becomes long.
//! 2. **Settle**: the claims of a batch are held against the pins that sessions have published, with one
//!    barrier for them all ([`Claims::settle`]). A claim that turns out to be in use after all is given back
//!    unchanged. The others are owned: their pages have been unlinked.
//! 3. The session **keeps one** and pushes the others to the freelist near it, in one step.
//!
//! So the writes that all sessions share (the hand, a freelist's head) come once per batch, not once per
//! miss. A dirty page is written only if a piece has offered nothing else: it is the reclaimer's to write
//! them before anybody needs the frame.
//!
//! **Pages in constant use.** Optimistic readers raise usage counts and pin nothing. A few of them, in a small pool, may raise
//! all counts more quickly than one session lowers them, and for as long as they like. So who has gone round often
//! enough to have spent any count takes what nobody has pinned, whatever its count.
//!
//! **Patience.** When rounds with hope have brought nothing, a session looks why. If sessions have all frames pinned it
//! gives up after some milliseconds: "no unpinned buffers available". If some are only held for a moment, by who loads,
//! writes or takes them, it waits until they are done, asleep, since that may be a thread that has lost the processor: ten seconds at
//! most, but for reads ahead as long as they take.
//!
//! **Failure.** [`Claims`] and [`Owned`] give back what they hold when dropped, on errors and panics alike
//! (rule 6): a frame whose page has been unlinked goes to a freelist.

mod owned;
mod patience;

pub(crate) use owned::Owned;
use patience::Patience;

use crate::claims::{Claims, Lost, MAX_CLAIMS, MAX_CLAIMS_ON_THE_WAY};
use crate::config::Wait;
use crate::error::BufferError;
use crate::frame::{Claimer, DAMAGED, Leaves, NoTake, PINS};
use crate::policy::{self, SweepFrames, Take};
use crate::pool::BufferPool;
use crate::ring::Ring;
use crate::session::BufferSession;
use crate::stats::{Event, Histogram};
use crate::write::Attempt;
use std::cell::RefCell;
use std::collections::HashSet;

/// Of so many frames, one is claimed at a time: a small pool is not emptied by one miss.
const FRAMES_PER_CLAIM: usize = if cfg!(shuttle) { 2 } else { 64 };

/// Rounds of a sweep with hope before it gives up, or takes what is in use and not pinned: each round lowers every count once.
pub(crate) const MAX_ROUNDS: usize = policy::MAX_USAGE as usize + 2;

#[cfg(all(test, not(any(loom, shuttle))))]
thread_local! {
    /// Whether, where this thread's sweep lowers a count, somebody uses the page at once.
    pub(crate) static USED_BEHIND_THE_HAND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The pool's frames as one session's sweep sees them.
struct Victims<'a> {
    pool: &'a BufferPool,
    /// Whether a frame is taken whatever its usage.
    any: bool,
    claims: RefCell<Claims<'a>>,
    dirty: RefCell<Dirty>,
}

/// Frames that could be claimed if their pages were written: the first ones that a sweep has met.
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

impl BufferSession {
    /// The freelist that this session uses first: its processor's.
    pub(crate) fn near(&self) -> usize {
        if cfg!(all(target_os = "linux", not(any(miri, loom, shuttle)))) {
            crate::processors::place()
        } else {
            self.number
        }
    }

    /// A frame of this session's own: for a job with a ring as that says, else as for everybody.
    pub(crate) fn take_frame<'a>(
        &'a self,
        wait: Wait,
        ring: Option<&'a Ring>,
    ) -> Result<Owned<'a>, BufferError> {
        match ring {
            Some(ring) => ring.frame(self, wait),
            None => self.common_frame(wait),
        }
    }

    /// A free frame, else one that a page is made to leave.
    pub(crate) fn common_frame(&self, wait: Wait) -> Result<Owned<'_>, BufferError> {
        let wanted = (self.pool.frames() / FRAMES_PER_CLAIM).clamp(1, MAX_CLAIMS_ON_THE_WAY);
        loop {
            if let Some(owned) = self.free_frame() {
                return Ok(owned);
            }
            // One may have been freed meanwhile: then none is claimed.
            let (mut claims, examined) = self.evict(wanted, wait)?;
            if let Some(number) = claims.take_out() {
                return Ok(self.owned(number).allocated(self, examined));
            }
        }
    }

    /// A free frame.
    pub(crate) fn free_frame(&self) -> Option<Owned<'_>> {
        loop {
            let popped = self.pool.free.pop(self.near(), &self.pool.frames);
            self.pool.demand.taken(popped.map_or(0, |popped| popped.left));
            let frame = popped?.frame;
            if (frame as usize) < self.pool.frames() {
                return Some(self.owned(frame).allocated(self, 0));
            }
            // The pool has become smaller.
            self.pool.give_back(self.near(), &[frame]);
        }
    }

    /// An owned frame, which is now this session's, to be filled on this thread or given back.
    pub(crate) fn owned(&self, number: u32) -> Owned<'_> {
        Owned::resume(&self.pool, self.near(), number)
    }

    /// Counts frames that have just been taken from their pages.
    fn count_victims(&self, taken: &[u32]) {
        let now = self.pool.clock.taken();
        self.pool.clock.count_taken(taken.len());
        self.count(Event::Eviction, taken.len() as u64);
        for &number in taken {
            let frame = &self.pool.frames[number as usize];
            self.count_log2(Histogram::VictimAge, now.saturating_sub(frame.loaded_at()));
            self.count_nth(Histogram::VictimUsage, usize::from(frame.usage_at_first_sight()));
        }
    }

    /// Makes pages leave until there is a frame, at most `wanted` at a time, and says how many it has examined. It may come back
    /// with none if somebody else has freed one.
    pub(crate) fn evict(
        &self,
        wanted: usize,
        wait: Wait,
    ) -> Result<(Claims<'_>, usize), BufferError> {
        let frames = self.pool.frames();
        let mut patience = Patience::default();
        // Why the last dirty page could not be written. The sweep goes on: a clean page may be found.
        let mut failure = None;
        let mut examined = 0;
        let mut round = 0;
        // Newcomers of a small pool may all be in use, again and again: then it is the hand's turn.
        let mut newcomers = policy::MAX_NEWCOMERS;
        loop {
            let (end, mut hope) = (examined + frames, false);
            // Whoever has a page pinned may let go of it during the first rounds. After them counts are no longer asked:
            // readers may raise them as quickly as they are lowered here.
            let grace = round < MAX_ROUNDS;
            if !grace {
                newcomers = 0;
            }
            while examined < end {
                let (claims, swept, lost) =
                    self.sweep(wanted, &mut newcomers, wait, grace, &mut failure);
                examined += swept.examined;
                hope |= swept.hope || lost.otherwise > 0 || grace && lost.pinned > 0;
                if !claims.frames().is_empty() {
                    return Ok((claims, examined));
                }
            }
            if !self.pool.free.is_empty() {
                return Ok((self.no_claims(), examined));
            }
            round += 1;
            if hope && round <= MAX_ROUNDS {
                continue;
            }
            // A dirty page that can't be written does not get better by waiting, and whoever holds the other frames
            // may be this session: it has looked often enough for a clean one.
            if wait == Wait::Never || failure.is_some() || !self.wait_for_others(&mut patience) {
                break;
            }
        }
        match (wait, failure) {
            (Wait::Never, _) => Err(BufferError::WouldBlock),
            (Wait::Allowed, Some(failure)) => Err(failure),
            (Wait::Allowed, None) => Err(BufferError::NoUnpinnedBuffers { frames }),
        }
    }

    /// Waits a little for those who hold frames that nobody has pinned: they are loading, writing or taking them, and will soon
    /// be done, even if they have lost the processor. `false`: there is nobody to wait for, or it has taken too long.
    #[cold]
    fn wait_for_others(&self, patience: &mut Patience) -> bool {
        // What idle jobs have in reserve.
        let spare = self.pool.spares.beyond(0);
        if !spare.is_empty() {
            self.pool.give_back(self.near(), &spare);
            return true;
        }
        // What is being read ahead will be unpinned when it has come, however long that takes.
        if patience.has_yielded() && self.pool.ahead.wait_for_one(&*self.pool.store) {
            *patience = Patience::default();
            return true;
        }
        patience.wait(self.are_all_pinned())
    }

    /// Whether sessions have every frame pinned or latched, as far as can be seen in passing, or its page is damaged.
    fn are_all_pinned(&self) -> bool {
        let frames = self.pool.frames();
        let is_unavailable = |number: &usize| {
            let frame = &self.pool.frames[*number];
            // Who writes a page pins it in the frame besides, and is soon done.
            let state = frame.state();
            state & DAMAGED != 0 || state & PINS == 0 && frame.latch().is_held()
        };
        let mut unavailable: HashSet<usize> = (0..frames).filter(is_unavailable).collect();
        self.pool.pins.scan(|number| {
            unavailable.insert(number as usize);
        });
        unavailable.iter().filter(|number| **number < frames).count() == frames
    }

    /// Sweeps one piece, or judges newcomers, for up to `wanted` frames. If it offers only dirty pages, one is
    /// written.
    fn sweep(
        &self,
        wanted: usize,
        newcomers: &mut usize,
        wait: Wait,
        grace: bool,
        failure: &mut Option<BufferError>,
    ) -> (Claims<'_>, policy::Swept, Lost) {
        let (mut claims, dirty, mut swept) = self.sweep_for(wanted, newcomers, !grace);
        let mut lost = self.settle(&mut claims, grace);
        // Also when what was claimed has been lost to pins.
        let may_write = claims.frames().is_empty() && wait == Wait::Allowed;
        for &number in dirty.frames().iter().filter(|_| may_write) {
            let mut written = self.no_claims();
            match self.write_frame(number, Attempt::IfEasy) {
                Ok(true) if written.claim(number).is_ok() => {
                    let pinned = self.settle(&mut written, grace);
                    lost.pinned += pinned.pinned;
                    lost.otherwise += pinned.otherwise;
                    if !written.frames().is_empty() {
                        self.count(Event::DirtyEviction, 1);
                        return (written, swept, lost);
                    }
                }
                // Somebody has it latched, or has pinned or changed it meanwhile.
                Ok(_) => swept.hope = true,
                Err(error) => *failure = Some(error),
            }
        }
        (claims, swept, lost)
    }

    /// Settles claims of the sweep's victims, and counts these.
    pub(crate) fn settle(&self, claims: &mut Claims<'_>, grace: bool) -> Lost {
        let lost = claims.settle(Leaves::Evicted { now: self.pool.clock.taken() }, grace);
        if !claims.frames().is_empty() {
            self.count_victims(claims.frames());
            if let Some(probation) = &self.pool.probation {
                probation.push(claims.frames(), self.pool.frames());
            }
        }
        lost
    }

    /// Settles claims of pages whose ring has come round. That says nothing about how many frames are
    /// wanted, or how good the sweep is: neither the reclaimer nor the statistics of victims hear of it.
    pub(crate) fn settle_in_ring(&self, claims: &mut Claims<'_>) {
        claims.settle(Leaves::OutOfRing, false);
        self.count(Event::Reuse, claims.frames().len() as u64);
    }

    /// Settles claims, and puts what is owned then onto a freelist. Returns how many.
    pub(crate) fn free_into(&self, mut claims: Claims<'_>, list: usize) -> usize {
        self.settle(&mut claims, true);
        claims.give_to(list);
        claims.frames().len()
    }

    /// An empty batch of this session's.
    pub(crate) fn no_claims(&self) -> Claims<'_> {
        Claims::none(&self.pool, Claimer::session(self.number), self.near())
    }

    /// Searches ([`policy::search`]) for up to `wanted` clean frames, which are claimed but not settled, and says which
    /// dirty ones it has met. `limit`: how many newcomers the caller would have judged.
    pub(crate) fn sweep_clean(
        &self,
        wanted: usize,
        limit: &mut usize,
    ) -> (Claims<'_>, Dirty, policy::Swept) {
        self.sweep_for(wanted, limit, false)
    }

    /// The same; `any`: whatever the usage of what is not pinned.
    fn sweep_for(
        &self,
        wanted: usize,
        limit: &mut usize,
        any: bool,
    ) -> (Claims<'_>, Dirty, policy::Swept) {
        let victims = Victims {
            pool: &self.pool,
            any,
            claims: RefCell::new(self.no_claims()),
            dirty: RefCell::default(),
        };
        let (clock, probation) = (&self.pool.clock, self.pool.probation.as_ref());
        let mut piece = self.piece.get();
        let swept = policy::search(clock, &mut piece, probation, &victims, wanted, limit);
        self.piece.set(piece);
        self.count(Event::Examined, swept.examined as u64);
        (victims.claims.into_inner(), victims.dirty.into_inner(), swept)
    }
}
