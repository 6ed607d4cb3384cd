//! Records calls: a hash of all calls, and on request the calls in full.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;

/// A call, as the hash covers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Called {
    /// The name of the call: `open`, `read`, and so on.
    pub kind: &'static str,
    /// The name under which the file was opened, or the path of the call.
    pub path: String,
    /// The position in the file.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// A hash of the bytes that were written.
    pub content: u64,
    /// `Ok` with the result, or the error.
    pub outcome: Result<u64, String>,
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, path, offset, bytes, content, outcome } = self;
        write!(f, "{kind} {path} {offset}+{bytes} ({content:x}): {outcome:?}")
    }
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    hash: Fnv,
    all: Option<Vec<Called>>,
}

/// FNV-1a: the same on every machine and in every run.
#[derive(Clone, Debug)]
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    // Eight bytes at a time, because pages are long.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash =
            (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    hash
}

impl Trace {
    pub fn note(&mut self, called: Called) {
        called.hash(&mut self.hash);
        if let Some(all) = &mut self.all {
            all.push(called);
        }
    }

    pub fn keep_all(&mut self) {
        self.all.get_or_insert_default();
    }

    pub fn all(&self) -> Vec<Called> {
        self.all.clone().unwrap_or_default()
    }

    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }
}

pub(super) fn outcome(result: &io::Result<u64>) -> Result<u64, String> {
    result.as_ref().copied().map_err(ToString::to_string)
}
