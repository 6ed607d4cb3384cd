//! Atomics: the standard library's, a model checker's, or (feature `audit`) recording ones.

#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub use crate::audit::atomics::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(all(feature = "audit", not(any(loom, shuttle, miri))))]
pub use std::sync::atomic::Ordering;
#[cfg(not(any(loom, shuttle, all(feature = "audit", not(miri)))))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
