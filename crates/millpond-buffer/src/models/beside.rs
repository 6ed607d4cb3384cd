//! Reader, writer and evictor of one frame, beside each other. (Shuttle's models have them, too, in pools with all that is
//! around them, but only some of the schedules; here is every one within the bound.)

use super::*;
use crate::frame::{DIRTY, WRITING};
use crate::freelist::Freelists;

/// What the writer makes of page 0.
const CHANGED: u64 = 101;

/// What the store has of page 0, and whether that has been changed (which is no part of the model).
struct Stored(AtomicU64, std::sync::atomic::AtomicBool);

impl World {
    /// Changes page 0, as a session does that finds it.
    fn change_words(&self, session: usize) -> bool {
        self.seems_resident(0) && self.change_believed(session)
    }

    /// Changes page 0, which was there when the entry was looked at, as a session does that has it pinned and latched.
    #[allow(unsafe_code)]
    fn change_believed(&self, session: usize) -> bool {
        if !self.pin_believed(session, 0) {
            return false;
        }
        self.frame.latch().exclusive();
        self.frame.mark_dirty();
        // As `PageChange` does, for damaged pages: none is here.
        if !self.frame.version().is_changing() {
            self.frame.version().write_begin();
        }
        // SAFETY: loom fails the model if the access isn't exclusive.
        self.bytes.with_mut(|bytes| unsafe { *bytes = CHANGED });
        for word in &self.words {
            word.store(CHANGED, Ordering::Relaxed);
        }
        self.frame.version().write_end();
        self.frame.latch().unlock_exclusive();
        self.slots[session].remove(0);
        true
    }

    /// Writes page 0 back, as `write_frame` does.
    #[allow(unsafe_code)]
    fn write_back(&self, stored: &Stored) {
        if self.frame.pin_any().is_err() {
            return;
        }
        self.frame.latch().shared();
        let begun =
            self.frame.update(|state| (state & DIRTY != 0).then_some(state & !DIRTY | WRITING));
        // SAFETY: loom fails the model if somebody writes at the same time.
        let copy = begun.is_ok().then(|| self.bytes.with(|bytes| unsafe { *bytes }));
        self.frame.latch().unlock_shared();
        if let Some(copy) = copy {
            stored.0.store(copy, Ordering::Relaxed);
            self.frame.end_write(0);
        }
        self.frame.unpin();
    }

    /// Gives the frame to page 1 if page 0 may leave: the store has all that was written to it.
    fn evict(&self, session: usize, stored: &Stored) {
        if self.take(session) {
            assert_eq!(
                self.words[0].load(Ordering::Relaxed),
                stored.0.load(Ordering::Relaxed),
                "lost"
            );
            assert_eq!(self.slots[session].add(0), Added::First);
            self.fill(1);
            self.slots[session].remove(0);
        }
    }

    /// Takes page 0 out, if it may leave, loads it again, and reads it.
    fn load_again(&self, session: usize) {
        if self.take(session) {
            assert_eq!(self.slots[session].add(0), Added::First);
            self.fill(0);
            let seen = self.words_of(0);
            assert!(seen.is_none_or(|seen| seen == 1 || seen == CHANGED), "another page's words");
            self.slots[session].remove(0);
        }
    }

    /// Two reads of page 0: the second is no older than the first, and each is whole.
    fn read_twice(&self) {
        let (first, second) = (self.words_of(0), self.words_of(0));
        for seen in first.into_iter().chain(second) {
            assert!(seen == 1 || seen == CHANGED, "another page's words");
        }
        if let (Some(first), Some(second)) = (first, second) {
            assert!(second >= first, "older than what was read before");
        }
    }
}

fn beside(actions: &[fn(&World, &Stored)]) {
    let actions = actions.to_vec();
    check(2, move || {
        let world = World::new();
        let stored = Arc::new(Stored(AtomicU64::new(1), false.into()));
        let threads: Vec<_> = actions
            .iter()
            .map(|&action| {
                let (world, stored) = (Arc::clone(&world), Arc::clone(&stored));
                thread::spawn(move || action(&world, &stored))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // Page 0 is as it was left, in memory or in the store.
        let is_changed = stored.1.load(std::sync::atomic::Ordering::Relaxed);
        let left = world.words_of(0).unwrap_or(stored.0.load(Ordering::Relaxed));
        assert_eq!(left, if is_changed { CHANGED } else { 1 });
        assert!(world.words_of(1).is_none_or(|words| words == 2));
    });
}

/// The writer writes back itself: the page may leave as soon as it has.
#[test]
fn reader_writer_and_evictor() {
    beside(&[
        |world, _| world.read_twice(),
        |world, stored| {
            if world.change_words(1) {
                stored.1.store(true, std::sync::atomic::Ordering::Relaxed);
                world.write_back(stored);
            }
        },
        |world, stored| world.evict(2, stored),
    ]);
}

/// Page 0 leaves and comes back to the same frame, while a writer still believes what its entry said before. The loader's last step
/// must not end the writer's change.
#[test]
fn a_writer_and_a_page_that_comes_back() {
    beside(&[
        |world, stored| {
            if world.change_believed(1) {
                stored.1.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        },
        |world, _| world.load_again(2),
    ]);
}

/// One takes page 0 out and frees the frame, another fills it: a late reader is kept out by what the first has done, although it is the
/// second's words that he sees.
#[test]
fn a_frame_that_another_has_freed() {
    check(2, || {
        let world = World::new();
        let free = Arc::new(Freelists::new(1));
        let evictor = thread::spawn({
            let (world, free) = (Arc::clone(&world), Arc::clone(&free));
            move || {
                if world.take(1) {
                    free.push(0, std::slice::from_ref(&world.frame), &[0]);
                }
            }
        });
        let loader = thread::spawn({
            let (world, free) = (Arc::clone(&world), Arc::clone(&free));
            move || {
                if free.pop(0, std::slice::from_ref(&world.frame)).is_some() {
                    world.fill(1);
                }
            }
        });
        world.read_optimistically(0);
        evictor.join().unwrap();
        loader.join().unwrap();
    });
}
