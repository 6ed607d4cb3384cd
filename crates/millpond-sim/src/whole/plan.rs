//! The parameters that a seed chooses.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use millpond_buffer::IoMethod;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::vfs::{Errno, VfsFault};

/// The faults during a life, apart from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The power fails at some call.
    PowerLoss,
    /// One call fails.
    Once(Errno),
    /// From some call on every call fails, except those that only read.
    ReadOnly,
    /// From some call on the disk is full.
    DiskFull,
    /// Many calls fail at random.
    Flaky,
    /// Few files may be open.
    FewFiles,
    /// This fault at this call of each life.
    At(u64, VfsFault),
}

/// The two shapes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// [`Clients::Busy`]
    Busy,
    /// [`Clients::Slow`]
    Slow,
}

impl ClientKind {
    /// Both, in the order of [`Self::in_turn`].
    pub const ALL: [Self; 2] = [Self::Busy, Self::Slow];

    /// The shape of the run with this number, so that both shapes take turns.
    pub fn in_turn(number: u64) -> Self {
        if number.is_multiple_of(2) { Self::Busy } else { Self::Slow }
    }

    /// The plan that belongs to a seed.
    pub fn plan(self, seed: u64) -> Plan {
        match self {
            Self::Busy => Plan::busy(seed),
            Self::Slow => Plan::slow(seed),
        }
    }
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "busy",
            Self::Slow => "slow",
        })
    }
}

impl FromStr for ClientKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|shape| shape.to_string() == text);
        found.ok_or_else(|| format!("no shape of clients: {text:?}"))
    }
}

/// The pace of the clients, with the settings that suit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// One statement follows the other: a life takes seconds of virtual time.
    Busy,
    /// They think for seconds to minutes, between transactions and within them: a life takes up to
    /// hours.
    Slow(SlowSettings),
}

/// The engine's timers and limits when clients are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowSettings {
    /// `checkpoint_timeout`.
    pub checkpoint_timeout: Duration,
    /// `autovacuum_naptime`.
    pub autovacuum_naptime: Duration,
    /// The number of log segments after which a checkpoint starts at the latest.
    pub segments: u64,
    /// How many old statuses stay in memory.
    pub old_statuses: usize,
}

impl SlowSettings {
    fn of(rng: &mut StdRng) -> Self {
        Self {
            checkpoint_timeout: Duration::from_secs(rng.random_range(5..300)),
            autovacuum_naptime: Duration::from_secs(rng.random_range(1..60)),
            segments: rng.random_range(4..40),
            old_statuses: [0, 1024][rng.random_range(0..2)],
        }
    }
}

/// The timeouts of a slow client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// `lock_timeout`.
    pub lock: Option<Duration>,
    /// `deadlock_timeout`.
    pub deadlock: Duration,
    /// `statement_timeout`.
    pub statement: Option<Duration>,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction: Option<Duration>,
}

impl Timeouts {
    pub fn of_client(rng: &mut StdRng) -> Self {
        let below = |rng: &mut StdRng, end| Duration::from_millis(rng.random_range(1..end));
        let mut maybe = |end| rng.random_bool(0.3).then(|| below(rng, end));
        let (lock, statement, idle_in_transaction) = (maybe(60_000), maybe(60_000), maybe(120_000));
        Self { lock, deadlock: below(rng, 5000), statement, idle_in_transaction }
    }
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often the engine starts.
    pub lives: u32,
    /// The pace of the clients.
    pub clients: Clients,
    /// The number of transactions of each writer in a life.
    pub steps: u32,
    /// The number of sessions that write.
    pub writers: usize,
    /// The number of pages in the pool.
    pub buffers: usize,
    /// How pages are read ahead and written in the background.
    pub io_method: IoMethod,
    /// The faults.
    pub trouble: Trouble,
    /// The largest number of calls in a life before the fault.
    pub reach: u64,
    /// Whether signals and short transfers happen all the time.
    pub is_mild: bool,
}

impl Plan {
    /// The plan that belongs to a seed, with slow clients.
    pub fn slow(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed ^ 0x736c_6f77);
        let (steps, writers) = (rng.random_range(10..40), rng.random_range(2..4));
        Self { clients: Clients::Slow(SlowSettings::of(rng)), steps, writers, ..Self::busy(seed) }
    }

    /// The plan that belongs to a seed, with busy clients.
    pub fn busy(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed ^ 0x706c_616e);
        let trouble = match rng.random_range(0..10) {
            0 => Trouble::None,
            1..=3 => Trouble::PowerLoss,
            4 => Trouble::Once(Errno::Io),
            5 => Trouble::Once(Errno::NoSpace),
            6 => Trouble::ReadOnly,
            7 => Trouble::DiskFull,
            8 => Trouble::Flaky,
            _ => Trouble::FewFiles,
        };
        Self {
            clients: Clients::Busy,
            lives: rng.random_range(2..5),
            steps: rng.random_range(10..60),
            writers: rng.random_range(1..4),
            buffers: [32, 64, 128][rng.random_range(0..3)],
            io_method: if rng.random() { IoMethod::Sync } else { IoMethod::Worker },
            trouble,
            reach: [100, 1000, 4000][rng.random_range(0..3)],
            is_mild: rng.random(),
        }
    }
}
