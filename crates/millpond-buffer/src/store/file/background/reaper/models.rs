//! Shuttle's exploration of tending: no thread that waits for a page is forgotten, whichever thread
//! has begun the read.
//!
//! The kernel is a queue of completions to which a thread for each read adds. Shuttle may end the
//! reaper's leisure at any time, but only a limited number of times. So a wait that only the end of
//! that leisure would end is found as a deadlock.

use super::*;
use millpond_sync::atomic::AtomicBool;
use millpond_sync::parking;
use millpond_sync::sync::{Arc, Condvar, Mutex};
use millpond_sync::thread;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::collections::VecDeque;

const RINGS: usize = 2;
const PAGES: usize = 6;
/// The read of page 4 begins where that of page 0 ends, as the next of a stream.
const NEXT: (usize, usize) = (0, 4);
/// How often the reaper looks without having been called.
const LOOKS: usize = 2;

#[derive(Default)]
struct Kernel {
    completed: [Vec<usize>; RINGS],
    called: bool,
    stop: bool,
}

/// What all threads share.
#[derive(Default)]
struct World {
    kernel: Mutex<Kernel>,
    changed: Condvar,
    pages: [AtomicBool; PAGES],
}

impl World {
    fn change(&self, change: impl FnOnce(&mut Kernel)) {
        change(&mut self.kernel.lock());
        self.changed.notify_all();
    }

    fn wait_until(&self, enough: impl Fn(&Kernel) -> bool) {
        let mut kernel = self.kernel.lock();
        while !enough(&kernel) {
            kernel = self.changed.wait(kernel);
        }
    }

    fn is_there(&self, page: usize) -> bool {
        self.pages[page].load(Ordering::Acquire)
    }

    fn key(&self, page: usize) -> usize {
        std::ptr::from_ref(&self.pages[page]).addr()
    }
}

struct FakeRing {
    number: usize,
    tending: Tending,
    world: Arc<World>,
}

impl FakeRing {
    fn begin(&self, page: usize) {
        if self.tending.began() {
            self.wake_spare();
        }
        let (number, world) = (self.number, Arc::clone(&self.world));
        thread::spawn(move || world.change(|kernel| kernel.completed[number].push(page)));
    }
}

impl Tended for FakeRing {
    fn tending(&self) -> &Tending {
        &self.tending
    }

    fn finish_completed(&self, has_enough: &dyn Fn() -> bool) -> bool {
        let mut ended = VecDeque::new();
        let (mut has_finished, mut reaps) = (false, true);
        loop {
            let mut reaped = Vec::new();
            if reaps {
                reaped = std::mem::take(&mut self.world.kernel.lock().completed[self.number]);
                self.tending.ended(reaped.len());
            }
            if reaped.contains(&NEXT.0) {
                self.begin(NEXT.1);
            }
            ended.extend(reaped);
            let Some(page) = ended.pop_front() else { return has_finished };
            assert!(!self.world.pages[page].swap(true, Ordering::AcqRel), "finished twice");
            parking::unpark_all(self.world.key(page));
            has_finished = true;
            reaps = reaps && !has_enough();
        }
    }

    fn wait_for_completion(&self) -> bool {
        self.world.wait_until(|kernel| !kernel.completed[self.number].is_empty());
        true
    }

    fn wake_spare(&self) {
        self.world.change(|kernel| kernel.called = true);
    }
}

fn wait_for(rings: &[FakeRing], own: usize, page: usize) {
    let world = &rings[own].world;
    while !world.is_there(page) {
        tend(&rings[own], &|| world.is_there(page));
        if !world.is_there(page) {
            let _waiters: Vec<_> = rings.iter().map(Waiter::new).collect();
            parking::park(world.key(page), || !world.is_there(page), None);
        }
    }
}

fn run_spare(rings: &[FakeRing]) {
    let (world, mut reaper, mut looks) = (&rings[0].world, Reaper::default(), LOOKS);
    loop {
        world.change(|kernel| kernel.called = false);
        let Next::Sleep(alone, limit) = reaper.look(rings) else { continue };
        if limit.is_some() && looks > 0 && thread_rng().gen_bool(0.5) {
            looks -= 1;
            continue;
        }
        let is_some = |kernel: &Kernel| alone.iter().any(|&at| !kernel.completed[at].is_empty());
        world.wait_until(|kernel| kernel.called || kernel.stop || is_some(kernel));
        if world.kernel.lock().stop {
            return;
        }
    }
}

/// Runs sessions, each of which begins reads in its ring and then waits for pages.
fn explore(sessions: &'static [(usize, &'static [usize], &'static [usize])]) {
    let test = move || {
        let world = Arc::new(World::default());
        let ring = |number| FakeRing { number, tending: Tending::default(), world: world.clone() };
        let rings: Arc<Vec<FakeRing>> = Arc::new((0..RINGS).map(ring).collect());
        let reaper = thread::spawn({
            let rings = Arc::clone(&rings);
            move || run_spare(&rings)
        });
        let waiters: Vec<_> = sessions
            .iter()
            .map(|&(own, begins, waits)| {
                let rings = Arc::clone(&rings);
                thread::spawn(move || {
                    begins.iter().for_each(|&page| rings[own].begin(page));
                    waits.iter().for_each(|&page| wait_for(&rings, own, page));
                })
            })
            .collect();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        world.change(|kernel| kernel.stop = true);
        reaper.join().unwrap();
        assert!(
            rings.iter().all(|ring| ring.tending.0.load(Ordering::Acquire) & (HELD | WAITERS) == 0)
        );
    };
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 18;
        config
    };
    Runner::new(RandomScheduler::new(3000), config()).run(test);
    Runner::new(PctScheduler::new(3, 3000), config()).run(test);
}

/// The session that has begun the reads leaves with the first page. Others wait for the rest,
/// without a read of their own.
#[test]
fn shuttle_reads_of_a_session_that_leaves() {
    explore(&[(0, &[0, 1, 2], &[0]), (0, &[], &[2]), (1, &[], &[1, 4])]);
}

/// Each session tends a ring of its own and needs a page of the other's.
#[test]
fn shuttle_pages_of_each_other() {
    explore(&[(0, &[0, 1], &[0, 2]), (1, &[2, 3], &[3, 1]), (1, &[], &[4])]);
}

/// No session that has begun a read waits at all.
#[test]
fn shuttle_reads_of_a_session_that_never_waits() {
    explore(&[(0, &[0, 3], &[]), (1, &[1], &[]), (0, &[], &[4, 1]), (1, &[], &[3])]);
}
