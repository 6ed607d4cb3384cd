//! Under a model checker nothing is simulated: the checker schedules.

/// Nothing.
#[inline]
pub fn point() {}

/// Nothing.
#[inline]
pub fn hot_point() {}

/// `false`.
#[must_use]
pub fn is_simulated() -> bool {
    false
}

/// None.
#[must_use]
pub fn number() -> Option<u64> {
    None
}

/// The process's number.
#[must_use]
pub fn process_id() -> u32 {
    std::process::id()
}
