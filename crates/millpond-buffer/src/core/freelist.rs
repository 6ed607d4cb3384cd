//! Freelists: frames that hold no page, in one stack per processor, each on a cache line of its
//! own. Also [`Reserves`]: free frames that rings keep for themselves.
//!
//! The low half of a head is the number of the first frame plus one (0: empty); the high half
//! counts changes. Without that count, a pop could mistake a stack that was emptied and refilled
//! for the one it looked at (the ABA problem). A free frame's link, in its descriptor, has the next
//! frame in its low half. Its high half says how many frames the stack has from this one on. So the
//! length of a stack is known without a counter that all threads would write. A thread may read a
//! link while its frame is being reused; the count of changes detects that.
//!
//! **Memory ordering.** A push releases the frames; loading the head acquires them. A pop takes
//! only frames that its load of the head has acquired, and it continues the release sequences of
//! the pushes before it. So its swap needs no ordering of its own.

use crate::core::frame::Frame;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, Ordering, fence};
use millpond_sync::sync::Mutex;
use millpond_sync::{mutant, ordering};
use std::sync::{Arc, Weak};

pub(crate) struct Freelists {
    stacks: Box<[CachePadded<AtomicU64>]>,
}

/// A frame that a pop has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Popped {
    pub(crate) frame: u32,
    /// How many frames its stack has left.
    pub(crate) left: usize,
}

const CHANGE: u64 = 1 << 32;
const LOW: u64 = CHANGE - 1;

/// The frame that a head or a link names.
fn frame_at(word: u64) -> Option<u32> {
    (word as u32).checked_sub(1)
}

fn link(depth: u64, next: u64) -> u64 {
    depth << 32 | next & LOW
}

fn depth_of(link: u64) -> u64 {
    link >> 32
}

impl Freelists {
    pub(crate) fn new(lists: usize) -> Self {
        Self { stacks: (0..lists.max(1)).map(|_| CachePadded::default()).collect() }
    }

    pub(crate) fn lists(&self) -> usize {
        self.stacks.len()
    }

    /// Pushes owned frames to the list `near`, all in one step.
    pub(crate) fn push(&self, near: usize, frames: &[Frame], free: &[u32]) {
        let Some(stack) = self.stacks.get(near % self.stacks.len()) else { return };
        let Some(&first) = free.first() else { return };
        let mut head = stack.load(Ordering::Acquire);
        let change = if mutant!("pool-freelist-without-count") { 0 } else { CHANGE };
        let (pushed, raced) = (ordering!("pool-push-relaxed", Release), Ordering::Acquire);
        loop {
            let below = Self::depth_at(head, frames);
            for (at, &frame) in free.iter().enumerate() {
                let next = free.get(at + 1).map_or(head, |&next| u64::from(next + 1));
                let depth = below + (free.len() - at) as u64;
                frames[frame as usize].link().store(link(depth, next), Ordering::Relaxed);
            }
            let new = (head & !LOW).wrapping_add(change) | u64::from(first + 1);
            match stack.compare_exchange_weak(head, new, pushed, raced) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes a free frame from the list `near`, else from another one. It writes to no empty list.
    pub(crate) fn pop(&self, near: usize, frames: &[Frame]) -> Option<Popped> {
        let lists = self.stacks.len();
        (0..lists).find_map(|far| Self::pop_from(&self.stacks[(near + far) % lists], frames))
    }

    fn pop_from(stack: &AtomicU64, frames: &[Frame]) -> Option<Popped> {
        let mut head = stack.load(ordering!("pool-pop-relaxed", Acquire));
        // The load of the head has acquired what the swap takes.
        let (popped, raced) = (Ordering::Relaxed, ordering!("pool-pop-relaxed", Acquire));
        let change = if mutant!("pool-freelist-without-count") { 0 } else { CHANGE };
        loop {
            let frame = frame_at(head)?;
            let link = frames[frame as usize].link().load(Ordering::Relaxed);
            let new = (head & !LOW).wrapping_add(change) | link & LOW;
            match stack.compare_exchange_weak(head, new, popped, raced) {
                Ok(_) => {
                    return Some(Popped { frame, left: depth_of(link).saturating_sub(1) as usize });
                }
                Err(now) => head = now,
            }
        }
    }

    /// The length of a stack with that head. If the head is out of date, the result is arbitrary.
    fn depth_at(head: u64, frames: &[Frame]) -> u64 {
        frame_at(head)
            .map_or(0, |frame| depth_of(frames[frame as usize].link().load(Ordering::Relaxed)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stacks.iter().all(|stack| frame_at(stack.load(Ordering::Relaxed)).is_none())
    }

    /// Whether a list's head is at that address.
    #[cfg(all(test, feature = "audit", not(miri)))]
    pub(crate) fn is_at(&self, address: usize) -> bool {
        let at = |stack: &CachePadded<AtomicU64>| std::ptr::from_ref(stack) as usize;
        self.stacks.iter().any(|stack| at(stack) / 64 == address / 64)
    }

    /// How many frames a list has at a moment.
    pub(crate) fn len_of(&self, list: usize, frames: &[Frame]) -> usize {
        let Some(stack) = self.stacks.get(list) else { return 0 };
        let mut head = stack.load(Ordering::Acquire);
        loop {
            let depth = Self::depth_at(head, frames);
            // The second load of the head must not move before the load of the link.
            fence(Ordering::Acquire);
            let again = stack.load(Ordering::Acquire);
            if head == again {
                return depth as usize;
            }
            head = again;
        }
    }

    pub(crate) fn len(&self, frames: &[Frame]) -> usize {
        (0..self.stacks.len()).map(|list| self.len_of(list, frames)).sum()
    }
}

/// Frames that a ring owns: taken together with one that was needed. A shrinking pool takes them
/// back, so that it need not wait for an idle job. So does a session that finds no other frame. No
/// other thread takes the lock.
pub(crate) type Reserve = Mutex<Vec<u32>>;

/// The reserves of all rings of a pool.
#[derive(Default)]
pub(crate) struct Reserves(Mutex<Vec<Weak<Reserve>>>);

impl Reserves {
    pub(crate) fn add(&self, reserve: &Arc<Reserve>) {
        let mut all = self.0.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(reserve));
    }

    /// Takes away the frames beyond `size`.
    pub(crate) fn beyond(&self, size: usize) -> Vec<u32> {
        let rings: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let mut taken = Vec::new();
        for reserve in rings {
            taken.extend(reserve.lock().extract_if(.., |number| *number as usize >= size));
        }
        taken
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn stacks_know_their_length() {
        let frames: Vec<Frame> = (0..10).map(|_| Frame::new()).collect();
        let lists = Freelists::new(2);
        assert!(lists.is_empty() && lists.pop(0, &frames).is_none());
        lists.push(0, &frames, &[3, 4, 5]);
        lists.push(0, &frames, &[9]);
        lists.push(1, &frames, &[1, 2]);
        assert_eq!((lists.len_of(0, &frames), lists.len(&frames)), (4, 6));
        let order: Vec<_> = std::iter::from_fn(|| lists.pop(0, &frames)).collect();
        let expected = [(9, 3), (3, 2), (4, 1), (5, 0), (1, 1), (2, 0)];
        assert_eq!(order, expected.map(|(frame, left)| Popped { frame, left }));
        assert!(lists.is_empty());
    }
}
