//! Mutants: single faults, built in under `--cfg mutants` and chosen when a test runs.
//!
//! A mutant is a step that is left out, done in another order, or ordered too weakly. Each mutant
//! belongs to a numbered rule, and a named test or model must fail with it. Otherwise no test would
//! notice if the code lost that step. `cargo xtask mutants` builds the tests once, and runs each
//! mutant's test with and without the mutant.
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
//! Without the cfg, [`mutant!`](crate::mutant!) is the constant `false`, and
//! [`ordering!`](crate::ordering!) is the ordering that it names; neither leaves an instruction
//! behind. With the cfg, the environment variable [`VARIABLE`] names the active mutant; it is read
//! once. The table of mutants is `xtask/src/mutants`. `cargo xtask mutants` fails unless the table
//! and the sources name the same mutants.

/// The environment variable that names the active mutant.
pub const VARIABLE: &str = "MILLPOND_MUTANT";

/// Whether a mutant is active. Use [`mutant!`](crate::mutant!), which is free in an ordinary build.
#[cfg(mutants)]
#[must_use]
pub fn is_on(name: &str) -> bool {
    use std::sync::OnceLock;
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(VARIABLE).ok()).as_deref() == Some(name)
}

/// Whether the mutant of that name is active: the constant `false`, except under `--cfg mutants`.
/// See [`mutant`](mod@crate::mutant).
#[cfg(not(mutants))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}

/// Whether the mutant of that name is active.
#[cfg(mutants)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_on($name)
    };
}

/// The named `Ordering`, or a weaker one if the mutant of that name is active: the ordering named
/// last, or else `Relaxed`. Not for fences, which are never relaxed: leave those out with
/// [`mutant!`](crate::mutant!).
#[cfg(not(mutants))]
#[macro_export]
macro_rules! ordering {
    ($name:literal, $ordering:ident $(, $weaker:ident)?) => {
        $crate::atomic::Ordering::$ordering
    };
}

/// The named `Ordering`, or a weaker one if the mutant of that name is active.
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
