//! Random lockers and changers of a few rows against a plain model of row locks. For each row the
//! model has a map from transactions to strengths, and the list of committed changes.

use std::collections::{BTreeMap, BTreeSet};

use rand::prelude::{Rng, SeedableRng, StdRng};

use super::world::{Tx, World};
use crate::access::Tid;
use crate::access::heap::check::check_heap;
use crate::access::heap::{
    ChangeOutcome, Intent, KeyChange, NewRow, WantedLock, delete, fetch, insert, lock_row,
    lock_successor, update, vacuum,
};
use crate::ctx::Ctx;
use crate::transam::{LockStrength, Snapshot};

const SLOTS: usize = 5;
const ROWS: u32 = 4;

/// A change of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Update(KeyChange),
    Delete,
}

impl Kind {
    fn strength(self) -> LockStrength {
        match self {
            Kind::Update(keys) => keys.strength(),
            Kind::Delete => LockStrength::Update,
        }
    }
}

/// A change, and the lock strength that it counts as: at least that of its maker's lock.
type Change = (Kind, LockStrength);

/// The true state of a row.
#[derive(Default)]
struct Row {
    /// The slots that have locked it, with their strengths.
    locks: BTreeMap<usize, LockStrength>,
    /// The same for the newest version only, for slots that see one.
    newest: BTreeMap<usize, LockStrength>,
    /// Slots that were told to wait while locking it FOR KEY SHARE, version by version. They may
    /// hold some of the versions.
    partly: BTreeSet<usize>,
    /// The slot that is changing it, and its changes so far.
    changer: Option<(usize, Vec<Change>)>,
    /// Changes committed.
    history: Vec<Change>,
    /// The bytes of the committed version.
    bytes: Vec<u8>,
    /// The bytes of the running change.
    changed: Vec<u8>,
}

impl Row {
    /// The slots that certainly conflict with a slot's request.
    fn blockers(&self, slot: usize, wanted: LockStrength) -> BTreeSet<usize> {
        let mut blockers: BTreeSet<usize> = self
            .locks
            .iter()
            .filter(|&(&other, held)| other != slot && wanted.conflicts(*held))
            .map(|(&other, _)| other)
            .collect();
        if let Some((other, kinds)) = &self.changer
            && *other != slot
            && kinds.iter().any(|(_, strength)| wanted.conflicts(*strength))
        {
            blockers.insert(*other);
        }
        blockers
    }

    fn end(&mut self, slot: usize, commit: bool) {
        self.locks.remove(&slot);
        self.newest.remove(&slot);
        self.partly.remove(&slot);
        if self.changer.as_ref().is_some_and(|changer| changer.0 == slot)
            && let Some((_, kinds)) = self.changer.take()
            && commit
        {
            self.history.extend(kinds);
            self.bytes = std::mem::take(&mut self.changed);
        }
    }
}

/// A version that a slot's statement has found.
#[derive(Clone, Copy)]
struct Pick {
    row: u32,
    tid: Tid,
    /// Committed changes of the row that it saw.
    seen: usize,
}

struct Model<'w> {
    world: &'w World,
    rows: BTreeMap<u32, Row>,
    index: BTreeSet<(u32, Tid)>,
    slots: Vec<Option<Tx<'w>>>,
    picks: [Option<Pick>; SLOTS],
    rng: StdRng,
    /// Outcomes, so that the test can assert that each occurred.
    counts: BTreeMap<&'static str, usize>,
}

fn columns(key: u32, rng: &mut StdRng) -> Vec<u8> {
    let mut bytes = key.to_le_bytes().to_vec();
    // Rarely long, so that most updates stay in the page and some don't.
    let len = if rng.random_ratio(1, 8) { rng.random_range(1000..4000) } else { 20 };
    bytes.extend((0..len).map(|_| rng.random::<u8>()));
    bytes
}

impl<'w> Model<'w> {
    fn new(world: &'w World, ctx: &'w Ctx, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut rows, mut index) = (BTreeMap::new(), BTreeSet::new());
        let tx = Tx::begin(ctx);
        for key in 0..ROWS {
            let bytes = columns(key, &mut rng);
            let new = NewRow { payload: &bytes, natts: 2 };
            let tid = insert(ctx, &world.heap, new, tx.xid, tx.command).unwrap();
            index.insert((key, tid));
            rows.insert(key, Row { bytes, ..Row::default() });
        }
        tx.finish(true);
        let slots = (0..SLOTS).map(|_| None).collect();
        let picks = [None; SLOTS];
        Self { world, rows, index, slots, picks, rng, counts: BTreeMap::new() }
    }

    fn find(&self, ctx: &Ctx, key: u32, snapshot: &Snapshot) -> Option<(Tid, Vec<u8>)> {
        let mut bytes = Vec::new();
        let roots = self.index.range((key, Tid::MIN)..=(key, Tid::MAX));
        let mut found = roots.filter_map(|&(_, root)| {
            let tid = fetch(ctx, &self.world.heap, root, snapshot, &mut bytes).unwrap()?;
            Some((tid, bytes.clone()))
        });
        let first = found.next();
        assert!(found.next().is_none(), "two versions of row {key}");
        first
    }

    /// A statement of the slot finds a row.
    fn pick(&mut self, slot: usize, key: u32) {
        let Some(tx) = &mut self.slots[slot] else { return };
        tx.refresh();
        let (ctx, snapshot) = (tx.ctx, tx.snapshot());
        let found = self.find(ctx, key, &snapshot);
        let row = &self.rows[&key];
        let own = row.changer.as_ref().filter(|changer| changer.0 == slot);
        let last = own.map_or(row.history.last(), |own| own.1.last());
        let expected = if own.is_some() { &row.changed } else { &row.bytes };
        assert_eq!(found.is_none(), last.is_some_and(|last| last.0 == Kind::Delete), "row {key}");
        self.picks[slot] = found.map(|(tid, bytes)| {
            assert_eq!(&bytes, expected, "row {key}");
            Pick { row: key, tid, seen: row.history.len() }
        });
    }

    /// Follows a lock FOR KEY SHARE to the newest version.
    fn follow(&self, tx: &Tx<'_>, mut outcome: ChangeOutcome) -> ChangeOutcome {
        let by = tx.changer();
        while let ChangeOutcome::Follow { next, by: maker } = outcome {
            outcome =
                lock_successor(tx.ctx, &self.world.heap, (next, maker), Intent::Hold, by).unwrap();
        }
        outcome
    }

    /// What happened to the row since the slot's statement found it, if that matters to `wanted`.
    fn overtaken(&self, pick: Pick, wanted: LockStrength) -> Option<&'static str> {
        for (kind, strength) in &self.rows[&pick.row].history[pick.seen..] {
            match kind {
                Kind::Delete => return Some("deleted"),
                _ if wanted.conflicts(*strength) => return Some("updated"),
                _ => {}
            }
        }
        None
    }

    /// Compares an outcome with the model. Returns whether the slot now has what it wanted.
    fn judge(
        &mut self,
        slot: usize,
        pick: Pick,
        wanted: LockStrength,
        outcome: ChangeOutcome,
    ) -> bool {
        let row = &self.rows[&pick.row];
        let overtaken = self.overtaken(pick, wanted);
        let blockers = row.blockers(slot, wanted);
        let may_block: BTreeSet<usize> = row
            .partly
            .iter()
            .copied()
            .filter(|&other| other != slot && wanted.conflicts(LockStrength::KeyShare))
            .collect();
        let xid_of = |slot: &usize| self.slots[*slot].as_ref().map(|tx| tx.xid);
        let (name, done) = match outcome {
            ChangeOutcome::Done { .. } => {
                assert!(overtaken.is_none() && blockers.is_empty(), "{overtaken:?} {blockers:?}");
                ("done", true)
            }
            ChangeOutcome::InProgress { xid, holds } => {
                assert_eq!(overtaken, None);
                let mut all = blockers.union(&may_block);
                assert!(all.any(|other| xid_of(other) == Some(xid)), "{xid}: {blockers:?}");
                let changes = row.changer.as_ref().is_some_and(|changer| changer.0 == slot);
                if !changes && !row.partly.contains(&slot) {
                    assert_eq!(holds, row.locks.contains_key(&slot));
                }
                (if holds { "waits as a holder" } else { "waits" }, false)
            }
            ChangeOutcome::Updated { .. } => {
                assert_eq!(overtaken, Some("updated"));
                ("updated", false)
            }
            ChangeOutcome::Deleted => {
                assert_eq!(overtaken, Some("deleted"));
                ("deleted", false)
            }
            other => panic!("{other:?}"),
        };
        *self.counts.entry(name).or_default() += 1;
        done
    }

    fn lock(&mut self, slot: usize, wanted: LockStrength) {
        let (Some(pick), Some(tx)) = (self.picks[slot], &self.slots[slot]) else { return };
        let by = tx.changer();
        let first =
            lock_row(tx.ctx, &self.world.heap, pick.tid, WantedLock::hold(wanted), by).unwrap();
        let outcome = self.follow(tx, first);
        if first != outcome {
            *self.counts.entry("followed").or_default() += 1;
            assert_eq!(wanted, LockStrength::KeyShare);
        }
        let done = self.judge(slot, pick, wanted, outcome);
        let Some(row) = self.rows.get_mut(&pick.row) else { return };
        if done {
            for locks in [&mut row.locks, &mut row.newest] {
                let held = locks.entry(slot).or_insert(wanted);
                *held = wanted.max(*held);
            }
        } else if first != outcome {
            row.partly.insert(slot);
        }
    }

    fn change(&mut self, slot: usize, kind: Kind) {
        let (Some(pick), Some(tx)) = (self.picks[slot], &self.slots[slot]) else { return };
        let by = tx.changer();
        let bytes = columns(pick.row, &mut self.rng);
        let new = NewRow { payload: &bytes, natts: 2 };
        let outcome = match kind {
            Kind::Update(keys) => update(tx.ctx, &self.world.heap, pick.tid, new, keys, by),
            Kind::Delete => delete(tx.ctx, &self.world.heap, pick.tid, by),
        };
        let outcome = outcome.unwrap();
        if !self.judge(slot, pick, kind.strength(), outcome) {
            return;
        }
        if let ChangeOutcome::Done { tid, hot: false } = outcome
            && kind != Kind::Delete
        {
            self.index.insert((pick.row, tid));
        }
        let Some(row) = self.rows.get_mut(&pick.row) else { return };
        let own = row.newest.remove(&slot).unwrap_or(LockStrength::KeyShare);
        let change = (kind, own.max(kind.strength()));
        row.changer.get_or_insert_with(|| (slot, Vec::new())).1.push(change);
        row.changed = bytes;
        // The version is no longer the newest.
        self.picks[slot] = None;
    }

    fn end(&mut self, slot: usize, commit: bool) {
        let Some(tx) = self.slots[slot].take() else { return };
        self.picks[slot] = None;
        tx.finish(commit);
        self.rows.values_mut().for_each(|row| row.end(slot, commit));
    }

    fn vacuum(&mut self, ctx: &Ctx) {
        let index = &mut self.index;
        let mut pass = |dead: &dyn Fn(Tid) -> bool| {
            index.retain(|&(_, tid)| !dead(tid));
            Ok(())
        };
        vacuum(ctx, &self.world.heap, None, Some(&mut pass)).unwrap();
    }

    fn step(&mut self, ctxs: &'w [Ctx], spare: &Ctx) {
        let slot = self.rng.random_range(0..SLOTS);
        if self.slots[slot].is_none() {
            self.slots[slot] = Some(Tx::begin(&ctxs[slot]));
        }
        let strength = LockStrength::ALL[self.rng.random_range(0..4)];
        match self.rng.random_range(0..40) {
            0..=14 => {
                let row = self.rng.random_range(0..ROWS);
                self.pick(slot, row);
            }
            // Mostly weak locks, so that several transactions share a row.
            15..=20 => self.lock(slot, LockStrength::KeyShare),
            21..=27 => self.lock(slot, strength),
            28..=31 => self.change(slot, Kind::Update(KeyChange::None)),
            32 => self.change(slot, Kind::Update(KeyChange::Plain)),
            33 => self.change(slot, Kind::Update(KeyChange::Unique)),
            34 if self.rng.random_ratio(1, 10) => self.change(slot, Kind::Delete),
            34..=36 => self.end(slot, true),
            37..=38 => self.end(slot, false),
            _ => self.vacuum(spare),
        }
    }
}

#[test]
fn row_locks_agree_with_a_plain_model() {
    let mut counts = BTreeMap::<&str, usize>::new();
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let world = World::new(32, 90);
        let (ctxs, spare) = (Vec::from_iter((0..SLOTS).map(|_| world.ctx())), world.ctx());
        let mut model = Model::new(&world, &spare, seed);
        for _ in 0..400 {
            model.step(&ctxs, &spare);
        }
        let problem = &mut |problem| panic!("{problem}");
        check_heap(&spare, &world.heap, world.shared.txns.next_xid(), problem).unwrap();
        for slot in 0..SLOTS {
            model.end(slot, slot % 2 == 0);
        }
        // No slot holds anything any more, whatever the rows' headers say.
        model.slots[0] = Some(Tx::begin(&ctxs[0]));
        for row in 0..ROWS {
            model.pick(0, row);
            if let Some(pick) = model.picks[0] {
                model.lock(0, LockStrength::Update);
                assert!(model.rows[&pick.row].locks.contains_key(&0));
            }
        }
        model.end(0, true);
        model.vacuum(&spare);
        check_heap(&spare, &world.heap, world.shared.txns.next_xid(), problem).unwrap();
        for (name, count) in model.counts {
            *counts.entry(name).or_default() += count;
        }
    }
    for name in ["done", "waits", "waits as a holder", "followed", "updated", "deleted"] {
        assert!(counts.get(name).is_some_and(|&count| count > 0), "{name}: {counts:?}");
    }
    println!("{counts:?}");
}
