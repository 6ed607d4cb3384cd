//! Range scans, in both directions, also while the tree changes between the steps.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn ranges_are_those_of_a_set(entries in keys(1..2000), bounds in keys(2..12)) {
        let (tree, env) = Tree::created(100);
        let mut model = BTreeSet::new();
        for (key, n) in &entries {
            insert(&env, &tree.rel, key, tid(*n), None).unwrap();
            model.insert((key.clone(), tid(*n)));
        }
        let bounds: Vec<&Vec<u8>> = bounds.iter().chain(entries.iter().take(3)).map(|(key, _)| key).collect();
        for lower in &bounds {
            for upper in &bounds {
                let expected: Vec<_> =
                    model.iter().filter(|(key, _)| key >= lower && key < upper).cloned().collect();
                let found = tree.scan(&env, lower, Some(upper), Direction::Forward);
                prop_assert_eq!(&found, &expected);
                let mut found = tree.scan(&env, lower, Some(upper), Direction::Backward);
                found.reverse();
                prop_assert_eq!(&found, &expected);
            }
        }
    }

    #[test]
    fn scan_sees_lasting_entries_exactly_once(
        old in proptest::collection::btree_set(0u32..40_000, 1000..3000),
        new in proptest::collection::vec(0u32..40_000, 1500),
        backward: bool,
        pause in 1usize..900,
    ) {
        // Even tids are there from the start. Odd ones, with their splits, come while the scan
        // pauses.
        let (tree, env) = Tree::created(100);
        for n in &old {
            insert(&env, &tree.rel, &int_key(*n), Tid::new(BlockNumber(*n), 2), None).unwrap();
        }
        let direction = if backward { Direction::Backward } else { Direction::Forward };
        let mut cursor = Cursor::new(&[], None, direction);
        let mut new = new.into_iter();
        let mut seen = Vec::new();
        let mut count = 0;
        while let Some(tid) = cursor.next(&env, &tree.rel).unwrap() {
            if tid.offset == 2 {
                seen.push(tid.block.get());
            }
            count += 1;
            if count % pause == 0 {
                for n in new.by_ref().take(200) {
                    insert(&env, &tree.rel, &int_key(n), Tid::new(BlockNumber(n), 1), None).unwrap();
                }
                vacuum(&env, &tree.rel, None, &|tid| tid.offset == 1 && tid.block.get() % 2 == 0).unwrap();
            }
        }
        if backward {
            seen.reverse();
        }
        prop_assert!(seen.iter().eq(old.iter()), "{} seen of {}", seen.len(), old.len());
        tree.check(&env);
    }
}

#[test]
fn a_peek_shows_what_comes_next() {
    let (tree, env) = Tree::created(100);
    for n in 0..2_000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut cursor = Cursor::new(&[], None, direction);
        let (mut coming, mut peeked) = (std::collections::VecDeque::new(), 0);
        while let Some(found) = cursor.next(&env, &tree.rel).unwrap() {
            if let Some(expected) = coming.pop_front() {
                assert_eq!(found, expected);
                peeked += 1;
            }
            let seen: Vec<_> = (0..).map_while(|place| cursor.peek(place)).take(5).collect();
            assert!(seen.iter().zip(&coming).all(|(a, b)| a == b));
            coming = seen.into();
        }
        // All but the first ones of leaves.
        assert!(peeked > 1_900, "{peeked}");
    }
}

#[test]
fn a_scan_that_may_not_wait_goes_on_where_it_stopped() {
    // A pool far smaller than the tree, in a store whose pages can't be read without waiting.
    let tree = Tree::in_cold_store(16);
    let mut env = tree.env();
    create(&env, &tree.rel).unwrap();
    for n in 0..20_000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut cursor = Cursor::new(&[], None, direction);
        let (mut seen, mut waits) = (0u32, 0);
        loop {
            env.wait = Wait::Never;
            let next = match cursor.next(&env, &tree.rel) {
                Err(EngineError::WouldBlock) => {
                    waits += 1;
                    env.wait = Wait::Allowed;
                    cursor.next(&env, &tree.rel).unwrap()
                }
                other => other.unwrap(),
            };
            let Some(found) = next else { break };
            let n = if direction == Direction::Forward { seen } else { 19_999 - seen };
            assert_eq!(found, tid(n));
            seen += 1;
        }
        assert_eq!(seen, 20_000, "after {waits} waits");
        assert!(waits > 0, "the scan never had to wait");
    }
}

#[test]
fn empty_leaves_are_passed() {
    let (tree, env) = Tree::created(100);
    for n in 0..10_000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    let stats = vacuum(&env, &tree.rel, None, &|t| t > tid(10) && t < tid(8000)).unwrap();
    assert!(stats.deleted_pages > 3, "{stats:?}");
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(tree.scan(&env, &[], None, direction).len() as u64, stats.kept);
    }
    assert_eq!(found(&tree, &env, &int_key(8000)), [tid(8000)]);
    assert_eq!(found(&tree, &env, &int_key(2000)), []);
    let first = tree.scan(&env, &int_key(11), Some(&int_key(8001)), Direction::Backward);
    assert_eq!(first.len(), 1);
    insert(&env, &tree.rel, &int_key(2000), tid(2000), None).unwrap();
    assert_eq!(found(&tree, &env, &int_key(2000)), [tid(2000)]);
    tree.check(&env);
}

#[test]
fn a_scan_goes_on_when_the_next_leaf_is_gone() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (tree, env) = Tree::created(100);
        for n in 0..10_000 {
            insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
        }
        let mut cursor = Cursor::new(&[], None, direction);
        let mut seen = vec![cursor.next(&env, &tree.rel).unwrap().unwrap()];
        // The neighbours of the copied leaf leave the tree, and new entries come into their range.
        let gone = |t: Tid| t >= tid(600) && t < tid(9400);
        assert!(vacuum(&env, &tree.rel, None, &gone).unwrap().deleted_pages > 3);
        for n in (1400..8600).step_by(100) {
            insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
        }
        while let Some(tid) = cursor.next(&env, &tree.rel).unwrap() {
            seen.push(tid);
        }
        if direction == Direction::Backward {
            seen.reverse();
        }
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "nothing twice");
        let lasting = seen.iter().filter(|t| !gone(**t)).count();
        assert_eq!(lasting, 1200);
        tree.check(&env);
    }
}

#[test]
fn queue_index_reuses_deleted_pages() {
    let (tree, env) = Tree::created(200);
    let window = 10_000;
    let mut most = 0;
    for round in 0..20u32 {
        for n in round * window..(round + 1) * window {
            insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
        }
        let stats = vacuum(&env, &tree.rel, None, &|t| t < tid(round * window)).unwrap();
        assert_eq!(stats.kept, u64::from(window));
        tree.check(&env);
        if round >= 3 {
            assert!(stats.deleted_pages > 5 && stats.free_pages > 5, "{stats:?}");
        }
        most = most.max(tree.rel.block_count());
        // Until then no split may use the pages that this vacuum took out of the tree.
        tree.log.all_over();
    }
    assert!(most < 60, "{most} blocks for {window} entries");
    for n in 19 * window..20 * window {
        assert_eq!(found(&tree, &env, &int_key(n)), [tid(n)]);
    }
}
