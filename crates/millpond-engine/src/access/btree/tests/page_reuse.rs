//! Pages that left the tree: when a split may use them again, and what a running vacuum does then.

use super::*;
use crate::transam::Durability;

/// Makes a tree, and vacuums leaves out of its middle.
fn with_deleted_leaves(env: &impl Env, tree: &millpond_buffer::RelHandle) {
    create(env, tree).unwrap();
    for n in 0..5000 {
        insert(env, tree, &int_key(n), tid(n), None).unwrap();
    }
    let gone = |t: Tid| t >= tid(500) && t < tid(2000);
    assert!(vacuum(env, tree, None, &gone).unwrap().deleted_pages > 0);
}

/// (btree rule 15)
#[test]
fn deleted_page_is_not_reused_while_a_link_may_lead_to_it() {
    let tree = Tree::new(100);
    let env = tree.env();
    with_deleted_leaves(&env, &tree.rel);
    assert_eq!(vacuum(&env, &tree.rel, None, &|_| false).unwrap().free_pages, 0);
    tree.log.all_over();
    assert!(vacuum(&env, &tree.rel, None, &|_| false).unwrap().free_pages > 0);
}

/// (btree rule 15)
#[test]
fn deleted_page_is_not_reused_while_an_old_snapshot_is_held() {
    let fixture = crate::testing::Fixture::new();
    let (ctx, reader) = (fixture.ctx(), fixture.ctx());
    let rel = RelationId::constant(9).main();
    fixture.shared.pool.create(rel).unwrap();
    let rel = fixture.shared.pool.relation(rel).unwrap();
    let snapshot = ctx.txns().snapshot(&reader);
    with_deleted_leaves(&ctx, &rel);
    let commit = || {
        ctx.assign_xid().unwrap();
        ctx.txns().commit(&ctx, &[], Durability::Background).unwrap();
    };
    commit();
    assert_eq!(vacuum(&ctx, &rel, None, &|_| false).unwrap().free_pages, 0);
    ctx.txns().release_snapshot(&reader, snapshot);
    commit();
    assert!(vacuum(&ctx, &rel, None, &|_| false).unwrap().free_pages > 0);
}

/// A leaf that the vacuum has yet to visit is split. Its right half goes to a page that the vacuum
/// has visited already (btree rule 10).
#[test]
fn vacuum_removes_entries_that_a_split_moved_behind_it() {
    let tree = Tree::new(100);
    let (env, other) = (tree.env(), tree.env());
    with_deleted_leaves(&env, &tree.rel);
    tree.log.all_over();
    let blocks = tree.rel.block_count();
    let split = std::cell::Cell::new(false);
    let dead = |t: Tid| {
        // The vacuum is at a leaf with larger keys than the deleted ones had.
        if t >= tid(2500) && !split.replace(true) {
            for n in 0..200 {
                let row = tid(1_000_000 + n);
                insert(&other, &tree.rel, &int_key(4000 + n / 10), row, None).unwrap();
            }
        }
        t >= tid(3800) && t < tid(4800)
    };
    let stats = vacuum(&env, &tree.rel, None, &dead).unwrap();
    assert!(stats.free_pages > 0 && split.get(), "{stats:?}");
    assert_eq!(tree.rel.block_count(), blocks, "the halves went to free pages");
    let left = tree.scan(&env, &[], None, Direction::Forward);
    assert!(left.iter().all(|(_, t)| !dead(*t)));
    assert_eq!(left.len(), 5000 - 1500 - 1000 + 200);
    tree.check(&env);
}
