//! How large a part of a tree lies between two keys.

use super::*;

fn tree_of(keys: impl Iterator<Item = u32>, frames: usize) -> (Tree, TestEnv) {
    let (tree, env) = Tree::created(frames);
    for (row, key) in (0u32..).zip(keys) {
        insert(&env, &tree.rel, &int_key(key), tid(row), None).unwrap();
    }
    (tree, env)
}

fn share(tree: &Tree, env: &TestEnv, (from, to): (u32, u32), entries: u64) -> f64 {
    share_between(env, &tree.rel, &int_key(from), &int_key(to), entries as f64).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whether the entries came in order or not, and however deep the tree is.
    #[test]
    fn it_is_near_the_truth(
        count in 1u32..40_000,
        step in prop_oneof![Just(1u32), Just(7_919)],
        ends in proptest::collection::vec((0u32..=1_000, 0u32..=1_000), 1..20),
    ) {
        let (tree, env) = tree_of((0..count).map(|n| n * step % count.next_multiple_of(2)), 2_000);
        let report = tree.check(&env);
        let leaf = 1.0 / f64::from(report.pages);
        for (a, b) in ends {
            let place = |part: u32| (u64::from(part) * u64::from(count) / 1_000) as u32;
            let (from, to) = (place(a.min(b)), place(a.max(b)));
            let entries = tree.scan(&env, &int_key(from), Some(&int_key(to)), Direction::Forward);
            let truth = entries.len() as f64 / f64::from(count);
            let found = share(&tree, &env, (from, to), u64::from(count));
            let bound = if report.levels == 1 { 1e-9 } else { truth * 0.5 + 3.0 * leaf };
            prop_assert!(
                (found - truth).abs() <= bound,
                "{count} in {} pages, {from} to {to}: {found} for {truth}", report.pages
            );
            // Within a leaf or two, it is known.
            let (from, to) = (from, (from + a % 50).min(count));
            let entries = tree.scan(&env, &int_key(from), Some(&int_key(to)), Direction::Forward);
            let range = (&int_key(from)[..], &int_key(to)[..]);
            let found = rows_between(&env, &tree.rel, range.0, range.1, f64::from(count)).unwrap();
            let truth = entries.len() as f64;
            prop_assert!((found - truth).abs() < 1e-6, "{count}, {from} to {to}: {found} for {truth}");
        }
    }
}

#[test]
fn ends_are_open_and_ranges_may_be_empty() {
    let (tree, env) = tree_of(0..20_000, 500);
    let of = |lower: &[u8], upper: &[u8]| {
        share_between(&env, &tree.rel, lower, upper, 20_000.0).unwrap()
    };
    let report = tree.check(&env);
    assert_eq!(report.levels, 2);
    let half_leaf = 0.5 / f64::from(report.pages - 1);
    assert!(of(&[], &[0xff]) > 0.9);
    assert!(of(&int_key(10_000), &[0xff]) < 0.6);
    // Part of a leaf: no more is known.
    assert!((1e-9..half_leaf).contains(&of(&int_key(5), &int_key(5))));
    assert!(of(&int_key(19_000), &int_key(10)) < half_leaf);
    let (from, to) = (int_key(5), int_key(5));
    assert_eq!(rows_between(&env, &tree.rel, &from, &to, 20_000.0).unwrap(), 0.0);
    let (tree, env) = Tree::created(20);
    assert_eq!(share_between(&env, &tree.rel, &[], &[0xff], 0.0).unwrap(), 0.0);
}

/// A queue's waiting rows are few, in leaves that were full of them.
#[test]
fn leaves_that_are_nearly_empty_are_seen_to_be() {
    let (tree, env) = tree_of(0..40_000, 500);
    let range = (10_000, 30_000);
    assert!((0.45..0.55).contains(&share(&tree, &env, range, 40_000)));
    let is_done = |row: Tid| (tid(range.0)..tid(range.1)).contains(&row) && row.offset % 100 != 7;
    vacuum(&env, &tree.rel, None, &is_done).unwrap();
    let entries = tree.check(&env).entries;
    let found = share(&tree, &env, range, entries) * entries as f64;
    let truth = tree.scan(&env, &int_key(10_000), Some(&int_key(30_000)), Direction::Forward).len();
    assert!((100..400).contains(&truth), "{truth}");
    let ratio = found / truth as f64;
    assert!((0.3..3.0).contains(&ratio), "{found} for {truth}");
    // The leaves beside them are full.
    let found = share(&tree, &env, (30_000, 40_000), entries) * entries as f64;
    assert!(found > 5_000.0, "{found}");
}

/// Inner pages of a tree that has grown at its end are not alike.
#[test]
fn a_tree_of_unequal_pages_is_not_taken_for_an_empty_one() {
    let (tree, env) = Tree::created(2_000);
    let key = |n: u32| [&int_key(n / 20)[..], &[7; 100], &[(n % 20) as u8]].concat();
    let count = 30_000;
    for n in 0..count {
        insert(&env, &tree.rel, &key(n), tid(n), None).unwrap();
    }
    assert!(tree.check(&env).levels > 2);
    let rows = |from: u32, to: u32, entries: u64| {
        rows_between(&env, &tree.rel, &key(from), &key(to), entries as f64).unwrap()
    };
    for (from, to) in [(0, count), (10, 29_000), (15_000, count), (26_000, count), (2_000, 9_000)] {
        let found = rows(from, to, u64::from(count)) / f64::from(to - from);
        assert!((0.4..2.5).contains(&found), "{from} to {to}: {found} times the truth");
    }
    let is_done = |row: Tid| row < tid(10_000) && row.offset % 100 != 7;
    vacuum(&env, &tree.rel, None, &is_done).unwrap();
    let entries = tree.check(&env).entries;
    for (from, to, truth) in [(0, 10_000, 100.0), (10_000, count, 20_000.0)] {
        let found = rows(from, to, entries);
        assert!((truth * 0.3..truth * 3.0).contains(&found), "{from} to {to}: {found} for {truth}");
    }
}

/// Where it may not wait, a page that is not in memory is no estimate. Later the answer is there.
#[test]
fn a_page_that_is_not_in_memory_is_waited_for_or_refused() {
    let tree = Tree::in_cold_store(16);
    let mut env = tree.env();
    create(&env, &tree.rel).unwrap();
    // Most neighbours differ late only, so that inner pages have long keys, and are many.
    let key = |n: u32| [&int_key(n / 20)[..], &[7; 1000], &[(n % 20) as u8]].concat();
    for n in 0..3_000 {
        insert(&env, &tree.rel, &key(n), tid(n), None).unwrap();
    }
    let report = tree.check(&env);
    assert!(report.levels > 2, "{} levels", report.levels);
    let mut refused = 0;
    for n in (0..2_000).step_by(100) {
        env.wait = Wait::Never;
        let now = share_between(&env, &tree.rel, &key(n), &key(n + 1_000), 3_000.0);
        env.wait = Wait::Allowed;
        let later = share_between(&env, &tree.rel, &key(n), &key(n + 1_000), 3_000.0).unwrap();
        assert!((0.2..0.5).contains(&later), "{n}: {later}");
        match now {
            Ok(now) => assert_eq!(now, later),
            Err(EngineError::WouldBlock) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        // Other pages take the frames.
        tree.scan(&env, &[], None, Direction::Forward);
    }
    assert!(refused > 0);
}

#[test]
fn damage_is_an_error_that_names_the_block() {
    let (tree, env) = tree_of(0..20_000, 500);
    tree.deface(&env, ROOT, super::super::page::layout::KIND, &9u16.to_le_bytes());
    let error = share_between(&env, &tree.rel, &int_key(0), &int_key(9), 20_000.0).unwrap_err();
    assert!(matches!(error, EngineError::Corruption { .. }), "{error}");
}
