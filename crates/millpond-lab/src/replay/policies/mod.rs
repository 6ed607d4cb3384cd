//! Replacement policies: the pool's own, those of the literature, and the optimum.
//!
//! Each policy is a cache of page numbers, which is asked for one page after another. The
//! literature's policies follow their papers, on top of [`lists::Lists`]. Tests compare them with
//! slow models and with each other.

mod arc;
mod clock;
mod lirs;
mod lists;
mod opt;
mod pool;
mod queue;
mod s3_fifo;
mod sieve;
mod two_q;

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;

use super::trace::{AccessKind, Trace};
use millpond_buffer::policy::ReplacementPolicy;
use std::fmt;
use std::str::FromStr;

/// A request for a page.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// The page's number in its trace.
    pub page: u32,
    /// The kind of work that asks.
    pub kind: AccessKind,
}

/// A cache of pages with a replacement policy.
pub trait Policy {
    /// Uses a page, and loads it if it isn't in memory. Returns whether it was.
    fn access(&mut self, access: Access) -> bool;
}

/// The policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PolicyKind {
    /// The pool's clock sweep with probation.
    Probation,
    /// The pool's plain clock sweep.
    ClockSweep,
    /// Least recently used.
    Lru,
    /// First in, first out.
    Fifo,
    /// CLOCK, or second chance.
    Clock,
    /// 2Q, full version.
    TwoQ,
    /// Adaptive replacement cache.
    Arc,
    /// Low inter-reference recency set.
    Lirs,
    /// SIEVE.
    Sieve,
    /// S3-FIFO.
    S3Fifo,
    /// Belady's optimum.
    Opt,
}

impl PolicyKind {
    /// All policies, the pool's first and the optimum last.
    pub const ALL: [PolicyKind; 11] = [
        PolicyKind::Probation,
        PolicyKind::ClockSweep,
        PolicyKind::Lru,
        PolicyKind::Fifo,
        PolicyKind::Clock,
        PolicyKind::TwoQ,
        PolicyKind::Arc,
        PolicyKind::Lirs,
        PolicyKind::Sieve,
        PolicyKind::S3Fifo,
        PolicyKind::Opt,
    ];

    /// Its name, as on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Probation => "probation",
            PolicyKind::ClockSweep => "clock-sweep",
            PolicyKind::Lru => "lru",
            PolicyKind::Fifo => "fifo",
            PolicyKind::Clock => "clock",
            PolicyKind::TwoQ => "2q",
            PolicyKind::Arc => "arc",
            PolicyKind::Lirs => "lirs",
            PolicyKind::Sieve => "sieve",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::Opt => "optimum",
        }
    }

    /// A cache of `capacity` pages (at least one) for this trace.
    #[must_use]
    pub fn cache(self, capacity: usize, trace: &Trace) -> Box<dyn Policy> {
        let capacity = capacity.max(1);
        let distinct = trace.distinct;
        let pool = |policy| pool::Pool::new(policy, capacity, distinct);
        match self {
            PolicyKind::Probation => Box::new(pool(ReplacementPolicy::Probation)),
            PolicyKind::ClockSweep => Box::new(pool(ReplacementPolicy::ClockSweep)),
            PolicyKind::Lru => Box::new(queue::Queue::new(capacity, distinct, true)),
            PolicyKind::Fifo => Box::new(queue::Queue::new(capacity, distinct, false)),
            PolicyKind::Clock => Box::new(clock::Clock::new(capacity, distinct)),
            PolicyKind::TwoQ => Box::new(two_q::TwoQ::new(capacity, distinct)),
            PolicyKind::Arc => Box::new(arc::Arc::new(capacity, distinct)),
            PolicyKind::Lirs => Box::new(lirs::Lirs::new(capacity, distinct)),
            PolicyKind::Sieve => Box::new(sieve::Sieve::new(capacity, distinct)),
            PolicyKind::S3Fifo => Box::new(s3_fifo::S3Fifo::new(capacity, distinct)),
            PolicyKind::Opt => Box::new(opt::Opt::new(capacity, trace)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_ascii_lowercase().replace('_', "-");
        let wanted = match wanted.as_str() {
            "belady" | "opt" | "min" => "optimum",
            "s3fifo" => "s3-fifo",
            "twoq" => "2q",
            other => other,
        };
        Self::ALL.into_iter().find(|kind| kind.name() == wanted).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("there is no policy {text:?}; there are {}", names.join(", "))
        })
    }
}

/// A choice on the command line: a policy, or `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policies {
    /// Every policy.
    All,
    /// One policy.
    One(PolicyKind),
}

impl Policies {
    /// The policies.
    #[must_use]
    pub fn kinds(&self) -> &[PolicyKind] {
        match self {
            Self::All => &PolicyKind::ALL,
            Self::One(kind) => std::slice::from_ref(kind),
        }
    }
}

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("all") { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}
