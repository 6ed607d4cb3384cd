//! Looking at the frames as they are: what monitoring shows.

use crate::frame::{DIRTY, OWNED};
use crate::ids::PageId;
use crate::policy;
use crate::pool::BufferPool;

/// What a frame seems to hold. It was looked at in passing, so each field was true at a moment of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameInfo {
    /// The page, if it holds one.
    pub page: Option<PageId>,
    /// Whether the page differs from the store's.
    pub dirty: bool,
    /// Its usage count.
    pub usage: u8,
    /// How many sessions have it pinned.
    pub pins: u32,
}

impl BufferPool {
    /// What every frame seems to hold, in the order of their numbers. Nothing is taken, pinned or waited for.
    pub fn frame_infos(&self) -> impl Iterator<Item = FrameInfo> + '_ {
        let pins = self.pin_counts();
        self.frames.iter().take(self.size.occupied()).enumerate().map(move |(number, frame)| {
            let state = frame.state();
            FrameInfo {
                // Of a free frame the tag is that of the page that has left.
                page: frame.page().filter(|_| state & OWNED == 0),
                dirty: state & DIRTY != 0,
                usage: policy::usage_count(frame.usage()),
                pins: pins.get(&number).copied().unwrap_or(0),
            }
        })
    }
}
