//! The atomics of the frames, entries, freelists and the hand. In tests they are wrapped so that each write
//! is noted, which is how the table of a miss's shared writes in the README is checked
//! (`tests/shared_writes.rs`): nothing that writes such a word can be forgotten.

#[cfg(not(all(test, not(any(loom, shuttle)))))]
pub(crate) use millpond_sync::atomic::{AtomicPtr, AtomicU8, AtomicU64};

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use noting::{AtomicPtr, AtomicU8, AtomicU64};

/// Notes a write of a word that is not one of these.
#[inline]
pub(crate) fn note_write<T>(_word: &T) {
    #[cfg(all(test, not(any(loom, shuttle))))]
    noting::note(std::ptr::from_ref(_word) as usize, false);
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod noting {
    use std::cell::RefCell;
    use std::sync::atomic::{self as std_atomic, Ordering};

    /// A write: to which cache line, and whether it was a read-modify-write.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Write {
        pub(crate) line: usize,
        pub(crate) read_modify: bool,
    }

    thread_local! {
        static WRITES: RefCell<Option<Vec<Write>>> = const { RefCell::new(None) };
    }

    pub(crate) fn note(at: usize, read_modify: bool) {
        WRITES.with_borrow_mut(|writes| {
            if let Some(writes) = writes {
                writes.push(Write { line: at / 64, read_modify });
            }
        });
    }

    /// What `f` writes on this thread.
    pub(crate) fn writes_of(f: impl FnOnce()) -> Vec<Write> {
        WRITES.set(Some(Vec::new()));
        f();
        WRITES.take().unwrap_or_default()
    }

    macro_rules! noting {
        ($name:ident, $value:ty) => {
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(std_atomic::$name);

            #[allow(dead_code)] // Each has what any of them needs.
            impl $name {
                pub(crate) const fn new(value: $value) -> Self {
                    Self(std_atomic::$name::new(value))
                }

                fn note(&self, read_modify: bool) {
                    note(std::ptr::from_ref(self) as usize, read_modify);
                }

                #[inline]
                pub(crate) fn load(&self, order: Ordering) -> $value {
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.note(false);
                    self.0.store(value, order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.note(true);
                    self.0.swap(value, order)
                }

                pub(crate) fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.note(true);
                    self.0.compare_exchange(from, to, success, failure)
                }

                pub(crate) fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.note(true);
                    self.0.compare_exchange_weak(from, to, success, failure)
                }

                pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    self.note(true);
                    self.0.fetch_add(value, order)
                }

                pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    self.note(true);
                    self.0.fetch_sub(value, order)
                }

                pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    self.note(true);
                    self.0.fetch_or(value, order)
                }

                pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                    self.note(true);
                    self.0.fetch_and(value, order)
                }
            }
        };
    }

    noting!(AtomicU8, u8);
    noting!(AtomicU64, u64);

    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct AtomicPtr<T>(std_atomic::AtomicPtr<T>);

    impl<T> AtomicPtr<T> {
        pub(crate) const fn new(value: *mut T) -> Self {
            Self(std_atomic::AtomicPtr::new(value))
        }

        #[inline]
        pub(crate) fn load(&self, order: Ordering) -> *mut T {
            self.0.load(order)
        }

        pub(crate) fn store(&self, value: *mut T, order: Ordering) {
            note(std::ptr::from_ref(self) as usize, false);
            self.0.store(value, order);
        }

        pub(crate) fn compare_exchange(
            &self,
            from: *mut T,
            to: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            note(std::ptr::from_ref(self) as usize, true);
            self.0.compare_exchange(from, to, success, failure)
        }
    }
}
