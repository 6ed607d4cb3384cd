//! The atomics of [`crate::atomic`] under the feature `audit`: the standard library's, plus a
//! record of each access with its line of code. A compare-and-swap is recorded whether it succeeds
//! or not, because it takes the cache line either way.

use super::writes::{Kind, note};
use std::sync::atomic::{self as std_atomic, Ordering};

pub use std::sync::atomic::fence;

macro_rules! noting {
    ($(#[$doc:meta] $name:ident $(<$pointee:ident>)?, $value:ty, { $($arithmetic:ident),* };)*) => {$(
        #[$doc]
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name $(<$pointee>)? (std_atomic::$name $(<$pointee>)?);

        impl $(<$pointee>)? $name $(<$pointee>)? {
            /// See the standard library's.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(std_atomic::$name::new(value))
            }

            #[track_caller]
            fn note(&self, kind: Kind) {
                note(std::ptr::from_ref(self).addr(), kind);
            }

            /// See the standard library's.
            #[inline]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                self.note(Kind::Load);
                self.0.load(order)
            }

            /// See the standard library's.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.note(Kind::Store);
                self.0.store(value, order);
            }

            /// See the standard library's.
            #[inline]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.note(Kind::ReadModifyWrite);
                self.0.swap(value, order)
            }

            /// See the standard library's.
            #[inline]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.note(Kind::ReadModifyWrite);
                self.0.compare_exchange(from, to, success, failure)
            }

            /// See the standard library's.
            #[inline]
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.note(Kind::ReadModifyWrite);
                self.0.compare_exchange_weak(from, to, success, failure)
            }

            /// See the standard library's. Recorded as one write, as if it succeeded at once.
            #[inline]
            #[track_caller]
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.note(Kind::ReadModifyWrite);
                self.0.fetch_update(set_order, fetch_order, change)
            }

            $(
                /// See the standard library's.
                #[inline]
                #[track_caller]
                pub fn $arithmetic(&self, value: $value, order: Ordering) -> $value {
                    self.note(Kind::ReadModifyWrite);
                    self.0.$arithmetic(value, order)
                }
            )*
        }
    )*};
}

noting! {
    /// A boolean.
    AtomicBool, bool, { fetch_or, fetch_and };
    /// Eight bits.
    AtomicU8, u8, { fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max };
    /// Sixteen bits.
    AtomicU16, u16, { fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max };
    /// Thirty-two bits.
    AtomicU32, u32, { fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max };
    /// Sixty-four bits.
    AtomicU64, u64, { fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max };
    /// The size of a pointer.
    AtomicUsize, usize, { fetch_add, fetch_sub, fetch_or, fetch_and, fetch_max };
    /// A pointer.
    AtomicPtr<T>, *mut T, {};
}
