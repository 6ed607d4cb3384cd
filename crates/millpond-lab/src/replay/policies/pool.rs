//! The pool's own policies: the pool's code runs over a simulated array of frames.
//!
//! The simulator adds the rest: which page a frame holds, the free frames, and when a page left.

use super::{Access, Policy};
use crate::replay::trace::AccessKind;
use millpond_buffer::policy::{
    self, Clock, Piece, Probation, ReplacementPolicy, SweepFrames, Take,
};
use std::cell::{Cell, RefCell};

/// No frame, or no page.
const NONE: u32 = u32::MAX;
/// The page has not left yet.
const NEVER: u64 = u64::MAX;

/// The most frames that a session takes from the clock at a time: the pool's default.
const BATCH: usize = 32;
/// The pool takes one frame at a time for each this many frames, `BATCH` at most.
const FRAMES_PER_CLAIM: usize = 64;

/// The simulated frames.
#[derive(Debug)]
struct Frames {
    usage: Vec<Cell<u8>>,
    /// The page of each frame.
    page: Vec<Cell<u32>>,
    /// The frames that the sweep has taken.
    taken: RefCell<Vec<u32>>,
}

impl SweepFrames for Frames {
    fn is_pinned(&self, _: usize) -> bool {
        false
    }

    fn usage(&self, frame: usize) -> u8 {
        self.usage[frame].get()
    }

    fn set_usage(&self, frame: usize, usage: u8) {
        self.usage[frame].set(usage);
    }

    fn take(&self, frame: usize) -> Take {
        let mut taken = self.taken.borrow_mut();
        // The probation queue may return a frame twice.
        if self.page[frame].get() == NONE || taken.contains(&(frame as u32)) {
            return Take::Busy;
        }
        taken.push(frame as u32);
        Take::Taken
    }
}

/// A simulated pool.
#[derive(Debug)]
pub struct Pool {
    policy: ReplacementPolicy,
    clock: Clock,
    piece: Piece,
    probation: Option<Probation>,
    frames: Frames,
    /// The frame of each page.
    frame_of: Vec<u32>,
    /// When each page left, as a count of taken frames.
    left_at: Vec<u64>,
    free: Vec<u32>,
}

impl Pool {
    /// A cache of `capacity` pages, for a trace of `distinct` pages.
    #[must_use]
    pub fn new(policy: ReplacementPolicy, capacity: usize, distinct: usize) -> Self {
        Self {
            policy,
            clock: Clock::new(capacity, BATCH),
            piece: Piece::default(),
            probation: policy.probation(),
            frames: Frames {
                usage: vec![Cell::new(0); capacity],
                page: vec![Cell::new(NONE); capacity],
                taken: RefCell::default(),
            },
            frame_of: vec![NONE; distinct],
            left_at: vec![NEVER; distinct],
            free: (0..capacity as u32).rev().collect(),
        }
    }

    /// A free frame. Evicts pages if there is none.
    fn frame(&mut self) -> u32 {
        let mut newcomers = policy::MAX_NEWCOMERS;
        loop {
            if let Some(frame) = self.free.pop() {
                return frame;
            }
            self.sweep(&mut newcomers);
        }
    }

    /// Evicts pages, as the pool's `replacement` does.
    fn sweep(&mut self, limit: &mut usize) {
        let capacity = self.frames.page.len();
        let wanted = (capacity / FRAMES_PER_CLAIM).clamp(1, BATCH);
        let (clock, probation) = (&self.clock, self.probation.as_ref());
        policy::search(clock, &mut self.piece, probation, &self.frames, wanted, limit);
        let mut taken = self.frames.taken.borrow_mut();
        let now = self.clock.taken();
        for &frame in taken.iter() {
            let page = self.frames.page[frame as usize].replace(NONE);
            self.frame_of[page as usize] = NONE;
            self.left_at[page as usize] = now;
        }
        self.clock.count_taken(taken.len());
        if let Some(probation) = &self.probation {
            probation.push(&taken, capacity);
        }
        // The pool keeps the last frame for itself and pushes the others to a freelist, a stack.
        self.free.append(&mut taken);
    }

    fn load(&mut self, page: u32) {
        let frame = self.frame();
        let left_at = self.left_at[page as usize];
        let away = (left_at != NEVER).then(|| self.clock.taken().saturating_sub(left_at));
        if let (Some(probation), Some(away)) = (&self.probation, away) {
            probation.note_return(away, self.frames.page.len());
        }
        let usage = self.policy.first_usage(away, self.frames.page.len());
        self.frames.usage[frame as usize].set(usage);
        self.frames.page[frame as usize].set(page);
        self.frame_of[page as usize] = frame;
    }
}

impl Policy for Pool {
    fn access(&mut self, access: Access) -> bool {
        let frame = self.frame_of[access.page as usize];
        if frame == NONE {
            self.load(access.page);
            return false;
        }
        let usage = &self.frames.usage[frame as usize];
        // An access by bulk work, which uses a ring of buffers, does not raise the usage count.
        if access.kind == AccessKind::Normal
            && let Some(raised) = policy::raised(usage.get())
        {
            usage.set(raised);
        }
        true
    }
}
