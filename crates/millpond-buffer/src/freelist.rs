//! Frames that hold no page: stacks, one per processor, each on a cache line of its own.
//!
//! A head is the number of the first frame plus one (0: empty) in its low half and a count of changes in
//! its high half, without which a pop could mistake a stack that was emptied and refilled for the one it
//! looked at. The links are in the descriptors; a link may be read while its frame is being reused, which
//! the count detects.

use crate::frame::Frame;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[derive(Default)]
struct Stack {
    head: AtomicU64,
    len: AtomicUsize,
}

pub(crate) struct Freelists {
    stacks: Box<[CachePadded<Stack>]>,
}

const CHANGE: u64 = 1 << 32;

impl Freelists {
    /// Empty lists.
    pub(crate) fn new(lists: usize) -> Self {
        Self { stacks: (0..lists.max(1)).map(|_| CachePadded::default()).collect() }
    }

    /// Gives up owned frames, all in one step.
    pub(crate) fn push(&self, near: usize, frames: &[Frame], free: &[u32]) {
        let Some(stack) = self.stacks.get(near % self.stacks.len()) else { return };
        let (Some(&first), Some(&last)) = (free.first(), free.last()) else { return };
        for pair in free.windows(2) {
            frames[pair[0] as usize].link().store(u64::from(pair[1] + 1), Ordering::Relaxed);
        }
        let mut head = stack.head.load(Ordering::Relaxed);
        loop {
            frames[last as usize].link().store(head & (CHANGE - 1), Ordering::Relaxed);
            let new = (head & !(CHANGE - 1)).wrapping_add(CHANGE) | u64::from(first + 1);
            let swapped =
                stack.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed);
            match swapped {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        stack.len.fetch_add(free.len(), Ordering::Relaxed);
    }

    /// Takes a free frame: from the list near by, else from any. Looks only at lists that are not empty.
    pub(crate) fn pop(&self, near: usize, frames: &[Frame]) -> Option<u32> {
        let lists = self.stacks.len();
        (0..lists).find_map(|far| Self::pop_from(&self.stacks[(near + far) % lists], frames))
    }

    fn pop_from(stack: &Stack, frames: &[Frame]) -> Option<u32> {
        let mut head = stack.head.load(Ordering::Acquire);
        loop {
            let frame = (head as u32).checked_sub(1)?;
            let next = frames[frame as usize].link().load(Ordering::Relaxed) & (CHANGE - 1);
            let new = (head & !(CHANGE - 1)).wrapping_add(CHANGE) | next;
            let swapped =
                stack.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire);
            match swapped {
                Ok(_) => {
                    stack.len.fetch_sub(1, Ordering::Relaxed);
                    return Some(frame);
                }
                Err(now) => head = now,
            }
        }
    }

    /// Whether no frame is free.
    pub(crate) fn is_empty(&self) -> bool {
        self.stacks.iter().all(|stack| stack.head.load(Ordering::Relaxed) as u32 == 0)
    }

    /// How many frames are free, about.
    pub(crate) fn len(&self) -> usize {
        let sum = self.stacks.iter().map(|stack| stack.len.load(Ordering::Relaxed) as isize).sum();
        isize::max(sum, 0) as usize
    }
}
