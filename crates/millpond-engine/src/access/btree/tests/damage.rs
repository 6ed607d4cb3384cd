//! Writers on damaged pages get an error that names a block. They neither loop for ever nor wait
//! for a latch that they hold themselves (btree rule 13).

use super::super::page::layout::{
    COUNT, CYCLE, FLAG_INCOMPLETE_SPLIT, FLAG_LEAF, FLAGS, HIGH_AT, LEVEL, RIGHT,
};
use super::super::page::node::Node;
use super::lookups::Together;
use super::*;
use millpond_buffer::PageView;

/// Always zero on a page: as a high key it is the empty key, and every target is beyond it.
const ZERO_AT: u16 = 36;

/// A tree of two levels with leaves 2, 3, 4 and so on from left to right.
struct Damaged {
    tree: Tree,
    env: TestEnv,
}

impl Damaged {
    fn new(entry: impl Fn(u32) -> (u32, u32)) -> Self {
        let (tree, env) = Tree::created(100);
        for n in 0..5000 {
            let (key, row) = entry(n);
            insert(&env, &tree.rel, &int_key(key), tid(row), None).unwrap();
        }
        assert_eq!(tree.check(&env).levels, 2);
        Self { tree, env }
    }

    fn ascending() -> Self {
        Self::new(|n| (n, n))
    }

    fn put(&self, block: u32, at: usize, value: u16) {
        self.tree.deface(&self.env, block, at, &value.to_le_bytes());
    }

    fn link(&self, block: u32, right: u32) {
        self.tree.deface(&self.env, block, RIGHT, &right.to_le_bytes());
    }

    /// Inserts rows under the key until that fails, at the latest when the leaf is split.
    fn fails(&self, key: u32) -> String {
        let insert =
            |n: u32| insert(&self.env, &self.tree.rel, &int_key(key), tid(n + 10_000), None);
        (0..3000).find_map(|n| insert(n).err()).expect("damage is found").to_string()
    }

    fn fails_unique(&self, key: u32) -> String {
        let free = |_| Ok(UniqueVerdict::Free);
        insert(&self.env, &self.tree.rel, &int_key(key), tid(10_000), Some(&free))
            .unwrap_err()
            .to_string()
    }
}

#[test]
fn search_for_a_parent_ends_on_circular_links() {
    // The root's right link leads to itself, to the meta page, to the latched child, and to a leaf.
    for (right, what) in [(1, "circle"), (0, "circle"), (2, "block 2"), (3, "circle")] {
        let damaged = Damaged::ascending();
        damaged.put(1, HIGH_AT, ZERO_AT);
        damaged.link(1, right);
        let error = damaged.fails(500);
        assert!(error.contains(what), "{right}: {error}");
    }
}

#[test]
fn a_leaf_is_of_level_zero_and_no_other_page_is() {
    let damaged = Damaged::ascending();
    damaged.put(2, FLAGS, 0);
    assert!(damaged.fails(500).contains("block 2 "));
    damaged.put(2, FLAGS, FLAG_LEAF);
    damaged.put(2, LEVEL, 1);
    assert!(damaged.fails(500).contains("block 2 "));
    damaged.put(1, FLAGS, FLAG_LEAF);
    assert!(damaged.fails(500).contains("block 1 "));
}

#[test]
fn links_between_leaves_lead_to_other_leaves() {
    let damaged = Damaged::ascending();
    damaged.put(2, HIGH_AT, ZERO_AT);
    damaged.put(3, HIGH_AT, ZERO_AT);
    for (right, what) in [(0, "block 0 "), (1, "block 1 "), (2, "block 2 "), (3, "circle")] {
        damaged.link(2, right);
        damaged.link(3, 2);
        let error = damaged.fails(500);
        assert!(error.contains(what), "{right}: {error}");
    }
}

#[test]
fn lookups_of_many_keys_end_on_circular_links() {
    let damaged = Damaged::ascending();
    damaged.put(2, HIGH_AT, ZERO_AT);
    damaged.link(2, 2);
    // Between all keys that there are: also after the last one of each leaf.
    let keys: Vec<_> = (0..2000).map(|n| [&int_key(n)[..], &[255]].concat()).collect();
    let error = Together::default().lookup(&damaged.tree, &damaged.env, &keys).unwrap_err();
    assert!(error.to_string().contains("circle"), "{error}");
    damaged.put(2, FLAGS, 0);
    let error = Together::default().lookup(&damaged.tree, &damaged.env, &keys).unwrap_err();
    assert!(error.to_string().contains("block 2 "), "{error}");
}

#[test]
fn a_unique_check_follows_links_to_other_leaves_only() {
    let damaged = Damaged::new(|n| (5, n));
    // From the third leaf to the root, to itself, to the first (latched) leaf, and to the second.
    for (right, what) in [(1, "block 1 "), (4, "block 4 "), (2, "block 2 "), (3, "circle")] {
        damaged.link(4, right);
        let error = damaged.fails_unique(5);
        assert!(error.contains(what), "{right}: {error}");
    }
    damaged.link(2, 2);
    assert!(damaged.fails_unique(5).contains("block 2 "));
}

#[test]
fn a_parent_without_entries_gets_none() {
    let damaged = Damaged::ascending();
    damaged.put(1, COUNT, 0);
    assert!(damaged.fails(500).contains("block 1 "));
}

#[test]
fn missing_level_above_the_root_is_an_error() {
    let damaged = Damaged::ascending();
    damaged.put(1, LEVEL, u16::MAX);
    assert!(!damaged.tree.report(&damaged.env).problems.is_empty());
    assert!(damaged.fails(500).contains("of another level"));
}

#[test]
fn a_vacuum_does_not_follow_a_circle() {
    let damaged = Damaged::ascending();
    // The stamps say that these pages were split during the first vacuum, so that it goes back to
    // them.
    for block in 2..=4 {
        damaged.put(block, CYCLE, 1);
    }
    damaged.link(3, 2);
    damaged.link(4, 2);
    let error = vacuum(&damaged.env, &damaged.tree.rel, None, &|_| false).unwrap_err();
    assert!(error.to_string().contains("circle"), "{error}");
}

/// A tree of three levels, and the block of its first page of level 1.
fn three_levels() -> (Damaged, u32) {
    let tree = Tree::new(1000);
    let env = tree.env();
    let entries = (0..100_000u32).map(|n| Ok((int_key(n), tid(n))));
    bulk_build(&env, &tree.rel, entries, 10).unwrap();
    assert_eq!(tree.check(&env).levels, 3);
    let first =
        env.buffers().read(&tree.rel, BlockNumber(1), Wait::Allowed, |view| Node(view).child(0));
    (Damaged { tree, env }, first.unwrap())
}

#[test]
fn search_for_a_grandparent_fails_on_a_latched_page() {
    let (damaged, parent) = three_levels();
    let node = |of: fn(Node<'_, PageView<'_>>) -> u32| {
        let block = BlockNumber(parent);
        damaged.env.buffers().read(&damaged.tree.rel, block, Wait::Allowed, |view| of(Node(view)))
    };
    let leaf = node(|node| node.child(0)).unwrap();
    // The split of the leaf finds that its parent's split is incomplete, and looks for a page of
    // level 2: to the right of the root.
    damaged.put(parent, FLAGS, FLAG_INCOMPLETE_SPLIT);
    damaged.put(1, HIGH_AT, ZERO_AT);
    damaged.link(1, leaf);
    let error = damaged.fails(0);
    assert!(error.contains("circle"), "{error}");
}

#[test]
fn insert_does_not_wait_for_a_right_leaf_that_is_earlier_in_order() {
    let damaged = Damaged::ascending();
    damaged.put(2, HIGH_AT, ZERO_AT);
    damaged.put(3, HIGH_AT, ZERO_AT);
    damaged.link(3, 2);
    // Another session holds the third leaf, as if it waited for the second.
    let other = damaged.tree.env();
    let held = env::latch(&other, &damaged.tree.rel, 3).unwrap();
    let error = damaged.fails(500);
    assert!(error.contains("circle"), "{error}");
    drop(held);
}

#[test]
fn unique_check_does_not_wait_for_a_right_leaf_that_is_earlier_in_order() {
    let damaged = Damaged::new(|n| (5, n));
    damaged.link(3, 2);
    damaged.put(3, HIGH_AT, ZERO_AT);
    let other = damaged.tree.env();
    let held = env::latch(&other, &damaged.tree.rel, 3).unwrap();
    let error = damaged.fails_unique(5);
    assert!(error.contains("circle"), "{error}");
    drop(held);
}

#[test]
fn scan_over_circular_links_fails() {
    let scan = |damaged: &Damaged, direction| {
        let mut cursor = Cursor::new(&[], None, direction);
        (0..100_000).find_map(|_| cursor.next(&damaged.env, &damaged.tree.rel).err())
    };
    let damaged = Damaged::ascending();
    damaged.link(4, 3);
    let error = scan(&damaged, Direction::Forward).expect("damage is found").to_string();
    assert!(error.contains("circle"), "{error}");
    // Nothing bounds the leaf, and it has a right sibling.
    damaged.put(3, HIGH_AT, 0);
    assert!(scan(&damaged, Direction::Forward).is_some());
}
