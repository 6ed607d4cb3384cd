//! Loom's models of the frame: that its memory orderings carry a page's bytes from whoever filled the
//! frame to whoever pins or optimistically reads it, and away again before the next page comes; and that
//! a pin that is only announced in its session's slots (rule 12), or a shared latch without a pin (rule 13), keeps the page all
//! the same.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p millpond-buffer --release models`
//!
//! Loom knows nothing of `membarrier`; both sides of the asymmetric barrier are sequentially consistent
//! fences here. That is sound: a heavy barrier makes each thread's program fall into a part before it,
//! all of which the evictor sees afterwards, and a part after it, which sees all that the evictor did
//! before. Two fences, one of which comes first, have the same two outcomes and no fewer, so whatever
//! could go wrong with `membarrier` goes wrong here (see `millpond_sync::asymmetric`).
//!
//! Nor does it know sequentially consistent loads and stores, only such fences: it takes them for acquires and releases. What rests on
//! them (a drop against a load, retiring a frame against growing again) is explored by shuttle, which has no other
//! atomics: that finds a step too many or in the wrong order, not an ordering that is too weak.

mod beside;
mod demand;
mod slots;

use crate::frame::{Claimer, Frame, Leaves};
use crate::ids::{BlockNumber, PageId, RelationId};
use crate::pins::{Added, PinBoard, PinSlots};
use crate::translation::ABSENT;
use crate::translation::{frame_of, is_absent, resident_in};
use loom::cell::UnsafeCell;
use loom::thread;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const SESSIONS: usize = 3;

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
    board: PinBoard,
    slots: Vec<Arc<PinSlots>>,
}

impl World {
    /// Page 0 is in the frame.
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        let board = PinBoard::new(SESSIONS, Barriers::fences());
        let slots = (0..SESSIONS).map(|session| board.slots(session)).collect();
        // In its place first: the frame refers to the entries.
        let world = Arc::new(Self {
            frame: Frame::new(),
            entries: [word(), word()],
            bytes: UnsafeCell::new(0),
            words: [word(), word()],
            board,
            slots,
        });
        world.fill(0);
        world
    }

    /// Fills the owned frame with a page.
    #[allow(unsafe_code)]
    fn fill(&self, number: u32) {
        let contents = u64::from(number) + 1;
        self.frame.before_filling();
        // SAFETY: loom fails the model if the access isn't exclusive.
        self.bytes.with_mut(|bytes| unsafe { *bytes = contents });
        for word in &self.words {
            word.store(contents, Ordering::Relaxed);
        }
        let entry = &self.entries[number as usize];
        self.frame.publish(page(number), (entry, ABSENT), 0, 0);
        entry.swap(resident_in(0), Ordering::SeqCst);
    }

    /// What `Claims` does for a batch of one frame.
    fn take(&self, session: usize) -> bool {
        let by = Claimer::session(session);
        self.frame.claim(by).is_ok() && self.settle(by, Leaves::Evicted { now: 0 })
    }

    fn settle(&self, by: Claimer, leaves: Leaves) -> bool {
        let is_latched = |_| self.frame.latch().is_held();
        let looked = self.board.look(&[0], is_latched, |frame| {
            if frame == 0 {
                self.frame.unclaim(by);
            }
        });
        assert!(looked);
        self.frame.own(by, leaves)
    }

    /// What dropping a fork does to a page of it.
    fn discard(&self, number: u32) -> bool {
        let by = Claimer::POOL;
        self.frame.claim_from(page(number), by).is_ok() && self.settle(by, Leaves::Discarded)
    }

    /// Makes room for a page, as a loader does, who has it pinned then.
    fn replace_by(&self, session: usize, number: u32) {
        if self.take(session) {
            assert_eq!(self.slots[session].add(0), Added::First);
            self.fill(number);
            self.look(number);
            self.slots[session].remove(0);
        }
    }

    fn seems_resident(&self, number: u32) -> bool {
        frame_of(self.entries[number as usize].load(Ordering::Acquire)).is_some()
    }

    #[allow(unsafe_code)]
    fn look(&self, number: u32) {
        // SAFETY: loom fails the model if somebody writes at the same time.
        let seen = self.bytes.with(|bytes| unsafe { *bytes });
        assert_eq!(seen, u64::from(number) + 1, "another page's bytes");
    }

    fn pin(&self, session: usize, number: u32) -> bool {
        self.seems_resident(number) && self.pin_believed(session, number)
    }

    /// `BufferSession::pin_resident`, by who has looked at the entry.
    fn pin_believed(&self, session: usize, number: u32) -> bool {
        let pinned = match self.slots[session].add(0) {
            Added::First => self.frame.admit(page(number)).is_ok(),
            Added::Again => self.frame.holds(page(number)),
        };
        if !pinned {
            self.slots[session].remove(0);
        }
        pinned
    }

    fn pin_and_look(&self, session: usize, number: u32) {
        if self.pin(session, number) {
            self.look(number);
            self.slots[session].remove(0);
        }
    }

    /// `BufferSession::pin_shared`, if that needs no pin.
    fn latch(&self, number: u32) -> bool {
        self.seems_resident(number) && self.frame.try_latch_shared(page(number), Barriers::fences())
    }

    fn latch_and_look(&self, number: u32) {
        if self.latch(number) {
            self.look(number);
            self.frame.latch().unlock_shared();
        }
    }

    /// `SharedPage::unlatch`.
    fn latch_and_keep(&self, session: usize, number: u32) {
        if self.latch(number) {
            self.slots[session].add(0);
            self.frame.latch().unlock_shared();
            self.look(number);
            self.slots[session].remove(0);
        }
    }

    /// What a writer does, who leaves the page as it was.
    #[allow(unsafe_code)]
    fn change(&self, session: usize, number: u32) {
        if self.pin(session, number) {
            self.frame.latch().exclusive();
            // SAFETY: loom fails the model if the access isn't exclusive.
            self.bytes.with_mut(|bytes| unsafe { *bytes = u64::from(number) + 1 });
            self.frame.latch().unlock_exclusive();
            self.slots[session].remove(0);
        }
    }

    /// What the page says, if it was there.
    fn words_of(&self, number: u32) -> Option<u64> {
        if !self.seems_resident(number) {
            return None;
        }
        let version = self.frame.version().read_begin()?;
        if !self.frame.holds(page(number)) {
            return None;
        }
        let seen = [0, 1].map(|at: usize| self.words[at].load(Ordering::Relaxed));
        if !self.frame.version().validate(version) {
            return None;
        }
        assert_eq!(seen[0], seen[1], "torn");
        Some(seen[0])
    }

    /// Whether the page was there.
    fn read_optimistically(&self, number: u32) -> bool {
        let seen = self.words_of(number);
        assert!(seen.is_none_or(|seen| seen == u64::from(number) + 1), "another page's words");
        seen.is_some()
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
        together(&world, &[|w| w.pin_and_look(0, 0), |w| w.replace_by(1, 1)]);
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
        together(
            &world,
            &[|w| w.pin_and_look(0, 1), |w| w.replace_by(1, 1), |w| w.pin_and_look(2, 0)],
        );
    });
}

/// Two claimers and a session that takes the claim away from one of them: the other's claim of the
/// same frame must not be mistaken for the first's.
#[test]
fn one_of_two_evictors() {
    check(2, || {
        let world = World::new();
        together(
            &world,
            &[|w| w.replace_by(1, 1), |w| w.replace_by(2, 1), |w| w.pin_and_look(0, 0)],
        );
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
                |w| w.replace_by(1, 1),
            ],
        );
        assert!(world.read_optimistically(1));
    });
}

#[test]
fn a_latch_keeps_the_page() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_look(0), |w| w.replace_by(1, 1)]);
    });
}

/// The latch is given back and the page kept: whoever looks meanwhile sees the one or the other.
#[test]
fn a_latch_becomes_a_pin() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_keep(0, 0), |w| w.replace_by(1, 1)]);
    });
}

/// The frame is latched for the page that it had, and for the one that it gets.
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

/// Of two claimers one may own what the other could not, and a latch takes claims away from both.
#[test]
fn two_evictors_beside_a_latch() {
    check(2, || {
        let world = World::new();
        together(
            &world,
            &[|w| w.replace_by(1, 1), |w| w.replace_by(2, 1), |w| w.latch_and_look(0)],
        );
    });
}

/// A reader without a pin, a writer with one, and somebody who wants the frame.
#[test]
fn a_reader_a_writer_and_an_evictor() {
    check(2, || {
        let world = World::new();
        together(&world, &[|w| w.latch_and_look(0), |w| w.change(0, 0), |w| w.replace_by(1, 1)]);
    });
}

/// The fork is dropped, and the frame gets another's page.
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

/// Fills the frame if a read for it is in the queue.
fn fill_queued(world: &World, queue: &loom::sync::Mutex<bool>) {
    let is_queued = std::mem::take(&mut *queue.lock().unwrap());
    if is_queued {
        world.fill(1);
    }
}

/// A session makes the page leave and queues a read, which another thread finds there: it knows by the queue that the version is odd, and
/// its own fence is what makes readers know.
#[test]
fn a_frame_that_another_thread_fills() {
    check(2, || {
        let (world, queue) = (World::new(), Arc::new(loom::sync::Mutex::new(false)));
        let filler = {
            let (world, queue) = (world.clone(), queue.clone());
            thread::spawn(move || fill_queued(&world, &queue))
        };
        let reader = {
            let world = world.clone();
            thread::spawn(move || {
                world.read_optimistically(0);
                world.read_optimistically(1);
            })
        };
        if world.take(1) {
            *queue.lock().unwrap() = true;
        }
        filler.join().unwrap();
        reader.join().unwrap();
        fill_queued(&world, &queue);
        assert!(world.read_optimistically(1));
    });
}
