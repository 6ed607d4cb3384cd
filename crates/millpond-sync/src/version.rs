//! A sequence lock's version word: a reader that writes nothing learns whether its read was whole.
//!
//! The word is even while the data is at rest, odd during a change. A change raises it by two.
//!
//! **Memory ordering** (rule 5). The data are relaxed atomics. So a reader that races with a writer
//! may read torn values, but never undefined ones.
//!
//! | writer (alone, under an exclusive latch) | reader |
//! |---|---|
//! | version := odd, relaxed | v := version, *acquire*; give up if odd |
//! | fence, *release* | |
//! | data, relaxed | data, relaxed |
//! | version := even, *release* | fence, *acquire* |
//! | | again := version, relaxed; good if equal to v |
//!
//! If the reader saw any datum of a later change, the two fences order the writer's "odd" before
//! the reader's second load. That load then differs from v. The acquire of the first load pairs
//! with the release of the change that wrote v, so nothing older is seen. `models.rs` checks both.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::{mutant, ordering};

/// A sequence lock's word.
#[derive(Debug)]
pub struct Version(AtomicU64);

impl Version {
    /// A version at rest.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A version at rest.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A version with a change going on: reads fail until the first [`Version::write_end`].
    #[must_use]
    pub fn new_locked() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Begins a read. Returns the version to validate afterwards, or `None` during a change.
    #[inline]
    #[must_use]
    pub fn read_begin(&self) -> Option<u64> {
        let version = self.0.load(ordering!("version-read-begin-relaxed", Acquire));
        (version & 1 == 0).then_some(version)
    }

    /// Ends a read. Returns whether everything read since [`Version::read_begin`] was whole.
    #[inline]
    #[must_use]
    pub fn validate(&self, begun: u64) -> bool {
        if !mutant!("version-validate-without-fence") {
            fence(Ordering::Acquire);
        }
        self.0.load(Ordering::Relaxed) == begun
    }

    /// Begins a change. The caller is the only writer and is not changing the data already.
    #[inline]
    pub fn write_begin(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 0, "a change within a change");
        self.0.store(version.wrapping_add(1), Ordering::Relaxed);
        if !mutant!("version-write-begin-without-fence") {
            fence(Ordering::Release);
        }
    }

    /// Ends a change.
    #[inline]
    pub fn write_end(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 1, "the end of no change");
        self.0.store(version.wrapping_add(1), ordering!("version-write-end-relaxed", Release));
    }

    /// Whether a change is going on.
    #[inline]
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.0.load(Ordering::Relaxed) & 1 == 1
    }
}

impl Default for Version {
    fn default() -> Self {
        Self::new()
    }
}
