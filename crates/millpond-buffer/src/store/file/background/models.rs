//! Shuttle's exploration of the file store: tending of rings, and writers beside syncs.
//!
//! **Tending.** No thread that waits for a page is forgotten, whichever thread has begun the read.
//! The kernel is a queue of completions to which a thread for each read adds. Shuttle may end the
//! reaper's leisure at any time, but only a limited number of times. So a wait that only the end of
//! that leisure would end is found as a deadlock.
//!
//! **Syncs.** What ended before a sync began is durable when that sync ends. The files and the
//! directory are simulated. They count what has been written and what has been synced.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::Path;

use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::sync::{Arc, Condvar, Mutex};
use millpond_sync::{parking, thread};
use millpond_vfs::{VfsDirectory, VfsFile};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use super::reaper::{Next, Reaper, Tended, Tending, Waiter, tend};
use crate::store::file::changes::Unsynced;
use crate::store::file::segment::Segment;

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
        assert!(rings.iter().all(|ring| ring.tending.is_at_rest()));
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

const FILES: usize = 2;
const WRITES: usize = 2;

/// A file, or the names in a directory.
#[derive(Debug, Default)]
struct Device {
    written: AtomicU64,
    /// How many of these writes have been put on the list.
    told: AtomicU64,
    synced: AtomicU64,
    fails: AtomicBool,
}

impl Device {
    fn sync(&self) -> io::Result<()> {
        let written = self.written.load(Ordering::SeqCst);
        if self.fails.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("made to fail"));
        }
        self.synced.fetch_max(written, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile(Arc<Device>);

impl VfsFile for SimFile {
    fn read_at(&self, _: &mut [IoSliceMut<'_>], _: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], _: u64) -> io::Result<usize> {
        self.0.written.fetch_add(1, Ordering::SeqCst);
        Ok(pieces.iter().map(|piece| piece.len()).sum())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[derive(Debug)]
struct SimDirectory(Arc<Device>);

impl VfsDirectory for SimDirectory {
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

#[derive(Default)]
struct Files {
    unsynced: Unsynced,
    files: Vec<(Arc<Segment>, Arc<Device>)>,
    names: Arc<Device>,
}

impl Files {
    fn new() -> Self {
        let file = |number: usize| {
            let device = Arc::new(Device::default());
            let file = Arc::new(SimFile(Arc::clone(&device)));
            (Arc::new(Segment::of_file(file, number.to_string().into())), device)
        };
        Self { files: (0..FILES).map(file).collect(), ..Self::default() }
    }

    fn write(&self, file: usize) {
        let (segment, device) = &self.files[file];
        segment.write(0, &[&[0; crate::PAGE_SIZE]]).expect("a write");
        self.unsynced.add(segment);
        device.told.fetch_add(1, Ordering::SeqCst);
    }

    fn make_name(&self) {
        self.names.written.fetch_add(1, Ordering::SeqCst);
        self.unsynced.add_names();
        self.names.told.fetch_add(1, Ordering::SeqCst);
    }

    fn devices(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.files.iter().map(|(_, device)| device).chain([&self.names])
    }

    /// Syncs, and checks that what had ended before is durable afterwards.
    fn sync(&self) -> bool {
        let ended: Vec<u64> =
            self.devices().map(|device| device.told.load(Ordering::SeqCst)).collect();
        let directory = SimDirectory(Arc::clone(&self.names));
        if self.unsynced.sync(&directory, Path::new("directory")).is_err() {
            return false;
        }
        for (device, ended) in self.devices().zip(ended) {
            assert!(device.synced.load(Ordering::SeqCst) >= ended, "a write was left out");
        }
        true
    }
}

/// Writers of all files, one of names, and two syncs; then a last sync.
fn writers_beside_two_syncs(fails: bool) {
    let world = Arc::new(Files::new());
    world.files[0].1.fails.store(fails, Ordering::SeqCst);
    let mut threads = Vec::new();
    for writer in 0..2 {
        let world = Arc::clone(&world);
        threads.push(thread::spawn(move || {
            for number in 0..WRITES {
                world.write((writer + number) % FILES);
            }
            world.make_name();
        }));
    }
    for number in 0..2 {
        let world = Arc::clone(&world);
        threads.push(thread::spawn(move || {
            // One of them closes files first.
            if number == 0 {
                let _ = world.unsynced.sync_oldest(1);
            }
            world.sync();
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let has_failed = fails && !world.files[0].1.fails.load(Ordering::SeqCst);
    if has_failed {
        assert!(!world.sync(), "a sync has failed, and the store has not stopped");
    } else {
        assert_eq!(world.sync(), !fails);
    }
}

fn explore_syncs(model: fn()) {
    Runner::new(RandomScheduler::new(5000), Config::default()).run(model);
    Runner::new(PctScheduler::new(4, 5000), Config::default()).run(model);
}

#[test]
fn shuttle_writers_beside_two_syncs() {
    explore_syncs(|| writers_beside_two_syncs(false));
}

#[test]
fn shuttle_a_sync_that_fails_beside_another() {
    explore_syncs(|| writers_beside_two_syncs(true));
}
