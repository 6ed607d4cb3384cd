//! A session's slots grow, move and shrink while an evictor looks at them.

use super::*;

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
