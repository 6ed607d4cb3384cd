//! Helpers of loom's models.

use super::coverage;
use crate::latch::{Latch, recording};
use crate::sync::Arc;
use loom::cell::UnsafeCell;
use loom::thread;

pub(super) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Checks a model of a latch, and the changes that the model sees.
pub(super) fn check_latch(
    name: &str,
    preemptions: usize,
    model: impl Fn() + Sync + Send + 'static,
) {
    recording::take();
    check(preemptions, model);
    coverage::verify(name, &recording::take());
}

/// A value that a latch protects. Loom reports any access that the latch doesn't order.
#[derive(Default)]
pub(super) struct Guarded {
    pub(super) latch: Latch,
    value: UnsafeCell<u64>,
}

impl Guarded {
    /// Adds one. The caller holds the latch exclusively.
    #[allow(unsafe_code)]
    pub(super) fn add_held(&self) -> u64 {
        // SAFETY: loom tracks the access and fails the model if it isn't exclusive.
        self.value.with_mut(|value| unsafe {
            *value += 1;
            *value
        })
    }

    /// Returns the value. The caller holds the latch.
    #[allow(unsafe_code)]
    pub(super) fn get_held(&self) -> u64 {
        // SAFETY: loom tracks the access and fails the model if a writer is there.
        self.value.with(|value| unsafe { *value })
    }

    pub(super) fn add(&self) {
        self.latch.exclusive();
        self.add_held();
        self.latch.unlock_exclusive();
    }

    pub(super) fn get(&self) -> u64 {
        self.latch.shared();
        let value = self.get_held();
        self.latch.unlock_shared();
        value
    }

    /// Checks, after all threads have ended, the value, and that the latch's word is zero.
    pub(super) fn assert_value(&self, value: u64) {
        assert_eq!(self.latch.word(), 0, "something is left in the word");
        assert_eq!(self.get(), value);
    }
}

pub(super) type Shared = Arc<Guarded>;

pub(super) fn spawn<R: 'static>(
    guarded: &Shared,
    run: impl FnOnce(&Guarded) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let guarded = guarded.clone();
    thread::spawn(move || run(&guarded))
}
