//! The pool's own policy, run by the pool's own code over a simulated array of frames.
//!
//! What the simulator adds is what is not policy: which page is in which frame, and frames that hold none.

use super::{Access, Policy};
use millpond_buffer::policy::{self, Clock, Piece, SweepFrames, Take};
use std::cell::{Cell, RefCell};

/// No frame, or no page.
const NONE: u32 = u32::MAX;

/// Frames that the hand takes from the clock at a time: the pool's default.
const BATCH: usize = 32;

/// Usage of a page that has just been loaded, as in the pool.
const FIRST_USAGE: u8 = 1;

/// The frames.
#[derive(Debug)]
struct Frames {
    usage: Vec<Cell<u8>>,
    /// Taken by the sweep.
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
        self.taken.borrow_mut().push(frame as u32);
        Take::Taken
    }
}

/// A pool.
#[derive(Debug)]
pub struct Pool {
    clock: Clock,
    piece: Piece,
    /// How many frames a sweep takes at most.
    wanted: usize,
    frames: Frames,
    /// The page in each frame.
    page_in: Vec<u32>,
    /// The frame of each page.
    frame_of: Vec<u32>,
    free: Vec<u32>,
}

impl Pool {
    /// For `capacity` pages out of `distinct`.
    #[must_use]
    pub fn new(capacity: usize, distinct: usize) -> Self {
        Self {
            clock: Clock::new(capacity, BATCH),
            piece: Piece::default(),
            wanted: (capacity / 64).clamp(1, 32),
            frames: Frames { usage: vec![Cell::new(0); capacity], taken: RefCell::default() },
            page_in: vec![NONE; capacity],
            frame_of: vec![NONE; distinct],
            free: (0..capacity as u32).rev().collect(),
        }
    }

    /// A frame without a page.
    fn frame(&mut self) -> u32 {
        loop {
            if let Some(frame) = self.free.pop() {
                return frame;
            }
            policy::sweep(&self.clock, &mut self.piece, &self.frames, self.wanted);
            // The pool keeps the last one and pushes the others to a freelist, a stack.
            let mut taken = self.frames.taken.borrow_mut();
            for &frame in taken.iter() {
                let page = std::mem::replace(&mut self.page_in[frame as usize], NONE);
                self.frame_of[page as usize] = NONE;
            }
            self.free.append(&mut taken);
        }
    }
}

impl Policy for Pool {
    fn access(&mut self, access: Access) -> bool {
        let frame = self.frame_of[access.page as usize];
        if frame != NONE {
            let usage = &self.frames.usage[frame as usize];
            if let Some(raised) = policy::raised(usage.get()) {
                usage.set(raised);
            }
            return true;
        }
        let frame = self.frame();
        self.frames.usage[frame as usize].set(FIRST_USAGE);
        self.page_in[frame as usize] = access.page;
        self.frame_of[access.page as usize] = frame;
        false
    }
}
