//! Descriptors of a file for reads on the calling thread: one for each processor.
//!
//! The kernel counts a reference on an open file for each read of a process with threads, and notes in it how far it was
//! read, so that all processors that read by one descriptor write the same lines: what hot reads avoid in memory (rule 1),
//! misses should not meet in the kernel. So a file that is read often is opened again for each processor, when that
//! processor reads it. All are the same file, whatever has become of its name.
//!
//! **State.** Reads are counted until there are [`OFTEN`], not exactly: two at the same time may count as one. Then
//! there is a place for each processor, which is filled once, with a descriptor or with the knowledge that none is
//! to be had. A thread that moves to another processor uses that one's descriptor from its next read on; in between it
//! only shares it.
//!
//! **Limits.** All files of a store have an eighth of the process's limit of descriptors for this ([`Spare`]). Who finds
//! that used up, or can't open the file again, reads by the common descriptor; a file has no places before there is a
//! descriptor to be had for one.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use rustix::fs::{Mode, OFlags};

use crate::processors;

/// A file that was read so often is opened for each processor.
const OFTEN: u32 = 128;

/// Of the descriptors that the process may have, one in so many is for this.
const PART: u64 = 8;

/// More processors than that share places.
const MOST_PLACES: usize = 64;

/// How many more descriptors a store's files may have together.
#[derive(Debug)]
pub(super) struct Spare {
    left: AtomicUsize,
    /// Places in a file: as many as the process may use processors.
    places: usize,
}

impl Spare {
    /// As many as the process's limit allows.
    pub(super) fn by_limit() -> Self {
        use rustix::process::{Resource, getrlimit};
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / PART;
        Self::new(usize::try_from(most).unwrap_or(usize::MAX), processors::count())
    }

    pub(super) fn new(left: usize, processors: usize) -> Self {
        Self { left: AtomicUsize::new(left), places: processors.min(MOST_PLACES) }
    }

    /// Whether a file may have places: with one processor they would be of no use.
    fn is_some(&self) -> bool {
        self.places > 1 && self.left.load(Ordering::Relaxed) > 0
    }

    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.left.fetch_add(count, Ordering::Relaxed);
    }

    #[cfg(all(test, target_os = "linux", not(miri)))]
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

type Place = CachePadded<OnceLock<Option<OwnedFd>>>;

/// A file's descriptors beside its common one.
#[derive(Debug)]
pub(super) struct Near {
    spare: Arc<Spare>,
    reads: AtomicU32,
    places: OnceLock<Box<[Place]>>,
}

impl Near {
    /// None as yet.
    pub(super) fn new(spare: Arc<Spare>) -> Self {
        Self { spare, reads: AtomicU32::new(0), places: OnceLock::new() }
    }

    /// The descriptor to read a file by whose common one is `file`.
    pub(super) fn choose<'f>(&'f self, file: &'f OwnedFd) -> BorrowedFd<'f> {
        let places = match self.places.get() {
            Some(places) => places,
            None if self.is_read_often() && self.spare.is_some() => self
                .places
                .get_or_init(|| (0..self.spare.places).map(|_| Place::default()).collect()),
            None => return file.as_fd(),
        };
        let place = &places[processors::place() % places.len()];
        place.get_or_init(|| self.open(file)).as_ref().map_or(file.as_fd(), AsFd::as_fd)
    }

    fn is_read_often(&self) -> bool {
        let reads = self.reads.load(Ordering::Relaxed);
        // Who has no places goes on asking, and need not write for it.
        if reads < OFTEN {
            self.reads.store(reads + 1, Ordering::Relaxed);
        }
        reads >= OFTEN
    }

    /// Opens the file again: itself, not what may have its name by now.
    fn open(&self, file: &OwnedFd) -> Option<OwnedFd> {
        if !self.spare.take() {
            return None;
        }
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(same, flags, Mode::empty()).ok();
        if opened.is_none() {
            self.spare.give_back(1);
        }
        opened
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        let places = self.places.get().into_iter().flat_map(|places| places.iter());
        self.spare.give_back(places.filter(|place| matches!(place.get(), Some(Some(_)))).count());
    }
}

// Miri opens no files.
#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use std::fs::{self, File};

    fn inode(file: impl AsFd) -> u64 {
        rustix::fs::fstat(file).expect("an open file").st_ino
    }

    /// Reads so often that it must have been noticed.
    fn read_often(near: &Near, file: &OwnedFd) {
        for _ in 0..=OFTEN {
            near.choose(file);
        }
    }

    #[test]
    fn a_file_read_often_is_opened_again_whatever_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("1");
        fs::write(&path, [1; 10]).expect("written");
        let file = OwnedFd::from(File::open(&path).expect("a file"));
        let spare = Arc::new(Spare::new(100, 4));
        let near = Near::new(Arc::clone(&spare));
        for _ in 0..OFTEN {
            assert_eq!(near.choose(&file).as_raw_fd(), file.as_raw_fd());
        }
        fs::remove_file(&path).expect("removed");
        fs::write(&path, [2; 10]).expect("written");
        let chosen = near.choose(&file);
        assert_ne!(chosen.as_raw_fd(), file.as_raw_fd());
        assert_eq!(inode(chosen), inode(&file));
        assert!(spare.left() < 100);
        drop(near);
        assert_eq!(spare.left(), 100);
    }

    #[test]
    fn a_descriptor_that_becomes_free_is_used() {
        let file = OwnedFd::from(File::open("/proc/self/exe").expect("a file"));
        let spare = Arc::new(Spare::new(1, 4));
        assert!(spare.take());
        let near = Near::new(Arc::clone(&spare));
        read_often(&near, &file);
        spare.give_back(1);
        assert_ne!(near.choose(&file).as_raw_fd(), file.as_raw_fd());
    }

    #[test]
    fn without_descriptors_all_read_by_the_common_one() {
        let file = OwnedFd::from(File::open("/proc/self/exe").expect("a file"));
        for spare in [Spare::new(0, 4), Spare::new(100, 1)] {
            let spare = Arc::new(spare);
            let near = Near::new(Arc::clone(&spare));
            let left = spare.left();
            read_often(&near, &file);
            assert_eq!(near.choose(&file).as_raw_fd(), file.as_raw_fd());
            assert!(near.places.get().is_none(), "no memory for what can't be had");
            drop(near);
            assert_eq!(spare.left(), left);
        }
    }
}
