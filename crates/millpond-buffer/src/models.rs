//! Loom's models of the frame: that its memory orderings carry a page's bytes from whoever filled the
//! frame to whoever pins or optimistically reads it, and away again before the next page comes.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p millpond-buffer --release models`

use crate::frame::Frame;
use crate::ids::{BlockNumber, PageId, RelationId};
use crate::translation::{frame_of, is_absent, resident_in};
use loom::cell::UnsafeCell;
use loom::thread;
use millpond_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

fn page(number: u32) -> PageId {
    RelationId::constant(1).main().page(BlockNumber(number))
}

/// One frame, two pages and their entries. A page's contents are its number plus one, in bytes that
/// loom watches for unordered accesses and in words as optimistic readers load them.
struct World {
    frame: Frame,
    entries: [AtomicU64; 2],
    bytes: UnsafeCell<u64>,
    words: [AtomicU64; 2],
}

impl World {
    /// Page 0 is in the frame.
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        // In its place first: the frame refers to the entries.
        let world = Arc::new(Self {
            frame: Frame::new(),
            entries: [word(), word()],
            bytes: UnsafeCell::new(0),
            words: [word(), word()],
        });
        world.fill(0);
        world.frame.unpin();
        world
    }

    /// Fills the owned frame with a page and leaves it pinned.
    #[allow(unsafe_code)]
    fn fill(&self, number: u32) {
        let contents = u64::from(number) + 1;
        // SAFETY: loom fails the model if the access isn't exclusive.
        self.bytes.with_mut(|bytes| unsafe { *bytes = contents });
        for word in &self.words {
            word.store(contents, Ordering::Relaxed);
        }
        let entry = &self.entries[number as usize];
        self.frame.publish(page(number), entry, 0);
        entry.swap(resident_in(0), Ordering::SeqCst);
    }

    /// Makes room for a page, as a loader does.
    fn replace_by(&self, number: u32) {
        if self.frame.take(0).is_ok() {
            self.fill(number);
            self.frame.unpin();
        }
    }

    fn seems_resident(&self, number: u32) -> bool {
        frame_of(self.entries[number as usize].load(Ordering::Acquire)).is_some()
    }

    #[allow(unsafe_code)]
    fn pin_and_look(&self, number: u32) {
        if self.seems_resident(number) && self.frame.pin(page(number)).is_ok() {
            // SAFETY: loom fails the model if somebody writes at the same time.
            let seen = self.bytes.with(|bytes| unsafe { *bytes });
            assert_eq!(seen, u64::from(number) + 1, "another page's bytes");
            self.frame.unpin();
        }
    }

    /// Whether the page was there.
    fn read_optimistically(&self, number: u32) -> bool {
        if !self.seems_resident(number) {
            return false;
        }
        let Some(version) = self.frame.version().read_begin() else { return false };
        if !self.frame.holds(page(number)) {
            return false;
        }
        let seen = [0, 1].map(|at: usize| self.words[at].load(Ordering::Relaxed));
        if !self.frame.version().validate(version) {
            return false;
        }
        assert_eq!(seen, [u64::from(number) + 1; 2], "torn, or another page's words");
        true
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Runs the actions beside each other.
fn together(world: &Arc<World>, actions: &[fn(&World)]) {
    let threads: Vec<_> = actions
        .iter()
        .map(|action| {
            let (world, action) = (world.clone(), *action);
            thread::spawn(move || action(&world))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_pin_keeps_the_page() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.pin_and_look(0), |w| w.replace_by(1)]);
        // Whoever comes later finds the frame as it was left.
        let now = [0, 1].map(|at: usize| world.entries[at].load(Ordering::Relaxed));
        let one = |there: usize| now[there] == resident_in(0) && is_absent(now[1 - there]);
        assert!(one(0) || one(1), "{now:?}");
    });
}

#[test]
fn a_pin_of_the_next_page() {
    check(2, || {
        let world = World::new();
        together(&world, &[|w| w.pin_and_look(1), |w| w.replace_by(1), |w| w.pin_and_look(0)]);
    });
}

#[test]
fn one_of_two_evictors() {
    check(2, || {
        let world = World::new();
        together(&world, &[|w| w.replace_by(1), |w| w.replace_by(1), |w| w.pin_and_look(0)]);
    });
}

#[test]
fn an_optimistic_read_is_of_its_page() {
    check(3, || {
        let world = World::new();
        together(
            &world,
            &[
                |w| {
                    w.read_optimistically(0);
                    w.read_optimistically(1);
                },
                |w| w.replace_by(1),
            ],
        );
        assert!(world.read_optimistically(1));
    });
}
