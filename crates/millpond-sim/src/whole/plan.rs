//! What a seed chooses.

use millpond_buffer::IoMethod;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::vfs::{Errno, VfsFault};

/// What goes wrong during a life, besides its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The power goes at some call.
    PowerLoss,
    /// One call fails.
    Once(Errno),
    /// Every call but reads fails from some call on.
    ReadOnly,
    /// The disk is full from some call on.
    DiskFull,
    /// Many calls fail, now and then.
    Flaky,
    /// Few files may be open.
    FewFiles,
    /// That happens to that call of each life.
    At(u64, VfsFault),
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often the engine starts.
    pub lives: u32,
    /// Transactions of each writer in a life.
    pub steps: u32,
    /// Sessions that write.
    pub writers: usize,
    /// Pages in the pool.
    pub buffers: usize,
    /// How pages are read ahead and written behind.
    pub io_method: IoMethod,
    /// What goes wrong.
    pub trouble: Trouble,
    /// Calls in a life before it does, at most.
    pub reach: u64,
    /// Whether signals and short transfers happen all the time.
    pub is_mild: bool,
}

impl Plan {
    /// The seed's own plan.
    pub fn of(seed: u64) -> Self {
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
