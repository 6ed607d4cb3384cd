//! Reading: pages come from the store into frames, on demand or ahead of it.

pub(crate) mod load;
pub(crate) mod read_ahead;
pub(crate) mod read_queue;
