//! Loom models of a frame and its memory orderings. The orderings carry a page's bytes from the
//! thread that fills the frame to the threads that pin or optimistically read it. They also order
//! those accesses before the next page's arrival. A pin that is only announced in its session's
//! slots keeps the page (rule 12). So does a shared latch without a pin (rule 13).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p millpond-buffer --release models`
//!
//! Loom knows nothing of `membarrier`: both sides of the asymmetric barrier are sequentially
//! consistent fences here. That is sound. A heavy barrier splits each thread's program in two. The
//! evictor sees all that the thread did before the split. After the split, the thread sees all that
//! the evictor did before. Two fences, one of which comes first, have the same two outcomes and no
//! fewer. So what can go wrong with `membarrier` goes wrong here (see `millpond_sync::asymmetric`).
//!
//! Loom has sequentially consistent fences, but it takes sequentially consistent loads and stores
//! for acquires and releases. So nothing here depends on such loads and stores.
//!
//! The models call the pool's own functions wherever a memory ordering matters: to settle claims,
//! and to pin, read, change, write and publish pages. Only the pages' contents are the models' own.

mod beside;
mod structures;

use crate::core::frame::{CLAIMED, Claimer, Frame, Leaves, OWNED, PINS, WRITING};
use crate::core::page_table::{frame_in, is_absent, resident_in};
use crate::core::pins::{PinBoard, PinSlots};
use crate::core::relation::Loading;
use crate::ids::{BlockNumber, PageId, RelationId};
use crate::replacement;
use loom::cell::UnsafeCell;
use loom::thread;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const SESSIONS: usize = 3;
const PAGES: usize = 3;

fn page(number: u32) -> PageId {
    RelationId::constant(1).main().page(BlockNumber(number))
}

/// The contents of a page that was never changed.
fn contents(number: u32) -> u64 {
    u64::from(number) + 1
}

/// The number that each change adds.
const CHANGE: u64 = 100;

/// Whether `seen` can be the contents of page `number`, changed or not.
fn is_of(number: u32, seen: u64) -> bool {
    seen % CHANGE == contents(number)
}

/// A value that is not atomic. Loom fails a model in which two threads access it unordered.
#[derive(Default)]
struct Unshared(UnsafeCell<u64>);

impl Unshared {
    #[allow(unsafe_code)]
    fn get(&self) -> u64 {
        // SAFETY: loom fails the model if another thread writes at the same time.
        self.0.with(|value| unsafe { *value })
    }

    #[allow(unsafe_code)]
    fn set(&self, new: u64) {
        // SAFETY: loom fails the model if the access isn't exclusive.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// One frame, three pages and their entries. A page's contents exist twice: as bytes that loom
/// watches for unordered accesses, and as words that optimistic readers load.
struct World {
    frame: Frame,
    entries: [AtomicU64; PAGES],
    bytes: Unshared,
    words: [AtomicU64; 2],
    /// Set by the thread that makes the page's entry resident, and by the one that makes it absent.
    entry_is_set: [Unshared; PAGES],
    board: PinBoard,
    slots: Vec<Arc<PinSlots>>,
}

impl World {
    /// A world whose frame holds page 0.
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        let board = PinBoard::new(SESSIONS, Barriers::fences());
        let slots = (0..SESSIONS).map(|session| board.slots(session)).collect();
        // The `Arc` comes before `fill`, because the frame refers to the entries.
        let world = Arc::new(Self {
            frame: Frame::new(),
            entries: [word(), word(), word()],
            bytes: Unshared::default(),
            words: [word(), word()],
            entry_is_set: Default::default(),
            board,
            slots,
        });
        world.fill(0);
        world
    }

    /// Puts contents into the owned frame.
    fn put(&self, contents: u64) {
        self.frame.before_filling();
        self.bytes.set(contents);
        self.words.iter().for_each(|word| word.store(contents, Ordering::Relaxed));
    }

    /// Fills the owned frame with an absent page, as a read ahead does.
    fn fill(&self, number: u32) {
        self.fill_with(number, contents(number));
    }

    fn fill_with(&self, number: u32, contents: u64) {
        let entry = &self.entries[number as usize];
        let loading = Loading::begin(entry).expect("its page was absent");
        self.put(contents);
        let kept = self.frame.publish_kept(page(number), (entry, loading.before()), 0);
        loading.finish(0);
        self.entry_is_set[number as usize].set(1);
        drop(kept);
    }

    /// What a session does after it has claimed the frame, to evict its page or to drop its fork.
    fn settle(&self, by: Claimer, leaves: Leaves) -> bool {
        let frames = std::slice::from_ref(&self.frame);
        let (owned, _) = replacement::settle(frames, &self.board, by, &mut [0], leaves, false);
        if owned == 0 {
            return false;
        }
        let left = self.frame.page().expect("the page that has left");
        self.entry_is_set[left.block().0 as usize].set(0);
        true
    }

    fn take(&self, session: usize) -> bool {
        let by = Claimer::session(session);
        self.frame.claim(by).is_ok() && self.settle(by, Leaves::Evicted { now: 0 })
    }

    /// What dropping a fork does to one of its pages.
    fn discard(&self, number: u32) -> bool {
        let by = Claimer::POOL;
        self.frame.claim_from(page(number), by).is_ok() && self.settle(by, Leaves::Discarded)
    }

    /// Evicts the frame's page, loads the absent page `number` instead, and pins that for a while.
    fn replace_by(&self, session: usize, number: u32) {
        let entry = &self.entries[number as usize];
        let Some(loading) = Loading::begin(entry) else { return };
        if self.take(session) {
            self.put(contents(number));
            let slots = &self.slots[session];
            slots.publish(0, &self.frame, page(number), (entry, loading.before()), 0);
            loading.finish(0);
            self.entry_is_set[number as usize].set(1);
            self.look(number);
            slots.remove(0);
        }
    }

    fn seems_resident(&self, number: u32) -> bool {
        frame_in(&self.entries[number as usize]).is_some()
    }

    fn look(&self, number: u32) {
        assert!(is_of(number, self.bytes.get()), "another page's bytes");
    }

    fn pin(&self, session: usize, number: u32) -> bool {
        self.seems_resident(number) && self.pin_believed(session, number)
    }

    /// Pins a page whose entry the caller has read before.
    fn pin_believed(&self, session: usize, number: u32) -> bool {
        self.slots[session].pin(0, &self.frame, page(number)).is_ok()
    }

    fn pin_and_look(&self, session: usize, number: u32) {
        if self.pin(session, number) {
            self.look(number);
            self.slots[session].remove(0);
        }
    }

    /// `BufferSession::pin_shared`, in the case that needs no pin.
    fn latch(&self, number: u32) -> bool {
        self.seems_resident(number) && self.frame.try_latch_shared(page(number), Barriers::fences())
    }

    fn latch_and_look(&self, number: u32) {
        if self.latch(number) {
            self.look(number);
            self.frame.latch().unlock_shared();
        }
    }

    fn latch_and_keep(&self, session: usize, number: u32) {
        if self.latch(number) {
            self.slots[session].unlatch(0, false, || &self.frame);
            self.look(number);
            self.slots[session].remove(0);
        }
    }

    /// What a writer does, except that the contents stay the same.
    fn change(&self, session: usize, number: u32) {
        if self.pin(session, number) {
            self.frame.latch().exclusive();
            self.bytes.set(contents(number));
            self.frame.latch().unlock_exclusive();
            self.slots[session].remove(0);
        }
    }

    /// The page's words, if the page is in the frame.
    fn words_of(&self, number: u32) -> Option<u64> {
        if self.seems_resident(number) { self.words_believed(number) } else { None }
    }

    /// Like [`Self::words_of`], for a page whose entry the caller has read before.
    fn words_believed(&self, number: u32) -> Option<u64> {
        let words = || [0, 1].map(|at: usize| self.words[at].load(Ordering::Relaxed));
        let seen = self.frame.try_read(page(number), words).ok()?;
        assert_eq!(seen[0], seen[1], "torn");
        assert!(is_of(number, seen[0]), "another page's words");
        Some(seen[0])
    }

    /// Whether the page was in the frame.
    fn read_optimistically(&self, number: u32) -> bool {
        self.words_of(number).is_some()
    }

    /// Checks the final state: the frame has a page, whose entry says so, and no thread holds
    /// anything.
    fn assert_at_rest(&self) {
        let state = self.frame.state();
        assert_eq!(state & (PINS | OWNED | CLAIMED | WRITING), 0, "{state:x}");
        let here = self.frame.page().expect("a page");
        for number in 0..PAGES as u32 {
            let entry = self.entries[number as usize].load(Ordering::Relaxed);
            let is_right = match page(number) == here {
                true => entry == resident_in(0),
                false => is_absent(entry),
            };
            assert!(is_right, "entry {number} is {entry:x}, and {here} is here");
        }
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Runs the actions concurrently.
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
    world.assert_at_rest();
}

#[test]
fn a_pin_keeps_the_page() {
    check(3, || {
        let world = World::new();
        together(&world, &[|w| w.pin_and_look(0, 0), |w| w.replace_by(1, 1)]);
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

/// Two sessions claim the frame, and a third takes the claim away from one of them. The other's
/// claim of the same frame must not be mistaken for the first's.
#[test]
fn one_of_two_evictors() {
    check(2, || {
        let world = World::new();
        together(
            &world,
            &[|w| w.replace_by(1, 1), |w| w.replace_by(2, 2), |w| w.pin_and_look(0, 0)],
        );
    });
}

/// A thread that sees a page's entry finds the page at the first look at its frame. (No other
/// thread wants that frame.)
#[test]
fn a_page_whose_entry_is_seen_is_found() {
    check(3, || {
        let world = World::new();
        together(
            &world,
            &[
                |w| w.replace_by(1, 1),
                |w| {
                    if w.seems_resident(1) {
                        assert!(w.words_believed(1).is_some(), "read");
                        assert!(w.pin_believed(0, 1), "pinned");
                        w.slots[0].remove(0);
                    }
                },
            ],
        );
    });
}

/// A page that was read ahead may leave at once. Its entry becomes resident before it becomes
/// absent.
#[test]
fn a_page_that_is_read_ahead_and_leaves() {
    check(3, || {
        let world = World::new();
        assert!(world.take(0));
        together(&world, &[|w| w.fill(1), |w| w.replace_by(2, 2)]);
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

/// Fills the frame if the queue has a read for it.
fn fill_queued(world: &World, queue: &loom::sync::Mutex<bool>) {
    let is_queued = std::mem::take(&mut *queue.lock().unwrap());
    if is_queued {
        world.fill(1);
    }
}

/// A session evicts the page and queues a read, which another thread performs. The queue tells that
/// thread that the version is odd; its own fence makes this known to readers.
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
