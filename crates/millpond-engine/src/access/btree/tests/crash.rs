//! Crashes: recovery from any prefix of the log gives a whole tree, with every entry whose record
//! is in that prefix.

use std::sync::atomic::Ordering;

use super::super::record::{FREE, INSERT, ROOT_SPLIT, SET_META, SPLIT, UNLINK};
use super::*;

/// The number of entries in the tree.
fn entries_in(tree: &Tree, env: &TestEnv) -> u64 {
    tree.check(env).entries
}

#[test]
fn every_log_prefix_recovers_a_valid_tree() {
    let (tree, env) = Tree::created(100);
    // Long keys give few entries per page and soon many levels.
    let key = |n: u32| [&(n.wrapping_mul(2_654_435_761)).to_be_bytes()[..], &[7; 900]].concat();
    let mut inserted_at = Vec::new();
    for n in 0..400 {
        insert(&env, &tree.rel, &key(n), tid(n), None).unwrap();
        // The entry is in the tree at the latest when its insertion returns.
        inserted_at.push(tree.log.len());
    }
    let infos = tree.log.infos();
    assert!(infos.contains(&SPLIT) && infos.contains(&ROOT_SPLIT));
    let mut incomplete = 0;
    for records in 2..=infos.len() {
        let after_split = infos[records - 1] == SPLIT;
        if !after_split && records % 13 != 0 && records != infos.len() {
            continue;
        }
        let recovered = tree.recover(records, 1 + records % 2);
        let env = recovered.env();
        let acknowledged = inserted_at.iter().filter(|&&at| at <= records).count() as u64;
        let there = entries_in(&recovered, &env);
        assert!(
            there == acknowledged || there == acknowledged + 1,
            "{there} of {acknowledged} after {records}"
        );
        for n in 0..acknowledged as u32 {
            assert_eq!(found(&recovered, &env, &key(n)), [tid(n)]);
        }
        assert_eq!(recovered.scan(&env, &[], None, Direction::Backward).len() as u64, there);
        // Writers finish the splits that the crash left incomplete.
        if after_split {
            incomplete += 1;
            for n in 0..400 {
                insert(&env, &recovered.rel, &key(n), tid(n), None).unwrap();
            }
            assert_eq!(entries_in(&recovered, &env), 400);
        }
    }
    assert!(incomplete > 50);
}

#[test]
fn the_next_writer_finishes_an_incomplete_split() {
    let (tree, env) = Tree::created(100);
    let mut n = 0;
    // Until a leaf below a root has been split. The crash comes between the split and the downlink.
    while tree.log.infos().last() != Some(&INSERT) || !tree.log.infos().contains(&SPLIT) {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
        n += 1;
    }
    let at = tree.log.infos().iter().position(|&info| info == SPLIT).unwrap() + 1;
    let recovered = tree.recover(at, 2);
    let env = recovered.env();
    let is_marked = |block: u32| {
        let read = env.buffers().read(&recovered.rel, BlockNumber(block), Wait::Allowed, |view| {
            page::node::Node(view).is_split_incomplete()
        });
        read.unwrap()
    };
    let marked = |env: &TestEnv| {
        let _ = env;
        (1..recovered.rel.block_count()).filter(|&block| is_marked(block)).count()
    };
    assert_eq!(marked(&env), 1);
    let entries = entries_in(&recovered, &env);
    // Readers find everything through the right link.
    for n in 0..entries as u32 {
        assert_eq!(found(&recovered, &env, &int_key(n)), [tid(n)]);
    }
    // A writer that may not wait leaves the split as it is; one that may wait finishes it.
    let mut hasty = recovered.env();
    hasty.wait = Wait::Never;
    let new = int_key(entries as u32);
    let refused = insert(&hasty, &recovered.rel, &new, tid(999_999), None);
    assert!(matches!(refused, Err(EngineError::WouldBlock)));
    assert_eq!(marked(&env), 1);
    insert(&env, &recovered.rel, &new, tid(999_999), None).unwrap();
    assert_eq!(marked(&env), 0);
    assert_eq!(entries_in(&recovered, &env), entries + 1);
}

/// The crash comes between the two records of an inner page's split. All later entries belong
/// below the right half, which has no downlink yet. The next writer adds the downlink, so the
/// right half can be split in turn (btree rule 6).
#[test]
fn a_page_without_a_downlink_gets_it_before_it_is_split() {
    let (tree, env) = Tree::created(300);
    // Few separators fit an inner page: they are long and have nothing in common.
    let key = |n: u32, last: u32| {
        let first = n.wrapping_mul(2_654_435_761).to_be_bytes();
        [&first[..], &[7; 900], &last.to_be_bytes()].concat()
    };
    // The record of an inner page's split also covers the child.
    let inner = || {
        let infos = tree.log.infos();
        (0..infos.len()).find(|&at| infos[at] == SPLIT && tree.log.blocks_of(at) == 3)
    };
    let mut n = 0;
    while inner().is_none() {
        for last in 0..64 {
            insert(&env, &tree.rel, &key(n, last), tid(64 * n + last), None).unwrap();
        }
        n += 1;
    }
    let recovered = tree.recover(inner().unwrap() + 1, 1);
    let env = recovered.env();
    let high_of = |block: u32| {
        let read = env.buffers().read(&recovered.rel, BlockNumber(block), Wait::Allowed, |view| {
            let (node, mut high) = (page::node::Node(view), Vec::new());
            let is_marked = node.is_node() && node.level() == 1 && node.is_split_incomplete();
            is_marked.then(|| node.high_into(&mut high)).map(|_| high)
        });
        read.unwrap()
    };
    let high = (1..recovered.rel.block_count()).find_map(high_of).unwrap();
    let before = entries_in(&recovered, &env);
    for n in 0..400u32 {
        let key = [&high[..], &n.to_be_bytes(), &[9; 900]].concat();
        insert(&env, &recovered.rel, &key, tid(n), None).unwrap();
    }
    assert_eq!(entries_in(&recovered, &env), before + 400);
}

#[test]
fn a_stopped_log_changes_nothing() {
    let (tree, env) = Tree::created(100);
    for n in 0..3000 {
        insert(&env, &tree.rel, &int_key(n), tid(n), None).unwrap();
    }
    tree.log.stopped.store(true, Ordering::Relaxed);
    for n in 3000..4000 {
        assert!(insert(&env, &tree.rel, &int_key(n), tid(n), None).is_err());
    }
    assert!(vacuum(&env, &tree.rel, None, &|_| true).is_err());
    assert_eq!(tree.check(&env).entries, 3000);
    tree.log.stopped.store(false, Ordering::Relaxed);
    insert(&env, &tree.rel, &int_key(3000), tid(3000), None).unwrap();
    assert_eq!(tree.check(&env).entries, 3001);
}

#[test]
fn vacuum_and_bulk_build_are_redone() {
    let tree = Tree::new(100);
    let env = tree.env();
    let entries = (0..20_000u32).map(|n| Ok((int_key(n), tid(n))));
    bulk_build(&env, &tree.rel, entries, DEFAULT_FILLFACTOR).unwrap();
    vacuum(&env, &tree.rel, None, &|tid| tid.offset % 2 == 0).unwrap();
    let recovered = tree.recover(tree.log.len(), 2);
    let all = tree.scan(&env, &[], None, Direction::Forward);
    assert_eq!(all.len(), 10_000);
    assert_eq!(recovered.scan(&recovered.env(), &[], None, Direction::Forward), all);
    recovered.check(&recovered.env());
}

#[test]
fn every_log_prefix_of_page_deletions_recovers_a_valid_tree() {
    let (tree, env) = Tree::created(100);
    let key = |n: u32| [&n.to_be_bytes()[..], &[7; 700]].concat();
    for round in 0..6u32 {
        for n in round * 100..(round + 1) * 100 {
            insert(&env, &tree.rel, &key(n), tid(n), None).unwrap();
        }
        vacuum(&env, &tree.rel, None, &|t| t < tid(round * 100 - round.min(1) * 30)).unwrap();
        tree.log.all_over();
    }
    let infos = tree.log.infos();
    let count = |info| infos.iter().filter(|&&i| i == info).count();
    assert!(
        count(UNLINK) > 20 && count(FREE) > 20,
        "{} unlinked, {} freed",
        count(UNLINK),
        count(FREE)
    );
    for records in 2..=infos.len() {
        let interesting = [UNLINK, FREE, SPLIT, SET_META].contains(&infos[records - 1]);
        if interesting || records % 29 == 0 {
            let recovered = tree.recover(records, 1 + records % 2);
            let env = recovered.env();
            let entries = recovered.check(&env).entries;
            assert_eq!(recovered.scan(&env, &[], None, Direction::Forward).len() as u64, entries);
            assert_eq!(recovered.scan(&env, &[], None, Direction::Backward).len() as u64, entries);
        }
    }
    let recovered = tree.recover(infos.len(), 1);
    let env = recovered.env();
    let before = recovered.rel.block_count();
    for n in 600..620 {
        insert(&env, &recovered.rel, &key(n), tid(n), None).unwrap();
    }
    assert_eq!(recovered.rel.block_count(), before, "free pages are found after a crash");
    recovered.check(&env);
}
