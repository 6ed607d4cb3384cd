//! Faults of calls, planned and random.

use std::io;

use rand::Rng;
use rand::rngs::StdRng;

/// An error that a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errno {
    /// Input/output error.
    Io,
    /// No space left on the device.
    NoSpace,
    /// Too many open files.
    TooManyFiles,
    /// A signal interrupted the call.
    Interrupted,
}

impl Errno {
    pub(super) fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Self::Io => 5,
            Self::NoSpace => 28,
            Self::TooManyFiles => 24,
            Self::Interrupted => 4,
        })
    }
}

/// How much of a call's effect has happened when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Nothing.
    Before,
    /// A part: some bytes of a write, some sectors of a sync.
    Halfway,
    /// All of it.
    After,
}

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VfsFault {
    /// The call returns an error.
    Error(Errno, When),
    /// A read or write transfers fewer bytes than it was given.
    Short,
    /// A write returns success and does nothing.
    LostWrite,
    /// A write returns success and goes to another position in the file.
    MisdirectedWrite,
    /// A read returns what the disk held before the last sync.
    StaleRead,
    /// A read returns one wrong bit. The bytes on the disk are right.
    FlippedRead,
    /// A sector that the call reads becomes unreadable until it is written.
    LatentSector,
    /// The power fails. Every later call fails until [`SimFs::crash`](super::SimFs::crash).
    PowerLoss(When),
    /// From now on calls that need more space fail.
    DiskFull,
    /// From now on every call fails, except those that only read.
    ReadOnly,
    /// From now on every call fails.
    Dead,
}

/// How likely each call is to fail in a way that a correct program survives without harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// [`VfsFault::Error`] with [`Errno::Io`], for reads.
    pub read_error: f64,
    /// [`VfsFault::Error`] with [`Errno::Io`], for all other calls.
    pub write_error: f64,
    /// [`Errno::NoSpace`], for calls that need space.
    pub no_space: f64,
    /// [`Errno::TooManyFiles`], for opening.
    pub too_many_files: f64,
    /// [`Errno::Interrupted`].
    pub interrupted: f64,
    /// [`VfsFault::Short`].
    pub short: f64,
}

impl Rates {
    /// No fault that a caller may report: only signals and short transfers.
    pub const MILD: Self = Self {
        read_error: 0.0,
        write_error: 0.0,
        no_space: 0.0,
        too_many_files: 0.0,
        interrupted: 0.01,
        short: 0.05,
    };

    /// Every call fails.
    pub(super) const DEAD: Self = Self {
        read_error: 1.0,
        write_error: 1.0,
        no_space: 0.0,
        too_many_files: 0.0,
        interrupted: 0.0,
        short: 0.0,
    };
}

/// Kinds of calls, to which faults apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Read,
    Write,
    Grow,
    Sync,
    Name,
    Look,
}

impl Kind {
    pub fn may_be_short(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    fn needs_space(self) -> bool {
        matches!(self, Self::Open | Self::Write | Self::Grow | Self::Name)
    }

    /// A signal may interrupt calls that wait for a device.
    fn can_be_interrupted(self) -> bool {
        matches!(self, Self::Open | Self::Read | Self::Write | Self::Grow)
    }
}

const MOMENTS: [When; 3] = [When::Before, When::Halfway, When::After];

/// Planned and random faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    planned: Vec<(u64, VfsFault)>,
    pub rates: Rates,
    pub disk_full: bool,
    pub read_only: bool,
    pub powered_off: bool,
}

impl Faults {
    pub fn plan(&mut self, call: u64, fault: VfsFault) {
        self.planned.push((call, fault));
    }

    /// Whether a planned fault has not happened yet.
    pub fn is_pending(&self) -> bool {
        !self.planned.is_empty()
    }

    pub fn next(&mut self, call: u64, kind: Kind, rng: &mut StdRng) -> Option<VfsFault> {
        if let Some(at) = self.planned.iter().position(|(planned, _)| *planned <= call) {
            let (_, fault) = self.planned.swap_remove(at);
            return Some(fault);
        }
        if self.read_only && !matches!(kind, Kind::Read | Kind::Look) {
            return Some(VfsFault::Error(Errno::Io, When::Before));
        }
        self.random(kind, rng)
    }

    fn random(&self, kind: Kind, rng: &mut StdRng) -> Option<VfsFault> {
        let Rates { read_error, write_error, no_space, too_many_files, interrupted, short } =
            self.rates;
        let io_error =
            if matches!(kind, Kind::Read | Kind::Look) { read_error } else { write_error };
        let rates = [
            (io_error, true, Errno::Io),
            (no_space, kind.needs_space(), Errno::NoSpace),
            (too_many_files, kind == Kind::Open, Errno::TooManyFiles),
            (interrupted, kind.can_be_interrupted(), Errno::Interrupted),
        ];
        for (rate, applies, errno) in rates {
            if rate > 0.0 && applies && rng.random_bool(rate) {
                let when = match errno {
                    Errno::Io => MOMENTS[rng.random_range(0..3)],
                    _ => When::Before,
                };
                return Some(VfsFault::Error(errno, when));
            }
        }
        (short > 0.0 && kind.may_be_short() && rng.random_bool(short)).then_some(VfsFault::Short)
    }

    /// Ends all faults. After a power loss, the power stays off.
    pub fn heal(&mut self) {
        let powered_off = self.powered_off;
        *self = Self { powered_off, ..Self::default() };
    }
}
