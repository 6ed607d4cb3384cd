//! Shuttle's exploration of writers beside two syncs: what ended before a sync began is durable
//! when that sync ends.
//!
//! The files and the directory are simulated. They count what has been written and what has been
//! synced.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::thread;
use millpond_vfs::VfsFile;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use super::*;

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
struct World {
    unsynced: Unsynced,
    files: Vec<(Arc<Segment>, Arc<Device>)>,
    names: Arc<Device>,
}

impl World {
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
    let world = Arc::new(World::new());
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

fn explore(model: fn()) {
    Runner::new(RandomScheduler::new(5000), Config::default()).run(model);
    Runner::new(PctScheduler::new(4, 5000), Config::default()).run(model);
}

#[test]
fn shuttle_writers_beside_two_syncs() {
    explore(|| writers_beside_two_syncs(false));
}

#[test]
fn shuttle_a_sync_that_fails_beside_another() {
    explore(|| writers_beside_two_syncs(true));
}
