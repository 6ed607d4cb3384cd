//! A reader, a writer and an evictor of one frame, concurrently; also latches beside evictors.
//! Shuttle's models run them in whole
//! pools, but only on some of the schedules. Here loom runs every schedule within the bound.

use super::*;
use crate::core::frame::{Change, DIRTY};
use crate::core::free_frames::Freelists;
use crate::ids::Lsn;
use crate::write_back::{Attempt, Begun, begin_write};
use std::sync::atomic::AtomicU64 as Count;

/// What the store has of page 0, and the number of that page's changes (not part of the model).
struct Stored {
    contents: AtomicU64,
    changes: Count,
}

impl Stored {
    fn new() -> Arc<Self> {
        Arc::new(Self { contents: AtomicU64::new(contents(0)), changes: Count::new(0) })
    }

    /// The contents that page 0 should have.
    fn expected(&self) -> u64 {
        contents(0) + CHANGE * self.changes.load(Ordering::SeqCst)
    }
}

impl World {
    /// Changes page 0 if it is in the frame.
    fn change_words(&self, session: usize, stored: &Stored) -> bool {
        self.seems_resident(0) && self.change_believed(session, stored)
    }

    /// Changes page 0 under a pin and a latch. The caller has read the page's entry before.
    fn change_believed(&self, session: usize, stored: &Stored) -> bool {
        let is_pinned = self.pin_believed(session, 0);
        if is_pinned {
            self.change_pinned(session, stored);
        }
        is_pinned
    }

    /// Changes page 0, which the session has pinned, and releases the pin.
    fn change_pinned(&self, session: usize, stored: &Stored) {
        self.frame.latch().exclusive();
        let mut change = Change::begin(&self.frame);
        change.writes();
        let changed = self.bytes.get() + CHANGE;
        self.bytes.set(changed);
        self.words.iter().for_each(|word| word.store(changed, Ordering::Relaxed));
        change.end();
        stored.changes.fetch_add(1, Ordering::SeqCst);
        self.frame.latch().unlock_exclusive();
        self.slots[session].remove(0);
    }

    /// Writes page 0 back, unless another thread prevents it.
    fn write_back(&self, stored: &Stored) {
        let mut copy = 0;
        let copy_out = || {
            copy = self.bytes.get();
            Lsn::ZERO
        };
        let begun = begin_write((&self.frame, 0), Attempt::IfEasy, Some(page(0)), DIRTY, copy_out);
        if let Ok(Begun::Copied(writing)) = begun {
            stored.contents.store(copy, Ordering::Relaxed);
            writing.succeed();
        }
    }

    /// Gives the frame to page 1 if page 0 may leave. The store then has every change to page 0.
    fn evict(&self, session: usize, stored: &Stored) {
        if self.take(session) {
            assert_eq!(self.bytes.get(), stored.contents.load(Ordering::Relaxed), "lost");
            self.fill(1);
        }
    }

    /// Evicts page 0, if it may leave, loads it again, and reads it.
    fn load_again(&self, session: usize, stored: &Stored) {
        if self.take(session) {
            self.fill_with(0, stored.contents.load(Ordering::Relaxed));
            self.words_of(0);
        }
    }

    /// Two reads of page 0: the second is no older than the first, and each is whole.
    fn read_twice(&self) {
        if let (Some(first), Some(second)) = (self.words_of(0), self.words_of(0)) {
            assert!(second >= first, "older than what was read before");
        }
    }
}

/// Runs the actions concurrently.
fn run(world: &Arc<World>, stored: &Arc<Stored>, actions: &[fn(&World, &Stored)]) {
    let threads: Vec<_> = actions
        .iter()
        .map(|&action| {
            let (world, stored) = (Arc::clone(world), Arc::clone(stored));
            thread::spawn(move || action(&world, &stored))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn beside(actions: &[fn(&World, &Stored)]) {
    beside_after(|_| (), actions);
}

/// Runs `before`, then the actions concurrently.
fn beside_after(before: fn(&World), actions: &[fn(&World, &Stored)]) {
    let actions = actions.to_vec();
    check(2, move || {
        let (world, stored) = (World::new(), Stored::new());
        before(&world);
        run(&world, &stored, &actions);
        world.assert_at_rest();
        // Page 0 is up to date in memory or, unless that copy is dirty, in the store.
        let in_store = stored.contents.load(Ordering::Relaxed);
        assert_eq!(world.words_of(0).unwrap_or(in_store), stored.expected());
        assert!(world.frame.is_dirty() || in_store == stored.expected(), "an older copy");
    });
}

/// The writer itself writes the page back. The page may leave as soon as this is done.
#[test]
fn reader_writer_and_evictor() {
    beside(&[
        |world, _| world.read_twice(),
        |world, stored| {
            if world.change_words(1, stored) {
                world.write_back(stored);
            }
        },
        |world, stored| world.evict(2, stored),
    ]);
}

/// Page 0 leaves and comes back to the same frame, while a writer still uses what it read from the
/// entry before. The loader's last step must not end the writer's change.
#[test]
fn a_writer_and_a_page_that_comes_back() {
    beside(&[
        |world, stored| {
            world.change_believed(1, stored);
        },
        |world, stored| world.load_again(2, stored),
    ]);
}

/// A page that is pinned before a session claims its frame changes before that session looks for
/// pins.
#[test]
fn a_claim_beside_a_change() {
    beside_after(
        |world| assert!(world.pin(1, 0)),
        &[|world, stored| world.change_pinned(1, stored), |world, stored| world.evict(2, stored)],
    );
}

/// Two sessions change the page and write it back. An older copy does not replace a newer one.
#[test]
fn two_writers_that_write_back() {
    beside(&[
        |world, stored| {
            world.change_words(1, stored);
            world.write_back(stored);
        },
        |world, stored| {
            world.change_words(2, stored);
            world.write_back(stored);
        },
    ]);
}

/// A session checks whether a clean page must be written, while another wants its frame.
#[test]
fn a_pin_in_passing_beside_an_evictor() {
    beside(&[|world, stored| world.write_back(stored), |world, stored| world.evict(2, stored)]);
}

/// One session changes page 0 and writes it back, a second evicts it, and a third finds it absent.
/// Then the store has what was written. The page is pinned before its frame is claimed. So the
/// write may end between the second session's look for pins and its last step.
#[test]
fn what_is_absent_is_in_the_store() {
    check(2, || {
        let (world, stored) = (World::new(), Stored::new());
        assert!(world.pin(1, 0));
        run(
            &world,
            &stored,
            &[
                |world, stored| {
                    world.change_pinned(1, stored);
                    world.write_back(stored);
                },
                |world, _| {
                    world.take(2);
                },
                |world, stored| {
                    if let Some(_loading) = Loading::begin(&world.entries[0]) {
                        let in_store = stored.contents.load(Ordering::Relaxed);
                        assert_eq!(in_store, stored.expected(), "an older copy");
                    }
                },
            ],
        );
    });
}

/// One thread evicts page 0 and frees the frame; another thread fills it. A late reader sees words
/// of the second thread. What the first thread did keeps that reader out.
#[test]
fn late_reader_beside_freed_and_refilled_frame() {
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

#[test]
fn a_latch_keeps_the_page() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_look(0), |w| w.replace_by(1, 1)]);
    });
}

/// A session releases the latch and keeps the page. An evictor meanwhile sees the latch or the pin.
#[test]
fn a_latch_becomes_a_pin() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_keep(0, 0), |w| w.replace_by(1, 1)]);
    });
}

/// Sessions latch the frame for the page that it had and for the page that it gets.
#[test]
fn a_latch_of_the_next_page() {
    check(2, || {
        let world = World::new();
        together(
            &world,
            &[|w| w.latch_and_keep(0, 1), |w| w.replace_by(1, 1), |w| w.latch_and_look(0)],
        );
    });
}

/// Two claimers and a latch: one claimer may own what the other could not, and a latch undoes
/// claims.
#[test]
fn two_evictors_beside_a_latch() {
    check(2, || {
        let world = World::new();
        together(
            &world,
            &[|w| w.replace_by(1, 1), |w| w.replace_by(2, 2), |w| w.latch_and_look(0)],
        );
    });
}

/// The fork is dropped, and the frame gets a page of another fork.
#[test]
fn a_discarded_page_is_not_latched() {
    check(3, || {
        let world = World::new();
        together(
            &world,
            &[
                |w| w.latch_and_keep(0, 0),
                |w| {
                    if w.discard(0) {
                        w.fill(1);
                    }
                },
            ],
        );
    });
}

/// A reader without a pin, a writer with one, and an evictor.
#[test]
fn a_reader_a_writer_and_an_evictor() {
    check(2, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_look(0), |w| w.change(0, 0), |w| w.replace_by(1, 1)]);
    });
}
