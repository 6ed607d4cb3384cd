//! Inner pages full of separators with a long common start, and keys without it: a cut without the
//! entry makes room (btree rule 16).

use super::super::record::{INSERT, ROOT_SPLIT, SPLIT};
use super::*;

/// Three of these keys fit a leaf. The separators between leaves have 602 bytes in common.
fn shared_key(n: u32) -> Vec<u8> {
    [&[9; 600][..], &n.to_be_bytes(), &[7; 2050]].concat()
}

/// Keys of the greatest length, after all shared keys.
fn outlier(n: u8) -> Vec<u8> {
    let mut key = vec![10; MAX_KEY_BYTES];
    key[MAX_KEY_BYTES - 1] = n;
    key
}

/// A full tree of this many entries, built in bulk.
fn built(entries: u32) -> (Tree, TestEnv) {
    let tree = Tree::new(100);
    let env = tree.env();
    let entries = (0..entries).map(|n| Ok((shared_key(n), tid(n))));
    bulk_build(&env, &tree.rel, entries, 100).unwrap();
    (tree, env)
}

/// The tree's levels, and the number of its root's children.
fn size(entries: u32) -> (u16, usize) {
    let (tree, env) = built(entries);
    let root = BlockNumber(ROOT);
    let read = env.buffers().read(&tree.rel, root, Wait::Allowed, |view| {
        let node = page::node::Node(view);
        (node.level() + 1, node.count())
    });
    read.unwrap()
}

/// The most entries, between two numbers, with which the tree is no larger than `most`: its last
/// inner page is full.
fn fullest(most: (u16, usize), mut from: u32, mut to: u32) -> u32 {
    assert!(size(from) <= most && size(to) > most, "{:?} {:?}", size(from), size(to));
    while to - from > 1 {
        let middle = from.midpoint(to);
        if size(middle) <= most { from = middle } else { to = middle }
    }
    from
}

/// Adds outliers to a tree, and to each recovered prefix of its log. Returns the records.
fn add_outliers(tree: &Tree, env: &TestEnv) -> Vec<(u8, usize)> {
    let (before, built) = (tree.log.len(), tree.check(env).entries);
    let mut inserted_at = Vec::new();
    for n in 0..4 {
        insert(env, &tree.rel, &outlier(n), tid(n.into()), None).unwrap();
        inserted_at.push(tree.log.len());
    }
    assert_eq!(tree.check(env).entries, built + 4);
    for records in before..=tree.log.len() {
        let recovered = tree.recover(records, 1 + records % 2);
        let env = recovered.env();
        let acknowledged = inserted_at.iter().filter(|&&at| at <= records).count() as u64;
        let there = recovered.check(&env).entries - built;
        assert!(there == acknowledged || there == acknowledged + 1);
        for n in 0..4 {
            insert(&env, &recovered.rel, &outlier(n), tid(n.into()), None).unwrap();
            assert_eq!(found(&recovered, &env, &outlier(n)), [tid(n.into())]);
        }
        assert_eq!(recovered.check(&env).entries, built + 4);
    }
    let infos = tree.log.infos();
    (before..infos.len()).map(|at| (infos[at], tree.log.blocks_of(at))).collect()
}

#[test]
fn a_full_root_takes_a_separator_without_its_prefix() {
    let entries = fullest((2, usize::MAX), 1350, 1450);
    let (tree, env) = built(entries);
    let records = add_outliers(&tree, &env);
    // A leaf is split. Then the root is split into two halves, without the leaf's downlink, which
    // comes later.
    assert_eq!(records[..2], [(SPLIT, 2), (ROOT_SPLIT, 3)]);
}

#[test]
fn a_full_inner_page_takes_a_separator_without_its_prefix() {
    let entries = fullest((3, 2), 2650, 2900);
    let (tree, env) = built(entries);
    let records = add_outliers(&tree, &env);
    // A leaf is split; then its parent, whose own downlink comes before the leaf's.
    assert_eq!(records[..3], [(SPLIT, 2), (SPLIT, 2), (INSERT, 2)]);
}
