//! How many entries the first groups of a tree have.

use super::*;

/// The entries of the first `wanted` groups at both ends. The keys are two numbers, of which the
/// first is the group's.
fn at_ends(wanted: f64, keys: impl Iterator<Item = (u32, u32)>) -> [Option<f64>; 2] {
    let (tree, env) = Tree::created(500);
    let mut count = 0;
    for (group, key) in keys {
        let key = [&int_key(group)[..], &int_key(key)].concat();
        insert(&env, &tree.rel, &key, tid(count), None).unwrap();
        count += 1;
    }
    let prefix = |key: &[u8]| Some(int_key(0).len().min(key.len()));
    [Direction::Forward, Direction::Backward].map(|direction| {
        let (wanted, entries) = ((wanted, direction), f64::from(count));
        rows_of_groups(&env, &tree.rel, wanted, &prefix, entries).unwrap()
    })
}

#[test]
fn groups_are_those_of_the_end_that_is_read() {
    assert_eq!(at_ends(1.0, std::iter::empty()), [None, None]);
    assert_eq!(at_ends(5.0, (0..5000).map(|n| (n, 0))), [Some(5.0), Some(5.0)]);
    let mixed = || (0..5000).map(|n| (if n < 4000 { n / 4 } else { n }, n));
    assert_eq!(at_ends(10.0, mixed()), [Some(40.0), Some(10.0)]);
    // More groups than are looked at.
    let [first, last] = at_ends(1000.0, mixed());
    assert!((3500.0..=7000.0).contains(&first.unwrap()), "{first:?}");
    assert!((1000.0..=2500.0).contains(&last.unwrap()), "{last:?}");
    // A group of many leaves, also behind a small one.
    let [first, last] = at_ends(1.0, (0..20_000).map(|n| (if n < 15_000 { 7 } else { n }, n)));
    assert!((10_000.0..=20_000.0).contains(&first.unwrap()), "{first:?}");
    assert_eq!(last, Some(1.0));
    let statuses = || (0..20_000).map(|n| (u32::from(n > 2), n));
    assert_eq!(at_ends(1.0, statuses())[0], Some(3.0));
    let [first, _] = at_ends(10.0, statuses());
    assert!(first.unwrap() > 20_000.0, "{first:?}");
}
