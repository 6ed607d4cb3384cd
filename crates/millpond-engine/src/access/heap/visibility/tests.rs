//! The visibility rules against two models. One is a table with every combination of events. The
//! other is random histories, against a database that copies its committed state for each snapshot.

use std::cell::RefCell;
use std::collections::BTreeMap;

use millpond_buffer::BlockNumber;
use proptest::prelude::*;

use super::*;
use crate::access::Tid;
use crate::transam::{ComboCids, Csn};

#[derive(Default)]
struct ModelFates {
    statuses: BTreeMap<Xid, XidStatus>,
    combos: RefCell<ComboCids>,
}

impl Fates for ModelFates {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        Ok(self.statuses.get(&xid).copied().unwrap_or(XidStatus::InProgress))
    }
    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.combos.borrow().pair(id)
    }
}

fn header(xmin: Xid, cid: CommandId) -> TupleHeader {
    TupleHeader {
        xmin,
        xmax: Xid::INVALID,
        cid,
        flags: TupleFlags::NONE,
        natts: 1,
        ctid: Tid::new(BlockNumber(0), 1),
    }
}

/// An event that happened to a row version, as the table test enumerates it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    OwnEarlier,
    OwnNow,
    CommittedBefore,
    CommittedAfter,
    Aborted,
    Running,
}

const EVENTS: [Event; 6] = [
    Event::OwnEarlier,
    Event::OwnNow,
    Event::CommittedBefore,
    Event::CommittedAfter,
    Event::Aborted,
    Event::Running,
];

const OWN: Xid = Xid(100);
const COMMAND: CommandId = CommandId(5);
const SNAPSHOT: Snapshot = Snapshot { csn: Csn(50), own: Some(OWN), command: COMMAND };

impl Event {
    fn xid(self, base: u64) -> Xid {
        match self {
            Event::OwnEarlier | Event::OwnNow => OWN,
            other => Xid(base + other as u64),
        }
    }
    fn command(self) -> CommandId {
        if self == Event::OwnEarlier { CommandId(4) } else { COMMAND }
    }
    fn status(self) -> XidStatus {
        match self {
            Event::CommittedBefore => XidStatus::Committed(SNAPSHOT.csn),
            Event::CommittedAfter => XidStatus::Committed(Csn(SNAPSHOT.csn.0 + 1)),
            Event::Aborted => XidStatus::Aborted,
            _ => XidStatus::InProgress,
        }
    }
    fn in_view(self) -> bool {
        matches!(self, Event::OwnEarlier | Event::CommittedBefore)
    }
    fn is_own(self) -> bool {
        matches!(self, Event::OwnEarlier | Event::OwnNow)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Xmax {
    None,
    Locked(Event),
    Deleted(Event),
    Updated(Event),
}

fn all_xmax() -> Vec<Xmax> {
    let mut all = vec![Xmax::None];
    for event in EVENTS {
        all.extend([Xmax::Locked(event), Xmax::Deleted(event), Xmax::Updated(event)]);
    }
    all
}

/// A header for the two events, or `None` if the second cannot follow the first.
fn build(fates: &mut ModelFates, xmin: Event, xmax: Xmax) -> Option<TupleHeader> {
    let mut made = header(xmin.xid(10), xmin.command());
    fates.statuses.insert(made.xmin, xmin.status());
    let (event, flags) = match xmax {
        Xmax::None => return Some(made),
        Xmax::Locked(event) => (event, TupleFlags::XMAX_LOCK_ONLY),
        Xmax::Deleted(event) => (event, TupleFlags::NONE),
        Xmax::Updated(event) => (event, TupleFlags::UPDATED_AWAY),
    };
    // A transaction changes only what it can see. An own version is deleted only by its maker, in a
    // later command. A version whose maker is running or has failed is deleted by no other.
    let possible = match xmin {
        Event::OwnEarlier => event.is_own(),
        Event::OwnNow | Event::Aborted | Event::Running => false,
        Event::CommittedAfter => event != Event::CommittedBefore,
        Event::CommittedBefore => true,
    };
    if !possible {
        return None;
    }
    made.xmax = event.xid(30);
    fates.statuses.insert(made.xmax, event.status());
    made.flags = flags;
    if !matches!(xmax, Xmax::Locked(_)) {
        let before = TupleHeader { xmax: Xid::INVALID, flags: TupleFlags::NONE, ..made };
        let (cid, combo) =
            cid_for_delete(&before, made.xmax, event.command(), fates.combos.get_mut()).unwrap();
        made.cid = cid;
        if combo {
            made.flags = made.flags.with(TupleFlags::COMBO_CID);
        }
    }
    Some(made)
}

#[test]
fn every_combination_is_seen_as_its_events_say() {
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let deleted = matches!(xmax, Xmax::Deleted(e) | Xmax::Updated(e) if e.in_view());
            assert_eq!(
                visible(&header, &SNAPSHOT, &fates).unwrap(),
                xmin.in_view() && !deleted,
                "{xmin:?} then {xmax:?}"
            );
            if xmin == Event::CommittedBefore {
                let frozen =
                    TupleHeader { flags: header.flags.with(TupleFlags::XMIN_FROZEN), ..header };
                assert_eq!(visible(&frozen, &SNAPSHOT, &fates).unwrap(), !deleted, "{xmax:?}");
            }
        }
    }
}

#[test]
fn every_combination_may_be_changed_as_the_latest_state_says() {
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let made =
                matches!(xmin, Event::OwnEarlier | Event::CommittedBefore | Event::CommittedAfter);
            let expected = match xmax {
                _ if !made => UpdateStatus::Invisible,
                Xmax::None => UpdateStatus::Ok,
                Xmax::Locked(Event::Running) => UpdateStatus::InProgress(header.xmax),
                Xmax::Locked(_) => UpdateStatus::Ok,
                Xmax::Deleted(e) | Xmax::Updated(e) => match e {
                    Event::OwnEarlier => UpdateStatus::Invisible,
                    Event::OwnNow => UpdateStatus::SelfUpdated,
                    Event::Running => UpdateStatus::InProgress(header.xmax),
                    Event::Aborted => UpdateStatus::Ok,
                    _ if matches!(xmax, Xmax::Updated(_)) => UpdateStatus::Updated,
                    _ => UpdateStatus::Deleted,
                },
            };
            let status =
                update_status(&header, Some(OWN), COMMAND, LockStrength::Update, &fates).unwrap();
            assert_eq!(status, expected, "{xmin:?} then {xmax:?}");
        }
    }
}

#[test]
fn every_combination_is_dead_only_when_nobody_can_see_it() {
    let horizon = Horizon { csn: SNAPSHOT.csn, oldest_running_xid: Xid(3) };
    for xmin in EVENTS {
        for xmax in all_xmax() {
            let mut fates = ModelFates::default();
            let Some(header) = build(&mut fates, xmin, xmax) else { continue };
            let all_visible = xmin == Event::CommittedBefore;
            let expected = match (xmin, xmax) {
                (Event::OwnEarlier | Event::OwnNow | Event::Running, _) => {
                    Deadness::InsertInProgress(header.xmin)
                }
                (Event::Aborted, _) => Deadness::Dead,
                (_, Xmax::None | Xmax::Locked(_)) => Deadness::Live { all_visible },
                (_, Xmax::Deleted(e) | Xmax::Updated(e)) => match e {
                    Event::CommittedBefore => Deadness::Dead,
                    Event::CommittedAfter => Deadness::RecentlyDead(Csn(SNAPSHOT.csn.0 + 1)),
                    Event::Aborted => Deadness::Live { all_visible },
                    _ => Deadness::DeleteInProgress(header.xmax),
                },
            };
            assert_eq!(
                dead_to_all(&header, &horizon, &fates).unwrap(),
                expected,
                "{xmin:?} then {xmax:?}"
            );
        }
    }
}

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
