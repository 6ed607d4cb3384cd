//! The demand for free frames: how sessions wake the reclaimer.
//!
//! A session that takes a frame and leaves fewer than the low-water mark on its list wakes the
//! reclaimer. No thread polls: the reclaimer sleeps while no session needs frames. To know whether
//! to wake it, sessions read one cache line. That line is written only when the reclaimer falls
//! asleep, wakes or changes its target.
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

use millpond_sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use millpond_sync::{mutant, parking};

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
