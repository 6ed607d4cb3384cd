//! A file system in memory that loses power, tears, forgets and fails on demand.
//!
//! [`SimFs`] is the disk of one machine. [`SimFs::mount`] gives a [`SimVfs`], which is the
//! [`Vfs`](millpond_vfs::Vfs) of one run of that machine. [`SimFs::crash`] ends the run: of what was
//! not synced a random part survives, and the files of older mounts are dead.
//!
//! The parts: `inode` holds a file's bytes and which of them are durable, `tree` the names, `fault`
//! what goes wrong, `calls` carries a call out, `trace` notes it.
//!
//! Everything random comes from one seed. Two runs that make the same calls in the same order get
//! the same answers, and [`SimFs::hash`] is the same.

mod calls;
mod fault;
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
use rand::Rng;

pub use fault::{Errno, Rates, VfsFault, When};
pub use trace::Called;

use fault::Kind;
use machine::Machine;

/// A class of syncs that [`SimFs::ignore_syncs`] leaves out.
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

    /// How many calls there have been.
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// A hash of all calls and their outcomes.
    pub fn hash(&self) -> u64 {
        self.0.lock().trace.hash()
    }

    /// Keeps all calls from now on, for [`SimFs::all_calls`].
    pub fn keep_calls(&self) {
        self.0.lock().trace.keep_all();
    }

    /// The calls since [`SimFs::keep_calls`].
    pub fn all_calls(&self) -> Vec<Called> {
        self.0.lock().trace.all()
    }

    /// The last calls, for a report.
    pub fn last_calls(&self) -> Vec<Called> {
        self.0.lock().trace.last().cloned().collect()
    }

    /// Lets `fault` happen at the `calls`th call from now (0: the next).
    pub fn fail_after(&self, calls: u64, fault: VfsFault) {
        let mut machine = self.0.lock();
        let at = machine.calls + calls;
        machine.faults.plan(at, fault);
    }

    /// Whether a planned fault has not happened yet.
    pub fn has_planned_fault(&self) -> bool {
        self.0.lock().faults.is_pending()
    }

    /// Lets calls fail at random from now on.
    pub fn set_rates(&self, rates: Rates) {
        self.0.lock().faults.rates = rates;
    }

    /// The most bytes that all files may have together.
    pub fn set_size(&self, bytes: Option<u64>) {
        self.0.lock().size = bytes;
    }

    /// The most files that may be open.
    pub fn set_max_open(&self, files: Option<usize>) {
        self.0.lock().max_open = files;
    }

    /// Syncs of the paths that `ignored` chooses succeed and do nothing: a program that leaves
    /// them out.
    pub fn ignore_syncs(&self, ignored: Option<IgnoreSync>) {
        self.0.lock().ignored_syncs = ignored;
    }

    /// No more faults. Power that is gone stays away until a crash.
    pub fn heal(&self) {
        self.0.lock().faults.heal();
    }

    /// Whether the power has gone since the last crash.
    pub fn is_powered_off(&self) -> bool {
        self.0.lock().faults.powered_off
    }

    /// The machine goes down and comes up: a random part of what was not synced survives. Files and
    /// mounts from before are dead, and locks are free. Faults are over.
    pub fn crash(&self) {
        self.0.lock().crash();
    }

    /// The process dies and the machine stays up: nothing that was written is lost. Files and
    /// mounts from before are dead, and locks are free. Faults are over.
    pub fn kill(&self) {
        self.0.lock().end_generation();
    }

    /// What a file holds, past all faults.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let machine = self.0.lock();
        let node = machine.tree.find(path)?;
        Ok(machine.tree.file(node)?.bytes().to_vec())
    }

    /// The names in a directory, past all faults.
    pub fn names(&self, directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        self.0.lock().tree.list(directory)
    }

    /// Puts a durable file in place, past all faults.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        self.0.lock().tree.put(path, bytes)
    }

    /// Takes a file away for good, past all faults.
    pub fn delete(&self, path: &Path) -> io::Result<()> {
        let tree = &mut self.0.lock().tree;
        tree.remove(path)?;
        let directory = tree.find_directory(path.parent().unwrap_or(Path::new("/")))?;
        tree.sync_directory(directory)
    }

    /// Makes a random sector of a file unreadable until it is written.
    pub fn spoil_sector(&self, path: &Path) -> io::Result<()> {
        let machine = &mut *self.0.lock();
        let node = machine.tree.find(path)?;
        let file = machine.tree.file_mut(node)?;
        let at = machine.rng.random_range(0..file.len().max(1));
        file.spoil(at);
        Ok(())
    }
}
