//! Stubs under a model checker: nothing is simulated, because the checker schedules.

/// Does nothing.
#[inline]
pub fn point() {}

/// Does nothing.
#[inline]
pub fn hot_point() {}

/// Always `false`.
#[must_use]
pub fn is_simulated() -> bool {
    false
}

/// Always `None`.
#[must_use]
pub fn number() -> Option<u64> {
    None
}

/// The process id.
#[must_use]
pub fn process_id() -> u32 {
    std::process::id()
}
