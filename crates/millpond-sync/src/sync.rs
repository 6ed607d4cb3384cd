//! `Arc`, mutex and condition variable: the standard library's or a model checker's.
//!
//! A mutex here is never poisoned: whoever panics while holding one must have left its contents whole
//! (rule 7).

use crate::audit;
#[cfg(loom)]
use loom::sync as imp;
#[cfg(all(shuttle, not(loom)))]
use shuttle::sync as imp;
#[cfg(not(any(loom, shuttle)))]
use std::sync as imp;

pub use imp::{Arc, MutexGuard};

/// A mutual-exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// Locks it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        audit::locked(std::ptr::from_ref(self).addr());
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Locks it if nobody holds it.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        audit::locked(std::ptr::from_ref(self).addr());
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            #[cfg(not(any(loom, shuttle)))]
            Err(imp::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(_) => None,
        }
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(imp::Condvar);

impl Condvar {
    /// A condition variable.
    #[must_use]
    pub fn new() -> Self {
        Self(imp::Condvar::new())
    }

    /// Unlocks, waits to be notified (or wakes for no reason), and locks again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        match self.0.wait(guard) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
