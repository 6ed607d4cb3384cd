//! Random histories, against a database that copies its committed state for each snapshot.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use super::header;
use crate::transam::{ComboCids, Csn};

/// One step of a random history. The numbers choose a transaction and a row version.
#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    Delete(u8, u8),
    Update(u8, u8),
    NextCommand(u8),
    Commit(u8),
    Abort(u8),
    Snapshot(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => any::<u8>().prop_map(Step::Insert),
        2 => any::<(u8, u8)>().prop_map(|(t, r)| Step::Delete(t, r)),
        4 => any::<(u8, u8)>().prop_map(|(t, r)| Step::Update(t, r)),
        3 => any::<u8>().prop_map(Step::NextCommand),
        2 => any::<u8>().prop_map(Step::Commit),
        1 => any::<u8>().prop_map(Step::Abort),
        3 => any::<u8>().prop_map(Step::Snapshot),
    ]
}

/// Rows with their versions: a version is its index in the list of all versions.
type State = BTreeMap<usize, usize>;

struct Txn {
    xid: Xid,
    command: CommandId,
    fates: RefCell<ComboCids>,
    /// The transaction's own changes: rows and their version, or none when deleted.
    now: BTreeMap<usize, Option<usize>>,
    /// The same, at the beginning of the running command.
    before: BTreeMap<usize, Option<usize>>,
}

struct History {
    statuses: BTreeMap<Xid, XidStatus>,
    versions: Vec<(usize, TupleHeader)>,
    committed: State,
    last_csn: Csn,
    txns: Vec<Txn>,
    next_xid: u64,
    rows: usize,
    /// Snapshots of transaction slots, with what they must see.
    snapshots: Vec<(Snapshot, State)>,
    oldest: Csn,
}

struct View<'a>(&'a BTreeMap<Xid, XidStatus>, &'a RefCell<ComboCids>);

impl Fates for View<'_> {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        Ok(self.0[&xid])
    }
    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.1.borrow().pair(id)
    }
}

impl History {
    fn new(slots: usize) -> Self {
        let mut history = History {
            statuses: BTreeMap::new(),
            versions: Vec::new(),
            committed: State::new(),
            last_csn: Csn::FROZEN,
            txns: Vec::new(),
            next_xid: Xid::FIRST.0,
            rows: 0,
            snapshots: Vec::new(),
            oldest: Csn::FROZEN,
        };
        for _ in 0..slots {
            let txn = history.begin();
            history.txns.push(txn);
        }
        history
    }

    fn begin(&mut self) -> Txn {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        self.statuses.insert(xid, XidStatus::InProgress);
        Txn {
            xid,
            command: CommandId::FIRST,
            fates: RefCell::default(),
            now: BTreeMap::new(),
            before: BTreeMap::new(),
        }
    }

    fn finish(&mut self, slot: usize, status: XidStatus) {
        let fresh = self.begin();
        let txn = std::mem::replace(&mut self.txns[slot], fresh);
        self.statuses.insert(txn.xid, status);
        if let XidStatus::Committed(_) = status {
            for (row, version) in txn.now {
                match version {
                    Some(version) => self.committed.insert(row, version),
                    None => self.committed.remove(&row),
                };
            }
        }
        // Snapshots of a finished transaction end with it.
        self.snapshots.retain(|(s, _)| s.own != Some(txn.xid));
    }

    /// Deletes some version that the transaction's command may change. Returns its row.
    fn delete(&mut self, slot: usize, pick: usize, updated: bool) -> Option<usize> {
        let txn = &self.txns[slot];
        let view = View(&self.statuses, &txn.fates);
        let candidates: Vec<usize> = (0..self.versions.len())
            .filter(|i| {
                update_status(
                    &self.versions[*i].1,
                    Some(txn.xid),
                    txn.command,
                    LockStrength::Update,
                    &view,
                )
                .unwrap()
                    == UpdateStatus::Ok
            })
            .collect();
        let index = *candidates.get(pick % candidates.len().max(1))?;
        let (row, header) = &mut self.versions[index];
        let latest = txn.now.get(row).copied().unwrap_or(self.committed.get(row).copied());
        assert_eq!(latest, Some(index), "only the latest version of a row may be changed");
        let (cid, combo) =
            cid_for_delete(header, txn.xid, txn.command, &mut txn.fates.borrow_mut()).unwrap();
        header.flags = header.flags.without(TupleFlags::COMBO_CID.with(TupleFlags::UPDATED_AWAY));
        if combo {
            header.flags = header.flags.with(TupleFlags::COMBO_CID);
        }
        if updated {
            header.flags = header.flags.with(TupleFlags::UPDATED_AWAY);
        }
        (header.xmax, header.cid) = (txn.xid, cid);
        let row = *row;
        self.txns[slot].now.insert(row, None);
        Some(row)
    }

    fn insert(&mut self, slot: usize, row: usize) {
        let txn = &mut self.txns[slot];
        self.versions.push((row, header(txn.xid, txn.command)));
        txn.now.insert(row, Some(self.versions.len() - 1));
    }

    fn run(&mut self, step: &Step) {
        let slots = self.txns.len();
        let slot = |t: u8| t as usize % slots;
        match *step {
            Step::Insert(t) => {
                self.rows += 1;
                self.insert(slot(t), self.rows);
            }
            Step::Delete(t, r) => {
                self.delete(slot(t), r as usize, false);
            }
            Step::Update(t, r) => {
                if let Some(row) = self.delete(slot(t), r as usize, true) {
                    self.insert(slot(t), row);
                }
            }
            Step::NextCommand(t) => {
                let txn = &mut self.txns[slot(t)];
                txn.command = txn.command.next().unwrap();
                txn.before = txn.now.clone();
            }
            Step::Commit(t) => {
                self.last_csn.0 += 1;
                self.finish(slot(t), XidStatus::Committed(self.last_csn));
            }
            Step::Abort(t) => self.finish(slot(t), XidStatus::Aborted),
            Step::Snapshot(t) => {
                let txn = &self.txns[slot(t)];
                let mut state = self.committed.clone();
                for (row, version) in &txn.before {
                    match version {
                        Some(version) => state.insert(*row, *version),
                        None => state.remove(row),
                    };
                }
                let snapshot =
                    Snapshot { csn: self.last_csn, own: Some(txn.xid), command: txn.command };
                self.snapshots.push((snapshot, state));
            }
        }
        self.oldest = self.snapshots.iter().map(|(s, _)| s.csn).min().unwrap_or(self.last_csn);
        self.check();
    }

    fn check(&self) {
        for (snapshot, expected) in &self.snapshots {
            let txn = self.txns.iter().find(|t| snapshot.is_own(t.xid)).expect("a running one");
            let view = View(&self.statuses, &txn.fates);
            let seen: Vec<_> = (0..self.versions.len())
                .filter(|i| visible(&self.versions[*i].1, snapshot, &view).unwrap())
                .map(|i| (self.versions[i].0, i))
                .collect();
            let mut expected: Vec<_> = expected.iter().map(|(r, v)| (*r, *v)).collect();
            expected.sort_by_key(|(_, version)| *version);
            assert_eq!(seen, expected, "{snapshot:?}");
        }
        let horizon = Horizon { csn: self.oldest, oldest_running_xid: self.txns[0].xid };
        for (_, header) in &self.versions {
            let nobody = RefCell::default();
            let deadness = dead_to_all(header, &horizon, &View(&self.statuses, &nobody)).unwrap();
            for (snapshot, _) in &self.snapshots {
                let txn = self.txns.iter().find(|t| snapshot.is_own(t.xid)).expect("a running one");
                let seen = visible(header, snapshot, &View(&self.statuses, &txn.fates)).unwrap();
                match deadness {
                    Deadness::Dead => assert!(!seen, "a dead version is seen: {header:?}"),
                    Deadness::Live { all_visible: true } => {
                        assert!(seen, "an all-visible version is not seen: {header:?}");
                    }
                    _ => {}
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_histories_look_as_if_each_snapshot_were_a_copy(
        slots in 1usize..4, steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut history = History::new(slots);
        for step in &steps {
            history.run(step);
        }
    }
}
