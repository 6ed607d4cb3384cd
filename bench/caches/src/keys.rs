//! The keys of a measurement, drawn before it starts.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// The number of keys drawn for a thread, which it uses in a cycle.
const COUNT: usize = 1 << 20;

/// The distribution of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All keys equally often.
    Uniform,
    /// The key of rank n with a frequency of n to the power of -1.1. Ranks are assigned at random.
    Zipfian,
    /// Always the same key.
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

    /// Draws keys below `bound` for each of `threads` threads.
    pub fn draw(self, bound: u32, threads: usize) -> Vec<Vec<u32>> {
        // One assignment of ranks for all threads, so that they share their hot keys.
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
