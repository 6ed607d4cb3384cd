//! The bytes of a B+tree page, as pure functions: nothing here knows the pool, the log or a latch.
//!
//! * [`layout`]: the byte layout (docs/file-format.md gives the same).
//! * [`node`]: reading and searching. It is generic over [`PageRead`]. So the same code runs on
//!   bytes that may change meanwhile (an optimistic read) and on stable ones (a latched page, a
//!   copy).
//! * [`item`]: an entry, and a place in the order of entries.
//! * [`form`], [`wide`], [`narrow`]: the two forms of slots, behind the same functions.
//! * [`search`]: searching, in either form.
//! * [`items`]: taking a page's entries apart, and building pages from entries.
//! * [`split`]: where to cut a page that is too full, and the separator between the halves.

mod form;
pub(crate) mod item;
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
