//! What the upkeep of transactions remembers, and what recovery has learned about them.

use std::collections::BTreeMap;

use millpond_sync::mutant;

use super::chunk::ChunkBits;
use crate::ids::{Csn, Xid};

/// State of the upkeep between its rounds.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    pub(super) rounds: u64,
    /// Chunks below this are settled and in the status pages.
    pub(super) logged: u64,
    /// The horizon when the overflow was last searched.
    pub(super) searched_at: Csn,
    /// The commit number file has pages.
    pub(super) has_csn_pages: bool,
}

/// What recovery has learned so far.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) next: Xid,
    pub(super) commits: BTreeMap<u64, ChunkBits>,
}

impl Recovered {
    pub(super) fn new(next: Xid) -> Self {
        Recovered { next, commits: BTreeMap::new() }
    }

    /// A record shows that this id was drawn.
    pub(super) fn saw(&mut self, xid: Xid) {
        if xid.is_normal() && xid >= self.next && !mutant!("transam-ids-of-records-forgotten") {
            self.next = Xid(xid.0 + 1);
        }
    }
}
