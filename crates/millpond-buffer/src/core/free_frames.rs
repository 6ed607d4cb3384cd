//! Free frames: their lists, the size of the pool that bounds them, and the demand for them.
//!
//! **Freelists** hold frames without a page, in one stack per processor, each on a cache line of
//! its own. Also [`Reserves`]: free frames that rings keep for themselves.
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
//!
//! **Size.** The size of the pool may change while it is in use. A frame beyond the pool's size is
//! *retired*: it is OWNED and RETIRED, on no freelist, and its version is odd. So no session pins,
//! takes or finds it. Its memory goes back to the system but stays mapped, for optimistic readers
//! that come too late (rule 2).
//!
//! **Retiring against growing again.** A session reads the size, and may retire a frame by it much
//! later. So after retiring a frame, a session looks at the size again. A session that raises the
//! size looks for retired frames afterwards. Both have a sequentially consistent fence between
//! their two steps. So at least one of them sees what the other has done. Both bring such a frame
//! back by a compare-and-swap, so only one of them does.
//!
//! **Demand.** Sessions wake the reclaimer. A session that takes a frame and leaves fewer than the
//! low-water mark on its list wakes the reclaimer. No thread polls: the reclaimer sleeps while no
//! session needs frames. To know whether to wake it, sessions read one cache line. That line is
//! written only when the reclaimer falls asleep, wakes or changes its target.
//!
//! ```text
//! session                               reclaimer
//! pop a frame: few are left             state := ASLEEP
//! fence                                 fence
//! state is ASLEEP? := AWAKE, unpark     few are left somewhere? go on : park while ASLEEP
//! ```
//!
//! Both fences are sequentially consistent. So either the session sees ASLEEP, or the reclaimer
//! sees how few frames are left.

use crate::core::frame::Frame;
use millpond_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use millpond_sync::sync::Mutex;
use millpond_sync::{CachePadded, mutant, ordering, parking};
use std::ops::Range;
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

/// The size of the pool.
pub(crate) struct Size {
    /// Frames below this one are in use.
    frames: AtomicUsize,
    /// Frames below this one may hold pages.
    pub(crate) occupied: AtomicUsize,
    /// Held while the size changes: the number of frames that were ever in use.
    pub(crate) alive: Mutex<usize>,
}

impl Size {
    pub(crate) fn new() -> Self {
        Self { frames: AtomicUsize::new(0), occupied: AtomicUsize::new(0), alive: Mutex::new(0) }
    }

    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    pub(crate) fn occupied(&self) -> usize {
        self.occupied.load(Ordering::Acquire)
    }

    /// Sets the size. What the caller then sees of frames is no older.
    pub(crate) fn set(&self, frames: usize) {
        self.frames.store(frames, Ordering::Relaxed);
        if !mutant!("pool-resize-without-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Frees owned frames; those beyond the size retire.
    pub(crate) fn give_back(&self, lists: &Freelists, near: usize, frames: &[Frame], free: &[u32]) {
        let size = self.frames();
        if free.iter().all(|&number| (number as usize) < size) {
            lists.push(near, frames, free);
            return;
        }
        for &number in free {
            let frame = &frames[number as usize];
            frame.retire();
            if !mutant!("pool-retire-without-fence") {
                fence(Ordering::SeqCst);
            }
            let is_wanted = (number as usize) < self.frames();
            if !mutant!("pool-retire-without-second-look") && is_wanted && frame.come_back() {
                lists.push(near, frames, &[number]);
            }
        }
    }

    /// Frees those frames that are retired or new (`are_new`). The size includes them by now.
    pub(crate) fn bring_back(
        lists: &Freelists,
        list: usize,
        frames: &[Frame],
        some: Range<usize>,
        are_new: impl Fn(usize) -> bool,
    ) {
        let back = some.filter(|&number| are_new(number) || frames[number].come_back());
        let back: Vec<u32> = back.map(|number| number as u32).collect();
        lists.push(list, frames, &back);
    }
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// What sessions need to know of the reclaimer. Read at each miss, seldom written.
#[derive(Default)]
pub(crate) struct Demand {
    state: AtomicU32,
    /// A list with fewer frames than this needs the reclaimer.
    low_water: AtomicUsize,
}

impl Demand {
    #[cfg(all(test, loom))]
    pub(crate) fn with_low_water(low_water: usize) -> Self {
        Self { low_water: AtomicUsize::new(low_water), ..Self::default() }
    }

    /// The length below which a list needs the reclaimer.
    pub(crate) fn low_water(&self) -> usize {
        self.low_water.load(Ordering::Relaxed)
    }

    /// Sets that length. With 0, sessions never wake the reclaimer.
    pub(crate) fn set_low_water(&self, frames: usize) {
        self.low_water.store(frames, Ordering::Relaxed);
    }

    /// A frame was taken from a list that has `left` frames left, or the list had none.
    #[inline]
    pub(crate) fn taken(&self, left: usize) {
        if left < self.low_water.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    pub(crate) fn wake(&self) {
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

    /// Sleeps until woken. `stay_awake` is called once sessions can see that the reclaimer sleeps.
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
