//! Makes inputs from others.
//!
//! An input depends only on the corpus, a seed and its number, so every input can be made again.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Boundary values at which decoders behave differently.
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    31,
    32,
    63,
    64,
    127,
    128,
    255,
    256,
    4095,
    4096,
    8191,
    8192,
    16383,
    16384,
    32767,
    32768,
    65535,
    65536,
    (1 << 28) - 1,
    1 << 28,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Makes the inputs of one run of a target.
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    tokens: &'a [&'a [u8]],
    seed: u64,
    longest: usize,
}

impl<'a> Mutator<'a> {
    /// Makes inputs of at most `longest` bytes from a corpus, which must not be empty.
    pub fn new(corpus: &'a [Vec<u8>], tokens: &'a [&'a [u8]], seed: u64, longest: usize) -> Self {
        Self { corpus, tokens, seed, longest }
    }

    /// The input with this number.
    pub fn input(&self, number: u64) -> Vec<u8> {
        let mut rng =
            SmallRng::seed_from_u64(self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        if rng.random_ratio(1, 64) {
            let mut random = vec![0; rng.random_range(0..=self.longest.min(512))];
            rng.fill(random.as_mut_slice());
            return random;
        }
        let mut input = self.any(&mut rng).to_vec();
        let changes = 1u32 << rng.random_range(0..5);
        for _ in 0..rng.random_range(1..=changes) {
            self.change(&mut input, &mut rng);
        }
        input.truncate(self.longest);
        input
    }

    fn any(&self, rng: &mut SmallRng) -> &'a [u8] {
        &self.corpus[rng.random_range(0..self.corpus.len())]
    }

    fn change(&self, input: &mut Vec<u8>, rng: &mut SmallRng) {
        let at = rng.random_range(0..=input.len());
        let run = |rng: &mut SmallRng| {
            let most = if rng.random() { 8 } else { 64 };
            at..(at + rng.random_range(1..=most)).min(input.len())
        };
        match rng.random_range(0..11) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << rng.random_range(0..8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = rng.random();
                }
            }
            2 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(rng.random_range(0..=16)).wrapping_sub(8);
                }
            }
            3 => input.insert(at, rng.random()),
            4 => drop(input.drain(run(rng))),
            5 => {
                let copied = input[run(rng)].to_vec();
                let to = rng.random_range(0..=input.len());
                input.splice(to..to, copied);
            }
            6 => input.truncate(at),
            7 => {
                // The end of another input, or a piece of it.
                let other = self.any(rng);
                let from = rng.random_range(0..=other.len());
                let end = if rng.random() { input.len() } else { run(rng).end };
                let piece = &other[from..];
                let piece = &piece[..piece.len().min(rng.random_range(0..=self.longest))];
                input.splice(at..end.max(at), piece.iter().copied());
            }
            8 | 9 => write_number(&mut input[at..], rng),
            _ => {
                if self.tokens.is_empty() {
                    return;
                }
                let token = self.tokens[rng.random_range(0..self.tokens.len())];
                let end = if rng.random() { at } else { (at + token.len()).min(input.len()) };
                input.splice(at..end, token.iter().copied());
            }
        }
    }
}

/// Writes a number of some width in one of the two byte orders.
fn write_number(to: &mut [u8], rng: &mut SmallRng) {
    let number = number(rng);
    let width = [1, 2, 4, 8][rng.random_range(0..4)];
    let bytes: [u8; 8] =
        if rng.random() { number.to_le_bytes() } else { number.swap_bytes().to_le_bytes() };
    let (front, back) = (&bytes[..width], &bytes[8 - width..]);
    let bytes = if front.iter().all(|&byte| byte == 0) { back } else { front };
    for (to, from) in to.iter_mut().zip(bytes) {
        *to = *from;
    }
}

fn number(rng: &mut SmallRng) -> u64 {
    let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
    let near = number.wrapping_add(rng.random_range(0..=4)).wrapping_sub(2);
    if rng.random() { number } else { near }
}
