//! Whole trees: against `BTreeMap`, under threads with tiny pools, after crashes at every record.

mod crash;
mod damage;
mod groups;
mod harness;
mod interleaving;
mod lookups;
mod outliers;
mod page_reuse;
mod scans;
mod share;
mod threads;

use std::cell::Cell;
use std::collections::BTreeSet;

use millpond_buffer::{BlockNumber, RelationId, Wait};
use proptest::prelude::*;

use self::harness::{TestEnv, Tree, int_key, tid};
use super::*;
use crate::EngineError;
use crate::access::Tid;
use crate::transam::Xid;

fn found(tree: &Tree, env: &TestEnv, key: &[u8]) -> Vec<Tid> {
    let mut tids = Tids::new();
    lookup(env, &tree.rel, key, &mut tids).unwrap();
    tids.into_vec()
}

fn keys(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(Vec<u8>, u32)>> {
    let of = |key: BoxedStrategy<Vec<u8>>| {
        proptest::collection::vec((key, 0u32..1 << 24), count.clone()).boxed()
    };
    prop_oneof![
        of((0u32..100_000).prop_map(|n| int_key(n).to_vec()).boxed()),
        of((0u32..30).prop_map(|n| int_key(n).to_vec()).boxed()),
        of((65_000u32..67_000, 0usize..60)
            .prop_map(|(n, end)| {
                // Mostly neighbours around a change of the third byte, some cut off or longer.
                let key = [&int_key(n)[..], &[0; 60]].concat();
                key[..if end < 50 { 5 } else { end - 47 }].to_vec()
            })
            .boxed()),
        of(proptest::collection::vec(0u8..4, 0..700).boxed()),
        of((0u32..50_000)
            .prop_map(|n| format!("{}{n:07}", "common ".repeat(20)).into_bytes())
            .boxed()),
        of((0u8..9, 1500usize..=MAX_KEY_BYTES).prop_map(|(b, len)| vec![b; len]).boxed()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn behaves_like_a_set(entries in keys(1..3000), frames in 12usize..200) {
        let (tree, env) = Tree::created(frames);
        let mut model = BTreeSet::new();
        for (key, n) in &entries {
            prop_assert_eq!(insert(&env, &tree.rel, key, tid(*n), None).unwrap(), InsertOutcome::Done);
            model.insert((key.clone(), tid(*n)));
        }
        tree.expect(&env, &model);
        for (key, _) in entries.iter().step_by(7) {
            let expected: Vec<Tid> =
                model.range((key.clone(), Tid::MIN)..=(key.clone(), Tid::MAX)).map(|(_, tid)| *tid).collect();
            prop_assert_eq!(found(&tree, &env, key), expected);
        }
        // Vacuum away a third of the entries, and fill up again.
        let stats = vacuum(&env, &tree.rel, None, &|tid| tid.to_u64() % 3 == 0).unwrap();
        let before = model.len();
        model.retain(|(_, tid)| tid.to_u64() % 3 != 0);
        prop_assert_eq!((stats.removed, stats.kept), ((before - model.len()) as u64, model.len() as u64));
        tree.expect(&env, &model);
        for (key, n) in entries.iter().take(500) {
            insert(&env, &tree.rel, key, tid(n + 1), None).unwrap();
            model.insert((key.clone(), tid(n + 1)));
        }
        tree.expect(&env, &model);
    }

    #[test]
    fn bulk_build_and_insertion_agree(entries in keys(0..3000), fillfactor in 10u8..=100) {
        let tree = Tree::new(60);
        let env = tree.env();
        let model: BTreeSet<(Vec<u8>, Tid)> = entries.iter().map(|(key, n)| (key.clone(), tid(*n))).collect();
        let stream = model.iter().map(|(key, tid)| Ok((key, *tid)));
        prop_assert_eq!(bulk_build(&env, &tree.rel, stream, fillfactor).unwrap(), model.len() as u64);
        tree.expect(&env, &model);
        let mut model = model;
        for (key, n) in entries.iter().take(300) {
            insert(&env, &tree.rel, key, tid(n + 7), None).unwrap();
            model.insert((key.clone(), tid(n + 7)));
        }
        tree.expect(&env, &model);
    }
}

#[test]
fn levels_grow_and_appends_fill_pages() {
    let (tree, env) = Tree::created(500);
    let count = 520_000u32;
    for n in 0..count {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    let report = tree.check(&env);
    assert_eq!((report.entries, report.levels), (u64::from(count), 3));
    // At most about a thousand entries per leaf, filled to 90 percent by an append split. There are
    // fewer where two bytes of the key don't tell the entries of a leaf apart.
    assert!(report.pages < count / 900 + 20, "{report:?}");
    for n in (0..count).step_by(977) {
        assert_eq!(found(&tree, &env, &int_key(n)), [tid(n)]);
    }
    assert_eq!(found(&tree, &env, &int_key(count)), []);
}

#[test]
fn a_unique_key_is_taken_once() {
    let (tree, env) = Tree::created(100);
    let asked = Cell::new(0);
    let verdict = |tid: Tid| {
        asked.set(asked.get() + 1);
        Ok(match tid.offset {
            1 => UniqueVerdict::Free,
            2 => UniqueVerdict::Duplicate,
            _ => UniqueVerdict::Wait(Xid(77)),
        })
    };
    let put = |block: u32, offset: u16| {
        let tid = Tid::new(BlockNumber(block), offset);
        insert(&env, &tree.rel, &int_key(5), tid, Some(&verdict)).unwrap()
    };
    // Versions of a dead row, more than fit a page: the check asks about all of them.
    for block in 0..2000 {
        assert_eq!(put(block, 1), InsertOutcome::Done);
    }
    asked.set(0);
    assert_eq!(put(700, 2), InsertOutcome::Done);
    assert_eq!(asked.get(), 2000);
    // The answer does not depend on the new entry's own place among them.
    for block in [3, 2500] {
        assert_eq!(put(block, 9), InsertOutcome::Duplicate(Tid::new(BlockNumber(700), 2)));
    }
    vacuum(&env, &tree.rel, None, &|tid| tid.offset == 2).unwrap();
    assert_eq!(put(3000, 3), InsertOutcome::Done);
    assert_eq!(put(3, 9), InsertOutcome::Wait(Xid(77)));
    let fails = |_| Err(EngineError::WouldBlock);
    let failed = insert(&env, &tree.rel, &int_key(5), Tid::MAX, Some(&fails));
    assert!(matches!(failed, Err(EngineError::WouldBlock)));
    assert_eq!(tree.check(&env).entries, 2001);
}

#[test]
fn the_same_entry_twice_is_one() {
    let (tree, env) = Tree::created(30);
    for _ in 0..3 {
        insert(&env, &tree.rel, b"k", tid(1), None).unwrap();
    }
    assert_eq!(found(&tree, &env, b"k"), [tid(1)]);
}

#[test]
fn keys_that_are_too_long_are_refused() {
    let (tree, env) = Tree::created(30);
    let key = vec![1; MAX_KEY_BYTES + 1];
    let refused = insert(&env, &tree.rel, &key, tid(1), None);
    assert!(matches!(refused, Err(EngineError::IndexRowTooLarge { .. })));
    assert!(insert(&env, &tree.rel, &key[1..], tid(1), None).is_ok());
}

/// A leaf is full to its last byte, and the new key lacks most of its prefix and comes last. Only
/// the cut before that key leaves two pages that fit, and the left one needs a high key (btree rule
/// 12).
#[test]
fn a_full_leaf_has_room_for_a_high_key() {
    let key = |n: u32| [&[9; 2000][..], &n.to_be_bytes()].concat();
    let built = |count: u32| {
        let tree = Tree::new(60);
        let env = tree.env();
        let entries = (0..count).map(|n| Ok((key(n), tid(n))));
        bulk_build(&env, &tree.rel, entries, 100).unwrap();
        (tree, env)
    };
    let levels = |count| {
        let (tree, env) = built(count);
        tree.check(&env).levels
    };
    let (mut full, mut more) = (100, 1000);
    assert_eq!([levels(full), levels(more)], [1, 2]);
    while more - full > 1 {
        let middle = u32::midpoint(full, more);
        if levels(middle) == 1 { full = middle } else { more = middle }
    }
    let (tree, env) = built(full);
    let outlier = [&[9; 1000][..], &[10; 600]].concat();
    insert(&env, &tree.rel, &outlier, tid(full), None).unwrap();
    assert_eq!(tree.check(&env).entries, u64::from(full) + 1);
}

#[test]
fn insert_that_would_block_changes_nothing() {
    let (tree, mut env) = Tree::created(100);
    let mut inserted = 0;
    for n in 0..3000 {
        env.wait = Wait::Never;
        let records = tree.log.len();
        let prepared = prepare_insert(&env, &tree.rel, &int_key(n), tid(n)).is_ok();
        let done = insert(&env, &tree.rel, &int_key(n), tid(n), None);
        // A leaf with room is never a reason to wait. A full one always is; then nothing is logged.
        assert!(!prepared || done.is_ok());
        if done.is_err() {
            assert!(matches!(done, Err(EngineError::WouldBlock)));
            assert_eq!(tree.log.len(), records);
            env.wait = Wait::Allowed;
            insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
            inserted += 1;
        }
    }
    assert!(inserted > 0);
    assert_eq!(tree.check(&env).entries, 3000);
}

#[test]
fn the_engine_itself_is_an_environment() {
    let fixture = crate::testing::Fixture::new();
    let ctx = fixture.ctx();
    let rel = RelationId::constant(9).main();
    fixture.shared.pool.create(rel).unwrap();
    let rel = fixture.shared.pool.relation(rel).unwrap();
    create(&ctx, &rel).unwrap();
    for n in (0..5000u32).rev() {
        insert(&ctx, &rel, &int_key(n), tid(n), None).unwrap();
    }
    assert_eq!(vacuum(&ctx, &rel, None, &|t| t < tid(1000)).unwrap().removed, 1000);
    let mut tids = Tids::new();
    lookup(&ctx, &rel, &int_key(4321), &mut tids).unwrap();
    assert_eq!(tids[..], [tid(4321)]);
    let report = check(&ctx, &rel, &mut |_, _| {}).unwrap();
    assert_eq!((report.problems, report.entries), (Vec::new(), 4000));
}

#[test]
fn damage_is_an_error_that_names_the_block() {
    let (tree, env) = Tree::created(100);
    for n in 0..2000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    assert_eq!(RelationId::constant(9).main(), tree.rel.rel());
    // A leaf whose page kind is another one.
    let leaf = 2;
    tree.deface(&env, leaf, page::layout::KIND, &[9, 9]);
    let error = lookup(&env, &tree.rel, &int_key(0), &mut Tids::new()).unwrap_err();
    assert!(error.to_string().contains("block 2 of relation 9"), "{error}");
    assert!(!tree.report(&env).problems.is_empty());
    tree.deface(&env, leaf, page::layout::KIND, &2u16.to_le_bytes());
    assert_eq!(tree.report(&env).problems, [] as [String; 0]);
    // A circular right link.
    tree.deface(&env, leaf, page::layout::RIGHT, &2u32.to_le_bytes());
    assert!(tree.report(&env).problems.iter().any(|p| p.contains("reached twice")));
    let mut cursor = Cursor::new(&[], None, Direction::Forward);
    let endless = (0..1_000_000).find_map(|_| cursor.next(&env, &tree.rel).err());
    assert!(endless.is_none_or(|e| e.to_string().contains("circle")));
    // Entries out of order: the first slot's head becomes the greatest (its highest bytes, in both
    // forms).
    tree.deface(&env, leaf, page::layout::RIGHT, &3u32.to_le_bytes());
    tree.deface(&env, leaf, page::layout::SLOTS + 6, &[0xFF; 2]);
    assert!(tree.report(&env).problems.iter().any(|p| p.contains("not in order")));
}

#[test]
fn a_bulk_built_root_is_full_to_the_last_byte_or_split() {
    // From what fits one leaf to what does not, in both forms, with no free space left.
    for (distance, around) in [(1, 1016), (1 << 20, 509)] {
        for count in around - 6..=around + 6 {
            let tree = Tree::new(60);
            let env = tree.env();
            let entries = (0..count).map(|n| Ok((int_key(n * distance), tid(n))));
            assert_eq!(bulk_build(&env, &tree.rel, entries, 100).unwrap(), u64::from(count));
            let report = tree.check(&env);
            assert_eq!(report.entries, u64::from(count));
            // A prefix that the page will not use may be counted, so an exact fit may be split.
            let levels = if count > around {
                2..=2
            } else if count < around {
                1..=1
            } else {
                1..=2
            };
            assert!(levels.contains(&report.levels), "{report:?}");
        }
    }
}
