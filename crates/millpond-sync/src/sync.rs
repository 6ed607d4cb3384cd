//! Locks, `Condvar` and `Arc`: the standard library's, a model checker's, or a simulation's.
//!
//! A lock here is never poisoned. A thread that panics while it holds a lock must leave the
//! contents whole (rule 7 of this crate's README). A simulated thread waits for a lock in its
//! [`scheduler`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use crate::audit;
#[cfg(not(any(loom, shuttle)))]
use crate::scheduler;
#[cfg(loom)]
use loom::sync as imp;
#[cfg(all(shuttle, not(loom)))]
use shuttle::sync as imp;
#[cfg(not(any(loom, shuttle)))]
use std::sync as imp;

pub use imp::Arc;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A mutual-exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

/// A lock that is held.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    held: imp::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// Locks it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        audit::locked(std::ptr::from_ref(self).addr());
        #[cfg(not(any(loom, shuttle)))]
        if let Some(guard) = scheduler::acquire(|| self.attempt()) {
            return guard;
        }
        match self.0.lock() {
            Ok(guard) => self.guard(guard),
            Err(poisoned) => self.guard(poisoned.into_inner()),
        }
    }

    /// Locks it if no thread holds it.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        audit::locked(std::ptr::from_ref(self).addr());
        #[cfg(not(any(loom, shuttle)))]
        scheduler::point();
        self.attempt()
    }

    /// The contents. The exclusive borrow shows that no thread holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn attempt(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(self.guard(guard)),
            #[cfg(not(any(loom, shuttle)))]
            Err(imp::TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(_) => None,
        }
    }

    fn guard<'a>(&'a self, held: imp::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { lock: self, held }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
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

    /// Unlocks, waits for a notification (or a spurious wake-up), and locks again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        #[cfg(not(any(loom, shuttle)))]
        if scheduler::is_simulated() {
            return self.wait_in_turn(guard, None);
        }
        let MutexGuard { lock, held } = guard;
        match self.0.wait(held) {
            Ok(held) => lock.guard(held),
            Err(poisoned) => lock.guard(poisoned.into_inner()),
        }
    }

    /// As [`Condvar::wait`], at most until the deadline. (A model checker has no time.)
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> MutexGuard<'a, T> {
        #[cfg(not(any(loom, shuttle)))]
        {
            if scheduler::is_simulated() {
                return self.wait_in_turn(guard, Some(deadline));
            }
            let MutexGuard { lock, held } = guard;
            let time = deadline.saturating_duration_since(Instant::now());
            match self.0.wait_timeout(held, time) {
                Ok((held, _)) => lock.guard(held),
                Err(poisoned) => lock.guard(poisoned.into_inner().0),
            }
        }
        #[cfg(any(loom, shuttle))]
        {
            let _ = deadline;
            self.wait(guard)
        }
    }

    /// As [`Condvar::wait`], for at most `time`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
        self.wait_until(guard, crate::clock::now() + time)
    }

    #[cfg(not(any(loom, shuttle)))]
    fn wait_in_turn<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        let lock = guard.lock;
        // No other thread runs before this one is parked.
        drop(guard);
        scheduler::park_at_once(self.key(), deadline);
        lock.lock()
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        #[cfg(not(any(loom, shuttle)))]
        if scheduler::is_simulated() {
            crate::parking::unpark_one(self.key());
            return;
        }
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        #[cfg(not(any(loom, shuttle)))]
        if scheduler::is_simulated() {
            crate::parking::unpark_all(self.key());
            return;
        }
        self.0.notify_all();
    }

    #[cfg(not(any(loom, shuttle)))]
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A readers-writer lock. A model checker does not schedule at it.
mod rwlock {
    pub use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

    #[cfg(not(any(loom, shuttle)))]
    use crate::scheduler;

    /// A lock that many readers or one writer may hold.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(parking_lot::RwLock<T>);

    impl<T> RwLock<T> {
        /// A lock around `value`.
        pub const fn new(value: T) -> Self {
            Self(parking_lot::RwLock::new(value))
        }

        /// Locks it for reading.
        #[inline]
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            #[cfg(not(any(loom, shuttle)))]
            if let Some(guard) = scheduler::acquire(|| self.0.try_read()) {
                return guard;
            }
            self.0.read()
        }

        /// Locks it for writing.
        #[inline]
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            #[cfg(not(any(loom, shuttle)))]
            if let Some(guard) = scheduler::acquire(|| self.0.try_write()) {
                return guard;
            }
            self.0.write()
        }

        /// Locks it for writing if no thread holds it.
        pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            #[cfg(not(any(loom, shuttle)))]
            scheduler::point();
            self.0.try_write()
        }
    }
}
