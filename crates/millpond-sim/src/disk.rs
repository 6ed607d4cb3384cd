//! A simulated disk at the level of page and log stores: files, faults, crashes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use millpond_buffer::RelFork;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::file::SimFile;
use crate::late::LateWrite;
use crate::log::SimLog;
use crate::pages::SimPages;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One call fails.
    Once,
    /// That call and every later one fails.
    ForGood,
    /// As [`Fault::ForGood`], but only calls that need more space fail ("no space left").
    DiskFull,
    /// Power loss: every call fails, and [`SimDisk::crash`] decides what survives.
    PowerLoss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Fork(u32, u8),
    Segment(u64),
    Control(usize),
}

impl Name {
    pub fn fork(rel: RelFork) -> Self {
        Self::Fork(rel.relation.get(), rel.fork as u8)
    }
}

/// Kinds of calls, to which faults apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Change,
    Grow,
    Sync,
}

pub(crate) struct State {
    pub files: BTreeMap<Name, SimFile>,
    pub rng: StdRng,
    pub sector: usize,
    calls: u64,
    fault: Option<(u64, Fault)>,
    /// Handles of an older generation are dead: the machine has crashed since.
    pub generation: u64,
    /// The power is off until the next crash. Writes in flight have been [cut
    /// short](State::cut_short), and no write begins.
    pub powered_off: bool,
    /// Writes in flight.
    pub late: Vec<LateWrite>,
    /// Whether a thread is running that ends them.
    pub late_thread: bool,
    /// Whether that thread has panicked.
    pub late_panicked: bool,
    /// Randomness for what depends on the timing of that thread, so that nothing else depends on
    /// it.
    pub late_rng: StdRng,
}

/// A disk with one database's files.
pub struct SimDisk {
    pub(crate) state: Mutex<State>,
}

impl SimDisk {
    /// An empty disk. All its randomness comes from `seed`.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                files: BTreeMap::new(),
                rng: StdRng::seed_from_u64(seed),
                sector: 512,
                calls: 0,
                fault: None,
                generation: 0,
                powered_off: false,
                late: Vec::new(),
                late_thread: false,
                late_panicked: false,
                late_rng: StdRng::seed_from_u64(!seed),
            }),
        })
    }

    /// A page store for the relations' files.
    pub fn pages(self: &Arc<Self>) -> Arc<SimPages> {
        Arc::new(SimPages { disk: Arc::clone(self), generation: self.state.lock().generation })
    }

    /// A log store for the log and the control file.
    pub fn log(self: &Arc<Self>, segment_bytes: u64) -> Arc<SimLog> {
        let generation = self.state.lock().generation;
        Arc::new(SimLog { disk: Arc::clone(self), generation, segment_bytes })
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Makes `fault` happen at the `calls`th call from now (0: the next).
    pub fn fail_after(&self, calls: u64, fault: Fault) {
        let mut state = self.state.lock();
        state.fault = Some((state.calls + calls, fault));
    }

    /// Whether the power has failed since the last crash.
    pub fn is_powered_off(&self) -> bool {
        self.state.lock().powered_off
    }

    /// Ends all faults. After a power loss, the power stays off until a crash.
    pub fn heal(&self) {
        self.state.lock().fault = None;
    }

    /// The machine crashes and restarts. A random and torn part of the unsynced changes survives,
    /// and likewise of writes in flight. Earlier handles are dead, and faults end.
    pub fn crash(&self) {
        let state = &mut *self.state.lock();
        state.end_generation();
        state.sector = [64, 512, 4096][state.rng.random_range(0..3)];
        for file in state.files.values_mut() {
            file.crash(&mut state.rng, state.sector);
        }
        state.files.retain(|_, file| file.bytes().is_some());
    }

    /// The process dies and the machine stays up. All finished writes survive; a write in flight
    /// survives as a whole or not at all. Earlier handles are dead.
    pub fn kill(&self) {
        self.state.lock().end_generation();
    }

    /// Flips a random bit in the log, among the `bytes` bytes from log position `from`.
    pub fn flip_log_bit(&self, segment_bytes: u64, from: u64, bytes: u64) {
        let state = &mut *self.state.lock();
        let at = from + state.rng.random_range(0..bytes);
        let bit = state.rng.random_range(0..8);
        if let Some(file) = state.files.get_mut(&Name::Segment(at / segment_bytes)) {
            file.flip((at % segment_bytes) as usize, bit);
        }
    }
}

impl State {
    /// Whether the machine of a handle has not crashed.
    pub fn is_alive(&self, generation: u64) -> bool {
        self.generation == generation
    }

    /// Ends the run of the machine or process: earlier handles are dead, and faults end.
    fn end_generation(&mut self) {
        if !self.powered_off {
            self.cut_short();
        }
        self.generation += 1;
        (self.fault, self.powered_off) = (None, false);
    }

    /// Counts a call, and fails it if a fault applies. A change that fails through power loss may
    /// still reach the disk, so `change` runs in that case, too.
    pub fn call(
        &mut self,
        generation: u64,
        call: Call,
        change: impl FnOnce(&mut Self),
    ) -> io::Result<()> {
        if generation != self.generation {
            return Err(io::Error::other("simulated: the machine has crashed"));
        }
        assert!(!self.late_panicked, "who was told of a write's end has panicked");
        let number = self.calls;
        self.calls += 1;
        if self.powered_off {
            return Err(power_loss());
        }
        match self.fault {
            Some((at, Fault::Once)) if number == at => {
                Err(io::Error::other("simulated: input/output error"))
            }
            Some((at, Fault::ForGood)) if number >= at => {
                Err(io::Error::other("simulated: input/output error for good"))
            }
            Some((at, Fault::DiskFull)) if number >= at && call == Call::Grow => {
                Err(io::Error::new(io::ErrorKind::StorageFull, "simulated: no space left"))
            }
            Some((at, Fault::PowerLoss)) if number >= at => {
                self.cut_short();
                self.powered_off = true;
                if call != Call::Sync {
                    change(self);
                }
                Err(power_loss())
            }
            _ => {
                change(self);
                Ok(())
            }
        }
    }
}

/// The error of calls while the power is off.
pub(crate) fn power_loss() -> io::Error {
    io::Error::other("simulated: power loss")
}
