//! The bytes of a B+tree page, as pure functions: nothing here knows the pool, the log or a latch.
//!
//! * [`layout`]: where what lies (docs/file-format.md gives the same, byte by byte).
//! * [`node`]: reading and searching, generic over [`PageRead`], so that the same code runs on bytes that may
//!   change under it (an optimistic read) and on bytes that can't (a latched page, a copy).
//! * [`form`], [`wide`], [`narrow`]: the two forms of slots, behind the same functions.
//! * [`search`]: searching, in either form.
//! * [`items`]: a page's entries taken apart, and pages built from entries.
//! * [`split`]: where to cut a page that is too full, and the separator between the halves.

mod form;
pub(crate) mod items;
pub(crate) mod layout;
pub(crate) mod narrow;
pub(crate) mod node;
mod search;
pub(crate) mod split;
mod wide;

#[cfg(test)]
mod tests;

pub(crate) use millpond_buffer::PageRead;
