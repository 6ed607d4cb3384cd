//! Random histories of one session at a time against a model: a map per snapshot.

mod redo;
mod steps;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millpond_buffer::{BlockNumber, PAGE_SIZE, Wait};
use proptest::prelude::*;
use rand::prelude::{Rng, SeedableRng, StdRng};

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::check::check_heap;
use crate::access::heap::record::apply;
use crate::access::heap::{
    ChangeOutcome, Changer, HeapScan, InsertOptions, KeyChange, NewRow, WantedLock, count_rows,
    delete, fetch, fetch_at, insert, insert_many, lock_row, truncate_end, update, vacuum,
};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{CommandId, Csn, LockStrength, Snapshot};
use crate::wal::RmgrId;
use crate::wal::storage_record::StorageRecord;
use steps::{Action, Step, step};

type Rows = BTreeMap<u32, Vec<u8>>;

/// A key's bytes at the front of the columns.
fn columns(key: u32, len: usize, salt: u8) -> Vec<u8> {
    let mut bytes = key.to_le_bytes().to_vec();
    bytes.extend((0..len).map(|i| (i as u8).wrapping_mul(7) ^ salt));
    bytes
}

struct Model {
    world: World,
    ctx: Rc<Ctx>,
    other: Ctx,
    committed: Rows,
    held: Vec<(Csn, Rows)>,
    /// Index entries: key and root. As in a real index, entries stay until vacuum removes them.
    index: BTreeSet<(u32, Tid)>,
    next_key: u32,
    salt: u8,
    tries: Cell<u32>,
    blocked: Cell<u32>,
}

impl Model {
    fn new(fillfactor: u8) -> Self {
        let world = World::new(16, fillfactor);
        let ctx = Rc::new(world.ctx());
        let other = world.ctx();
        Self {
            world,
            ctx,
            other,
            committed: Rows::new(),
            held: Vec::new(),
            index: BTreeSet::new(),
            next_key: 0,
            salt: 0,
            tries: Cell::new(0),
            blocked: Cell::new(0),
        }
    }

    /// Reads a key as an index scan would.
    fn read(&self, key: u32, snapshot: &Snapshot) -> Option<(Tid, Vec<u8>)> {
        let mut found = None;
        let mut row = Vec::new();
        for &(_, root) in self.index.range((key, Tid::MIN)..=(key, Tid::MAX)) {
            let tid = fetch(&self.ctx, &self.world.heap, root, snapshot, &mut row).unwrap();
            if let Some(tid) = tid {
                assert!(found.is_none(), "two versions of key {key}");
                let mut again = Vec::new();
                assert!(fetch_at(&self.ctx, &self.world.heap, tid, snapshot, &mut again).unwrap());
                assert_eq!(again, row);
                found = Some((tid, row.clone()));
            }
        }
        found
    }

    fn check_snapshot(&self, snapshot: &Snapshot, expected: &Rows) {
        for key in 0..self.next_key {
            let found = self.read(key, snapshot).map(|(_, row)| row);
            assert_eq!(found.as_ref(), expected.get(&key), "key {key} of {snapshot:?}");
        }
        let mut scan = HeapScan::new(self.world.heap.clone());
        let mut rows = Rows::new();
        while let Some(page) = scan.next_page(&self.ctx, snapshot).unwrap() {
            for (_, columns) in page.iter() {
                let key = u32::from_le_bytes(columns[..4].try_into().unwrap());
                assert!(rows.insert(key, columns.to_vec()).is_none(), "key {key} twice");
            }
        }
        assert_eq!(&rows, expected);
        let blocks = 0..self.world.heap.block_count();
        let count = count_rows(&self.ctx, &self.world.heap, blocks, snapshot, None).unwrap();
        assert_eq!(count, expected.len() as u64);
        let mut scan = HeapScan::new(self.world.heap.clone());
        let mut count = 0;
        while let Some(rows) = scan.count_page(&self.ctx, snapshot).unwrap() {
            count += rows;
        }
        assert_eq!(count, expected.len());
    }

    fn run(&mut self, actions: &[Action], commit: bool) {
        let ctx = Rc::clone(&self.ctx);
        let mut tx = Tx::begin(&ctx);
        let mut rows = self.committed.clone();
        for action in actions {
            self.act(&tx, action, &mut rows);
            tx.next_command();
        }
        self.check_snapshot(&tx.snapshot(), &rows);
        tx.finish(commit);
        if commit {
            self.committed = rows;
        }
    }

    /// Runs the operation without waiting; if that would block, again with waiting allowed. The
    /// blocked run must have changed nothing (heap rule 3), which the later reads would show.
    fn twice<R>(&self, operation: impl Fn(&Ctx) -> EngineResult<R>) -> R {
        self.ctx.set_wait(Wait::Never);
        let first = operation(&self.ctx);
        self.ctx.set_wait(Wait::Allowed);
        self.tries.set(self.tries.get() + 1);
        match first {
            Err(EngineError::WouldBlock) => {
                self.blocked.set(self.blocked.get() + 1);
                operation(&self.ctx).unwrap()
            }
            other => other.unwrap(),
        }
    }

    fn act(&mut self, tx: &Tx<'_>, action: &Action, rows: &mut Rows) {
        self.salt = self.salt.wrapping_add(1);
        let pick = |key: usize| rows.keys().nth(key % rows.len().max(1)).copied();
        match *action {
            Action::Insert { len } => self.insert(tx.changer(), len, rows),
            Action::InsertMany { count, len } => self.insert_many(tx.changer(), count, len, rows),
            Action::Update { key, len, moves_key } => {
                if let Some(key) = pick(key) {
                    self.update(tx, key, len, moves_key, rows);
                }
            }
            Action::Delete { key } => {
                if let Some(key) = pick(key) {
                    let (tid, _) = self.read(key, &tx.snapshot()).unwrap();
                    let outcome =
                        self.twice(|ctx| delete(ctx, &self.world.heap, tid, tx.changer()));
                    assert!(matches!(outcome, ChangeOutcome::Done { .. }), "{outcome:?}");
                    rows.remove(&key);
                }
            }
            Action::Lock { key } => {
                if let Some(key) = pick(key) {
                    self.lock(tx, key);
                }
            }
        }
    }

    fn insert(&mut self, by: Changer, len: usize, rows: &mut Rows) {
        let bytes = columns(self.next_key, len, self.salt);
        let row = NewRow { payload: &bytes, natts: 2 };
        let tid = self.twice(|ctx| insert(ctx, &self.world.heap, row, by.xid, by.cid));
        self.note_inserted(tid, bytes, rows);
    }

    fn insert_many(&mut self, by: Changer, count: usize, len: usize, rows: &mut Rows) {
        let all: Vec<Vec<u8>> =
            (0..count as u32).map(|i| columns(self.next_key + i, len, self.salt)).collect();
        let new: Vec<_> = all.iter().map(|b| NewRow { payload: b, natts: 2 }).collect();
        let options = InsertOptions { only_new: len.is_multiple_of(2), ..InsertOptions::default() };
        let tids = self.twice(|ctx| {
            let mut tids = Vec::new();
            insert_many(ctx, &self.world.heap, &new, by.xid, by.cid, options, &mut tids)?;
            Ok(tids)
        });
        assert_eq!(tids.len(), count);
        for (bytes, tid) in all.into_iter().zip(tids) {
            self.note_inserted(tid, bytes, rows);
        }
    }

    fn note_inserted(&mut self, tid: Tid, bytes: Vec<u8>, rows: &mut Rows) {
        self.index.insert((self.next_key, tid));
        rows.insert(self.next_key, bytes);
        self.next_key += 1;
    }

    fn update(&mut self, tx: &Tx<'_>, key: u32, len: usize, moves_key: bool, rows: &mut Rows) {
        let (heap, by) = (&self.world.heap, tx.changer());
        let (tid, old) = self.read(key, &tx.snapshot()).unwrap();
        assert_eq!(Some(&old), rows.get(&key));
        let bytes = columns(key, len, self.salt);
        let row = NewRow { payload: &bytes, natts: 2 };
        let keys = if moves_key { KeyChange::Unique } else { KeyChange::None };
        let outcome = self.twice(|ctx| update(ctx, heap, tid, row, keys, by));
        let ChangeOutcome::Done { tid: new, hot } = outcome else { panic!("{outcome:?}") };
        assert!(!(hot && moves_key) && new != tid);
        let again = update(&self.ctx, heap, tid, row, keys, by).unwrap();
        assert_eq!(again, ChangeOutcome::SelfModified);
        if !hot {
            self.index.insert((key, new));
        }
        rows.insert(key, bytes);
    }

    fn lock(&self, tx: &Tx<'_>, key: u32) {
        let (heap, by) = (&self.world.heap, tx.changer());
        let (tid, _) = self.read(key, &tx.snapshot()).unwrap();
        let done = ChangeOutcome::Done { tid, hot: false };
        let wanted = || WantedLock::hold(LockStrength::ALL[key as usize % 4]);
        assert_eq!(self.twice(|ctx| lock_row(ctx, heap, tid, wanted(), by)), done);
        assert_eq!(lock_row(&self.ctx, heap, tid, wanted(), by).unwrap(), done);
        // Another transaction has to wait.
        let other = Tx::begin(&self.other);
        let outcome = delete(&self.other, heap, tid, other.changer()).unwrap();
        let fresh = ChangeOutcome::Invisible;
        let waits = ChangeOutcome::InProgress { xid: by.xid, holds: false };
        assert!(outcome == waits || outcome == fresh);
        other.finish(false);
    }

    fn vacuum(&mut self) {
        let mut removed = 0;
        let index = &mut self.index;
        let stats = vacuum(
            &self.ctx,
            &self.world.heap,
            None,
            Some(&mut |dead| {
                let before = index.len();
                index.retain(|&(_, tid)| !dead(tid));
                removed += before - index.len();
                Ok(())
            }),
        )
        .unwrap();
        if self.held.is_empty() {
            assert_eq!(stats.live as usize, self.committed.len(), "{stats:?}");
            assert_eq!(stats.not_yet_removable, 0, "{stats:?}");
            assert_eq!(stats.oldest_xid, self.ctx.txns().horizon().oldest_running_xid);
        }
        assert!(removed as u64 <= stats.lines_freed, "{removed} {stats:?}");
    }

    fn truncate(&self) {
        let before = self.world.heap.block_count();
        let cut = truncate_end(&self.ctx, &self.world.heap).unwrap();
        assert_eq!(self.world.heap.block_count() + cut, before);
        assert_eq!(truncate_end(&self.ctx, &self.world.heap).unwrap(), 0);
    }

    fn check(&self) {
        let now = Held::take(&self.ctx);
        self.check_snapshot(&now.snapshot, &self.committed);
        drop(now);
        for (csn, rows) in &self.held {
            let snapshot = Snapshot { csn: *csn, own: None, command: CommandId(0) };
            self.check_snapshot(&snapshot, rows);
        }
        let next = self.ctx.txns().next_xid();
        check_heap(&self.ctx, &self.world.heap, next, &mut |problem| panic!("{problem}")).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn histories_read_as_the_model_says(
        steps in prop::collection::vec(step(), 1..30), fillfactor in prop_oneof![Just(100u8), 10u8..100],
    ) {
        let mut model = Model::new(fillfactor);
        for step in steps {
            match step {
                Step::Run(actions, commit) => model.run(&actions, commit),
                Step::Hold => {
                    let csn = model.ctx.txns().snapshot(&model.ctx);
                    model.held.push((csn, model.committed.clone()));
                }
                Step::LetGo(which) => if !model.held.is_empty() {
                    let (csn, _) = model.held.remove(which % model.held.len());
                    model.ctx.txns().release_snapshot(&model.ctx, csn);
                },
                Step::Vacuum => model.vacuum(),
                Step::Truncate => model.truncate(),
            }
            model.check();
        }
        model.check_redo();
    }
}

/// (heap rule 9)
#[test]
fn a_map_full_of_garbage_costs_only_time() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut model = Model::new(90);
    let fsm = model.world.heap.fsm.clone();
    for round in 0..40 {
        model.run(&[Action::InsertMany { count: 100, len: 150 }], true);
        let deletions: Vec<_> = (0..60).map(|n| Action::Delete { key: n * 7 }).collect();
        model.run(&deletions, true);
        model.vacuum();
        let ctx = Rc::clone(&model.ctx);
        for block in (0..fsm.block_count()).map(BlockNumber) {
            let mut page =
                ctx.buffers().pin(&fsm, block, Wait::Allowed).unwrap().into_exclusive().unwrap();
            let mut garbage = *page.bytes();
            // Every other time only the values are garbage, so that they are believed at first.
            let from = if round % 2 == 0 { 32 } else { 12 };
            rng.fill(&mut garbage[from..]);
            let mut change = page.change();
            change.write_page(&garbage);
            change.publish_unlogged();
        }
    }
    model.check();
    assert!(fsm.block_count() > 0);
}

/// (heap rule 1)
#[test]
fn what_pruning_does_to_a_page_is_redone() {
    let mut model = Model::new(100);
    model.run(&[Action::InsertMany { count: 40, len: 100 }], true);
    for salt in 0..3 {
        let update = |key: usize| Action::Update { key: key + salt, len: 100, moves_key: false };
        model.run(&(0..20).map(update).collect::<Vec<_>>(), salt != 1);
        model.run(&[Action::Delete { key: 30 }], true);
        model.vacuum();
    }
    model.check();
    model.check_redo();
}

#[test]
fn emptied_heap_is_truncated() {
    let mut model = Model::new(100);
    model.run(&[Action::InsertMany { count: 199, len: 4000 }], true);
    let keep = Action::Insert { len: 4000 };
    model.run(std::slice::from_ref(&keep), true);
    model.run(&(0..199).map(|_| Action::Delete { key: 0 }).collect::<Vec<_>>(), true);
    model.vacuum();
    model.truncate();
    // The last row keeps the pages before it.
    assert!(model.world.heap.block_count() > 90);
    model.run(&[Action::Delete { key: 0 }], true);
    model.vacuum();
    model.truncate();
    assert_eq!(model.world.heap.block_count(), 0);
    model.run(&[keep], true);
    model.check();
    model.check_redo();
}

#[test]
fn operations_without_wait_sometimes_block() {
    let mut model = Model::new(100);
    let insert = Action::InsertMany { count: 199, len: 400 };
    model.run(&vec![insert; 4], true);
    let update = |key| Action::Update { key, len: 300, moves_key: true };
    model.run(&(0..200).map(|n| update(n * 37)).collect::<Vec<_>>(), true);
    model.check();
    let (tries, blocked) = (model.tries.get(), model.blocked.get());
    assert!(blocked > 0 && blocked < tries, "{blocked} of {tries} blocked");
}
