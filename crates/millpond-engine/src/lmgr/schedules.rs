//! Random schedules of lock requests, in which one thread plays all sessions, against the
//! [reference](super::reference).
//!
//! After every step both must agree on the held locks, the order of the waiters, and the sessions
//! that were served. Every waiter searches for deadlocks once, at a random time after it began to
//! wait. Then the reference checks the verdict by trying every order of the queues. At any time
//! every cycle contains a session that has not searched yet. When all have searched, there is no
//! cycle. So every deadlock is detected, and none is reported falsely.
//!
//! `MILLPOND_LOCK_SEED=17` repeats one schedule and prints its steps.
//! `MILLPOND_LOCK_SCHEDULES=1000000` sets the number of schedules.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::deadlock::Search;
use super::graph::Verdict;
use super::queue::{GRANTED, IDLE};
use super::reference::{Answer, Reference};
use super::request::Begun;
use super::*;
use crate::lock::Place;
use crate::proc::{ProcArray, ProcHandle};

const SESSIONS: u16 = 6;
const STEPS: usize = 50;
const OWNER: LockOwner = LockOwner::Transaction;
const OBJECTS: [LockTag; 4] = [
    LockTag::Relation(16384),
    LockTag::Relation(16385),
    LockTag::Advisory { high: 0, low: 7, two_keys: false },
    LockTag::Tuple { relation: 16384, block: 3, offset: 1 },
];

/// Counts of what happened, to check that the schedules are varied enough.
#[derive(Default, Debug)]
struct Tally {
    granted: u32,
    queued: u32,
    refused: u32,
    early_deadlocks: u32,
    timeouts: u32,
    free: u32,
    reordered: u32,
    victims: u32,
    later: u32,
}

struct Schedule<'t> {
    seed: u64,
    rng: StdRng,
    manager: Arc<LockManager>,
    procs: Vec<ProcHandle>,
    model: Reference,
    /// Waiters that have not searched yet.
    to_search: BTreeSet<u16>,
    tally: &'t mut Tally,
    verbose: bool,
}

impl Drop for Schedule<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with MILLPOND_LOCK_SEED={}", self.seed);
        }
    }
}

impl<'t> Schedule<'t> {
    fn new(seed: u64, tally: &'t mut Tally, verbose: bool) -> Self {
        let procs = ProcArray::new(SESSIONS);
        let manager = LockManager::new(procs.clone());
        let procs = (0..SESSIONS).map(|_| procs.register("test").unwrap()).collect();
        Schedule {
            seed,
            rng: StdRng::seed_from_u64(seed),
            manager,
            procs,
            model: Reference::default(),
            to_search: BTreeSet::new(),
            tally,
            verbose,
        }
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{}", what());
        }
    }

    fn run(&mut self) {
        // Some schedules have few objects and modes that conflict much, others have all of them.
        let objects = self.rng.random_range(1..=OBJECTS.len());
        let weakest = self.rng.random_range(0..6);
        for _ in 0..STEPS {
            let session = self.rng.random_range(0..SESSIONS);
            if self.model.wait_of(session).is_some() {
                match self.rng.random_range(0..60) {
                    0 => self.time_out(session),
                    1..20 if self.to_search.contains(&session) => self.search(session),
                    _ => continue,
                }
            } else {
                match self.rng.random_range(0..10) {
                    0 => self.release_all(session),
                    1 | 2 => self.release_one(session),
                    choice => {
                        let tag = OBJECTS[self.rng.random_range(0..objects)];
                        let mode = LockMode::ALL[self.rng.random_range(weakest..8)];
                        self.request(session, tag, mode, choice != 9);
                    }
                }
            }
            self.compare();
        }
        // A session that has to search again does so after the others, until none has to.
        while !self.to_search.is_empty() {
            for session in self.to_search.clone() {
                if self.to_search.contains(&session) {
                    self.search(session);
                    self.compare();
                }
            }
        }
        let cycles = self.model.in_cycles(true, &BTreeSet::new());
        assert!(cycles.is_empty(), "a deadlock of {cycles:?} was not found: {:?}", self.model);
        self.finish();
    }

    /// Each session that does not wait ends its transaction, until none is left.
    fn finish(&mut self) {
        for _ in 0..SESSIONS {
            for session in 0..SESSIONS {
                if self.model.wait_of(session).is_none() {
                    self.release_all(session);
                    self.compare();
                }
            }
        }
        assert!(self.manager.list().is_empty(), "a session waits for ever");
        for object in OBJECTS {
            // No counter of strong lockers is left raised: weak locks use slots again.
            let mode = LockMode::AccessShare;
            self.manager.acquire(&self.procs[0], object, mode, LockWait::Never).unwrap();
            let fast = self.manager.list()[0].fast_path;
            assert_eq!(fast, matches!(object, LockTag::Relation(_)));
            self.manager.release_all(&self.procs[0]);
        }
    }

    fn request(&mut self, session: u16, tag: LockTag, mode: LockMode, may_wait: bool) {
        let expected = self.model.request(session, tag, mode, may_wait);
        self.say(|| format!("{session} asks for {mode} on {tag}, waits: {may_wait}: {expected:?}"));
        let proc = &self.procs[session as usize];
        let begun = self.manager.begin(proc, OWNER, tag, mode, may_wait);
        let answer = match begun {
            Ok(Begun::AlreadyHeld) => Answer::Already,
            Ok(Begun::Granted(place)) => {
                self.manager.note_held(proc, OWNER, tag, mode, place);
                self.tally.granted += 1;
                Answer::Granted
            }
            Ok(Begun::Queued) => {
                self.to_search.insert(session);
                self.tally.queued += 1;
                Answer::Queued
            }
            Err(LockError::WouldBlock { .. }) => {
                self.tally.refused += 1;
                Answer::WouldBlock
            }
            Err(LockError::Deadlock { detail }) => {
                assert_eq!(detail.lines().count(), 2, "{detail}");
                self.tally.early_deadlocks += 1;
                Answer::Deadlock
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(answer, expected, "{session} asks for {mode} on {tag}");
    }

    fn release_one(&mut self, session: u16) {
        let mine: Vec<_> =
            self.model.held.keys().filter(|(s, ..)| *s == session).copied().collect();
        if mine.is_empty() {
            return;
        }
        let (_, tag, mode) = mine[self.rng.random_range(0..mine.len())];
        self.say(|| format!("{session} gives {mode} on {tag} back"));
        let served = self.model.release(session, tag, mode);
        assert!(self.manager.release(&self.procs[session as usize], OWNER, tag, mode));
        self.served(&served);
    }

    fn release_all(&mut self, session: u16) {
        self.say(|| format!("{session} gives everything back"));
        let served = self.model.release_all(session);
        self.manager.release_transaction(&self.procs[session as usize]);
        self.served(&served);
    }

    fn time_out(&mut self, session: u16) {
        let Some((tag, mode)) = self.model.wait_of(session) else { return };
        self.say(|| format!("{session} gives up waiting"));
        let served = self.model.leave(session);
        let proc = &self.procs[session as usize];
        let ended = self.manager.give_up(proc, tag, LockError::Timeout);
        assert_eq!(ended, Err(LockError::Timeout));
        self.manager.abandon(&tag, mode);
        self.to_search.remove(&session);
        self.tally.timeouts += 1;
        self.served(&served);
    }

    /// Checks that exactly the served sessions find themselves granted.
    fn served(&mut self, served: &[u16]) {
        for session in 0..SESSIONS {
            let proc = &self.procs[session as usize];
            let word = self.manager.procs.lock_wait(proc.no());
            let granted = word.load(Ordering::Relaxed) == GRANTED;
            assert_eq!(granted, served.contains(&session), "whether {session} was served");
            if granted {
                self.say(|| format!("{session} is served"));
                word.store(IDLE, Ordering::Relaxed);
                self.to_search.remove(&session);
                let is_new = |(s, tag, mode): &&(u16, LockTag, LockMode)| {
                    *s == session && !self.manager.holds(proc, *tag, *mode)
                };
                let (_, tag, mode) = self.model.held.keys().find(is_new).expect("it is granted");
                self.manager.note_held(proc, OWNER, *tag, *mode, Place::Table);
            }
        }
    }

    /// A session searches for a deadlock.
    fn search(&mut self, session: u16) {
        let no = self.procs[session as usize].no();
        let verdict = self.manager.verdict(no);
        let victim = match verdict {
            Verdict::Deadlock(_) => self.model.wait_of(session),
            _ => None,
        };
        let (expected, served) = self.expect(session, verdict);
        if expected != Search::Again {
            self.to_search.remove(&session);
        }
        match (self.manager.find_deadlock(no), expected) {
            (Search::Victim(detail), Search::Victim(_)) => {
                assert!(detail.lines().count() >= 2, "{detail}");
            }
            (found, expected) => assert_eq!(found, expected),
        }
        self.served(&served);
        if let Some((tag, mode)) = victim {
            self.manager.abandon(&tag, mode);
            if self.rng.random_range(0..4) > 0 {
                self.release_all(session);
            }
        }
    }

    /// Checks a verdict by the model and carries it out there. Returns what the search must find,
    /// and which sessions get their locks by that.
    fn expect(&mut self, session: u16, verdict: Verdict) -> (Search, Vec<u16>) {
        let none = BTreeSet::new();
        let cycles = self.model.in_cycles(true, &none);
        let deadlocks = self.model.in_cycles(false, &none);
        self.say(|| {
            format!("{session} searches; in cycles {cycles:?}, {deadlocks:?}: {verdict:?}")
        });
        let mut served = Vec::new();
        let expected = match verdict {
            Verdict::Free => {
                assert!(!cycles.contains(&session), "a deadlock is overlooked");
                self.tally.free += 1;
                Search::Wait
            }
            Verdict::Later => {
                assert!(cycles.contains(&session) && self.model.some_order_helps(session));
                assert!(!deadlocks.is_empty() && !deadlocks.contains(&session));
                self.tally.later += 1;
                Search::Again
            }
            Verdict::Reorder(queues) => {
                assert!(cycles.contains(&session) && self.model.some_order_helps(session));
                self.reorder(&queues);
                let left = self.model.in_cycles(true, &none);
                assert!(!left.contains(&session), "the new order does not help");
                assert!(left.is_subset(&cycles), "the new order makes another cycle");
                for (tag, _) in queues {
                    served.extend(self.model.serve(tag));
                }
                self.tally.reordered += 1;
                Search::Reordered
            }
            Verdict::Deadlock(cycle) => {
                assert!(deadlocks.contains(&session), "a false deadlock: {cycle:?}");
                assert!(!self.model.some_order_helps(session), "an order would have helped");
                self.check_cycle(session, &cycle);
                served = self.model.leave(session);
                self.tally.victims += 1;
                Search::Victim(String::new())
            }
        };
        (expected, served)
    }

    /// Gives the model's queues the verdict's order, which must have the same waiters.
    fn reorder(&mut self, queues: &[(LockTag, Vec<SessionNo>)]) {
        for (tag, order) in queues {
            let queue = self.model.queues.get_mut(tag).expect("a queue");
            let modes: BTreeMap<u16, LockMode> = queue.iter().copied().collect();
            assert_eq!(order.len(), queue.len());
            *queue = order.iter().map(|session| (session.0, modes[&session.0])).collect();
        }
    }

    /// Checks each link of a cycle: each session waits for the next, which holds what blocks it.
    fn check_cycle(&self, session: u16, cycle: &[super::graph::Edge]) {
        for (index, edge) in cycle.iter().enumerate() {
            assert_eq!(edge.blocker, cycle[(index + 1) % cycle.len()].waiter);
            assert_eq!(self.model.wait_of(edge.waiter.0), Some((edge.tag, edge.mode)));
            let in_the_way = |(s, t, m): &(u16, LockTag, LockMode)| {
                *s == edge.blocker.0 && *t == edge.tag && m.conflicts_with(edge.mode)
            };
            assert!(edge.hard && self.model.held.keys().any(in_the_way), "{edge:?}");
        }
        assert_eq!(cycle[0].waiter.0, session);
    }

    /// Checks that both agree, and that every cycle contains a session that has not searched yet.
    fn compare(&self) {
        let mut held = BTreeSet::new();
        let mut queues: BTreeMap<LockTag, Vec<(u16, LockMode)>> = BTreeMap::new();
        for lock in self.manager.list() {
            if lock.granted {
                held.insert((lock.session.0, lock.tag, lock.mode));
            } else {
                queues.entry(lock.tag).or_default().push((lock.session.0, lock.mode));
            }
        }
        let expected: BTreeSet<_> = self.model.held.keys().copied().collect();
        assert_eq!(held, expected);
        let expected: BTreeMap<_, _> =
            self.model.queues.iter().filter(|(_, q)| !q.is_empty()).collect();
        assert_eq!(queues.iter().collect::<BTreeMap<_, _>>(), expected);
        let unnoticed = self.model.in_cycles(true, &self.to_search);
        assert!(unnoticed.is_empty(), "no session of {unnoticed:?} is still to search");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run_all(start: u64, schedules: u64, tally: &mut Tally) {
    for seed in start..start + schedules {
        Schedule::new(seed, tally, false).run();
    }
}

/// A few schedules, the same in each run.
#[test]
fn some_schedules_agree_with_the_reference() {
    run_all(0, 200, &mut Tally::default());
}

#[test]
fn random_schedules_agree_with_the_reference() {
    let mut tally = Tally::default();
    if let Some(seed) = number("MILLPOND_LOCK_SEED") {
        return Schedule::new(seed, &mut tally, true).run();
    }
    let schedules = number("MILLPOND_LOCK_SCHEDULES").unwrap_or(10_000);
    let start =
        number("MILLPOND_LOCK_FIRST_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 32);
    println!("seeds from {start}");
    run_all(start, schedules, &mut tally);
    println!("{schedules} schedules: {tally:?}");
    let Tally { granted, queued, refused, early_deadlocks, timeouts, .. } = tally;
    let Tally { free, reordered, victims, later, .. } = tally;
    let often = [granted, queued, refused, early_deadlocks, timeouts, free, victims];
    let rarely = [reordered, later];
    let enough = often.iter().all(|n| u64::from(*n) * 20 > schedules)
        && rarely.iter().all(|n| u64::from(*n) * 100 > schedules);
    assert!(enough || schedules < 1_000, "the schedules are too tame: {tally:?}");
}
