//! How many entries the first groups of a tree have.

use super::*;

/// The rows of the groups at both ends, whose keys are two numbers and of which the first is the
/// group's.
fn at_ends(keys: impl Iterator<Item = (u32, u32)>) -> [Option<f64>; 2] {
    let (tree, env) = Tree::created(500);
    let mut count = 0;
    for (group, key) in keys {
        let key = [&int_key(group)[..], &int_key(key)].concat();
        insert(&env, &tree.rel, &key, tid(count), None).unwrap();
        count += 1;
    }
    let prefix = |key: &[u8]| Some(int_key(0).len().min(key.len()));
    [Direction::Forward, Direction::Backward].map(|direction| {
        rows_of_group(&env, &tree.rel, direction, &prefix, f64::from(count)).unwrap()
    })
}

#[test]
fn groups_are_those_of_the_end_that_is_read() {
    assert_eq!(at_ends(std::iter::empty()), [None, None]);
    assert_eq!(at_ends((0..5000).map(|n| (n, 0))), [Some(1.0), Some(1.0)]);
    let [first, last] = at_ends((0..5000).map(|n| (if n < 4000 { n / 4 } else { n }, n)));
    assert!((3.8..=4.0).contains(&first.unwrap()), "{first:?}");
    assert_eq!(last, Some(1.0));
    // A group of many leaves.
    let [first, last] = at_ends((0..20_000).map(|n| (if n < 15_000 { 7 } else { n }, n)));
    assert!((10_000.0..=20_000.0).contains(&first.unwrap()), "{first:?}");
    assert_eq!(last, Some(1.0));
}
