//! Loom models of a fork that is dropped or truncated while another thread loads or evicts its
//! page. The thread that ends the fork walks over the fork's page-table entries. After the walk
//! they stay absent, so they may be freed (rule 4).

use super::{Unshared, check, page};
use crate::core::frame::{Claimer, Frame, Leaves};
use crate::core::page_table::{frame_of, is_absent};
use crate::core::pins::PinBoard;
use crate::core::relation::Relation;
use crate::ids::{BlockNumber, RelationId};
use crate::replacement::victim_batch;
use loom::thread;
use millpond_sync::asymmetric::Barriers;
use millpond_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

const BLOCK: BlockNumber = BlockNumber(0);

/// A fork of one block, and the only frame that its page can use.
struct Fork {
    relation: Relation,
    frame: Frame,
    board: PinBoard,
    /// A thread that uses an entry reads this; the thread that frees the entries writes it.
    entries_live: Unshared,
}

impl Fork {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            relation: Relation::new(RelationId::constant(1).main(), 1, 1),
            frame: Frame::new(),
            board: PinBoard::new(1, Barriers::fences()),
            entries_live: Unshared::default(),
        })
    }

    fn load(&self) {
        let relation = &self.relation;
        if relation.check(BLOCK).is_err() {
            return;
        }
        let entry = relation.translation.entry(BLOCK);
        let begun = relation.begin_load(BLOCK, entry, Barriers::fences());
        let Ok(Some(loading)) = begun else { return };
        let entry = (loading.entry(), loading.before());
        self.entries_live.get();
        let kept = self.frame.publish_kept(page(0), entry, 0);
        loading.finish(0);
        drop(kept);
    }

    fn take(&self, by: Claimer, leaves: Leaves) -> bool {
        let frames = std::slice::from_ref(&self.frame);
        victim_batch::settle(frames, &self.board, by, &mut [0], leaves, false).0 == 1
    }

    /// Evicts the page.
    fn evict(&self) {
        let by = Claimer::session(0);
        if self.frame.claim(by).is_ok() {
            self.entries_live.get();
            self.take(by, Leaves::Evicted { now: 0 });
        }
    }

    /// Evicts every page and frees the entries of a fork that was marked as dropped, or truncated.
    fn discard(&self) {
        let entries = self.relation.entries_cut_off(BLOCK, &self.board).unwrap();
        for (_, entry) in entries {
            loop {
                let now = entry.load(Ordering::Acquire);
                if is_absent(now) {
                    break;
                }
                let claimed = frame_of(now).is_some()
                    && self.frame.claim_from(page(0), Claimer::POOL).is_ok();
                if !claimed || !self.take(Claimer::POOL, Leaves::Discarded) {
                    thread::yield_now();
                }
            }
        }
        self.entries_live.set(1);
    }
}

/// One thread loads or evicts the page, while another ends the fork.
fn beside(is_there: bool, other: fn(&Fork), end: fn(&Relation)) {
    check(3, move || {
        let fork = Fork::new();
        if is_there {
            fork.load();
        }
        let thread = thread::spawn({
            let fork = Arc::clone(&fork);
            move || other(&fork)
        });
        end(&fork.relation);
        fork.discard();
        thread.join().unwrap();
        let mut entries = fork.relation.translation.from(BLOCK);
        assert!(entries.all(|(_, entry)| is_absent(entry.load(Ordering::Relaxed))), "too late");
    });
}

#[test]
fn a_load_beside_a_drop() {
    beside(false, Fork::load, Relation::mark_dropped);
}

#[test]
fn a_load_beside_a_truncation() {
    beside(false, Fork::load, |relation| relation.set_blocks(0));
}

/// Once its entry is seen absent, the evicting session no longer uses the entry.
#[test]
fn an_eviction_beside_a_drop() {
    beside(true, Fork::evict, Relation::mark_dropped);
}

/// A session that sees that a block exists finds the block in the store.
#[test]
fn a_block_that_is_there_is_in_the_store() {
    check(3, || {
        let (fork, stored) = (Fork::new(), Arc::new(AtomicU64::new(1)));
        let thread = thread::spawn({
            let (fork, stored) = (Arc::clone(&fork), Arc::clone(&stored));
            move || {
                stored.store(2, Ordering::Relaxed);
                fork.relation.set_blocks(2);
            }
        });
        let blocks = fork.relation.blocks();
        assert!(stored.load(Ordering::Relaxed) >= u64::from(blocks));
        thread.join().unwrap();
    });
}
