//! Loom models of the structures around the frames: slots of pins, freelists, the pool's size, the
//! reclaimer's sleep.
//!
//! **Slots.** A session's slots grow, move and shrink while an evictor looks at them.
//!
//! **Freelists.** A frame's next owner sees what its last owner did, and no frame has two owners.
//!
//! **Size.** A frame that retires by a size from before the pool grew becomes free again, exactly
//! once.
//!
//! **Demand.** If a session takes a frame meanwhile, the reclaimer sees
//! that, or the session wakes it. Loom finds a lost wake-up as a deadlock.

use super::*;
use crate::core::free_frames::{Demand, Freelists, Size};
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
