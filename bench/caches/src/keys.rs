//! The keys of a measurement, drawn before it begins.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// How many keys a thread has drawn; it goes round.
const COUNT: usize = 1 << 20;

/// Which keys are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All equally often.
    Uniform,
    /// The one of rank n as often as n to the power of -1.1, ranks dealt out at random.
    Zipfian,
    /// One key always.
    One,
}

impl Keys {
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::One => "one",
        }
    }

    /// Keys less than `bound` for each of `threads` threads.
    pub fn draw(self, bound: u32, threads: usize) -> Vec<Vec<u32>> {
        // One dealing of ranks for all threads: what is hot is hot for everybody.
        let mut dealt: Vec<u32> = (0..bound).collect();
        dealt.shuffle(&mut SmallRng::seed_from_u64(7));
        (0..threads as u64)
            .map(|thread| {
                let mut rng = SmallRng::seed_from_u64(thread + 1);
                match self {
                    Self::Uniform => (0..COUNT).map(|_| rng.random_range(0..bound)).collect(),
                    Self::Zipfian => match Zipf::new(f64::from(bound), 1.1) {
                        Ok(zipf) => (0..COUNT)
                            .map(|_| {
                                dealt[(zipf.sample(&mut rng) as usize - 1).min(dealt.len() - 1)]
                            })
                            .collect(),
                        Err(_) => vec![0; COUNT],
                    },
                    Self::One => vec![dealt[0]; COUNT],
                }
            })
            .collect()
    }
}
