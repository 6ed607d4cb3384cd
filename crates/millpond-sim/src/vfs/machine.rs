//! The machine under a file system: its open files, its limits, and whether it is up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::fault::Faults;
use super::trace::Trace;
use super::tree::{NodeId, Tree};
use super::{IgnoreSync, Kind, VfsFault, When};

/// The whole state, under one lock.
pub(super) struct Machine {
    pub tree: Tree,
    pub rng: StdRng,
    pub calls: u64,
    pub trace: Trace,
    pub faults: Faults,
    /// Files of an older generation are dead.
    pub generation: u64,
    pub size: Option<u64>,
    pub max_open: Option<usize>,
    pub ignored_syncs: Option<IgnoreSync>,
    /// The number of bytes that the device writes atomically.
    pub sector: usize,
    next_handle: u64,
    open: BTreeMap<u64, NodeId>,
    locks: BTreeMap<NodeId, u64>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("calls", &self.calls).finish_non_exhaustive()
    }
}

pub(super) fn power_loss() -> io::Error {
    io::Error::other("simulated: power loss")
}

impl Machine {
    pub fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self {
            tree: Tree::new(),
            calls: 0,
            trace: Trace::default(),
            faults: Faults::default(),
            generation: 0,
            size: None,
            max_open: None,
            ignored_syncs: None,
            sector: sector(&mut rng),
            rng,
            next_handle: 0,
            open: BTreeMap::new(),
            locks: BTreeMap::new(),
        }
    }

    /// Counts a call and returns its fault, if any.
    pub fn begin(&mut self, generation: u64, kind: Kind) -> io::Result<Option<VfsFault>> {
        if generation != self.generation {
            return Err(io::Error::other("simulated: the machine has crashed"));
        }
        let number = self.calls;
        self.calls += 1;
        if self.faults.powered_off {
            return Err(power_loss());
        }
        Ok(self.faults.next(number, kind, &mut self.rng))
    }

    /// Whether `more` bytes don't fit.
    pub fn is_full(&self, more: u64) -> bool {
        let full = |size| self.tree.used(&self.open_nodes()) + more > size;
        more > 0 && (self.faults.disk_full || self.size.is_some_and(full))
    }

    pub fn has_open_room(&self) -> bool {
        self.max_open.is_none_or(|most| self.open.len() < most)
    }

    pub fn open(&mut self, node: NodeId) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.open.insert(handle, node);
        handle
    }

    fn open_nodes(&self) -> BTreeSet<NodeId> {
        self.open.values().copied().collect()
    }

    /// Closes a file or directory, if its machine has not crashed.
    pub fn close(&mut self, generation: u64, handle: u64) {
        if generation != self.generation {
            return;
        }
        let Some(node) = self.open.remove(&handle) else { return };
        if self.locks.get(&node) == Some(&handle) {
            self.locks.remove(&node);
        }
    }

    pub fn try_lock(&mut self, node: NodeId, handle: u64) -> bool {
        *self.locks.entry(node).or_insert(handle) == handle
    }

    pub fn ignores_sync_of(&self, path: &Path) -> bool {
        self.ignored_syncs.as_ref().is_some_and(|ignored| ignored(path))
    }

    /// How much of a failing call's effect happens.
    pub fn share(&mut self, when: When, of: usize) -> usize {
        match when {
            When::Before => 0,
            When::Halfway => self.rng.random_range(0..=of),
            When::After => of,
        }
    }

    /// The process stops and starts again.
    pub fn end_generation(&mut self) {
        self.generation += 1;
        self.open.clear();
        self.locks.clear();
        self.faults.heal();
        self.faults.powered_off = false;
        self.tree.forget_unnamed(&BTreeSet::new());
    }

    pub fn crash(&mut self) {
        self.end_generation();
        self.tree.crash(&mut self.rng, self.sector);
        self.sector = sector(&mut self.rng);
    }
}

/// Some devices tear writes within a sector.
fn sector(rng: &mut StdRng) -> usize {
    [64, 512, 4096][rng.random_range(0..3)]
}
