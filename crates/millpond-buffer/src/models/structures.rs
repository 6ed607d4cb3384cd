//! Loom models of the structures around the frames: slots of pins, freelists, the pool's size, the
//! reclaimer's sleep, and a fork that ends.
//!
//! **Slots.** A session's slots grow, move and shrink while an evictor looks at them.
//!
//! **Freelists.** A frame's next owner sees what its last owner did, and no frame has two owners.
//!
//! **Size.** A frame that retires by a size from before the pool grew becomes free again, exactly
//! once.
//!
//! **Demand.** If a session takes a frame meanwhile, the reclaimer sees that, or the session wakes
//! it. Loom finds a lost wake-up as a deadlock.
//!
//! **Dropping.** A fork is dropped or truncated while another thread loads or evicts its page. The
//! thread that ends the fork walks over the fork's page-table entries. After the walk they stay
//! absent, so they may be freed (rule 4).

use super::*;
use crate::core::free_frames::{Demand, Freelists, Size};
use crate::core::page_table::frame_of;
use crate::core::relation::Relation;
use millpond_sync::atomic::AtomicUsize;

/// While the slots grow, an evictor that looks at them misses no pin that is held throughout.
#[test]
fn slots_grow_beside_a_scan() {
    check(3, || {
        let world = World::new();
        assert!(world.pin(0, 0));
        together(
            &world,
            &[
                |w| {
                    // Two growths, from the smallest table on.
                    for frame in [10, 11, 12] {
                        w.slots[0].add(frame);
                    }
                    w.look(0);
                    w.slots[0].remove(11);
                    w.slots[0].remove(0);
                },
                |w| {
                    if w.take(1) {
                        w.fill(1);
                    }
                },
            ],
        );
    });
}

/// A removal moves slots while an evictor looks at them.
#[test]
fn slots_move_beside_a_scan() {
    check(3, || {
        let world = World::new();
        // Whatever their homes are, some of these probe past each other.
        for frame in [3, 5, 8] {
            world.slots[0].add(frame);
        }
        assert!(world.pin(0, 0));
        together(
            &world,
            &[
                |w| {
                    for frame in [3, 5, 8] {
                        w.slots[0].remove(frame);
                    }
                    w.look(0);
                    w.slots[0].remove(0);
                },
                |w| {
                    if w.take(1) {
                        w.fill(1);
                    }
                },
            ],
        );
    });
}

/// A session releases all pins, goes back to its smallest table and pins again.
#[test]
fn slots_shrink_beside_a_scan() {
    check(2, || {
        let world = World::new();
        for frame in [3, 5] {
            world.slots[0].add(frame);
        }
        together(
            &world,
            &[
                |w| {
                    for frame in [3, 5] {
                        w.slots[0].remove(frame);
                    }
                    if w.pin(0, 0) {
                        w.slots[0].add(3);
                        w.look(0);
                        w.slots[0].remove(3);
                        w.slots[0].remove(0);
                    }
                },
                |w| {
                    if w.take(1) {
                        w.fill(1);
                    }
                },
            ],
        );
    });
}

/// Two frames, and a value per frame that its owner writes.
struct Lists {
    lists: Freelists,
    frames: [Frame; 2],
    owned: [Unshared; 2],
}

impl Lists {
    fn new() -> Arc<Self> {
        let (lists, frames) = (Freelists::new(1), [Frame::new(), Frame::new()]);
        lists.push(0, &frames, &[0, 1]);
        Arc::new(Self { lists, frames, owned: Default::default() })
    }

    /// Takes a free frame and uses it.
    fn pop(&self) -> Option<u32> {
        let popped = self.lists.pop(0, &self.frames)?.frame;
        self.owned[popped as usize].set(1);
        Some(popped)
    }

    fn push(&self, frame: Option<u32>) {
        self.lists.push(0, &self.frames, frame.as_slice());
    }
}

fn share(preemptions: usize, one: fn(&Lists), other: fn(&Lists)) {
    check(preemptions, move || {
        let shared = Lists::new();
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&theirs));
        other(&shared);
        thread.join().unwrap();
    });
}

#[test]
fn an_owner_sees_what_the_last_one_did() {
    let use_twice = |shared: &Lists| {
        for _ in 0..2 {
            let popped = shared.pop();
            shared.push(popped);
        }
    };
    share(3, use_twice, use_twice);
}

/// One thread is about to take the first frame. The other takes both and gives the first back.
#[test]
fn a_list_that_was_emptied_and_refilled() {
    let take_two = |shared: &Lists| {
        shared.pop();
        shared.pop();
    };
    let give_back_one = |shared: &Lists| {
        let first = shared.pop();
        shared.pop();
        shared.push(first);
    };
    share(3, take_two, give_back_one);
}

#[test]
fn a_frame_that_retires_beside_growth_is_free_again() {
    check(3, || {
        let frames = Arc::new([Frame::new(), Frame::new()]);
        let (size, lists) = (Arc::new(Size::new()), Arc::new(Freelists::new(1)));
        size.set(1);
        let owner = thread::spawn({
            let (frames, size, lists) =
                (Arc::clone(&frames), Arc::clone(&size), Arc::clone(&lists));
            move || size.give_back(&lists, 0, &*frames, &[1])
        });
        size.set(2);
        Size::bring_back(&lists, 0, &*frames, 1..2, |_| false);
        owner.join().unwrap();
        let free = lists.pop(0, &*frames).map(|popped| popped.frame);
        assert_eq!(free, Some(1), "it is lost");
        assert!(lists.pop(0, &*frames).is_none(), "it is free twice");
    });
}

#[test]
fn a_frame_that_is_taken_wakes_a_reclaimer_that_falls_asleep() {
    loom::model(|| {
        let demand = Arc::new(Demand::with_low_water(1));
        let free = Arc::new(AtomicUsize::new(1));
        let session = thread::spawn({
            let (demand, free) = (Arc::clone(&demand), Arc::clone(&free));
            move || {
                // Relaxed, like the swap of a freelist's head: only the fence orders what follows.
                free.store(0, Ordering::Relaxed);
                demand.taken(0);
            }
        });
        demand.sleep(|| free.load(Ordering::Relaxed) == 0);
        session.join().unwrap();
    });
}

const BLOCK: BlockNumber = BlockNumber(0);

/// A fork of one block, and the only frame that its page can use.
struct Fork {
    relation: Relation,
    frame: Frame,
    board: PinBoard,
    /// A thread that uses an entry reads this; the thread that frees the entries writes it.
    entries_live: Unshared,
}

impl Fork {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            relation: Relation::new(RelationId::constant(1).main(), 1, 1),
            frame: Frame::new(),
            board: PinBoard::new(1, Barriers::fences()),
            entries_live: Unshared::default(),
        })
    }

    fn load(&self) {
        let relation = &self.relation;
        if relation.check(BLOCK).is_err() {
            return;
        }
        let entry = relation.translation.entry(BLOCK);
        let begun = relation.begin_load(BLOCK, entry, Barriers::fences());
        let Ok(Some(loading)) = begun else { return };
        let entry = (loading.entry(), loading.before());
        self.entries_live.get();
        let kept = self.frame.publish_kept(page(0), entry, 0);
        loading.finish(0);
        drop(kept);
    }

    fn take(&self, by: Claimer, leaves: Leaves) -> bool {
        let frames = std::slice::from_ref(&self.frame);
        replacement::settle(frames, &self.board, by, &mut [0], leaves, false).0 == 1
    }

    /// Evicts the page.
    fn evict(&self) {
        let by = Claimer::session(0);
        if self.frame.claim(by).is_ok() {
            self.entries_live.get();
            self.take(by, Leaves::Evicted { now: 0 });
        }
    }

    /// Evicts every page and frees the entries of a fork that was marked as dropped, or truncated.
    fn discard(&self) {
        let entries = self.relation.entries_cut_off(BLOCK, &self.board).unwrap();
        for (_, entry) in entries {
            loop {
                let now = entry.load(Ordering::Acquire);
                if is_absent(now) {
                    break;
                }
                let claimed = frame_of(now).is_some()
                    && self.frame.claim_from(page(0), Claimer::POOL).is_ok();
                if !claimed || !self.take(Claimer::POOL, Leaves::Discarded) {
                    thread::yield_now();
                }
            }
        }
        self.entries_live.set(1);
    }
}

/// One thread loads or evicts the page, while another ends the fork.
fn beside(is_there: bool, other: fn(&Fork), end: fn(&Relation)) {
    check(3, move || {
        let fork = Fork::new();
        if is_there {
            fork.load();
        }
        let thread = thread::spawn({
            let fork = Arc::clone(&fork);
            move || other(&fork)
        });
        end(&fork.relation);
        fork.discard();
        thread.join().unwrap();
        let mut entries = fork.relation.translation.from(BLOCK);
        assert!(entries.all(|(_, entry)| is_absent(entry.load(Ordering::Relaxed))), "too late");
    });
}

#[test]
fn a_load_beside_a_drop() {
    beside(false, Fork::load, Relation::mark_dropped);
}

#[test]
fn a_load_beside_a_truncation() {
    beside(false, Fork::load, |relation| relation.set_blocks(0));
}

/// Once its entry is seen absent, the evicting session no longer uses the entry.
#[test]
fn an_eviction_beside_a_drop() {
    beside(true, Fork::evict, Relation::mark_dropped);
}

/// A session that sees that a block exists finds the block in the store.
#[test]
fn a_block_that_is_there_is_in_the_store() {
    check(3, || {
        let (fork, stored) = (Fork::new(), Arc::new(AtomicU64::new(1)));
        let thread = thread::spawn({
            let (fork, stored) = (Arc::clone(&fork), Arc::clone(&stored));
            move || {
                stored.store(2, Ordering::Relaxed);
                fork.relation.set_blocks(2);
            }
        });
        let blocks = fork.relation.blocks();
        assert!(stored.load(Ordering::Relaxed) >= u64::from(blocks));
        thread.join().unwrap();
    });
}
