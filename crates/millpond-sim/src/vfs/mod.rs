//! A file system in memory that loses power, tears and loses writes, and fails on demand.
//!
//! [`SimFs`] is the disk of one machine. [`SimFs::mount`] returns a [`SimVfs`], which is the
//! [`Vfs`](millpond_vfs::Vfs) of one run of that machine. [`SimFs::crash`] ends the run: a random
//! part of the unsynced changes survives, and the files of older mounts are dead.
//!
//! The parts: `inode` holds a file's bytes and which of them are durable, and `tree` holds the
//! names. `fault` chooses faults, `calls` carries out calls, and `trace` records them.
//!
//! All randomness comes from one seed. Two runs that make the same calls in the same order get the
//! same answers and the same [`SimFs::hash`].

mod calls;
mod fault;
mod file;
mod inode;
mod machine;
mod trace;
mod tree;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

pub use fault::{Errno, Rates, VfsFault, When};
pub use trace::Called;

use fault::Kind;
use machine::Machine;

/// Chooses the paths whose syncs [`SimFs::ignore_syncs`] leaves out.
pub type IgnoreSync = Box<dyn Fn(&Path) -> bool + Send>;

/// A disk with a file system.
#[derive(Clone, Debug)]
pub struct SimFs(Arc<Mutex<Machine>>);

/// The file system of a machine that is up, until it crashes.
#[derive(Debug)]
pub struct SimVfs {
    machine: Arc<Mutex<Machine>>,
    generation: u64,
}

impl SimFs {
    /// An empty file system.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Machine::new(seed))))
    }

    /// The file system as a program sees it until the next crash.
    pub fn mount(&self) -> Arc<SimVfs> {
        let generation = self.0.lock().generation;
        Arc::new(SimVfs { machine: Arc::clone(&self.0), generation })
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// A hash of all calls and their outcomes.
    pub fn hash(&self) -> u64 {
        self.0.lock().trace.hash()
    }

    /// Records all calls from now on, for [`SimFs::all_calls`].
    pub fn keep_calls(&self) {
        self.0.lock().trace.keep_all();
    }

    /// The calls since [`SimFs::keep_calls`].
    pub fn all_calls(&self) -> Vec<Called> {
        self.0.lock().trace.all()
    }

    /// Makes `fault` happen at the `calls`th call from now (0: the next).
    pub fn fail_after(&self, calls: u64, fault: VfsFault) {
        let mut machine = self.0.lock();
        let at = machine.calls + calls;
        machine.faults.plan(at, fault);
    }

    /// Whether a planned fault has not happened yet.
    pub fn has_planned_fault(&self) -> bool {
        self.0.lock().faults.is_pending()
    }

    /// Makes calls fail at random from now on.
    pub fn set_rates(&self, rates: Rates) {
        self.0.lock().faults.rates = rates;
    }

    /// Limits the total size of all files.
    pub fn set_size(&self, bytes: Option<u64>) {
        self.0.lock().size = bytes;
    }

    /// Limits the number of open files.
    pub fn set_max_open(&self, files: Option<usize>) {
        self.0.lock().max_open = files;
    }

    /// Makes syncs of the chosen paths succeed and do nothing, as if the program left them out.
    pub fn ignore_syncs(&self, ignored: Option<IgnoreSync>) {
        self.0.lock().ignored_syncs = ignored;
    }

    /// Ends all faults. After a power loss, the power stays off until a crash.
    pub fn heal(&self) {
        self.0.lock().faults.heal();
    }

    /// Whether the power has failed since the last crash.
    pub fn is_powered_off(&self) -> bool {
        self.0.lock().faults.powered_off
    }

    /// The machine crashes and restarts: a random part of the unsynced changes survives. Files and
    /// mounts from before are dead, and locks are free. Faults end.
    pub fn crash(&self) {
        self.0.lock().crash();
    }

    /// The process dies and the machine stays up: no finished write is lost. Files and mounts from
    /// before are dead, and locks are free. Faults end.
    pub fn kill(&self) {
        self.0.lock().end_generation();
    }

    /// The contents of a file, bypassing all faults.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let machine = self.0.lock();
        let node = machine.tree.find(path)?;
        Ok(machine.tree.file(node)?.bytes().to_vec())
    }

    /// The names in a directory, bypassing all faults.
    pub fn names(&self, directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        self.0.lock().tree.list(directory)
    }

    /// Creates or replaces a durable file, bypassing all faults.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        self.0.lock().tree.put(path, bytes)
    }

    /// Removes a file durably, bypassing all faults.
    pub fn delete(&self, path: &Path) -> io::Result<()> {
        let tree = &mut self.0.lock().tree;
        tree.remove(path)?;
        let directory = tree.find_directory(path.parent().unwrap_or(Path::new("/")))?;
        tree.sync_directory(directory)
    }
}
