//! The budget of files that the stores of a process may have open.
//!
//! The system limits the descriptors of a process (`RLIMIT_NOFILE`). Some of them are reserved for
//! the rest of the process: sockets, the log, temporary files. The stores together may have the
//! others, but at least a quarter of the limit.
//!
//! The count covers the process, but a store closes only its own files. So the budget is a bound in
//! the long run: a store that opens a file beyond it closes what it can. If the system refuses a
//! descriptor earlier, the store does the same and asks once more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of files that stores have open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// One open file, for as long as this lives.
#[derive(Debug)]
pub(super) struct Counted(());

impl Counted {
    pub(super) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bound, as one store sees it.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    /// A file was opened beyond the bound.
    exceeded: AtomicBool,
}

impl Budget {
    /// What the process's limit leaves after `reserved`. Raises the limit first as far as the
    /// system allows.
    pub(super) fn new(reserved: usize) -> Self {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum {
            let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
            // If this fails, everything works, with more opening and closing.
            let _ = setrlimit(Resource::Nofile, raised);
        }
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of_limit(usize::try_from(limit).unwrap_or(usize::MAX), reserved)
    }

    pub(super) fn of_limit(limit: usize, reserved: usize) -> Self {
        let most = limit.saturating_sub(reserved).max(limit / 4);
        Self { most, exceeded: AtomicBool::new(false) }
    }

    /// Notes that a file has been opened.
    pub(super) fn note_opened(&self) {
        if OPEN.load(Ordering::Relaxed) > self.most {
            self.exceeded.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a file was opened beyond the bound since this was last asked.
    pub(super) fn was_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed) && self.exceeded.swap(false, Ordering::Relaxed)
    }

    /// If too many files are open, the number of files that may stay open only because they await a
    /// sync. It is a quarter of the bound, so that the next time is far away.
    pub(super) fn to_keep(&self) -> Option<usize> {
        (OPEN.load(Ordering::Relaxed) > self.most / 2).then_some(self.most / 4)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_left_to_the_rest_of_the_process() {
        assert_eq!(Budget::of_limit(1024, 164).most, 860);
        assert_eq!(Budget::of_limit(256, 164).most, 92);
        assert_eq!(Budget::of_limit(100, 164).most, 25);
        let none = Budget::of_limit(0, 0);
        assert!(!none.was_exceeded());
        let _one = Counted::new();
        none.note_opened();
        assert!(none.was_exceeded() && !none.was_exceeded());
        assert_eq!(none.to_keep(), Some(0));
    }
}
