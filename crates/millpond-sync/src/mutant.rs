//! Mutants: single faults, built in under `--cfg mutants` and chosen when a test runs.
//!
//! A mutant is a step that is left out, done in another order, or ordered too weakly. Each belongs
//! to a numbered rule, and some named test or model must fail with it; else nothing would notice if
//! the code lost that step. `cargo xtask mutants` builds the tests once, and runs each mutant's
//! test with and without it.
//!
//! ```
//! # use millpond_sync::{mutant, ordering};
//! use std::sync::atomic::{AtomicU64, Ordering, fence};
//!
//! fn publish(word: &AtomicU64) {
//!     if !mutant!("example-publish-without-fence") {
//!         fence(Ordering::SeqCst);
//!     }
//!     word.store(1, ordering!("example-publish-relaxed", Release));
//! }
//! # publish(&AtomicU64::new(0));
//! ```
//!
//! Without the cfg, [`mutant!`](crate::mutant!) is the constant `false` and
//! [`ordering!`](crate::ordering!) is the ordering that it names: neither leaves an instruction
//! behind. With it, the environment variable [`VARIABLE`] names the mutant that is on; it is read
//! once. The table of mutants is `xtask/src/mutants`, and `cargo xtask mutants` demands that it and
//! the sources name the same.

/// The environment variable that names the mutant that is on.
pub const VARIABLE: &str = "MILLPOND_MUTANT";

/// Whether a mutant is on. Use [`mutant!`](crate::mutant!), which costs nothing in an ordinary
/// build.
#[cfg(mutants)]
#[must_use]
pub fn is_on(name: &str) -> bool {
    use std::sync::OnceLock;
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref() == Some(name)
}

/// Whether the mutant of that name is on: the constant `false`, but under `--cfg mutants`. See
/// [`mutant`](mod@crate::mutant).
#[cfg(not(mutants))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}

/// Whether the mutant of that name is on.
#[cfg(mutants)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_on($name)
    };
}

/// The named `Ordering`, or `Relaxed` (or another one, named last) if the mutant of that name is
/// on. Not for fences, which are never relaxed: leave those out with [`mutant!`](crate::mutant!).
#[cfg(not(mutants))]
#[macro_export]
macro_rules! ordering {
    ($name:literal, $ordering:ident $(, $weaker:ident)?) => {
        $crate::atomic::Ordering::$ordering
    };
}

/// The named `Ordering`, or a weaker one if the mutant of that name is on.
#[cfg(mutants)]
#[macro_export]
macro_rules! ordering {
    ($name:literal, $ordering:ident) => {
        $crate::ordering!($name, $ordering, Relaxed)
    };
    ($name:literal, $ordering:ident, $weaker:ident) => {
        if $crate::mutant::is_on($name) {
            $crate::atomic::Ordering::$weaker
        } else {
            $crate::atomic::Ordering::$ordering
        }
    };
}
