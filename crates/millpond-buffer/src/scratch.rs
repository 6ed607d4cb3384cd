//! Pages through which a thread's sessions write, and read where a store can't fill frames.
//!
//! The thread's, since pages of each session's own would be out of the processor's cache whenever hundreds of sessions use
//! them in turn.

use crate::page::AlignedPage;
use std::cell::Cell;

thread_local! {
    static SCRATCH: Cell<Vec<Box<AlignedPage>>> = const { Cell::new(Vec::new()) };
}

/// Runs `f` with `pages` scratch pages.
pub(crate) fn with_scratch<R>(pages: usize, f: impl FnOnce(&mut [Box<AlignedPage>]) -> R) -> R {
    // Taken out meanwhile: a store or log that comes back to a session finds none, and gets pages of its own. So
    // does a thread that is ending.
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    while scratch.len() < pages {
        scratch.push(AlignedPage::boxed());
    }
    let result = f(&mut scratch[..pages]);
    let _ = SCRATCH.try_with(|kept| kept.set(scratch));
    result
}
