//! A model of many cores that run statements and pass cache lines to one another.
//!
//! A core runs one statement after the other. A statement is an amount of work on the core's own
//! memory, interrupted by visits to lines that other cores visit, too. As in a directory protocol,
//! a line is in one place at a time:
//!
//! - To write a line, a core must own it alone. If another core wrote or read it last, the line is
//!   transferred. A transfer takes as long as a message between the two cores. Transfers of one
//!   line happen one after another.
//! - To read a line, a core needs its last written version. The first read after another core's
//!   write is a transfer as above; later reads are free.
//!
//! Not modelled: compare-and-swaps that fail, spinning, sleeping and waking, memory bandwidth, the
//! time in which locks are held. All of these make real systems slower than the model when lines
//! are contended. Its figures are therefore upper bounds where it says that lines are the limit.

use super::profile::{Profile, Step};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The costs of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// The time of a transfer between cores of a socket.
    pub near_ns: f64,
    /// The time of a transfer between sockets.
    pub far_ns: f64,
    /// The number of cores in a socket.
    pub cores_per_socket: usize,
}

impl Machine {
    /// The same machine, with transfers that take `times` as long.
    #[must_use]
    pub fn slower(self, times: f64) -> Self {
        Self { near_ns: self.near_ns * times, far_ns: self.far_ns * times, ..self }
    }

    fn transfer(&self, from: u32, to: u32) -> f64 {
        let socket = |core: u32| core as usize / self.cores_per_socket.max(1);
        if socket(from) == socket(to) { self.near_ns } else { self.far_ns }
    }
}

/// The approximate number of visits in a simulation, of which the first fifth is not counted.
const VISITS: u64 = 300_000;
/// The least and the most statements that each core runs.
const STATEMENTS: (u64, u64) = (20, 300);

#[derive(Clone)]
struct Line {
    /// The core that wrote it last.
    owner: u32,
    /// Raised by each write.
    version: u32,
    /// When the current transfer ends.
    free_at: f64,
    /// Whether other cores have read it since the last write.
    is_shared: bool,
}

/// The lines of one group, and which version of each line a core has. For a large group that is not
/// recorded, because a core rarely visits the same line twice by chance.
struct Group {
    lines: Vec<Line>,
    /// By core and line; empty for large groups.
    seen: Vec<u32>,
}

const SMALL: usize = 256;

impl Group {
    fn new(lines: usize, cores: usize) -> Self {
        let line = |at: usize| Line {
            owner: (at % cores) as u32,
            version: 1,
            free_at: 0.0,
            is_shared: false,
        };
        let seen = if lines <= SMALL { vec![0; lines * cores] } else { Vec::new() };
        Self { lines: (0..lines).map(line).collect(), seen }
    }

    /// Visits a line at `now`. Returns when the visit ends.
    fn visit(&mut self, at: usize, core: u32, writes: bool, now: f64, machine: &Machine) -> f64 {
        let count = self.lines.len();
        let line = &mut self.lines[at];
        let seen = self.seen.get_mut(core as usize * count + at);
        let is_here = line.owner == core && (!writes || !line.is_shared)
            || !writes && seen.as_ref().is_some_and(|seen| **seen == line.version);
        let mut end = now;
        if !is_here {
            let from = if line.owner == core { core ^ 1 } else { line.owner };
            end = now.max(line.free_at) + machine.transfer(from, core);
            line.free_at = end;
        }
        if writes {
            line.owner = core;
            line.version = line.version.wrapping_add(1);
            line.is_shared = false;
        } else if line.owner != core {
            line.is_shared = true;
        }
        if let Some(seen) = seen {
            *seen = line.version;
        }
        end
    }
}

/// Statements per second of `cores` cores.
#[must_use]
pub fn throughput(profile: &Profile, machine: &Machine, cores: usize) -> f64 {
    let mut groups: Vec<Group> =
        profile.groups.iter().map(|group| Group::new(group.lines, cores)).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let slice = profile.work_ns / (profile.steps.len() + 1) as f64;
    // Cores, by the time of their next event.
    let mut next: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut state = vec![(0usize, 0u64, 0u64); cores];
    for core in 0..cores as u32 {
        let start = random.unit() * profile.work_ns;
        next.push(Reverse((to_key(start), core)));
    }
    let visits = (profile.steps.len() as u64 + 1) * cores as u64;
    let statements = (VISITS / visits).clamp(STATEMENTS.0, STATEMENTS.1);
    let (warm, all) = (statements / 5 * cores as u64, statements * cores as u64);
    let (mut done, mut warm_at, mut now) = (0, 0.0, 0.0);
    while done < all
        && let Some(Reverse((key, core))) = next.pop()
    {
        now = from_key(key);
        let (at, chosen, _) = &mut state[core as usize];
        if *at == 0 {
            *chosen = random.next();
        }
        let end = match profile.steps.get(*at) {
            Some(&Step { group, writes }) => {
                *at += 1;
                let lines = groups[group].lines.len() as u64;
                let line = (chosen.rotate_left(group as u32 * 13) % lines) as usize;
                groups[group].visit(line, core, writes, now, machine)
            }
            None => {
                *at = 0;
                done += 1;
                if done == warm {
                    warm_at = now;
                }
                now
            }
        };
        // Varies the time by up to a fifth, so that cores don't run in step.
        let work = slice * (0.8 + 0.4 * random.unit());
        next.push(Reverse((to_key(end + work), core)));
    }
    (done - warm) as f64 / (now - warm_at) * 1e9
}

/// Times of events as integers, which are ordered: thousandths of a nanosecond.
fn to_key(ns: f64) -> u64 {
    (ns * 1000.0) as u64
}

fn from_key(key: u64) -> f64 {
    key as f64 / 1000.0
}

/// xorshift64, so that the model gives the same figures every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::profile::LineGroup;

    const MACHINE: Machine = Machine { near_ns: 50.0, far_ns: 100.0, cores_per_socket: 64 };

    fn profile(work_ns: f64, lines: usize, visits: usize, writes: bool) -> Profile {
        Profile {
            name: "test",
            work_ns,
            groups: vec![LineGroup { name: "line", lines }],
            steps: vec![Step { group: 0, writes }; visits],
        }
    }

    fn near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 0.03
    }

    #[test]
    fn without_shared_lines_cores_add_up() {
        let alone = profile(1000.0, 1, 0, false);
        for cores in [1, 2, 64, 256] {
            let found = throughput(&alone, &MACHINE, cores);
            assert!(near(found, cores as f64 * 1e6), "{cores}: {found}");
        }
    }

    #[test]
    fn lines_that_are_only_read_cost_nothing() {
        let found = throughput(&profile(1000.0, 1, 3, false), &MACHINE, 64);
        assert!(near(found, 64e6), "{found}");
    }

    #[test]
    fn line_that_all_cores_write_limits_throughput() {
        let hot = profile(1000.0, 1, 1, true);
        assert!(near(throughput(&hot, &MACHINE, 1), 1e6));
        // Transfers of 50 ns, one after another.
        let found = throughput(&hot, &MACHINE, 64);
        assert!(near(found, 20e6), "{found}");
        let found = throughput(&hot, &MACHINE.slower(2.0), 64);
        assert!(near(found, 10e6), "{found}");
        // Half of the owners are in the other socket.
        let found = throughput(&hot, &MACHINE, 128);
        assert!((12e6..15e6).contains(&found), "{found}");
    }

    #[test]
    fn writes_to_many_lines_cost_time_but_scale() {
        // The second visit finds the line where the first visit brought it.
        let found = throughput(&profile(1000.0, 100_000, 2, true), &MACHINE, 64);
        assert!(near(found, 64.0 / 1050e-9), "{found}");
    }
}
