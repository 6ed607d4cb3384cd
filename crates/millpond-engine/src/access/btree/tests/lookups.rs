//! Lookups of many keys together find what lookups one by one find.

use std::cell::Cell;
use std::rc::Rc;

use millpond_buffer::{ReadStream, StreamOptions};

use super::*;
use crate::EngineResult;

/// Keys in order, with something to do when one is read.
struct Sorted<'k> {
    keys: &'k [Vec<u8>],
    on_read: &'k dyn Fn(usize),
}

impl SortedKeys for Sorted<'_> {
    fn count(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        (self.on_read)(number);
        &self.keys[number]
    }
}

/// The memory of lookups, used again and again.
#[derive(Default)]
pub(super) struct Together {
    lookups: ManyLookups,
    stream: ReadStream,
}

impl Together {
    pub(super) fn lookup(
        &mut self,
        tree: &Tree,
        env: &TestEnv,
        keys: &[Vec<u8>],
    ) -> EngineResult<Vec<(usize, Tid)>> {
        self.lookup_with(tree, env, keys, &|_| ())
    }

    fn lookup_with(
        &mut self,
        tree: &Tree,
        env: &TestEnv,
        keys: &[Vec<u8>],
        on_read: &dyn Fn(usize),
    ) -> EngineResult<Vec<(usize, Tid)>> {
        let mut found = Vec::new();
        let keys = Sorted { keys, on_read };
        self.lookups.lookup(env, &tree.rel, &keys, &mut self.stream, &mut found)?;
        found.sort_by_key(|(key, _)| *key);
        Ok(found)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Keys that are there and keys that are not, more than once, with rows on several pages.
    #[test]
    fn they_find_what_single_lookups_find(
        entries in keys(1..3000),
        asked in keys(1..200),
        frames in 24usize..200,
        io_concurrency in 0u32..20,
    ) {
        let (tree, env) = Tree::created(frames);
        for (key, n) in &entries {
            insert(&env, &tree.rel, key, tid(*n), None).unwrap();
        }
        let mut asked: Vec<_> = asked.into_iter().chain(entries.into_iter().step_by(7)).collect();
        asked.sort();
        let asked: Vec<Vec<u8>> = asked.into_iter().map(|(key, _)| key).collect();
        let stream = StreamOptions::default().with_io_concurrency(io_concurrency);
        let mut together = Together { stream: ReadStream::new(stream), ..Together::default() };
        for keys in [&asked[..], &asked[..1], &[], &asked[..]] {
            let expected: Vec<_> = keys
                .iter()
                .enumerate()
                .flat_map(|(n, key)| found(&tree, &env, key).into_iter().map(move |tid| (n, tid)))
                .collect();
            prop_assert_eq!(together.lookup(&tree, &env, keys).unwrap(), expected);
        }
    }
}

/// Each page may have to be read, so a cancel is seen before each.
#[test]
fn they_stop_when_they_are_told_to() {
    let (tree, mut env) = Tree::created(200);
    for n in 0..5000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    let keys: Vec<_> = (0..5000).step_by(500).map(|n| int_key(n).to_vec()).collect();
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    env.stops = Some(Box::new(move || {
        count.set(count.get() + 1);
        count.get() == 3
    }));
    let mut together = Together::default();
    assert!(together.lookup(&tree, &env, &keys).is_err());
    assert_eq!(asked.get(), 3);
    // Then it can be tried again.
    assert_eq!(together.lookup(&tree, &env, &keys).unwrap().len(), keys.len());
}

/// While a key's page is awaited, it leaves the tree (btree rule 14).
#[test]
fn a_page_leaves_the_tree_before_it_is_read() {
    let (tree, env) = Tree::created(200);
    for n in 0..20_000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    let is_removed = |n: u32| (5_000..15_000).contains(&n);
    let numbers: Vec<u32> = (0..20_000).step_by(100).collect();
    let keys: Vec<_> = numbers.iter().map(|&n| int_key(n).to_vec()).collect();
    let reads = Cell::new(0);
    // Every key is read once on the root, which leads to leaves.
    let on_read = |_| {
        reads.set(reads.get() + 1);
        if reads.get() == keys.len() + 2 {
            let removed = |tid: Tid| is_removed(tid.block.get() * 100 + u32::from(tid.offset) - 1);
            vacuum(&tree.env(), &tree.rel, None, &removed).unwrap();
        }
    };
    let found = Together::default().lookup_with(&tree, &env, &keys, &on_read).unwrap();
    let expected: Vec<_> = numbers
        .iter()
        .enumerate()
        .filter(|&(_, &n)| !is_removed(n))
        .map(|(place, &n)| (place, tid(n)))
        .collect();
    assert_eq!(found, expected);
    // The keys of pages that were gone went down again.
    assert!(reads.get() > 2 * keys.len() + 2 + keys.len() / 4, "{}", reads.get());
}
